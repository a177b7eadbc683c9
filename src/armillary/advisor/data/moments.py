"""Properties that say when an item was made: what a new item would have there now.

A workload file says how often items are created, and the data which values they have; but
items of last month are not created today. A path whose values grow along the data is taken for the
time of writing, and new items get the present there, in the same form:

    "2026-04-09" · "2026-04" · "2026-04-09T13:05:59Z" · 1775739959 · 1775739959123

or in a form of `dates.py`. Judged by the values, never by the name of the property. A date of birth
does not grow along the data, so it stays as it is.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np

from armillary.advisor.data.dates import Form, form_of
from armillary.advisor.data.sample import Sample
from armillary.encoding.paths import Path
from armillary.errors import BadInput
from armillary.keys.buckets import instant_of
from armillary.values import JSON

_ISO: Final = re.compile(
    r"(\d{4}-\d\d(?:-\d\d(?:[T ]\d\d(?::\d\d(?::\d\d(?:\.\d{1,9})?)?)?)?)?)(Z|[+-]\d\d:?\d\d)?"
)
#: Numbers that are seconds or milliseconds of the years 2001 to 2096.
_SECONDS: Final = range(10**9, 4 * 10**9)
_MILLISECONDS: Final = range(10**12, 4 * 10**12)
#: Rank correlation of value and position from which on a path is the time of writing.
GROWS: Final = 0.95
LOOKED_AT_MAX: Final = 2_000
FORM_VALUES: Final = 50


@dataclass(frozen=True, slots=True)
class Moment:
    """How an instant is written at a path."""

    path: Path
    last_ms: float
    """The latest that the data has."""
    write: Callable[[float], JSON]


def find_moments(sample: Sample, among: Sequence[Path] | None = None) -> dict[Path, Moment]:
    """`among`: paths that somebody knows to be times of writing; else they are looked for."""
    if not sample.items:
        return {}
    step = max(1, len(sample.items) // LOOKED_AT_MAX)
    items = sample.items[::step]
    paths = among if among is not None else list(dict.fromkeys(p for one in items for p in one))
    found = {}
    for path in paths:
        values = [one[path] for one in items if path in one]
        form = _form(values)
        if form is None:
            instants = [milliseconds(value) for value in values]
        else:
            instants = [_in_form(form, value) for value in values]
        known = [ms for ms in instants if ms is not None]
        if len(known) < 2 or len(known) < 0.99 * len(items):
            continue
        if among is None and not _grows(known):
            continue
        last = max(known) if form is None or not form.recurs else 0.0
        found[path] = Moment(path, last, _writer(values[-1], form))
    return found


def _form(values: Sequence[JSON]) -> Form | None:
    """The form of `dates.py` that the values have; numbers that are dates (20260409) too."""
    some = values[:: max(1, len(values) // FORM_VALUES)]
    texts = {str(value) for value in some if isinstance(value, str | int)}
    return form_of(sorted(texts)) if texts else None


def _in_form(form: Form, value: JSON) -> float | None:
    found = form.seconds(str(value))
    return None if found is None else found * 1000


def milliseconds(value: JSON) -> float | None:
    """The instant that a value can be, in milliseconds since 1970."""
    if isinstance(value, str):
        match = _ISO.fullmatch(value)
        if match is None:
            return None
        text = match[1] + "-01" if len(match[1]) == 7 else match[1]
        try:
            return instant_of(text + (match[2] or ""), "iso", "").timestamp() * 1000
        except BadInput:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    whole = math.floor(value)
    if whole in _SECONDS:
        return value * 1000.0
    return float(value) if whole in _MILLISECONDS else None


def moved(
    fields: Mapping[Path, JSON], moments: Mapping[Path, Moment], now_ms: float
) -> dict[Path, JSON]:
    """The same item, written now."""
    return {
        path: moments[path].write(now_ms) if path in moments else value
        for path, value in fields.items()
    }


def _grows(values: Sequence[float]) -> bool:
    if min(values) == max(values):
        return False
    # Equal values have equal ranks, and the best order they allow is the measure: a date that stays
    # the same for thousands of items grows as well as a clock does.
    ranks = np.unique(np.asarray(values), return_inverse=True)[1]
    places = np.arange(len(values))
    best = np.corrcoef(np.sort(ranks), places)[0, 1]
    return bool(np.corrcoef(ranks, places)[0, 1] >= GROWS * best)


def _writer(like: JSON, form: Form | None) -> Callable[[float], JSON]:
    if form is not None:
        write = form.writer(str(like))
        if isinstance(like, str):
            return lambda now_ms: write(now_ms / 1000)
        return lambda now_ms: int(write(now_ms / 1000))
    if isinstance(like, str):
        match = _ISO.fullmatch(like)
        assert match is not None, "a text among instants is an instant"
        size, separator, end = len(match[1]), like[10:11] or "T", match[2] or ""
        zone = "Z" if end else ""

        def text(now_ms: float) -> JSON:
            now = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(separator, "microseconds")
            return now[:26].ljust(size, "0")[:size] + zone

        return text
    if isinstance(like, int | float) and math.floor(like) in _SECONDS:
        return lambda now_ms: int(now_ms // 1000)
    return lambda now_ms: int(now_ms)
