"""Does a property name things, or does it measure or describe them? Judged by its values.

    "C00123" · "a1b2-…" · "Oslo"          names: items that share one belong together
    1999 · "12.50" · "https://…" · prose   no names: who shares a price or a sentence shares nothing

A whole number can be either. It names something when other texts depend on it: rows with the same
sensor number have the same site, rows with the same price do not. Without a workload this says by
what items are probably looked for; with one, operations say it themselves.
"""

import re
from typing import Final

import numpy as np

from armillary.advisor.data.sampled import Sampled, combined
from armillary.advisor.data.timing import Clock
from armillary.advisor.workload.model import ID
from armillary.encoding.paths import Path

LOOKED_AT: Final = 200
ROWS_MAX: Final = 20_000
WORDS_MAX: Final = 3.5
LETTERS_MAX: Final = 80
UNIQUE: Final = 0.9
#: Rows with the same number that must agree on a text for it to depend on the number.
AGREE: Final = 0.99
#: A text that hardly varies depends on everything.
VARIES: Final = 0.9
_AMOUNT: Final = re.compile(r"\D{0,3}[-+]?\d+[.,]\d{1,6}\s?\D{0,4}")
_LETTERS: Final = re.compile(r"[g-zG-Z]")


def names_things(sampled: Sampled, clock: Clock, path: Path) -> bool:
    if path == ID:
        return True
    seen = sampled.survey.seen.get(path)
    if seen is None or clock.is_time(path) or seen.types["boolean"]:
        return False
    if seen.types["number"] > seen.types["string"]:
        return _has_dependants(sampled, clock, path)
    return _are_names(_some(sampled, path))


def items_are_things(sampled: Sampled, clock: Clock) -> bool:
    """Whether items have a name of their own alongside the id (an address, a title, a login): then
    each is a thing, and not an event of something else."""
    for path, column in sampled.survey.columns.items():
        seen = sampled.survey.seen.get(path)
        if path == ID or seen is None or not seen.types["string"] or clock.is_time(path):
            continue
        if column.distinct < UNIQUE * sampled.survey.items:
            continue
        texts = _some(sampled, path)
        shared = _shared(min(texts), max(texts))
        lettered = np.mean([bool(_LETTERS.search(text[shared:])) for text in texts])
        if _are_names(texts) and lettered > UNIQUE:
            return True
    return False


def _shared(first: str, last: str) -> int:
    """Letters with which all texts between two of them begin."""
    same = (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    return next(same, min(len(first), len(last)))


def _some(sampled: Sampled, path: Path) -> list[str]:
    texts = sampled.numbered(path).texts
    return texts[:: max(1, len(texts) // LOOKED_AT)]


def _are_names(texts: list[str]) -> bool:
    if not texts:
        return False
    prose = np.mean([len(text.split()) for text in texts]) > WORDS_MAX
    long = np.mean([len(text) for text in texts]) > LETTERS_MAX
    amounts = np.mean([bool(_AMOUNT.fullmatch(text)) for text in texts]) > UNIQUE
    addresses = np.mean(["://" in text for text in texts]) > 0.5
    return not (prose or long or amounts or addresses)


def _has_dependants(sampled: Sampled, clock: Clock, path: Path) -> bool:
    codes = sampled.numbered(path).codes[:ROWS_MAX]
    counts = np.bincount(codes[codes >= 0], minlength=1)
    several = counts > 1
    if counts[several].sum() < 0.5 * len(codes):
        return False  # hardly any value comes twice: nothing can be seen
    for other, seen in sampled.survey.seen.items():
        if other in (path, ID) or not seen.types["string"] or clock.is_time(other):
            continue
        second = sampled.numbered(other).codes[:ROWS_MAX]
        shares = np.bincount(second[second >= 0], minlength=1) / max(len(second), 1)
        if not 0 < shares.max() < VARIES or len(shares) > 0.5 * len(second):
            continue
        _, first = combined([codes, second])
        values_of = np.bincount(codes[first], minlength=len(counts))
        if (values_of[several] == 1).mean() >= AGREE:
            return True
    return False
