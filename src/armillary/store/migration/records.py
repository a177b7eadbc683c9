"""How far a change of partition key has come: one row of the catalog per target container.

    rekey  number of the database, name of the target → RekeyRecord

Every step saves the record, compared with the version it was read at, so two runners of one change
find out about each other, and a runner that was killed is followed by one that goes on.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from armillary.encoding.records import decoder
from armillary.engine.base import CATALOG_SPACE, Command, Engine, Handler, Writer
from armillary.errors import NotFound, Stale
from armillary.store.catalog.records import U32, find_database, get_database
from armillary.store.rows.secondary import id_part

REKEY = b"\x91"


@dataclass(frozen=True, slots=True)
class Left:
    """An item that could not be brought over, by its old identity."""

    id: str
    key: list[Any]
    """The old partition key; `{}` stands for a missing value."""
    why: str


@dataclass(frozen=True, slots=True)
class RekeyRecord:
    database: str
    source: str
    target: str
    source_rid: str
    definition: dict[str, Any]
    """Of the target, as it was asked for."""
    phase: str = "create"
    target_rid: str = ""
    position: str | None = None
    """In the items of the source (copy) or of the target (compare)."""
    feed: str = ""
    dirty: bool = False
    """The target may have items that the source no longer has."""
    short: int = 0
    """Pages of the feed in a row that had little in them."""
    rounds: int = 0
    copied: int = 0
    changed: int = 0
    removed: int = 0
    left: list[Left] = field(default_factory=list)
    verified: bool = False
    version: int = 0
    keyless: int = 0
    """Items brought that have nothing at the path of the new key."""
    closed: bool = False
    """The source takes no more writes: the cut-over has begun."""
    logical_partitions: int = 0
    """Of the target, compared with the source one by one, once it is closed."""
    different: int = 0
    """Those of them that are not the same."""


decode_rekey = decoder(RekeyRecord)


def load(engine: Engine, database: str, target: str) -> RekeyRecord | None:
    with engine.read(CATALOG_SPACE) as reader:
        owner = find_database(reader, database)
        row = None if owner is None else reader.get(_key(owner.number, target))
    record = None if row is None else decode_rekey(row)
    return record if record is not None and record.target == target else None


def save(engine: Engine, record: RekeyRecord) -> RekeyRecord:
    """Raises Stale when somebody else has saved meanwhile."""
    engine.run(CATALOG_SPACE, Command("rekey.save", msgspec.json.encode(record)))
    return replace(record, version=record.version + 1)


def forget(engine: Engine, record: RekeyRecord) -> None:
    engine.run(CATALOG_SPACE, Command("rekey.forget", (record.database, record.target)))


def _key(database: int, target: str) -> bytes:
    return REKEY + U32.pack(database) + id_part(target)


def _save(tx: Writer, data: bytes) -> None:
    record = decode_rekey(data)
    key = _key(get_database(tx, record.database).number, record.target)
    row = tx.get(key)
    if record.version and row is None:
        raise Stale
    if row is not None and record.version:
        known = decode_rekey(row)
        if (known.version, known.source_rid) != (record.version, record.source_rid):
            raise Stale
    tx.put(key, msgspec.json.encode(replace(record, version=record.version + 1)))


def _forget(tx: Writer, data: tuple[str, str]) -> None:
    database, target = data
    owner = find_database(tx, database)
    if owner is None:
        raise NotFound
    tx.delete(_key(owner.number, target))


HANDLERS: dict[str, Handler] = {
    "rekey.save": Handler(_save),
    "rekey.forget": Handler(_forget),
}
