"""From what a replay counted to what it found: shares, skews, dates, money."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import numpy as np

from armillary.advisor.replay.record import Record
from armillary.advisor.replay.result import (
    FanOut,
    FullKey,
    HeatMap,
    KeyUse,
    PartitionUse,
    Replayed,
    SplitSeen,
)
from armillary.advisor.replay.run import Play
from armillary.partition.provisioning import autoscale
from armillary.partition.provisioning.partitions import OfferKind
from armillary.partition.provisioning.virtual import VirtualContainer
from armillary.partition.usage import heat, normalised

DAY_S: Final = 86_400
TOP_KEYS: Final = 10
HEAT_COLUMNS: Final = 120
LORENZ_POINTS: Final = 60
#: Writes to one key from which on its growth is believed.
WRITES_BELIEVED: Final = 5
NEEDED_QUANTILE: Final = 0.95
YEAR_MAX: Final = 9999


def findings(
    play: Play,
    *,
    key: str,
    kind: str,
    names: Sequence[tuple[str, str]],
    seconds: float,
    offer: OfferKind,
    growth_bytes_per_day: float | None = None,
    ttl_s: float | None = None,
    key_days: float | None = None,
    skipped: Sequence[str] = (),
) -> Replayed:
    """`names`: name and kind of each template. `key_days`: how long items are written to one key
    before its time is over."""
    record, container = play.record, play.container
    consumed = {one: sum(by.values()) for one, by in record.consumed.items()}
    total_ru = sum(consumed.values())
    sent = record.operations + _sum(record.refused)
    throttled = _sum(record.refused)
    hot_share = _hottest_share(record, container)
    offered_ru = _sum(record.offered)
    top = _top_keys(record, offered_ru)
    ceiling = container.limits.ru / top[0].share if top and top[0].share else float("inf")
    offered = offered_ru / max(seconds, 1e-9)
    needed = _needed(record, container, offered * (top[0].share if top else 0.0))
    held = _by_key(play) if any(play.sizes.values()) else []
    curve = play.held or sorted(row.count for row in record.key_ru.top())
    return Replayed(
        key=key,
        kind=kind,
        partitions=_partitions(record, container, consumed, total_ru),
        operations=record.operations,
        throttled=throttled,
        throttled_share=throttled / sent if sent else 0.0,
        failed=record.failed,
        failed_share=record.failed / record.operations if record.operations else 0.0,
        full=record.full,
        delayed_share=record.delayed / record.operations if record.operations else 0.0,
        wait_p99_ms=_wait_p99(record),
        consumed_ru=total_ru,
        offered_ru_per_s=offered,
        skew=hot_share * len(container),
        storage_skew=_skew([one.bytes for one in container.ranges]),
        top_keys=tuple(top[:TOP_KEYS]),
        large_keys=tuple(held[:TOP_KEYS]),
        fan_out=_fan_out(record, names),
        heat=_heat_map(record, container, seconds),
        splits=tuple(
            SplitSeen(
                (one.at_ms - record.start_ms) / 1000, one.parent, one.children, one.cause, one.bytes
            )
            for one in play.splits
        ),
        hot=_hot(record, container, seconds),
        first_split_days=_first_split(play, seconds, growth_bytes_per_day),
        full_key=_full_key(play, seconds, growth_bytes_per_day, ttl_s, key_days),
        ru_ceiling=ceiling,
        needed_ru=needed,
        cost_per_hour=_cost(record, container, offer),
        needed_cost_per_hour=None if needed is None else autoscale.hour_cost(needed, offer),
        lorenz=lorenz(curve),
        gini=gini(curve),
        skipped=tuple(skipped),
    )


def _partitions(
    record: Record, container: VirtualContainer, consumed: Mapping[int, float], total_ru: float
) -> tuple[PartitionUse, ...]:
    return tuple(
        PartitionUse(
            one.ordinal,
            one.owner.start.hex().upper(),
            one.owner.end.hex().upper(),
            one.budget.ru,
            one.bytes,
            consumed.get(one.ordinal, 0.0),
            consumed.get(one.ordinal, 0.0) / total_ru if total_ru else 0.0,
            normalised.normalised_minute(record.consumed[one.ordinal].values(), one.budget.ru),
            sum(record.refused[one.ordinal].values()),
        )
        for one in container.ranges
    )


def _hottest_share(record: Record, container: VirtualContainer) -> float:
    """Of what was asked for, by the partitions there are at the end. Children count for their
    parents."""
    totals = {one: sum(by.values()) for one, by in record.offered.items()}
    whole = sum(totals.values())
    if not whole:
        return 1 / len(container)
    found = []
    for one in container.ranges:
        inherited = sum(totals.get(p, 0.0) / 2 for p in one.owner.parents[-1:])
        found.append(totals.get(one.ordinal, 0.0) + inherited)
    return max(found) / whole


def _needed(record: Record, container: VirtualContainer, top_key_ru: float) -> float | None:
    if top_key_ru > container.limits.ru:
        return None  # one key asks for more than a partition can ever serve
    seconds = [ru for one in container.ranges for ru in record.offered[one.ordinal].values() if ru]
    if not seconds:
        return 400.0
    busiest = max(
        (_quantile(record.offered[one.ordinal].values()) for one in container.ranges), default=0.0
    )
    return max(400.0, float(np.ceil(busiest * len(container) / 100) * 100))


def _quantile(values: Iterable[float]) -> float:
    found = list(values)
    return float(np.quantile(found, NEEDED_QUANTILE)) if found else 0.0


def _top_keys(record: Record, offered_ru: float) -> list[KeyUse]:
    """By what was asked of them, refused or not."""
    if not offered_ru:
        return []
    return [KeyUse(row.key, row.certain, row.certain / offered_ru) for row in record.key_ru.top()]


def _by_key(play: Play) -> list[KeyUse]:
    total = sum(play.sizes.values())
    largest = sorted(play.sizes.items(), key=lambda row: -row[1])[:TOP_KEYS]
    return [KeyUse(play.labels.get(place, ""), size, size / total) for place, size in largest]


def _fan_out(record: Record, names: Sequence[tuple[str, str]]) -> tuple[FanOut, ...]:
    return tuple(
        FanOut(
            names[number][0],
            names[number][1],
            count.operations,
            count.ranges / count.operations,
            count.ranges_max,
            count.ru / count.operations,
            count.refused,
        )
        for number, count in sorted(record.templates.items())
        if count.operations
    )


def _wait_p99(record: Record) -> float:
    """Most operations wait for nothing; those that do are known, the others are as many zeros."""
    ended = record.operations - record.failed - record.full
    rank = 0.99 * ended - (ended - record.delayed)
    if rank <= 0 or not record.waits_ms:
        return 0.0
    return float(np.quantile(record.waits_ms, min(1.0, rank / record.delayed)))


# --- heat -----------------------------------------------------------------------------------------


def _heat_map(record: Record, container: VirtualContainer, seconds: float) -> HeatMap:
    last = max((second for by in record.consumed.values() for second in by), default=0)
    columns_s = max(1, -(-max(int(np.ceil(seconds)), last + 1) // HEAT_COLUMNS))
    count = -(-(last + 1) // columns_s)
    rows = []
    ordinals = sorted(record.consumed, key=lambda one: (record.budgets.get(one) is None, one))
    for ordinal in ordinals:
        by, ru = record.consumed[ordinal], record.budgets.get(ordinal, 0.0)
        row = []
        for column in range(count):
            window = range(column * columns_s, (column + 1) * columns_s)
            used = (by.get(second, 0.0) for second in window)
            row.append(normalised.normalised_minute(used, ru) if ru else 0.0)
        rows.append(tuple(row))
    return HeatMap(columns_s * 1000, tuple(ordinals), tuple(rows))


def _hot(record: Record, container: VirtualContainer, seconds: float) -> str | None:
    """The rule of the product, over seconds instead of minutes."""
    span = max(1, int(seconds))
    history = {
        one.ordinal: [
            normalised.normalised(record.consumed[one.ordinal].get(second, 0.0), one.budget.ru)
            for second in range(span)
        ]
        for one in container.ranges
    }
    found = heat.hot_ranges(history)
    if not found:
        return None
    hottest = found[0]
    return (
        f"Partition {hottest.ordinal} is at {hottest.percent:.0f} % of its budget while the others "
        f"are at {hottest.others_percent:.0f} %, in {hottest.hot_minutes} of {span} seconds."
    )


# --- growth ---------------------------------------------------------------------------------------


def _growth(play: Play, seconds: float, per_day: float | None) -> float:
    """How many times what was written here a day brings."""
    written = sum(size for _, size in play.written.values())
    if written <= 0:
        return 0.0
    return per_day / written if per_day is not None else DAY_S / max(seconds, 1e-9)


def _first_split(play: Play, seconds: float, per_day: float | None) -> float | None:
    """Days until the first partition is full, if it goes on as here."""
    factor = _growth(play, seconds, per_day)
    grown: dict[int, float] = {}
    for place, (_, size) in play.written.items():
        ordinal = play.container.find(place).ordinal
        grown[ordinal] = grown.get(ordinal, 0.0) + size * factor
    days = [
        max(0.0, play.container.limits.bytes - one.bytes) / grown[one.ordinal]
        for one in play.container.ranges
        if grown.get(one.ordinal, 0.0) > 0
    ]
    return min(days, default=None)


def _full_key(
    play: Play,
    seconds: float,
    per_day: float | None,
    ttl_s: float | None,
    key_days: float | None,
) -> FullKey | None:
    """Keys that were written so seldom that their growth may be chance are left out: they would
    make a key of which every item has its own look like one that grows."""
    factor = _growth(play, seconds, per_day)
    limit = play.container.limits.logical_bytes
    best: tuple[float, bytes] | None = None
    for place, (times, size) in play.written.items():
        sure = 1 - times**-0.5
        daily = size * factor * sure
        if times < WRITES_BELIEVED or daily <= 0:
            continue
        if ttl_s is not None and daily * ttl_s / DAY_S < limit:
            continue
        days = max(0.0, limit - play.sizes[place]) / daily
        if key_days is not None and days > key_days:
            continue  # by then its day or month is over
        if best is None or days < best[0]:
            best = (days, place)
    if best is None:
        return None
    return FullKey(play.labels.get(best[1], ""), best[0], date_after(play.record.start_ms, best[0]))


def date_after(start_ms: float, days: float) -> str:
    seconds = start_ms / 1000 + days * DAY_S
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return f"after {YEAR_MAX}"


# --- money ----------------------------------------------------------------------------------------


def _cost(record: Record, container: VirtualContainer, offer: OfferKind) -> float:
    """Of one hour like this. Autoscale is billed by its busiest partition."""
    if offer == "manual":
        return autoscale.hour_cost(container.ru, "manual")
    last = max((second for by in record.consumed.values() for second in by), default=0)
    shares = [
        max(
            (
                record.consumed[one.ordinal].get(second, 0.0) / one.budget.ru
                for one in container.ranges
            ),
            default=0.0,
        )
        for second in range(last + 1)
    ]
    used = [min(1.0, share) * container.ru for share in shares]
    peak = autoscale.level_of(container.ru, 0, used, len(used)).peak
    return autoscale.hour_cost(peak, "autoscale")


# --- curves ---------------------------------------------------------------------------------------


def lorenz(ascending: Sequence[float]) -> tuple[tuple[float, float], ...]:
    if not ascending or sum(ascending) <= 0:
        return ((0.0, 0.0), (1.0, 1.0))
    sums = np.concatenate(([0.0], np.cumsum(ascending)))
    places = np.unique(np.linspace(0, len(ascending), LORENZ_POINTS).round().astype(int))
    return tuple((float(at / len(ascending)), float(sums[at] / sums[-1])) for at in places)


def gini(ascending: Sequence[float]) -> float:
    total = float(sum(ascending))
    if not ascending or total <= 0:
        return 0.0
    ranks = np.arange(1, len(ascending) + 1)
    weighted = float(np.dot(ranks, np.asarray(ascending)))
    return 2 * weighted / (len(ascending) * total) - (len(ascending) + 1) / len(ascending)


def _skew(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return max(values) / mean if mean else 1.0


def _sum(by: Mapping[int, Mapping[int, float]]) -> float:
    return sum(sum(inner.values()) for inner in by.values())
