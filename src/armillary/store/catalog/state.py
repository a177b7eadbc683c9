"""A container as this process knows it: its record, and everything computed from it once.

Immutable. When a fence says it is old, the holder loads a new one from the catalog.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias

import orjson

from armillary.encoding.hashing import epk_key, key_identity, locate
from armillary.encoding.models import ValueModel
from armillary.encoding.partition_key import KeyValues, check_key
from armillary.encoding.rids import rid_bytes
from armillary.engine.base import CATALOG_SPACE, Engine
from armillary.errors import OwnerNotFound
from armillary.partition.ranges import Range, RangeTable, range_table
from armillary.store.catalog.definitions import ContainerDefinition, parse_container
from armillary.store.catalog.records import (
    ContainerRecord,
    DatabaseRecord,
    decode_container,
    find_container_row,
    find_database,
)
from armillary.store.index.entries import IndexPlan
from armillary.store.index.kinds.registry import told
from armillary.store.index.plan_cache import plan_from
from armillary.store.items.requests import Context, Key
from armillary.store.rows.layout import ID
from armillary.store.rows.meta import Meta
from armillary.store.rows.secondary import WHOLE_ID
from armillary.values import UNDEFINED

SPOTS_KEPT_MAX: Final = 4_096


@dataclass(frozen=True, slots=True)
class ContainerState:
    record: ContainerRecord
    definition: ContainerDefinition
    table: RangeTable
    fences: dict[int, bytes]
    """By space: how its meta row has to begin."""
    plan: IndexPlan
    model: ValueModel
    """What values mean here: comparison, terms, keys, shape of a body."""
    policies: tuple[tuple[int, bytes], ...]
    container: bytes
    self_link: str
    told: Mapping[str, Any] = field(compare=False)
    """What functions of queries know of the container's policies."""
    spots: "dict[KeyValues, Spot]" = field(default_factory=dict, compare=False, repr=False)
    """Of keys that are text: 1 and True are equal, so there are no others."""

    located: "dict[str | tuple[()], tuple[bytes, Key]]" = field(
        default_factory=dict, compare=False, repr=False
    )
    """By the text of a key in one part, and the key of a container without one: what `make_key`
    made."""

    def key(self, values: KeyValues) -> "tuple[bytes, Key]":
        """(effective partition key, the logical partition) of a key value. HOT: once per write."""
        value: str | tuple[()] | None = None if values else ()
        if len(values) == 1 and type(values[0]) is str:
            value = values[0]
        found = None if value is None else self.located.get(value)
        if found is None:
            definition = self.definition
            found = make_key(check_key(values, definition.partition_key), definition)
            if value is not None:
                if len(self.located) >= SPOTS_KEPT_MAX:
                    self.located.clear()
                self.located[value] = found
        return found

    def spot(self, values: KeyValues) -> "Spot":
        """Where the items of a key are. It may be in `spots` already."""
        found = self._spot(values)
        if all(type(value) is str for value in values):
            if len(self.spots) >= SPOTS_KEPT_MAX:
                self.spots.clear()
            self.spots[values] = found
        return found

    def _spot(self, values: KeyValues) -> "Spot":
        definition = self.definition.partition_key
        epk, digest = locate(check_key(values, definition), definition)
        owner = self.table.find(epk)
        row = ID + epk_key(epk, definition) + WHOLE_ID
        return self, owner, row, digest, key_json(values), self.fences[owner.space]

    @property
    def is_fixed(self) -> bool:
        """One physical partition for ever."""
        return self.record.fixed or self.definition.partition_key.system_key

    def context(self, fence: bytes, now_s: int, logical_bytes_max: int) -> Context:
        return Context(
            fence=fence,
            container=self.container,
            now_s=now_s,
            self_prefix=self.self_link + "docs/",
            policy=self.record.policy,
            policies=self.policies,
            default_ttl=self.definition.default_ttl,
            logical_bytes_max=logical_bytes_max,
            retention_s=self.definition.retention_s,
            fixed=self.is_fixed,
        )


def load_state(engine: Engine, database: str, name: str) -> ContainerState:
    with engine.read(CATALOG_SPACE) as reader:
        owner = find_database(reader, database)
        row = None if owner is None else find_container_row(reader, owner, name)
    if owner is None or row is None:
        raise OwnerNotFound
    return _state_from(owner, row)


@lru_cache(maxsize=128)
def _state_from(owner: DatabaseRecord, row: bytes) -> ContainerState:
    """Parsing a record takes far longer than finding it, and most looks find the same one."""
    return state_of(owner, decode_container(row))


def state_of(owner: DatabaseRecord, record: ContainerRecord) -> ContainerState:
    definition = parse_container(record.definition)
    table = range_table([one.to_range() for one in record.ranges])
    container = rid_bytes(record.rid)
    policies = tuple((version, text.encode()) for version, text in record.policies.items())
    plan = plan_from(dict(policies)[record.policy])
    return ContainerState(
        record=record,
        definition=definition,
        table=table,
        fences={
            one.space: Meta(container, one.ordinal, one.epoch, record.settings).fence()
            for one in table.ranges
        },
        plan=plan,
        model=plan.model,
        policies=policies,
        container=container,
        self_link=f"dbs/{owner.rid}/colls/{record.rid}/",
        told=told(definition.document),
    )


Spot: TypeAlias = tuple[ContainerState, Range, bytes, bytes, bytes, bytes]
"""Where the items of one key are, for as long as the state of their container is this one: (state,
owner, what stands before a whole id in the keys of rows, digest of the key, key as statistics show
it, fence). Plain: a named tuple takes eight times as long to make."""


def make_key(values: KeyValues, definition: ContainerDefinition) -> tuple[bytes, Key]:
    """(effective partition key, the logical partition) of a checked key value."""
    epk, digest = locate(values, definition.partition_key)
    return epk, Key(
        epk_key(epk, definition.partition_key),
        digest,
        key_identity(values, definition.partition_key),
        key_json(values),
    )


def key_json(values: KeyValues) -> bytes:
    """As it stands in the partition key header: `["a",1]`, with `{}` for undefined."""
    if UNDEFINED not in values:
        return orjson.dumps(values)
    return orjson.dumps([{} if value is UNDEFINED else value for value in values])
