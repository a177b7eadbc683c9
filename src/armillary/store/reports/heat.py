"""A container as a picture shows it: where on the ring each physical partition lies, what it
consumed in the last minutes, what is being moved, and where the heaviest keys are.

It has everything of `partition_report`, and what changes from second to second alongside it. Places
are numbers from 0 to 1, so that a page that draws them need not know how keys are hashed. The
consumption is in bins of some seconds; a reader that has seen the earlier ones asks for those since
a second only.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from armillary.budget import Budget
from armillary.encoding.hashing import epk, parse_epk_hex, position
from armillary.encoding.partition_key import PartitionKeyDefinition, coerce
from armillary.encoding.paths import format_path
from armillary.errors import DbError
from armillary.limits import HEAT_SECONDS, HEAT_STEP_SECONDS
from armillary.partition.provisioning.partitions import PartitionLimits
from armillary.partition.usage.consumption import PartitionHeat
from armillary.partition.usage.counters import THROTTLED
from armillary.store.catalog.state import ContainerState
from armillary.store.catalog.tables import api_of
from armillary.store.items.containers import ContainerStore
from armillary.store.reports import statistics
from armillary.store.reports.partitions import (
    KeyLine,
    PartitionLine,
    partition_lines,
    provisioned_ru,
    top_keys,
)
from armillary.values import JSON


@dataclass(frozen=True, slots=True)
class HeatLine:
    line: PartitionLine
    start: float
    end: float
    refused: int
    """Requests answered 429 since the processes that are counted began."""
    ru: tuple[float, ...]
    """RU/s of each bin, oldest first."""
    node: str
    """The database server that holds it, as host:port; empty: this process."""


@dataclass(frozen=True, slots=True)
class PlacedKey:
    line: KeyLine
    at: float
    partition: str


@dataclass(frozen=True, slots=True)
class Child:
    id: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class MoveLine:
    kind: str
    """split or merge"""
    parents: tuple[str, ...]
    children: tuple[Child, ...]


@dataclass(frozen=True, slots=True)
class PastLine:
    """A move that is over."""

    kind: str
    parents: tuple[str, ...]
    children: tuple[str, ...]
    at_s: int


@dataclass(frozen=True, slots=True)
class HeatReport:
    database: str
    container: str
    partition_key: tuple[str, ...]
    throughput: int | None
    limits: PartitionLimits
    now_s: int
    first_s: int
    """When the first bin begins, in seconds since 1970."""
    partitions: tuple[HeatLine, ...]
    moves: tuple[MoveLine, ...]
    past: tuple[PastLine, ...]
    """The latest moves that are over, oldest first."""
    keys: tuple[PlacedKey, ...]


def heat_report(
    store: ContainerStore,
    limits: PartitionLimits,
    *,
    since_s: int = 0,
    with_keys: bool = True,
    budget: Budget | None = None,
) -> HeatReport:
    """`since_s`: only the bins that begin there or later. Only whole bins are reported."""
    state, spread = statistics.spread(store, budget)
    heat = {} if store.meter is None else store.meter.heat(state)
    now_s = store.engine.now_ms() // 1000
    end_s = now_s // HEAT_STEP_SECONDS * HEAT_STEP_SECONDS
    first_s = max(end_s - HEAT_SECONDS, -(-since_s // HEAT_STEP_SECONDS) * HEAT_STEP_SECONDS)
    first_s = min(first_s, end_s)
    key = state.definition.partition_key
    spaces = {str(one.ordinal): one.space for one in state.table.ranges}
    nodes = store.engine.nodes(list(spaces.values()))
    lines = []
    for line in partition_lines(store, state, spread, heat):
        own = heat.get(int(line.id))
        lines.append(
            HeatLine(
                line,
                position(parse_epk_hex(line.min), key),
                position(parse_epk_hex(line.max), key),
                0 if own is None else _refused(own),
                _bins(own, first_s, end_s),
                nodes.get(spaces.get(line.id, 0), ""),
            )
        )
    items = sum(one.items for one in spread)
    keys = top_keys(store, heat, items, budget) if with_keys else ()
    return HeatReport(
        database=store.database,
        container=store.name,
        partition_key=_shown_paths(state),
        throughput=provisioned_ru(store),
        limits=limits,
        now_s=now_s,
        first_s=first_s,
        partitions=tuple(lines),
        moves=_moves(state),
        past=_past(state),
        keys=tuple(_placed(keys, state)),
    )


def _shown_paths(state: ContainerState) -> tuple[str, ...]:
    """As people know them: the key of a table is its PartitionKey."""
    if api_of(state.record) == "table":
        return ("/PartitionKey",)
    return tuple(map(format_path, state.definition.partition_key.paths))


def _refused(heat: PartitionHeat) -> int:
    return sum(count for (_, status), count in heat.requests.items() if status == THROTTLED)


def _bins(heat: PartitionHeat | None, first_s: int, end_s: int) -> tuple[float, ...]:
    count = (end_s - first_s) // HEAT_STEP_SECONDS
    if heat is None:
        return (0.0,) * count
    begin = first_s - heat.first_second
    found = []
    for at in range(begin, begin + count * HEAT_STEP_SECONDS, HEAT_STEP_SECONDS):
        used = heat.seconds[at : at + HEAT_STEP_SECONDS]
        found.append(round(sum(used) / HEAT_STEP_SECONDS, 2))
    return tuple(found)


def _moves(state: ContainerState) -> tuple[MoveLine, ...]:
    key = state.definition.partition_key
    return tuple(
        MoveLine(
            _kind(move.parents),
            tuple(map(str, move.parents)),
            tuple(
                Child(
                    str(child.ordinal),
                    position(parse_epk_hex(child.start), key),
                    position(parse_epk_hex(child.end), key),
                )
                for child in move.children
            ),
        )
        for move in state.record.moves
    )


def _past(state: ContainerState) -> tuple[PastLine, ...]:
    return tuple(
        PastLine(
            _kind(move.parents),
            tuple(map(str, move.parents)),
            tuple(map(str, move.children)),
            move.at_ms // 1000,
        )
        for move in state.record.past_moves
    )


def _kind(parents: tuple[int, ...]) -> str:
    return "split" if len(parents) == 1 else "merge"


def _placed(keys: tuple[KeyLine, ...], state: ContainerState) -> list[PlacedKey]:
    definition = state.definition.partition_key
    found = []
    for line in keys:
        place = _place(line.key, definition)
        if place is not None:
            owner = state.table.find(place)
            found.append(PlacedKey(line, position(place, definition), str(owner.ordinal)))
    return found


def _place(key: JSON, definition: PartitionKeyDefinition) -> bytes | None:
    try:
        return epk(coerce(key), definition)
    except DbError:  # counted under a definition that the container no longer has
        return None


def as_json(report: HeatReport) -> dict[str, JSON]:
    return {
        "database": report.database,
        "container": report.container,
        "partition_key": list(report.partition_key),
        "throughput": report.throughput,
        "limits": {
            "partition_bytes": report.limits.bytes,
            "partition_ru": report.limits.ru,
            "logical_bytes": report.limits.logical_bytes,
        },
        "now_s": report.now_s,
        "step_s": HEAT_STEP_SECONDS,
        "first_s": report.first_s,
        "partitions": [_partition_json(one) for one in report.partitions],
        "moves": [
            {
                "kind": one.kind,
                "parents": list(one.parents),
                "children": [{"id": c.id, "from": c.start, "to": c.end} for c in one.children],
            }
            for one in report.moves
        ],
        "past": [
            {
                "kind": one.kind,
                "parents": list(one.parents),
                "children": list(one.children),
                "at_s": one.at_s,
            }
            for one in report.past
        ],
        "keys": [
            {
                "key": one.line.key,
                "ru_share": one.line.ru_share,
                "bytes": one.line.bytes,
                "partition": one.partition,
                "at": one.at,
            }
            for one in report.keys
        ],
    }


def _partition_json(one: HeatLine) -> Mapping[str, JSON]:
    line = one.line
    return {
        "id": line.id,
        "from": one.start,
        "to": one.end,
        "parents": list(line.parents),
        "status": line.status,
        "bytes": line.bytes,
        "items": line.items,
        "ru_per_s": line.ru_per_s,
        "consumed_ru_last_s": line.consumed_ru_last_s,
        "normalized_ru": line.normalized_ru,
        "throttled_last_min": line.throttled_last_min,
        "refused": one.refused,
        "ru": list(one.ru),
        "node": one.node,
    }
