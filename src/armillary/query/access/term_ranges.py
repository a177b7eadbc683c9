"""Which index terms a comparison with a constant can match: ranges of bytes, start <= term < end.

Each function gives (ranges, exact). Exact means that the comparison is true for every value whose
term is inside; otherwise values inside have to be looked at. Values outside never match. Facts on
terms: encoding/terms.py; on comparisons: the container's value model (encoding/models.py). What has
to do with texts is for JSON only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, TypeAlias

from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.models import ValueModel
from armillary.encoding.terms import (
    ARRAY_CODE,
    FALSE_CODE,
    NULL_CODE,
    NUMBER_CODE,
    OBJECT_CODE,
    STRING_CODE,
    TRUE_CODE,
    is_exact,
    string_prefix_range,
)
from armillary.store.rows.layout import after
from armillary.values import JSON, UNDEFINED

Range: TypeAlias = tuple[bytes, bytes]
Ranges: TypeAlias = tuple[Range, ...]
Terms: TypeAlias = tuple[Ranges, bool]

NOTHING: Final[Terms] = ((), True)
ANYTHING: Final[Range] = (bytes((NULL_CODE,)), bytes((OBJECT_CODE + 1,)))
_TYPES: Final[dict[type, Range]] = {
    type(None): (bytes((NULL_CODE,)), bytes((NULL_CODE + 1,))),
    bool: (bytes((FALSE_CODE,)), bytes((TRUE_CODE + 1,))),
    int: (bytes((NUMBER_CODE,)), bytes((NUMBER_CODE + 1,))),
    float: (bytes((NUMBER_CODE,)), bytes((NUMBER_CODE + 1,))),
    str: (bytes((STRING_CODE,)), bytes((STRING_CODE + 1,))),
    list: (bytes((ARRAY_CODE,)), bytes((ARRAY_CODE + 1,))),
    dict: (bytes((OBJECT_CODE,)), bytes((OBJECT_CODE + 1,))),
}
STRINGS: Final[Range] = _TYPES[str]

#: Functions that test a type, by the types they let through.
TYPE_TESTS: Final[dict[str, Ranges]] = {
    "ISARRAY": (_TYPES[list],),
    "ISBOOL": (_TYPES[bool],),
    "ISBOOLEAN": (_TYPES[bool],),
    "ISDEFINED": (ANYTHING,),
    "ISNULL": (_TYPES[type(None)],),
    "ISNUMBER": (_TYPES[int],),
    "ISOBJECT": (_TYPES[dict],),
    "ISPRIMITIVE": ((ANYTHING[0], bytes((ARRAY_CODE,))),),
    "ISSTRING": (_TYPES[str],),
}


def can_compare(value: JSON) -> bool:
    """NaN and infinities are no values of items; leave them to the evaluator."""
    return type(value) is not float or math.isfinite(value)


def equal_to(value: JSON, model: ValueModel = JSON_MODEL) -> Terms:
    if value is UNDEFINED:
        return NOTHING
    found = model.term(value)
    return ((found, after(found)),), model.is_exact(value)


def not_equal_to(value: JSON, model: ValueModel = JSON_MODEL) -> Terms:
    if value is UNDEFINED:
        return NOTHING
    low, high = model.everything
    if not model.is_exact(value):
        return (model.everything,), False
    found = model.term(value)
    return _without_empty([(low, found), (after(found), high)]), True


def compared_to(operator: str, value: JSON, model: ValueModel = JSON_MODEL) -> Terms:
    """`<`, `<=`, `>`, `>=`: only with values that the model can compare."""
    comparable = model.comparable(value)
    if comparable is None:
        return NOTHING
    low, high = comparable
    first, last = model.neighbours(value)
    exact = model.is_exact(value)
    match operator:
        case "<":
            found = (low, first if exact else last)
        case "<=":
            found = (low, last)
        case ">":
            found = (last if exact else first, high)
        case _:
            found = (first, high)
    return _without_empty([found]), exact


def between(low: JSON, high: JSON, model: ValueModel = JSON_MODEL) -> Terms:
    above, above_exact = compared_to(">=", low, model)
    below, below_exact = compared_to("<=", high, model)
    if not above or not below:
        return NOTHING
    start, end = max(above[0][0], below[0][0]), min(above[0][1], below[0][1])
    return _without_empty([(start, end)]), above_exact and below_exact


def one_of(values: Iterable[JSON], model: ValueModel = JSON_MODEL) -> Terms:
    found = [equal_to(value, model) for value in values]
    return union(found)


def none_of(values: Iterable[JSON], model: ValueModel = JSON_MODEL) -> Terms:
    """Everything that is there, without some values. Inexact when one of them is."""
    kept = [value for value in values if value is not UNDEFINED]
    if not all(map(model.is_exact, kept)):
        return (model.everything,), False
    ranges: list[Range] = []
    start, end = model.everything
    for found in sorted({model.term(value) for value in kept}):
        ranges.append((start, found))
        start = after(found)
    return _without_empty([*ranges, (start, end)]), True


def beginning_with(prefix: str) -> Terms:
    # Half a surrogate pair begins an astral character in bytes, but not for the evaluator.
    plain = prefix.isascii() or max(prefix) < "\ud800"
    exact = plain and is_exact(prefix)
    return (string_prefix_range(prefix),), exact


def fixed_beginning(pattern: str, escape: str = "") -> tuple[str, str]:
    """(the text that every match of a LIKE pattern begins with, what may follow it): "nothing", so
    that only the text itself matches; "anything"; or "something" that has to be looked at.
    """
    text: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == escape and position < len(pattern):
            text.append(pattern[position])
            position += 1
        elif character == "%":
            rest = pattern[position:].strip("%")
            return "".join(text), "something" if rest else "anything"
        elif character in "_[":
            return "".join(text), "something"
        else:
            text.append(character)
    return "".join(text), "nothing"


def union(parts: Iterable[Terms]) -> Terms:
    """Sorted, and joined where they touch or overlap."""
    every = list(parts)
    joined: list[Range] = []
    for start, end in sorted(each for ranges, _ in every for each in ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined), all(exact for _, exact in every)


def intersection(one: Terms, other: Terms) -> Terms:
    """What is in both; ranges of each are sorted and apart."""
    found: list[Range] = []
    left, right = one[0], other[0]
    at_left, at_right = 0, 0
    while at_left < len(left) and at_right < len(right):
        (start, end), (low, high) = left[at_left], right[at_right]
        found.append((max(start, low), min(end, high)))
        if end <= high:  # the one that ends first meets no more of the other side
            at_left += 1
        else:
            at_right += 1
    return _without_empty(found), one[1] and other[1]


def _without_empty(ranges: Iterable[Range]) -> Ranges:
    return tuple((start, end) for start, end in ranges if start < end)
