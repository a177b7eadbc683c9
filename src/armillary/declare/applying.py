"""Make an account what a file declares. Doing it again changes nothing.

    not there                    created, then filled with its seed files
    there, settings differ       changed to what the file says (index, time to live, …)
    a script that differs        replaced by the file's
    there, another key           an error: a partition key is for life
    there, another throughput    left as it is and said: somebody may have scaled it

What the file does not name is not touched.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from armillary.clock import new_random
from armillary.config import Settings
from armillary.container import Container
from armillary.declare.declared import DeclaredContainer, DeclaredDatabase, Place
from armillary.declare.item_files import read_items
from armillary.encoding.edm.json import stored_entity
from armillary.engine.base import Engine
from armillary.errors import BadInput, Conflict, DbError, NotFound
from armillary.partition.provisioning.offers import requested
from armillary.partition.provisioning.partitions import PartitionLimits
from armillary.scripts.lazy import LazyRuntime
from armillary.scripts.scripts import Scripts
from armillary.store.catalog.accounts import AccountStore
from armillary.store.catalog.definitions import parse_container
from armillary.store.catalog.records import ContainerRecord, Throughput
from armillary.store.catalog.seeds import note_seeded, seeded
from armillary.store.catalog.tables import api_of
from armillary.store.throughput.provisioned import read_offer

SEED_ITEMS = 500  # at once


def apply_declared(
    engine: Engine, settings: Settings, databases: Sequence[DeclaredDatabase]
) -> list[str]:
    """What was left as it is, in words."""
    partition = settings.partition
    account = AccountStore(
        engine,
        random=new_random(),
        limits=PartitionLimits(partition.bytes, partition.ru, partition.logical_bytes),
        classic=settings.throughput.profile == "classic",
        serverless=settings.throughput.serverless,
    )
    return [line for database in databases for line in _apply_database(account, database)]


def _apply_database(account: AccountStore, database: DeclaredDatabase) -> Iterator[str]:
    asked = _throughput(database)
    try:
        rid = account.read_database(database.id).rid
    except NotFound:
        with _at(database.place):
            account.create_database(database.id, asked)
    else:
        yield from _differs(account, rid, asked, f"database {database.id!r}", database.place)
    for container in database.containers:
        yield from _apply_container(account, database.id, container)


def _apply_container(
    account: AccountStore, database: str, declared: DeclaredContainer
) -> Iterator[str]:
    asked = _throughput(declared)
    try:
        record = account.read_container(database, declared.id)
    except NotFound:
        with _at(declared.place):
            record = account.create_container(
                database,
                declared.body,
                throughput=asked,
                physical_partitions=declared.physical_partitions,
                fixed=declared.fixed,
                api=declared.api,
            )
    else:
        with _at(declared.place):
            check_api(record, declared)
        if record.definition != parse_container(declared.body).document:
            with _at(declared.place):
                account.replace_container(database, declared.body)
        what = f"container {declared.id!r}"
        yield from _differs(account, record.rid, asked, what, declared.place)
    if declared.scripts:
        scripts = Scripts(account.container(database, declared.id), LazyRuntime())
        for script in declared.scripts:
            with _at(script.place):
                scripts.put(script.kind, script.body)
    done = seeded(account.engine, record.rid)
    for seed in declared.seeds:
        if Path(seed).name not in done:
            _fill(account, database, declared, Path(seed))
            note_seeded(account.engine, record.rid, Path(seed).name)


SAME_FORM = frozenset({"nosql", "gremlin"})
"""A graph may have been made through the NoSQL API, as the service's documents say."""


def check_api(record: ContainerRecord, declared: DeclaredContainer) -> None:
    if {api_of(record), declared.api} <= SAME_FORM or api_of(record) == declared.api:
        return
    raise BadInput(f"it is there already, and is one of the API for {api_of(record)}")


def _fill(account: AccountStore, database: str, declared: DeclaredContainer, seed: Path) -> None:
    container = Container(account.container(database, declared.id), account.limits)
    source: Iterator[dict[str, Any]] = read_items(seed)
    if declared.api == "table":
        source = map(stored_entity, source)
    elif declared.api == "mongo":
        from armillary.declare.collections import seed_item

        now_s = account.engine.now_ms() // 1000
        source = map(seed_item(parse_container(declared.body), now_s), source)
    while items := list(islice(source, SEED_ITEMS)):
        for item, answer in zip(
            items, container.bulk(("create", (item,)) for item in items), strict=True
        ):
            # There already: this file was being put in when the server died.
            if isinstance(answer, DbError) and not isinstance(answer, Conflict):
                name = item.get("id", "without an id")
                raise BadInput(f"{declared.place}: item {name!r} of {seed}: {answer}")


def _differs(
    account: AccountStore,
    rid: str,
    asked: Throughput | None,
    what: str,
    place: Place,
) -> Iterator[str]:
    if asked is None:
        return
    try:
        offer = read_offer(account.engine, rid)
    except NotFound:
        yield f"{place}: the {what} shares the throughput of its database; left so."
        return
    if (offer.kind, offer.ru) != asked:
        yield f"{place}: the {what} has {offer.ru:,} RU/s ({offer.kind}); left so."


def _throughput(declared: DeclaredDatabase | DeclaredContainer) -> Throughput | None:
    with _at(declared.place):
        return requested(declared.throughput, declared.autoscale_max)


@contextmanager
def _at(place: Place) -> Iterator[None]:
    """Whatever is refused inside is refused with the place in the file."""
    try:
        yield
    except DbError as error:
        raise BadInput(f"{place}: {error}") from error
