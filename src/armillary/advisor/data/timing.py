"""Time in the data: which properties hold moments, and which of them is the moment of writing.

The axis is found by its values, not by its name: dates and times as text (ISO 8601, or a form of
`dates.py`), or whole numbers in the range of seconds or milliseconds since 1970. Of several the one
with most distinct values wins. A property with days only is taken for it when it follows the order
of the data or spans few years: birthdays do neither.

What is made of time need not look like it (a weekday, a quarter, the number of a batch): a property
whose value only ever changes where a minute, an hour or a day begins follows the axis. How hot keys
get by all this is in `heating.py`.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import numpy as np

from armillary.advisor.data.dates import FORMS, Form, form_of
from armillary.advisor.data.sampled import Floats, Sampled, typed
from armillary.advisor.reading.shape import Seen
from armillary.encoding.paths import Path
from armillary.errors import BadInput
from armillary.keys.buckets import ISO, NUMBERS, instant_of

Epochs = tuple[str, float, float]

DAY: Final = 86_400.0
YEAR: Final = 365.25 * DAY
SPAN_YEARS_MAX: Final = 5
_ISO: Final = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}(:?\d{2}(:?\d{2}([.,]\d+)?)?)?.*)?)?")
#: Unit → the numbers that are moments between 2000 and 2100.
_EPOCHS: Final[tuple[Epochs, ...]] = (
    ("seconds", 946_684_800, 4_102_444_800),
    ("milliseconds", 946_684_800_000, 4_102_444_800_000),
)
#: Finer numbers are recognised, but no bucket is made of them.
_FINER: Final[dict[str, float]] = {"microseconds": 1e6, "nanoseconds": 1e9}
_FORMS: Final[dict[str, Form]] = {form.name: form for form in FORMS}
#: How long a bucket lasts.
TICKS: Final[dict[str, float]] = {
    "year": YEAR, "month": YEAR / 12, "day": DAY, "hour": 3_600.0, "minute": 60.0,
}  # fmt: skip
_STEPS: Final = (YEAR / 12, DAY, 3_600.0, 60.0, 1.0)
#: Where what follows time may change: shifts, halves and quarters of hours too.
_BORDERS: Final = (DAY, DAY / 2, DAY / 3, DAY / 4, 3_600.0, 1_800.0, 900.0, 600.0, 300.0, 60.0, 1.0)
#: A property follows time when so many changes of it all fall on borders of a bucket that only so
#: few neighbours lie across: by chance that does not happen.
CHANGES_MIN: Final = 5
#: Rank correlation with the axis of what goes along with it.
FOLLOWS: Final = 0.95
ACROSS_MAX: Final = 0.2


@dataclass(frozen=True, slots=True)
class Times:
    """A property that holds moments. `seconds` is NaN where a row has none."""

    path: Path
    unit: str
    seconds: Floats
    tick: float
    """Its resolution in seconds: values are multiples of it."""
    distinct: int
    recurs: bool = False
    """A time of day, without its date."""

    @property
    def span(self) -> float:
        return float(np.nanmax(self.seconds) - np.nanmin(self.seconds)) + self.tick


@dataclass(frozen=True, slots=True)
class Follower:
    """A property that changes with time alone, whatever its values look like."""

    tick: float
    recurs: bool
    """Its values come again: no new ones are to be expected."""


@dataclass(frozen=True, slots=True)
class Clock:
    """All properties that hold moments, the one that is the moment of writing, and those that
    follow it."""

    times: dict[Path, Times]
    axis: Times | None
    followers: dict[Path, Follower] = field(default_factory=dict)

    def is_time(self, path: Path) -> bool:
        return path in self.times or path in self.followers

    def follows(self, path: Path) -> bool:
        """Whether a property that holds moments goes along with the moment of writing."""
        times, axis = self.times[path], self.axis
        if axis is None or times is axis or times.recurs or times.distinct == 1:
            return axis is not None
        return correlation(times.seconds, axis.seconds) >= FOLLOWS


def find_times(sampled: Sampled) -> Clock:
    times = {
        path: found
        for path in sampled.survey.columns
        if (found := _times(sampled, path)) is not None
    }
    order = np.arange(sampled.rows, dtype=np.float64)
    fit = [one for one in times.values() if _may_be_axis(one, order)]
    axis = max(
        fit,
        # Names come last: of two clocks the one that ran along with the data.
        key=lambda one: (one.distinct, abs(correlation(one.seconds, order)), one.path),
        default=None,
    )
    return Clock(times, axis, {} if axis is None else _followers(sampled, axis, set(times)))


def _followers(sampled: Sampled, axis: Times, times: set[Path]) -> dict[Path, Follower]:
    rows = np.flatnonzero(~np.isnan(axis.seconds))
    rows = rows[np.argsort(axis.seconds[rows], kind="stable")]
    seconds = axis.seconds[rows]
    across = {
        step: np.floor(seconds[1:] / step) != np.floor(seconds[:-1] / step) for step in _BORDERS
    }
    steps = {step: here for step, here in across.items() if 0 < here.mean() <= ACROSS_MAX}
    found: dict[Path, Follower] = {}
    for path in sampled.survey.columns if steps else ():
        codes = sampled.numbered(path).codes[rows]
        if path in times or (codes < 0).any():
            continue
        changes = codes[1:] != codes[:-1]
        if changes.sum() < CHANGES_MIN:
            continue
        tick = next((step for step, here in steps.items() if not (changes & ~here).any()), None)
        if tick is not None:
            found[path] = Follower(tick, int(changes.sum()) + 1 > len(np.unique(codes)))
    return found


def _times(sampled: Sampled, path: Path) -> Times | None:
    seen = sampled.survey.seen.get(path)
    numbered = sampled.numbered(path)
    if not numbered.distinct or seen is None:
        return None
    probe = numbered.texts[:: max(1, numbered.distinct // 50)]
    unit = _unit(probe)
    # One number that could be a moment proves nothing; one date in full does.
    if unit is None or (numbered.distinct == 1 and unit in ("seconds", "milliseconds", *_FINER)):
        return None
    by_code = np.full(numbered.distinct + 1, np.nan)
    for code, text in enumerate(numbered.texts):
        try:
            by_code[code] = _seconds(text, unit, seen)
        except (BadInput, TypeError, ValueError):
            continue
    values = by_code[:-1]
    if np.isnan(values).mean() > 0.1:
        return None
    seconds, tick = by_code[numbered.codes], _tick(values[~np.isnan(values)])
    recurs = unit in _FORMS and _FORMS[unit].recurs
    if unit in NUMBERS and isinstance(typed(numbered.texts[0], seen), str):
        unit = "text"  # a number written as a text: no bucket can be made of it
    return Times(path, unit, seconds, tick, numbered.distinct, recurs)


def _unit(texts: list[str]) -> str | None:
    if all(_ISO.fullmatch(text) for text in texts):
        return ISO
    form = form_of(texts)
    if form is not None:
        return form.name
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return None
    finer = [(unit, low * _FINER[unit], high * _FINER[unit]) for unit in _FINER
             for _, low, high in _EPOCHS[:1]]  # fmt: skip
    for unit, low, high in (*_EPOCHS, *finer):
        if all(low <= number <= high for number in numbers):
            return unit
    return None


def _seconds(text: str, unit: str, seen: Seen) -> float:
    if unit in _FINER:
        return float(text) / _FINER[unit]
    if unit in _FORMS:
        found = _FORMS[unit].seconds(text)
        return np.nan if found is None else found
    if unit == ISO:
        return instant_of(f"{text}-01" if len(text) == 7 else text, unit, "it").timestamp()
    value = typed(text, seen)
    fraction = float(text) % 1000 / 1000 if unit == "milliseconds" else 0.0
    number = float(text) if isinstance(value, str) else value
    return instant_of(number, unit, "it").timestamp() + fraction


def _tick(values: Floats) -> float:
    """The coarsest step that all values are multiples of."""
    for step in _STEPS[1:]:
        if np.all(np.abs(values % step) < 1e-6):
            days = len(set(np.floor(values / DAY).tolist()))
            firsts = all(datetime.fromtimestamp(one, UTC).day == 1 for one in values[:50].tolist())
            return _STEPS[0] if step == DAY and firsts and days > 1 else step
    return 0.001


def _may_be_axis(times: Times, order: Floats) -> bool:
    return not times.recurs and (
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
