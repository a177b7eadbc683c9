"""The catalog: which databases and containers there are, and which space holds which range. Space
0.

    db         name            → DatabaseRecord
    container  database, name  → ContainerRecord, its range table inside
    by rid     rid             → the key of the record
    space      number          → a space that no container owns (yet, or any more)
    offer      rid of an owner → OfferRecord (store/throughput/offers.py)

A container record is one row, so a change of its ranges is one compare-and-set. A space is listed
under `space` before it is made and until a record owns it; after a crash, what is still listed
there is dropped (`orphans`). Records are JSON: small, few, and read by people. There is no need to
invalidate a cache of them: the fence in each space tells the holder of an old one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import msgspec

from armillary.budget import Budget
from armillary.encoding.etags import format_etag
from armillary.encoding.models import MODEL_OF_API
from armillary.encoding.records import decoder
from armillary.encoding.rids import container_rid, database_rid, rid_bytes
from armillary.engine.base import CATALOG_SPACE, Command, Engine, Handler, Reader, Writer, always
from armillary.errors import (
    Conflict,
    NotFound,
    OwnerNotFound,
    PreconditionFailed,
    Stale,
    TooManyResources,
)
from armillary.limits import DATABASES_AND_CONTAINERS_MAX
from armillary.partition.provisioning.partitions import OfferKind
from armillary.partition.ranges import Range
from armillary.store.catalog.resource_keys import remove_resources
from armillary.store.rows.layout import META, after
from armillary.store.rows.listing import rows_under
from armillary.store.rows.secondary import id_part
from armillary.store.throughput.offers import OfferRecord, put_offer, remove_offer

Throughput: TypeAlias = tuple[OfferKind, int]

DATABASE = b"\x11"
CONTAINER = b"\x21"
BY_RID = b"\x31"
SPACE = b"\x41"
U32 = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class CatalogMeta:
    """The fence of the catalog is its version; the rest are counters that never go back."""

    form: int = 1
    version: int = 0
    databases: int = 0
    containers: int = 0
    spaces: int = 0
    resources: int = 0
    """Databases and containers alive."""
    offers: int = 0


@dataclass(frozen=True, slots=True)
class DatabaseRecord:
    id: str
    rid: str
    number: int
    etag: str
    ts: int


@dataclass(frozen=True, slots=True)
class RangeRecord:
    ordinal: int
    space: int
    start: str
    end: str
    epoch: int
    parents: tuple[int, ...]

    def to_range(self) -> Range:
        start, end = bytes.fromhex(self.start), bytes.fromhex(self.end)
        return Range(self.ordinal, self.space, start, end, self.epoch, self.parents)


def range_record(one: Range) -> RangeRecord:
    return RangeRecord(
        one.ordinal,
        one.space,
        one.start.hex().upper(),
        one.end.hex().upper(),
        one.epoch,
        one.parents,
    )


@dataclass(frozen=True, slots=True)
class MoveRecord:
    """A split or merge under way: `parents` (ordinals) will be replaced by `children`."""

    epoch: int
    parents: tuple[int, ...]
    children: tuple[RangeRecord, ...]
    beat_ms: int
    """When its runner was last seen alive. A silent one may be taken over."""


@dataclass(frozen=True, slots=True)
class PastMove:
    """A split or merge that is over: the children took the place of the parents."""

    parents: tuple[int, ...]
    children: tuple[int, ...]
    at_ms: int


@dataclass(frozen=True, slots=True)
class FormerRange:
    """A range that was split or merged: under the number of its space lies what it consumed, and
    clients that have not heard of it yet ask for its part of the hashes under its old id."""

    ordinal: int
    space: int
    start: str = ""
    """Bounds as in `RangeRecord`; empty in records of older versions."""
    end: str = ""
    at_ms: int = 0


@dataclass(frozen=True, slots=True)
class ContainerRecord:
    id: str
    rid: str
    database: str
    definition: dict[str, Any]
    ranges: tuple[RangeRecord, ...]
    etag: str = ""
    ts: int = 0
    version: int = 1
    """Rises with every change of this row."""
    settings: int = 1
    """Rises with every change of the definition; part of the fence."""
    policy: int = 1
    """Rises when index entries have to be built again."""
    policies: dict[int, str] = field(default_factory=dict)
    """The policies that items may still be indexed under, by version."""
    ordinals: int = 0
    """How many range ids were ever given out; none is used twice."""
    moves: tuple[MoveRecord, ...] = ()
    move_epoch: int = 0
    """Rises with every beginning and take-over of a move."""
    past_moves: tuple[PastMove, ...] = ()
    """The latest, oldest first. For people: nothing depends on it."""
    former: tuple[FormerRange, ...] = ()
    """The latest, oldest first."""
    fixed: bool = False
    """It has a partition key and one physical partition for ever; without a key it has too."""
    api: str | msgspec.UnsetType = msgspec.UNSET
    """The API it was made for, when that is not NoSQL: records of NoSQL containers, and all from
    before there were others, do not have it."""

    closed: str | msgspec.UnsetType = msgspec.UNSET
    """Nothing may be written: its items have moved to the container of this name."""

    @property
    def model_name(self) -> str:
        return MODEL_OF_API["nosql" if self.api is msgspec.UNSET else self.api]


class _Named(msgspec.Struct):
    """As much of a record as tells whose it is: a long name is cut in its key."""

    id: str


decode_meta = decoder(CatalogMeta)
decode_database = decoder(DatabaseRecord)
decode_container = decoder(ContainerRecord)
_decode_named = decoder(_Named)


def _encode(record: Any) -> bytes:
    return msgspec.json.encode(record)


def database_key(name: str) -> bytes:
    return DATABASE + id_part(name)


def container_key(database: DatabaseRecord, name: str) -> bytes:
    return CONTAINER + U32.pack(database.number) + id_part(name)


def space_key(space: int) -> bytes:
    return SPACE + U32.pack(space)


# --- reading ------------------------------------------------------------------------------------


def find_database(reader: Reader, name: str) -> DatabaseRecord | None:
    row = reader.get(database_key(name))
    record = None if row is None else decode_database(row)
    return record if record is not None and record.id == name else None


def get_database(reader: Reader, name: str) -> DatabaseRecord:
    record = find_database(reader, name)
    if record is None:
        raise NotFound
    return record


def find_container(reader: Reader, database: str, name: str) -> ContainerRecord | None:
    owner = find_database(reader, database)
    row = None if owner is None else find_container_row(reader, owner, name)
    return None if row is None else decode_container(row)


def find_container_row(reader: Reader, owner: DatabaseRecord, name: str) -> bytes | None:
    row = reader.get(container_key(owner, name))
    if row is None or _decode_named(row).id != name:
        return None
    return row


def list_databases(reader: Reader, budget: Budget | None = None) -> list[DatabaseRecord]:
    return [decode_database(row) for row in rows_under(reader, DATABASE, budget)]


def list_containers(
    reader: Reader, database: str, budget: Budget | None = None
) -> list[ContainerRecord]:
    owner = get_database(reader, database)
    prefix = CONTAINER + U32.pack(owner.number)
    return [decode_container(row) for row in rows_under(reader, prefix, budget)]


def orphans(reader: Reader, before_s: int) -> list[int]:
    """Spaces that no container owns and that can't be about to be used any more."""
    return [
        U32.unpack_from(key, 1)[0]
        for key, row in reader.scan(SPACE, after(SPACE))
        if U32.unpack(row)[0] < before_s
    ]


def count_resources(reader: Reader) -> int:
    """Databases and containers."""
    row = reader.get(META)
    return 0 if row is None else decode_meta(row).resources


# --- commands -----------------------------------------------------------------------------------


def _meta(tx: Writer) -> CatalogMeta:
    row = tx.get(META)
    assert row is not None
    return decode_meta(row)


def _save(tx: Writer, meta: CatalogMeta, **changes: int) -> CatalogMeta:
    meta = replace(meta, version=meta.version + 1, **changes)
    tx.put(META, _encode(meta))
    return meta


def _check_room(meta: CatalogMeta) -> None:
    if meta.resources >= DATABASES_AND_CONTAINERS_MAX:
        raise TooManyResources(
            f"The account has {meta.resources} databases and containers; "
            f"{DATABASES_AND_CONTAINERS_MAX} are possible. Delete some first."
        )


def _create_database(tx: Writer, data: tuple[str, Throughput | None, int]) -> bytes:
    name, throughput, now_s = data
    meta = _meta(tx)
    if tx.get(database_key(name)) is not None:
        raise Conflict
    _check_room(meta)
    number = meta.databases + 1
    meta = _save(tx, meta, databases=number, resources=meta.resources + 1)
    rid = database_rid(number)
    record = DatabaseRecord(name, rid, number, format_etag(meta.version, 0, now_s), now_s)
    row = _encode(record)
    tx.put(database_key(name), row)
    tx.put(BY_RID + rid_bytes(rid), database_key(name))
    _add_offer(tx, rid, f"dbs/{rid}/", throughput, now_s)
    return row


def _add_offer(
    tx: Writer, owner: str, resource: str, throughput: Throughput | None, now_s: int
) -> None:
    if throughput is None:
        return
    kind, ru = throughput
    meta = _meta(tx)
    meta = _save(tx, meta, offers=meta.offers + 1)
    put_offer(tx, OfferRecord(owner, resource, kind, ru), meta.offers, now_s)


def _delete_database(tx: Writer, name: str) -> list[int]:
    """Its containers go with it. Answers the spaces to drop."""
    record = get_database(tx, name)
    spaces = [
        space
        for container in list_containers(tx, name)
        for space in _remove_container(tx, record, container)
    ]
    tx.delete(database_key(name))
    tx.delete(BY_RID + rid_bytes(record.rid))
    remove_offer(tx, record.rid)
    remove_resources(tx, record.rid)
    meta = _meta(tx)
    _save(tx, meta, resources=meta.resources - 1)
    return spaces


def _reserve_spaces(
    tx: Writer, data: tuple[str, str, int, int, Sequence[int] | None]
) -> tuple[Sequence[int], str]:
    """`count` new spaces, listed as orphans until a record owns them; and a rid."""
    database, name, count, now_s, chosen = data
    owner = find_database(tx, database)
    if owner is None:
        raise OwnerNotFound
    if tx.get(container_key(owner, name)) is not None:
        raise Conflict
    meta = _meta(tx)
    _check_room(meta)
    number = meta.containers + 1
    _save(tx, meta, containers=number)
    return new_spaces(tx, count, now_s, chosen), container_rid(owner.rid, number)


def new_spaces(
    tx: Writer, count: int, now_s: int, chosen: Sequence[int] | None = None
) -> Sequence[int]:
    """`count` fresh spaces, listed as orphans until a record owns them. `chosen`: out of those
    that `pass_spaces` gave."""
    spaces = _fresh(tx, count) if chosen is None else chosen
    for space in spaces:
        tx.put(space_key(space), U32.pack(now_s))
    return spaces


def _fresh(tx: Writer, count: int) -> list[int]:
    meta = _meta(tx)
    _save(tx, meta, spaces=meta.spaces + count)
    return list(range(meta.spaces + 1, meta.spaces + 1 + count))


def _pass_spaces(tx: Writer, count: int) -> int:
    """The first of so many numbers that no other gets. Those that are not used are lost."""
    return _fresh(tx, count)[0]


def chosen_spaces(engine: Engine, count: int, present: Sequence[int] = ()) -> Sequence[int] | None:
    """Numbers for new spaces of the container that has those `present`; None: as they come."""
    choices = engine.space_choices(count)
    if not choices:
        return None
    first = engine.run(CATALOG_SPACE, Command("catalog.pass_spaces", choices))
    return engine.choose_spaces(range(first, first + choices), count, present)


def _create_container(tx: Writer, data: tuple[bytes, Throughput | None, int]) -> bytes:
    source, throughput, now_s = data
    record = decode_container(source)
    owner = find_database(tx, record.database)
    if owner is None:
        raise OwnerNotFound
    key = container_key(owner, record.id)
    if tx.get(key) is not None:
        raise Conflict
    meta = _meta(tx)
    _check_room(meta)
    own_spaces(tx, [one.space for one in record.ranges])
    meta = _save(tx, meta, resources=meta.resources + 1)
    record = replace(record, etag=format_etag(meta.version, 0, now_s), ts=now_s)
    row = _encode(record)
    tx.put(key, row)
    tx.put(BY_RID + rid_bytes(record.rid), key)
    _add_offer(tx, record.rid, f"dbs/{owner.rid}/colls/{record.rid}/", throughput, now_s)
    return row


def own_spaces(tx: Writer, spaces: Iterable[int]) -> None:
    """From now on a record owns them. Refused when a clean-up took one for lost."""
    for space in spaces:
        if not tx.delete(space_key(space)):
            raise PreconditionFailed("The operation took too long; try again.")


def _replace_container(tx: Writer, data: tuple[bytes, int]) -> bytes:
    """Compare and set: the record must still be the one the caller changed."""
    source, now_s = data
    record = decode_container(source)
    current = find_container(tx, record.database, record.id)
    if current is None or current.rid != record.rid:
        raise NotFound
    if current.version != record.version:
        raise Stale
    return save_container(tx, record, now_s)


def save_container(tx: Writer, record: ContainerRecord, changed_s: int | None = None) -> bytes:
    """With `changed_s` users see a new etag and time; a change of ranges alone is not theirs."""
    meta = _save(tx, _meta(tx))
    if changed_s is not None:
        record = replace(record, etag=format_etag(meta.version, 0, changed_s), ts=changed_s)
    record = replace(record, version=record.version + 1)
    row = _encode(record)
    tx.put(container_key(get_database(tx, record.database), record.id), row)
    return row


def _delete_container(tx: Writer, data: tuple[str, str]) -> list[int]:
    database, name = data
    record = find_container(tx, database, name)
    if record is None:
        raise NotFound
    return _remove_container(tx, get_database(tx, database), record)


def _remove_container(tx: Writer, owner: DatabaseRecord, record: ContainerRecord) -> list[int]:
    tx.delete(container_key(owner, record.id))
    tx.delete(BY_RID + rid_bytes(record.rid))
    remove_offer(tx, record.rid)
    remove_resources(tx, record.rid)
    spaces = [one.space for one in record.ranges]
    spaces += (child.space for move in record.moves for child in move.children)
    doom_spaces(tx, spaces)
    meta = _meta(tx)
    _save(tx, meta, resources=meta.resources - 1)
    return spaces


def doom_spaces(tx: Writer, spaces: Iterable[int]) -> None:
    for space in spaces:
        tx.put(space_key(space), U32.pack(0))  # an orphan since the beginning of time: drop it


def _forget_spaces(tx: Writer, spaces: list[int]) -> None:
    for space in spaces:
        tx.delete(space_key(space))


HANDLERS: dict[str, Handler] = {
    "catalog.create_database": Handler(_create_database),
    "catalog.delete_database": Handler(_delete_database, frees=always),
    "catalog.pass_spaces": Handler(_pass_spaces),
    "catalog.reserve_spaces": Handler(_reserve_spaces),
    "catalog.create_container": Handler(_create_container),
    "catalog.replace_container": Handler(_replace_container),
    "catalog.delete_container": Handler(_delete_container, frees=always),
    "catalog.forget_spaces": Handler(_forget_spaces, frees=always),
}


def ensure_catalog(engine: Engine) -> None:
    """Make space 0 if this is a new store. Two processes may try at once; one wins."""
    if 0 not in engine.spaces():
        try:
            engine.create_space(0, [(META, _encode(CatalogMeta()))])
        except Conflict:
            return
