"""One change of an entity: what a request asks for, and how the store does it. Facts: table 5.

    request                         store
    insert                          create
    PUT                             upsert
    PUT    If-Match: *              replace
    MERGE                           read, then create or replace what was seen; again if it changed
    PUT, MERGE, DELETE with an ETag read, compare, then replace or delete what was seen

The store compares its own etag in the write, so what was seen can't change in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import orjson

from armillary.api.table.flavours import Flavour
from armillary.api.table.problems import refused
from armillary.api.table.wire.etags import is_condition, same_etag
from armillary.api.table.wire.forms import Entity, make_item, own_properties
from armillary.encoding.documents import made_body
from armillary.encoding.edm.values import Tagged, item_id
from armillary.errors import (
    Conflict,
    DbError,
    NotFound,
    OwnerNotFound,
    PreconditionFailed,
    Stale,
    TooLarge,
)
from armillary.limits import MB, TABLE_MERGE_ROUNDS_MAX
from armillary.store.items.containers import ContainerStore, Sent
from armillary.store.items.preparation import Operation
from armillary.store.items.requests import Done

Kind: TypeAlias = Literal["insert", "replace", "merge", "delete"]

ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class Change:
    kind: Kind
    partition_key: str
    row_key: str
    properties: dict[str, Tagged] = field(default_factory=dict)
    if_match: str | None = None
    """None: a replace or merge also inserts."""

    @property
    def id(self) -> str:
        return item_id(self.row_key)

    @property
    def looks_first(self) -> bool:
        """Whether the store has to be read before the write can be made."""
        return self.kind == "merge" or self.if_match not in (None, ANY)

    @property
    def may_retry(self) -> bool:
        """Whether a change of the entity since it was seen means to look again, not to give up."""
        return self.if_match in (None, ANY)


@dataclass(frozen=True, slots=True)
class Seen:
    """An entity as the store has it."""

    etag: str
    properties: dict[str, Tagged]


# --- from requests ------------------------------------------------------------------------------


def insertion(entity: Entity, flavour: Flavour) -> Change:
    if entity.partition_key is None or entity.row_key is None:
        raise refused("keys missing")
    keys = flavour.check_keys(entity.partition_key, entity.row_key)
    return Change("insert", *keys, entity.properties)


def update(
    kind: Kind, keys: tuple[str, str], entity: Entity, if_match: str | None, flavour: Flavour
) -> Change:
    """The keys are those of the URL: those in the body do not count."""
    checked = flavour.check_keys(*keys)
    return Change(kind, *checked, entity.properties, check_condition(if_match))


def deletion(keys: tuple[str, str], if_match: str | None) -> Change:
    if if_match is None:
        raise refused("condition missing")
    return Change("delete", *keys, if_match=check_condition(if_match))


def check_condition(text: str | None) -> str | None:
    if text is None:
        return None
    text = text.strip()
    if not is_condition(text):
        raise refused("condition form")
    return text


# --- to the store -------------------------------------------------------------------------------


def see(store: ContainerStore, change: Change) -> Seen | None:
    try:
        found = store.read(change.id, (change.partition_key,))
    except OwnerNotFound:
        raise
    except NotFound:
        return None
    return Seen(found.etag, own_properties(orjson.loads(found.text)))


def operation_of(change: Change, seen: Seen | None, flavour: Flavour) -> Operation:
    """What the store has to do. `seen`: for a change that looks first."""
    etag = None
    if change.looks_first:
        if seen is not None:
            etag = seen.etag
            if not change.may_retry and not same_etag(change.if_match or "", etag):
                raise PreconditionFailed
        elif change.if_match is not None:
            raise NotFound
    if change.kind == "delete":
        return Operation("delete", change.id, if_match=etag)
    properties = change.properties
    if change.kind == "merge" and seen is not None:
        properties = {**seen.properties, **properties}
        if len(properties) > flavour.properties_max:
            raise refused("property count")
    item = make_item(change.partition_key, change.row_key, properties)
    kind = _store_kind(change, seen)
    return Operation(kind, change.id, if_match=etag, body_for=lambda _: made_body(item))


def _store_kind(change: Change, seen: Seen | None) -> str:
    if change.kind == "insert" or (change.kind == "merge" and seen is None):
        return "create"
    return "upsert" if change.if_match is None and change.kind == "replace" else "replace"


def run(store: ContainerStore, change: Change, flavour: Flavour) -> Done:
    """The change alone; raises what the store says of it."""
    for _ in range(TABLE_MERGE_ROUNDS_MAX):
        try:
            seen = see(store, change) if change.looks_first else None
            return store.run(operation_of(change, seen, flavour), (change.partition_key,))
        except OwnerNotFound:
            raise
        except (PreconditionFailed, Conflict, NotFound) as error:
            if not has_raced(change, error):
                raise
        except TooLarge as error:
            raise refused("entity size", f"{flavour.entity_bytes_max // MB}MB") from error
    raise Stale


def start(store: ContainerStore, change: Change, flavour: Flavour) -> Sent:
    """The same without waiting for the writer; reads are at hand on a local engine."""
    seen = see(store, change) if change.looks_first else None
    try:
        return store.start(operation_of(change, seen, flavour), (change.partition_key,))
    except TooLarge as error:
        raise refused("entity size", f"{flavour.entity_bytes_max // MB}MB") from error


def has_raced(change: Change, error: DbError) -> bool:
    """Whether an unconditional merge failed because what it was made of has changed since: then it
    looks again."""
    if change.kind != "merge" or not change.may_retry:
        return False
    return isinstance(error, PreconditionFailed) or change.if_match is None
