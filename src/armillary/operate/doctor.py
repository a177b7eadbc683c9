"""Everything about an account that can be checked, one finding each.

    folder      the stamp can be read, the disk has room, the filesystem keeps locks
    catalog     the ranges of every container cover all hashes, each once
    runs        blocks have their checksums, are in order, and are all listed
    containers  every row that follows from the items is there, and no other; totals agree

It changes nothing, and a server may be running: each physical partition is looked at in one
snapshot. It reads all data.
"""

import math
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armillary.clock import new_random
from armillary.engine.address import parse_address
from armillary.engine.base import Engine, SpaceGone
from armillary.engine.lmdb.folder import NETWORK_FILESYSTEMS, filesystem_of
from armillary.engine.opening import open_engine
from armillary.errors import DataDamaged, DbError, Unavailable
from armillary.operate.copies import check_there
from armillary.partition.ranges import range_table
from armillary.store.catalog.accounts import AccountStore
from armillary.store.catalog.records import ContainerRecord
from armillary.store.commands import HANDLERS
from armillary.store.rows.layout import PACKED, SEALED
from armillary.store.rows.meta import unpack_meta
from armillary.store.upkeep.recount import problems
from armillary.units import bytes_text

FREE_BYTES_MIN = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    well: bool
    text: str


def examine(address: str, progress: Callable[[str], None] = lambda what: None) -> Iterator[Finding]:
    """The findings, as they are made."""
    check_there(address)
    folder = parse_address(address).folder
    if folder is not None:
        yield from _folder(folder)
    try:
        engine = open_engine(address, HANDLERS, packed=PACKED, sealed=SEALED, **_patience(folder))
    except DbError as error:
        yield Finding("account", False, f"It can't be opened: {error}")
        return
    try:
        account = AccountStore(engine, random=new_random())
        try:
            records = [
                (database.id, record)
                for database in account.list_databases()
                for record in account.list_containers(database.id)
            ]
        except Exception as error:  # noqa: BLE001 - damage shows in as many ways as there are
            yield Finding("catalog", False, _unreadable(error))
            return
        for database, record in records:
            name = f"{database}/{record.id}"
            progress(name)
            yield from _container(account, database, record, name)
        yield Finding("spaces", True, f"{len(engine.spaces())} in all")
    finally:
        engine.close()


def _patience(folder: Path | None) -> dict[str, Any]:
    """Rows are compared in one snapshot, however long that takes. Meanwhile a server that writes
    can't use again what it frees."""
    return {} if folder is None else {"read_seconds_max": math.inf}


def _unreadable(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return f"It is damaged and can't be read ({text}). Restore a backup, or export what is left."


def _folder(folder: Path) -> Iterator[Finding]:
    kind = filesystem_of(folder)
    network = kind in NETWORK_FILESYSTEMS
    text = f"It is on {kind or 'an unknown filesystem'}"
    yield Finding("filesystem", not network, text + (", a network filesystem." if network else "."))
    free = shutil.disk_usage(folder).free
    yield Finding("room", free >= FREE_BYTES_MIN, f"{bytes_text(free)} are free.")


def _container(
    account: AccountStore, database: str, record: ContainerRecord, name: str
) -> Iterator[Finding]:
    try:
        range_table([one.to_range() for one in record.ranges])
    except (DbError, ValueError, AssertionError) as error:
        yield Finding(name, False, f"Its ranges do not cover all hashes once: {error}")
        return
    items = wrong = 0
    policies = account.container(database, record.id).refresh().policies
    for one in record.ranges:
        found = _space(account.engine, one.space, policies)
        if found is None:
            # Split or deleted since it was listed: look at what has taken its place.
            yield Finding(name, True, "It is being split or deleted; look again later.")
            return
        count, problems = found
        items += count
        for problem in problems:
            wrong += 1
            yield Finding(name, False, f"Physical partition {one.ordinal}: {problem}")
    if not wrong:
        many = len(record.ranges)
        text = (
            f"{items:,} item{'s' * (items != 1)} in {many} physical partition{'s' * (many != 1)}: "
            "all rows agree."
        )
        yield Finding(name, True, text)


def _space(
    engine: Engine, space: int, policies: tuple[tuple[int, bytes], ...]
) -> tuple[int, list[str]] | None:
    try:
        found = engine.check(space)
        with engine.read(space) as reader:
            items = unpack_meta(reader.meta).items
            try:
                found += problems(reader, policies)
            except DataDamaged as error:
                found = found or [_unreadable(error)]  # the check has named all of them
            return items, found
    except SpaceGone:
        return None
    except Unavailable as error:
        return 0, [f"It could not be looked at: {error}"]
    except Exception as error:  # noqa: BLE001 - damage shows in as many ways as there are
        return 0, [_unreadable(error)]
