"""Operators on a field: each makes a test of one document from its argument.

    name → maker(parts, argument, language) → test(document) → bool

Comparisons stay inside the bracket of a type (a number is never less than a text) and look at every
element of an array; `$size`, `$elemMatch` and `$all` look at the array itself. Facts: section 12.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from bson.binary import Binary
from bson.decimal128 import Decimal128
from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.regex import Regex

from armillary.api.mongo.errors import MongoError, bad_value
from armillary.api.mongo.expressions.values import whole
from armillary.api.mongo.language import MISSING, Language
from armillary.api.mongo.match import regexes
from armillary.api.mongo.match.paths import candidates, leaves
from armillary.encoding.bson.codec import UndefinedValue
from armillary.encoding.bson.values import (
    NULL,
    NUMBER_NAMES,
    TYPE_CODES,
    UNDEFINED,
    is_nan,
    is_number,
    is_text,
    number_of,
    sort_key,
    type_name,
)
from armillary.limits import ITEM_BYTES_MAX

Test: TypeAlias = Callable[[Any], bool]
"""Of one value."""
Filter: TypeAlias = Callable[[Any], bool]
"""Of one document."""
Parts: TypeAlias = tuple[str, ...]
Maker: TypeAlias = Callable[[Parts, Any, Language], Filter]


def any_of(parts: Parts, test: Test) -> Filter:
    """HOT: once per document and condition. Whether any value at the path passes."""
    if len(parts) == 1:
        (name,) = parts

        def plain(document: Any) -> bool:
            if type(document) is not dict:
                return any(test(one) for one in candidates(document, parts))
            value = document.get(name, MISSING)
            if type(value) is list:
                return any(map(test, value)) or test(value)
            return test(value)

        return plain
    return lambda document: any(test(one) for one in candidates(document, parts))


def negated(made: Filter) -> Filter:
    return lambda document: not made(document)


def _nothing(value: Any) -> bool:
    return value is MISSING or value is None or isinstance(value, UndefinedValue)


# --- comparison -----------------------------------------------------------------------------------


def equals(argument: Any) -> Test:
    if _nothing(argument):
        return _nothing
    if type(argument) is str:
        return lambda value: value == argument and isinstance(value, str)
    key = sort_key(argument)
    return lambda value: value is not MISSING and sort_key(value) == key


def eq(parts: Parts, argument: Any, language: Language) -> Filter:
    return any_of(parts, equals(argument))


def ne(parts: Parts, argument: Any, language: Language) -> Filter:
    if isinstance(argument, Regex):
        raise bad_value("Can't have regex as arg to $ne.")
    return negated(eq(parts, argument, language))


def _ordered(name: str, holds: Callable[[Any, Any], bool], with_equal: bool) -> Maker:
    def make(parts: Parts, argument: Any, language: Language) -> Filter:
        if isinstance(argument, Regex):
            raise bad_value(f"Can't have RegEx as arg to predicate over field '{'.'.join(parts)}'.")
        if _nothing(argument):
            return any_of(parts, _nothing if with_equal else lambda value: False)
        if is_nan(argument):
            return any_of(parts, is_nan if with_equal else lambda value: False)
        key = sort_key(argument)
        rank = key[0]
        if isinstance(argument, MinKey | MaxKey):
            return any_of(parts, lambda value: _across(value, key, holds))

        def test(value: Any) -> bool:
            if value is MISSING:
                return False
            own = sort_key(value)
            # NaN has the shortest key of a number and is in no range.
            return own[0] == rank and len(own) == len(key) and holds(own, key)

        return any_of(parts, test)

    return make


def _across(value: Any, key: Any, holds: Callable[[Any, Any], bool]) -> bool:
    return value is not MISSING and holds(sort_key(value), key)


gt = _ordered("$gt", lambda one, other: one > other, False)
gte = _ordered("$gte", lambda one, other: one >= other, True)
lt = _ordered("$lt", lambda one, other: one < other, False)
lte = _ordered("$lte", lambda one, other: one <= other, True)


def is_in(parts: Parts, argument: Any, language: Language) -> Filter:
    return any_of(parts, _member(argument, "$in", language))


def nin(parts: Parts, argument: Any, language: Language) -> Filter:
    return negated(any_of(parts, _member(argument, "$nin", language)))


def _member(argument: Any, name: str, language: Language) -> Test:
    if type(argument) is not list:
        raise bad_value(f"{name} needs an array")
    patterns = [regexes.part(one, language.budget) for one in argument if isinstance(one, Regex)]
    for one in argument:
        if isinstance(one, dict) and next(iter(one), "")[:1] == "$" and "$ref" not in one:
            raise bad_value(f"cannot nest $ under {name}")
    keys = {sort_key(one) for one in argument}
    null = any(_nothing(one) for one in argument)
    budget = language.budget

    def test(value: Any) -> bool:
        if value is MISSING:
            return null
        key = sort_key(value)
        if key in keys or (null and key[0] in (NULL, UNDEFINED)):
            return True
        return (
            bool(patterns)
            and isinstance(value, str)
            and any(regexes.search(one, value, budget) for one in patterns)
        )

    return test


# --- element --------------------------------------------------------------------------------------


def exists(parts: Parts, argument: Any, language: Language) -> Filter:
    def found(document: Any) -> bool:
        return any(one is not MISSING for one in leaves(document, parts))

    return found if truth(argument) else negated(found)


def truth(value: Any) -> bool:
    """As the language counts: missing, null, false and 0 are not true."""
    if value is MISSING or value is None or isinstance(value, UndefinedValue):
        return False
    if isinstance(value, bool):
        return value
    return not (is_number(value) and number_of(value) == 0)


def type_names(argument: Any) -> frozenset[str]:
    """Of `$type`: a number, an alias, or several."""
    given = argument if type(argument) is list else [argument]
    if not given:
        raise MongoError(9, "$type must match at least one type")
    names: set[str] = set()
    by_code: dict[Any, str] = {code: name for name, code in TYPE_CODES.items()}
    for one in given:
        if is_text(one):
            if one == "number":
                names |= NUMBER_NAMES
            elif one in TYPE_CODES:
                names.add(one)
            else:
                raise bad_value(f"Unknown type name alias: {one}")
        elif is_number(one) and not is_nan(one):
            name = by_code.get(number_of(one))  # 2, 2.0 and Decimal128("2") are equal
            if name is None:
                raise bad_value(f"Invalid numerical type code: {one}")
            names.add(name)
        else:
            raise MongoError(14, "type must be represented as a number or a string")
    return frozenset(names)


def has_type(parts: Parts, argument: Any, language: Language) -> Filter:
    names = type_names(argument)
    return any_of(parts, lambda value: value is not MISSING and type_name(value) in names)


# --- evaluation -----------------------------------------------------------------------------------


def mod(parts: Parts, argument: Any, language: Language) -> Filter:
    if type(argument) is not list:
        raise bad_value("malformed mod, needs to be an array")
    if len(argument) != 2:
        few = len(argument) < 2
        raise bad_value(f"malformed mod, {'not enough' if few else 'too many'} elements")
    divisor, remainder = (_whole(one, "mod") for one in argument)
    if divisor == 0:
        raise bad_value("divisor cannot be 0")

    def test(value: Any) -> bool:
        if not is_number(value) or is_nan(value):
            return False
        number = number_of(value)
        if isinstance(number, float) and math.isinf(number):
            return False
        if isinstance(value, Decimal128) and not value.to_decimal().is_finite():
            return False
        whole = math.trunc(number)
        return int(math.copysign(abs(whole) % abs(divisor), whole)) == remainder

    return any_of(parts, test)


def _whole(value: Any, name: str) -> int:
    if not is_number(value) or is_nan(value):
        raise bad_value(f"malformed {name}, needs to be numbers")
    number = number_of(value)
    if not -(2**63) <= number < 2**63:
        raise bad_value(f"malformed {name}, value is not in the range of 64-bit integers")
    return math.trunc(number)


def matches_regex(parts: Parts, argument: Any, language: Language) -> Filter:
    """A regular expression by itself: texts it is found in, and itself."""
    pattern = regexes.part(argument, language.budget)
    key = sort_key(argument) if isinstance(argument, Regex) else None
    budget = language.budget

    def test(value: Any) -> bool:
        if isinstance(value, str):
            return regexes.search(pattern, value, budget) is not None
        return isinstance(value, Regex) and sort_key(value) == key

    return any_of(parts, test)


# --- arrays ---------------------------------------------------------------------------------------


def size(parts: Parts, argument: Any, language: Language) -> Filter:
    wanted = whole(argument, bad_value("$size must be a whole number"))
    if wanted < 0:
        raise bad_value("$size may not be negative")
    return lambda document: any(
        type(one) is list and len(one) == wanted for one in leaves(document, parts)
    )


def arrays(document: Any, parts: Parts) -> Iterator[list[Any]]:
    return (one for one in leaves(document, parts) if type(one) is list)


# --- bits -----------------------------------------------------------------------------------------


#: No value has more: beyond it all bits are alike.
BITS_MAX: Final = 8 * ITEM_BYTES_MAX


def _bits(name: str, holds: Callable[[int, int], bool]) -> Maker:
    def make(parts: Parts, argument: Any, language: Language) -> Filter:
        if language.strict:
            raise bad_value(f"unknown operator: {name}")
        mask = _mask(argument, name)

        def test(value: Any) -> bool:
            if isinstance(value, bytes):
                return holds(int.from_bytes(value, "little"), mask)
            if not is_number(value) or is_nan(value):
                return False
            number = number_of(value)
            if number != math.floor(number) if math.isfinite(number) else True:
                return False
            return holds(int(number), mask)

        return any_of(parts, test)

    return make


def _mask(argument: Any, name: str) -> int:
    if isinstance(argument, bytes | Binary):
        return int.from_bytes(argument, "little")
    if type(argument) is list:
        positions = [_whole(one, name) for one in argument]
        if positions and min(positions) < 0:
            raise bad_value(
                f"Failed to parse bit position. Expected a non-negative number in: {min(positions)}"
            )
        mask = bytearray(min(max(positions, default=0), BITS_MAX) // 8 + 1)
        for one in positions:
            place = min(one, BITS_MAX)
            mask[place >> 3] |= 1 << (place & 7)
        return int.from_bytes(mask, "little")
    if not is_number(argument) or is_nan(argument):
        raise bad_value(f"{name} takes an Array, a number, or a BinData but received: {argument}")
    number = number_of(argument)
    if not math.isfinite(number) or number != math.floor(number):
        raise MongoError(9, f"Expected an integer: {name}: {argument}")
    if number < 0:
        raise MongoError(9, f"Expected a non-negative number in: {name}: {argument}")
    return int(number)


#: On a field. `$not`, `$all`, `$elemMatch`, `$regex` and the geospatial ones need the compiler.
OPERATORS: Final[dict[str, Maker]] = {
    "$eq": eq,
    "$ne": ne,
    "$gt": gt,
    "$gte": gte,
    "$lt": lt,
    "$lte": lte,
    "$in": is_in,
    "$nin": nin,
    "$exists": exists,
    "$type": has_type,
    "$mod": mod,
    "$size": size,
    "$bitsAllSet": _bits("$bitsAllSet", lambda value, mask: value & mask == mask),
    "$bitsAnySet": _bits("$bitsAnySet", lambda value, mask: value & mask != 0),
    "$bitsAllClear": _bits("$bitsAllClear", lambda value, mask: value & mask == 0),
    "$bitsAnyClear": _bits("$bitsAnyClear", lambda value, mask: value & mask != mask),
}
