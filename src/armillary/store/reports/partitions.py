"""How a container is spread and how hot it is, in one answer: what operators, the portal and the
command line show of it.

    catalog   ranges, what splits or merges, what is provisioned
    meta      bytes and items of each range
    counters  request units, refusals, top keys

Nothing is computed by a scan, except the largest keys of a small container: the keys with the most
request units are known from the counters, those with the most bytes are not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from armillary.budget import Budget
from armillary.encoding.partition_key import KeyValues, coerce
from armillary.engine.base import CATALOG_SPACE, Reader
from armillary.errors import DbError
from armillary.limits import REPORT_KEYS, REPORT_KEYS_SCANNED_MAX
from armillary.partition.usage.consumption import PartitionHeat
from armillary.store.catalog.records import ContainerRecord, find_database
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore
from armillary.store.items.requests import Key
from armillary.store.reports import statistics
from armillary.store.rows.secondary import logical_key, unpack_logical
from armillary.store.throughput.offers import OfferRecord, find_offer
from armillary.values import JSON


@dataclass(frozen=True, slots=True)
class PartitionLine:
    id: str
    min: str
    max: str
    parents: tuple[str, ...]
    status: str
    """online, splitting or merging"""
    bytes: int
    items: int
    ru_per_s: float | None
    """None: nothing is provisioned that could run out."""
    consumed_ru_last_s: float
    normalized_ru: float
    """Per cent, of the current minute and the one before."""
    throttled_last_min: int


@dataclass(frozen=True, slots=True)
class KeyLine:
    key: JSON
    ru_share: float
    """Of the RU of the whole container in the last five to ten minutes."""
    bytes: int


@dataclass(frozen=True, slots=True)
class PartitionReport:
    container: str
    throughput: int | None
    partitions: tuple[PartitionLine, ...]
    top_keys: tuple[KeyLine, ...]


def partition_report(store: ContainerStore, budget: Budget | None = None) -> PartitionReport:
    state, spread = statistics.spread(store, budget)
    heat = {} if store.meter is None else store.meter.heat(state)
    lines = partition_lines(store, state, spread, heat)
    keys = top_keys(store, heat, sum(one.items for one in spread), budget)
    return PartitionReport(store.name, provisioned_ru(store), lines, keys)


def partition_lines(
    store: ContainerStore,
    state: ContainerState,
    spread: Sequence[statistics.PartitionStatistics],
    heat: Mapping[int, PartitionHeat],
) -> tuple[PartitionLine, ...]:
    moving = {
        str(parent): "splitting" if len(move.parents) == 1 else "merging"
        for move in state.record.moves
        for parent in move.parents
    }
    budgets = _budgets(store, state)
    return tuple(
        _line(one, moving.get(one.id, "online"), budgets.get(one.id), heat.get(int(one.id)))
        for one in spread
    )


def provisioned_ru(store: ContainerStore) -> int | None:
    offer = provisioned(store, store.state.record)
    return None if offer is None else offer.ru


def provisioned(store: ContainerStore, record: ContainerRecord) -> OfferRecord | None:
    """Its own throughput, or that of its database."""
    with store.engine.read(CATALOG_SPACE) as reader:
        own = find_offer(reader, record.rid)
        if own is not None:
            return own
        owner = find_database(reader, record.database)
        return None if owner is None else find_offer(reader, owner.rid)


def _budgets(store: ContainerStore, state: ContainerState) -> dict[str, float]:
    if store.meter is None:
        return {}
    now_ms = store.engine.now_ms()
    found = ((one, store.meter.allowance(state, one, now_ms)) for one in state.table.ranges)
    return {str(one.ordinal): budget.ru for one, budget in found if budget is not None}


def _line(
    one: statistics.PartitionStatistics,
    status: str,
    budget: float | None,
    heat: PartitionHeat | None,
) -> PartitionLine:
    return PartitionLine(
        id=one.id,
        min=one.start,
        max=one.end,
        parents=one.parents,
        status=status,
        bytes=one.size_bytes,
        items=one.items,
        ru_per_s=budget,
        consumed_ru_last_s=0.0 if heat is None else round(heat.ru_last_s, 2),
        normalized_ru=0.0 if heat is None else round(heat.normalised, 2),
        throttled_last_min=0 if heat is None else heat.throttled_last_min,
    )


# --- keys -----------------------------------------------------------------------------------------


def top_keys(
    store: ContainerStore,
    heat: Mapping[int, PartitionHeat],
    items: int | None = None,
    budget: Budget | None = None,
) -> tuple[KeyLine, ...]:
    """Those with the most request units, then those with the most bytes: two lists in one, because
    a large key may be asked for seldom. `items`: of the container, when an answer within a moment
    counts more than the sizes of a large one."""
    used = [one for of_range in heat.values() for one in of_range.top_keys]
    total = sum(
        of_range.top_keys[0].ru / of_range.top_keys[0].share
        for of_range in heat.values()
        if of_range.top_keys
    )
    lines: dict[bytes, KeyLine] = {}
    for one in sorted(used, key=lambda one: -one.ru)[:REPORT_KEYS]:
        key = orjson.loads(one.key)
        share = round(one.ru / total, 4) if total else 0.0
        lines[orjson.dumps(key)] = KeyLine(key, share, _bytes_of(store, key))
    if items is None or items <= REPORT_KEYS_SCANNED_MAX:
        for large in statistics.logical_partitions(store, REPORT_KEYS, budget):
            line = KeyLine(large.key, 0.0, large.size_bytes)
            lines.setdefault(orjson.dumps(large.key), line)
    return tuple(sorted(lines.values(), key=lambda line: (-line.ru_share, -line.bytes)))


def _bytes_of(store: ContainerStore, key: list[JSON]) -> int:
    def read(state: ContainerState, found: Key, reader: Reader) -> int:
        row = reader.get(logical_key(found.epk_key))
        return 0 if row is None else unpack_logical(row).size_bytes

    values: KeyValues = coerce(key)
    try:
        return store.look_at_key(values, read)
    except DbError:  # part of a key (a query over its beginning), or a frozen range
        return 0
