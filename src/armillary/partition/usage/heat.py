"""Is a partition hot, and is it one key, several keys, or an hour of the day?

A range is hot when over five minutes or more it is at 90 % of its budget while the others, in the
middle, are at a third of that or less. (Everything at 100 % is not a hot partition: that container
is simply too small.)

    minute      1    2    3    4    5    6    7    8            windows of five minutes;
    range 0    20   25   20   30   25   20   25   20            medians, so that one quiet
    range 1    30  100  100   95   40  100  100   30            minute hides nothing
                  └─────────── hot ──────────┘

What to do depends on the cause, so the report says it: raising the throughput, giving the range a
larger share, or splitting it helps against several keys; against one key only another partition
key does; a time window may just be a nightly job.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

HOT_PERCENT = 90.0
HOT_FACTOR = 3.0  # times the middle of the others
WINDOW_MINUTES = 5
LASTING = 0.5  # of the history: less is a time window
ONE_KEY = 0.5  # of the range's RU
HISTORY_MINUTES_ADVISED = 7 * 24 * 60  # shorter than a week, a weekly job looks like a state


class Cause(Enum):
    ONE_KEY = "one key"
    SEVERAL_KEYS = "several keys"
    TIME_WINDOW = "time window"
    UNKNOWN = "unknown"
    """Lasting, but keys were not counted."""


@dataclass(frozen=True, slots=True)
class KeyHeat:
    key: str
    ru: float
    share: float
    """Of all RU of the range."""


@dataclass(frozen=True, slots=True)
class HotRange:
    ordinal: int
    cause: Cause
    percent: float
    """Median normalised consumption of its hot minutes."""
    others_percent: float
    """The same minutes, the middle of the other ranges."""
    windows: tuple[tuple[int, int], ...]
    """[first, last) minutes of the history that were hot."""
    history_minutes: int
    keys: tuple[KeyHeat, ...]

    @property
    def hot_minutes(self) -> int:
        return sum(end - start for start, end in self.windows)

    @property
    def enough_history(self) -> bool:
        return self.history_minutes >= HISTORY_MINUTES_ADVISED

    def __str__(self) -> str:
        text = (
            f"Range {self.ordinal} is hot: {self.percent:.0f} % of its budget against "
            f"{self.others_percent:.0f} % elsewhere, in {self.hot_minutes} of "
            f"{self.history_minutes} minutes. {_ADVICE[self.cause]}"
        )
        if self.keys:
            text += f" Its heaviest key, {self.keys[0].key}, takes {self.keys[0].share:.0%} of it."
        return text


_ADVICE = {
    Cause.ONE_KEY: "It is one key: no throughput and no split helps, only a finer partition key.",
    Cause.SEVERAL_KEYS: "It is several keys: a larger share or a split of this range helps.",
    Cause.TIME_WINDOW: "It is a time window: look at what runs then before you change anything.",
    Cause.UNKNOWN: "Whether it is one key or several is not known: count request units by key.",
}


def hot_ranges(
    history: Mapping[int, Sequence[float]],
    keys: Mapping[int, Sequence[tuple[str, float]]] | None = None,
    totals: Mapping[int, float] | None = None,
) -> list[HotRange]:
    """`history`: normalised consumption of each range, minute by minute, all of one length.
    `keys`: the heaviest keys of a range with their RU, `totals`: all RU of it, both of the same
    period. Most heated range first.
    """
    minutes = min(map(len, history.values()), default=0)
    assert all(len(series) == minutes for series in history.values()), "all of one length"
    found = []
    for ordinal, windows in _hot_windows(history, minutes).items():
        heaviest = _key_heat((keys or {}).get(ordinal, ()), (totals or {}).get(ordinal))
        hot = [minute for start, end in windows for minute in range(start, end)]
        own = median(history[ordinal][minute] for minute in hot)
        others = median(
            median(series[minute] for minute in hot)
            for other, series in history.items()
            if other != ordinal
        )
        lasting = len(hot) >= LASTING * minutes
        cause = _cause(heaviest) if lasting else Cause.TIME_WINDOW
        found.append(HotRange(ordinal, cause, own, others, windows, minutes, heaviest))
    return sorted(found, key=lambda hot: (-hot.hot_minutes, hot.ordinal))


def _cause(heaviest: Sequence[KeyHeat]) -> Cause:
    if not heaviest:
        return Cause.UNKNOWN
    return Cause.ONE_KEY if heaviest[0].share >= ONE_KEY else Cause.SEVERAL_KEYS


def _key_heat(keys: Sequence[tuple[str, float]], total: float | None) -> tuple[KeyHeat, ...]:
    """Without a total the listed keys are taken for all there is."""
    whole = total or sum(ru for _, ru in keys)
    ordered = sorted(keys, key=lambda row: -row[1])
    return tuple(KeyHeat(key, ru, ru / whole) for key, ru in ordered if whole > 0)


def _hot_windows(
    history: Mapping[int, Sequence[float]], minutes: int
) -> dict[int, tuple[tuple[int, int], ...]]:
    """Hot stretches of each range that has any."""
    if len(history) < 2:
        return {}
    busy = [max(values) >= HOT_PERCENT for values in zip(*history.values(), strict=True)]
    spans: dict[int, list[tuple[int, int]]] = {}
    for start in range(minutes - WINDOW_MINUTES + 1):
        end = start + WINDOW_MINUTES
        if 2 * sum(busy[start:end]) < WINDOW_MINUTES:
            continue  # no median can be hot: quiet weeks of thousands of ranges cost little
        medians = {i: median(series[start:end]) for i, series in history.items()}
        ordered = sorted(medians.values())
        for ordinal, own in medians.items():
            if own >= HOT_PERCENT and own >= HOT_FACTOR * _median_without(ordered, own):
                _extend(spans.setdefault(ordinal, []), start, end)
    return {
        ordinal: tuple(_trim(history[ordinal], *span) for span in found)
        for ordinal, found in spans.items()
    }


def _trim(series: Sequence[float], start: int, end: int) -> tuple[int, int]:
    """Windows reach over the edges of the heat; the minutes before and after it were not hot."""
    hot = [minute for minute in range(start, end) if series[minute] >= HOT_PERCENT]
    return hot[0], hot[-1] + 1


def _median_without(ordered: Sequence[float], one: float) -> float:
    """The median of a sorted list less one of its members."""
    rest = list(ordered)
    rest.remove(one)
    return median(rest)


def _extend(spans: list[tuple[int, int]], start: int, end: int) -> None:
    if spans and start <= spans[-1][1]:
        spans[-1] = (spans[-1][0], end)
    else:
        spans.append((start, end))
