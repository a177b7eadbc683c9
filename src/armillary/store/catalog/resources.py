"""Users, permissions, scripts and client encryption keys: rows of the catalog with an owner.

    database ── user ── permission
        │   └── client encryption key
        └── container ── stored procedure, trigger, function

All are one shape: an id, a JSON body that goes out as it came in, an etag. What a body must have is
the API's business; here are names, rids, conditions and counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

import msgspec

from armillary import limits
from armillary.budget import Budget
from armillary.encoding import rids
from armillary.encoding.documents import check_name
from armillary.encoding.etags import format_etag, matches
from armillary.encoding.records import decoder
from armillary.encoding.rids import rid_bytes
from armillary.engine.base import CATALOG_SPACE, Command, Engine, Handler, Reader, Writer, always
from armillary.errors import BadInput, Conflict, NotFound, OwnerNotFound, PreconditionFailed
from armillary.store.catalog.records import (
    BY_RID,
    ContainerRecord,
    DatabaseRecord,
    decode_container,
    decode_database,
)
from armillary.store.catalog.resource_keys import (
    RESOURCE_BY_RID,
    RESOURCE_COUNT,
    owner_prefix,
    remove_resources,
    resource_key,
)
from armillary.store.rows.layout import after
from armillary.store.rows.listing import rows_under
from armillary.values import JSON

U64: Final = Struct(">Q")


@dataclass(frozen=True, slots=True)
class Kind:
    rid: Callable[[str, int], str]
    most: int
    """Under one owner."""
    unique: str | None = None
    """A member of the body that two of one owner can't share."""


KINDS: Final[dict[str, Kind]] = {
    "user": Kind(rids.user_rid, limits.USERS_MAX),
    "permission": Kind(rids.permission_rid, limits.PERMISSIONS_MAX, "resource"),
    "sproc": Kind(rids.sproc_rid, limits.STORED_PROCEDURES_MAX),
    "trigger": Kind(rids.trigger_rid, limits.TRIGGERS_MAX),
    "udf": Kind(rids.udf_rid, limits.FUNCTIONS_MAX),
    "clientencryptionkey": Kind(rids.client_encryption_key_rid, limits.ENCRYPTION_KEYS_MAX),
}


@dataclass(frozen=True, slots=True)
class ResourceRecord:
    kind: str
    owner: str
    """The rid of the owner."""
    id: str
    rid: str
    body: dict[str, Any]
    etag: str
    ts: int
    number: int
    """Counts all resources ever made: listing goes by it."""


decode = decoder(ResourceRecord)


class ResourceStore:
    """The resources of one kind under one owner."""

    def __init__(self, engine: Engine, kind: str, owner_rid: str) -> None:
        self._engine = engine
        self._kind = kind
        self._owner = owner_rid

    def create(self, body: dict[str, JSON], *, upsert: bool = False) -> ResourceRecord:
        check_name(body.get("id"))
        return self._run("resources.put", (*self._at(body["id"]), "", _json(body), upsert, None))

    def replace(
        self, resource_id: str, body: dict[str, JSON], *, if_match: str | None = None
    ) -> ResourceRecord:
        """The body may carry a new id."""
        check_name(body.get("id"))
        data = (*self._at(body["id"]), resource_id, _json(body), True, if_match)
        return self._run("resources.put", data)

    def delete(self, resource_id: str, *, if_match: str | None = None) -> None:
        data = (*self._at(resource_id), if_match)
        self._engine.run(CATALOG_SPACE, Command("resources.delete", data))

    def read(self, name_or_rid: str) -> ResourceRecord:
        with self._engine.read(CATALOG_SPACE) as reader:
            found = find(reader, self._kind, self._owner, name_or_rid)
            if found is None:
                found = find_by_rid(reader, name_or_rid)
        if found is None or (found.kind, found.owner) != (self._kind, self._owner):
            raise NotFound
        return found

    def list(self, budget: Budget | None = None) -> list[ResourceRecord]:
        prefix = owner_prefix(self._kind, self._owner)
        with self._engine.read(CATALOG_SPACE) as reader:
            rows = [decode(row) for row in rows_under(reader, prefix, budget)]
        return sorted(rows, key=lambda one: one.number)

    def _at(self, resource_id: str) -> tuple[str, str, str]:
        return self._kind, self._owner, resource_id

    def _run(self, name: str, data: tuple[Any, ...]) -> ResourceRecord:
        data = (*data, self._engine.now_ms() // 1000)
        return decode(self._engine.run(CATALOG_SPACE, Command(name, data)))


# --- reading ------------------------------------------------------------------------------------


def find(reader: Reader, kind: str, owner_rid: str, resource_id: str) -> ResourceRecord | None:
    row = reader.get(resource_key(kind, owner_rid, resource_id))
    record = None if row is None else decode(row)
    return record if record is not None and record.id == resource_id else None


def find_by_rid(reader: Reader, rid: str) -> ResourceRecord | None:
    try:
        key = reader.get(RESOURCE_BY_RID + rid_bytes(rid))
    except (BadInput, ValueError):
        return None
    row = None if key is None else reader.get(key)
    return None if row is None else decode(row)


def find_owner(reader: Reader, rid: str) -> DatabaseRecord | ContainerRecord | None:
    """A database or container by its rid."""
    try:
        data = rid_bytes(rid)
    except (BadInput, ValueError):
        return None
    key = reader.get(BY_RID + data)
    row = None if key is None else reader.get(key)
    if row is None:
        return None
    if len(data) == 4:
        return decode_database(row)
    return decode_container(row)


# --- commands -----------------------------------------------------------------------------------


def _put(tx: Writer, data: tuple[str, str, str, str, bytes, bool, str | None, int]) -> bytes:
    """Create (`old_id` empty; with `replaces` an upsert), or replace what `old_id` names."""
    kind, owner, new_id, old_id, source, replaces, if_match, now_s = data
    _check_owner(tx, owner)
    body = msgspec.json.decode(source)
    target = find(tx, kind, owner, old_id or new_id)
    if old_id and target is None:
        raise NotFound
    if target is not None and not replaces:
        raise Conflict
    if target is not None and if_match is not None and not matches(if_match, target.etag):
        raise PreconditionFailed
    if old_id and old_id != new_id and find(tx, kind, owner, new_id) is not None:
        raise Conflict
    _check_neighbours(tx, kind, owner, body, target)
    counter = _count(tx)
    if target is None:
        number, rid = counter, KINDS[kind].rid(owner, counter)
    else:
        number, rid = target.number, target.rid
        tx.delete(resource_key(kind, owner, target.id))
    etag = format_etag(counter, 0, now_s)
    row = msgspec.json.encode(ResourceRecord(kind, owner, new_id, rid, body, etag, now_s, number))
    key = resource_key(kind, owner, new_id)
    tx.put(key, row)
    tx.put(RESOURCE_BY_RID + rid_bytes(rid), key)
    return row


def _delete(tx: Writer, data: tuple[str, str, str, str | None]) -> None:
    kind, owner, resource_id, if_match = data
    record = find(tx, kind, owner, resource_id)
    if record is None:
        raise NotFound
    if if_match is not None and not matches(if_match, record.etag):
        raise PreconditionFailed
    tx.delete(resource_key(kind, owner, record.id))
    tx.delete(RESOURCE_BY_RID + rid_bytes(record.rid))
    if kind == "user":
        remove_resources(tx, record.rid)


def _check_owner(tx: Writer, owner: str) -> None:
    is_there = tx.get(BY_RID + rid_bytes(owner)) or tx.get(RESOURCE_BY_RID + rid_bytes(owner))
    if is_there is None:
        raise OwnerNotFound


def _check_neighbours(
    tx: Writer, kind: str, owner: str, body: dict[str, Any], target: ResourceRecord | None
) -> None:
    rule = KINDS[kind]
    if target is not None and rule.unique is None:
        return
    prefix = owner_prefix(kind, owner)
    others = [decode(row) for _, row in tx.scan(prefix, after(prefix))]
    if target is None and len(others) >= rule.most:
        raise BadInput(f"There are {len(others)} of this kind; at most {rule.most} are allowed.")
    if rule.unique is not None and any(
        one.body.get(rule.unique) == body.get(rule.unique) and one != target for one in others
    ):
        raise Conflict


def _count(tx: Writer) -> int:
    row = tx.get(RESOURCE_COUNT)
    counter = 1 if row is None else U64.unpack(row)[0] + 1
    tx.put(RESOURCE_COUNT, U64.pack(counter))
    return int(counter)


def _json(body: dict[str, JSON]) -> bytes:
    return msgspec.json.encode(body)


HANDLERS: dict[str, Handler] = {
    "resources.put": Handler(_put),
    "resources.delete": Handler(_delete, frees=always),
}
