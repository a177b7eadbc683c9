"""Time in the data: which property is the moment of writing, and how keys come and go with it.

The axis is found by its values, not by its name: dates and times as text (ISO 8601), or whole
numbers in the range of seconds or milliseconds since 1970. Of several the one with most distinct
values wins. A property with days only is taken for it when it follows the order of the data or
spans few years: birthdays do neither.

    heat       the share of the writes of a moment that the hottest key takes
    lifetime   how long a key is written to, over the length of the data

A key that is a function of time alone takes every write of its tick (a day, a second); for all
others heat is the 99th percentile of the top key's share over windows of the sample.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np

from armillary.advisor.candidates import Candidate
from armillary.advisor.sampled import Floats, Keys, Sampled, typed
from armillary.encoding.paths import Path
from armillary.errors import BadInput
from armillary.keys.buckets import BUCKETS, ISO, instant_of

Epochs = tuple[str, float, float]

DAY: Final = 86_400.0
YEAR: Final = 365.25 * DAY
WINDOW_ROWS: Final = 1_000
WINDOWS_MAX: Final = 60
SPAN_YEARS_MAX: Final = 5
_ISO: Final = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}(:?\d{2}(:?\d{2}([.,]\d+)?)?)?.*)?)?")
#: Unit → the numbers that are moments between 2000 and 2100.
_EPOCHS: Final[tuple[Epochs, ...]] = (
    ("seconds", 946_684_800, 4_102_444_800),
    ("milliseconds", 946_684_800_000, 4_102_444_800_000),
)
#: How long a bucket lasts.
TICKS: Final[dict[str, float]] = {
    "year": YEAR, "month": YEAR / 12, "day": DAY, "hour": 3_600.0, "minute": 60.0,
}  # fmt: skip
_STEPS: Final = (YEAR / 12, DAY, 3_600.0, 60.0, 1.0)


@dataclass(frozen=True, slots=True)
class Times:
    """A property that holds moments. `seconds` is NaN where a row has none."""

    path: Path
    unit: str
    seconds: Floats
    tick: float
    """Its resolution in seconds: values are multiples of it."""
    distinct: int

    @property
    def span(self) -> float:
        return float(np.nanmax(self.seconds) - np.nanmin(self.seconds)) + self.tick


@dataclass(frozen=True, slots=True)
class Clock:
    """All properties that hold moments, and the one that is the moment of writing."""

    times: dict[Path, Times]
    axis: Times | None

    def is_time(self, path: Path) -> bool:
        return path in self.times


def find_times(sampled: Sampled) -> Clock:
    times = {
        path: found
        for path in sampled.survey.columns
        if (found := _times(sampled, path)) is not None
    }
    order = np.arange(sampled.rows, dtype=np.float64)
    fit = [one for one in times.values() if _may_be_axis(one, order)]
    return Clock(times, max(fit, key=lambda one: (one.distinct, one.path), default=None))


def _times(sampled: Sampled, path: Path) -> Times | None:
    seen = sampled.survey.seen.get(path)
    numbered = sampled.numbered(path)
    if not numbered.distinct or seen is None:
        return None
    probe = numbered.texts[:: max(1, numbered.distinct // 50)]
    unit = _unit(probe)
    # One number that could be a moment proves nothing; one date in full does.
    if unit is None or (numbered.distinct == 1 and unit != ISO):
        return None
    by_code = np.full(numbered.distinct + 1, np.nan)
    for code, text in enumerate(numbered.texts):
        try:
            value = text if unit == ISO else typed(text, seen)
            by_code[code] = _seconds(value, unit)
        except (BadInput, TypeError, ValueError):
            continue
    values = by_code[:-1]
    if np.isnan(values).mean() > 0.1:
        return None
    seconds = by_code[numbered.codes]
    return Times(path, unit, seconds, _tick(values[~np.isnan(values)]), numbered.distinct)


def _unit(texts: list[str]) -> str | None:
    if all(_ISO.fullmatch(text) for text in texts):
        return ISO
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return None
    for unit, low, high in _EPOCHS:
        if all(low <= number <= high for number in numbers):
            return unit
    return None


def _seconds(value: object, unit: str) -> float:
    if unit == ISO and isinstance(value, str) and len(value) == 7:
        value = f"{value}-01"
    instant: datetime = instant_of(value, unit, "it")
    fraction = float(value) % 1000 / 1000 if unit == "milliseconds" else 0.0  # type: ignore[arg-type]
    return instant.timestamp() + fraction


def _tick(values: Floats) -> float:
    """The coarsest step that all values are multiples of."""
    for step in _STEPS[1:]:
        if np.all(np.abs(values % step) < 1e-6):
            days = len(set(np.floor(values / DAY).tolist()))
            firsts = all(datetime.fromtimestamp(one, UTC).day == 1 for one in values[:50].tolist())
            return _STEPS[0] if step == DAY and firsts and days > 1 else step
    return 0.001


def _may_be_axis(times: Times, order: Floats) -> bool:
    return (
        times.tick < DAY
        or times.span <= SPAN_YEARS_MAX * YEAR
        or abs(correlation(times.seconds, order)) > 0.5
    )


def correlation(left: Floats, right: Floats) -> float:
    """Of ranks."""
    both = ~(np.isnan(left) | np.isnan(right))
    if both.sum() < 3:
        return 0.0
    ranks = [np.unique(one[both], return_inverse=True)[1].astype(float) for one in (left, right)]
    deviations = [float(one.std()) for one in ranks]
    if 0.0 in deviations:
        return 0.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


# --- keys in time ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Heat:
    share: float
    """Of the writes of a moment, that the hottest key takes."""
    tick: float | None = None
    """Seconds for which one key takes every write, when the key is a function of time."""
    lifetime: float = 1.0
    """How long a key is written to, over the length of the data; 0 for keys written once."""
    windows: int = 0
    window_seconds: float = 0.0
    correlation: float = 0.0
    """Of the order of keys with time, for a single property."""


def heat_of(sampled: Sampled, keys: Keys, clock: Clock, top_share: float) -> Heat:
    """Without time in the data, the share over all of it is all there is to know."""
    if clock.axis is None or not keys.distinct:
        return Heat(top_share)
    tick = _tick_of(keys.candidate, clock)
    lifetime = _lifetime(keys, clock.axis)
    share, windows, seconds = _windowed(keys, clock.axis)
    if tick is not None:
        share = max(share, min(1.0, tick))
    related = 0.0
    if len(keys.candidate.made_of) == 1:
        related = correlation(keys.codes.astype(float), clock.axis.seconds)
    return Heat(max(share, min(top_share, 1.0)), tick, lifetime, windows, seconds, related)


def _tick_of(candidate: Candidate, clock: Clock) -> float | None:
    """For a key made of nothing but the moment of writing: how long it stays the same."""
    assert clock.axis is not None, "there is an axis"
    if candidate.suffixes > 1 or candidate.source is not None:
        return None
    finest: float | None = None
    for at, path in enumerate(candidate.levels):
        times = clock.times.get(path)
        if times is None:
            return None
        related = correlation(times.seconds, clock.axis.seconds)
        if related < 0.95 and times.distinct > 1 and times is not clock.axis:
            return None
        bucket = None
        if candidate.synthetic is not None:
            bucket = candidate.synthetic.spec.parts[at].bucket
        tick = max(times.tick, TICKS[bucket] if bucket in BUCKETS and bucket else 0.0)
        finest = tick if finest is None else min(finest, tick)
    return finest


def _windowed(keys: Keys, axis: Times) -> tuple[float, int, float]:
    """(99th percentile of the top key's share over windows, how many, how long one is)."""
    rows = np.flatnonzero((keys.codes >= 0) & ~np.isnan(axis.seconds))
    if len(rows) < 20:
        return 0.0, 0, 0.0
    rows = rows[np.argsort(axis.seconds[rows], kind="stable")]
    count = int(min(WINDOWS_MAX, max(1, len(rows) // WINDOW_ROWS)))
    tops: list[float] = []
    for window in np.array_split(keys.codes[rows], count):
        tops.append(float(np.unique(window, return_counts=True)[1].max()) / len(window))
    return float(np.percentile(tops, 99)), count, axis.span / count


def _lifetime(keys: Keys, axis: Times) -> float:
    """Of keys with several rows: the span of each over that of all, by rows."""
    there = (keys.codes >= 0) & ~np.isnan(axis.seconds)
    codes, seconds = keys.codes[there], axis.seconds[there]
    counts = np.bincount(codes, minlength=keys.distinct)
    several = counts >= 3
    if counts[several].sum() < 0.05 * len(codes):
        return 0.0
    low = np.full(keys.distinct, np.inf)
    high = np.full(keys.distinct, -np.inf)
    np.minimum.at(low, codes, seconds)
    np.maximum.at(high, codes, seconds)
    # A span between n moments is (n - 1) / (n + 1) of the true one on average.
    n = counts[several]
    spans = (high[several] - low[several]) * (n + 1) / (n - 1)
    return float(min(1.0, np.average(spans, weights=n) / axis.span))
