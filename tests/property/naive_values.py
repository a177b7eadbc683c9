"""Operators of the query language once more, written from the reference and from nothing else.

The second opinion's half that knows values. Slow and plain on purpose: doubles for all arithmetic,
lists of UTF-16 units for strings, a comparison function for order. Nothing is shared with
`armillary.query.expr.operators`; when the two disagree, one of them read the reference wrongly.
"""

import math
import re
import struct
from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

from armillary.values import UNDEFINED

TYPES = ["undefined", "null", "boolean", "number", "string", "array", "object"]


def type_of(value: Any) -> str:
    if value is UNDEFINED:
        return "undefined"
    if value is None:
        return "null"
    for kind, name in (
        (bool, "boolean"),
        ((int, float), "number"),
        (str, "string"),
        (list, "array"),
        (dict, "object"),
    ):
        if isinstance(value, kind):
            return name
    raise TypeError(f"not a JSON value: {value!r}")


def both(kind: str, left: Any, right: Any) -> bool:
    return type_of(left) == kind and type_of(right) == kind


def units(text: str) -> list[int]:
    raw = text.encode("utf-16-le", "surrogatepass")
    return list(struct.unpack(f"<{len(raw) // 2}H", raw))


def from_units(numbers: list[int]) -> str:
    raw = struct.pack(f"<{len(numbers)}H", *numbers)
    return raw.decode("utf-16-le", "surrogatepass")


# --- equality and order ---------------------------------------------------------------------------


def is_equal(left: Any, right: Any) -> bool:
    kind = type_of(left)
    if kind != type_of(right):
        return False
    if kind == "array":
        return len(left) == len(right) and all(is_equal(a, b) for a, b in zip(left, right))  # noqa: B905
    if kind == "object":
        return set(left) == set(right) and all(is_equal(left[name], right[name]) for name in left)
    return bool(left == right)


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1 in the order of ORDER BY. Inside arrays and objects, any fixed order will do."""
    rank, other = TYPES.index(type_of(left)), TYPES.index(type_of(right))
    if rank != other:
        return -1 if rank < other else 1
    if type_of(left) == "string":
        left, right = units(left), units(right)
    elif type_of(left) == "array":
        for a, b in zip(left, right):  # noqa: B905
            if compare(a, b):
                return compare(a, b)
        left, right = len(left), len(right)
    elif type_of(left) == "object":
        return compare(
            [[k, left[k]] for k in sorted(left, key=units)],
            [[k, right[k]] for k in sorted(right, key=units)],
        )
    elif type_of(left) in ("undefined", "null"):
        return 0
    return 0 if left == right else (-1 if left < right else 1)


by_order = cmp_to_key(compare)


def distinct(values: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        if not any(is_equal(value, other) for other in kept):
            kept.append(value)
    return kept


# --- logic ----------------------------------------------------------------------------------------

LOGIC: dict[str, dict[tuple[Any, Any], Any]] = {
    "AND": {
        (True, True): True,
        (True, False): False,
        (False, True): False,
        (False, False): False,
        (False, UNDEFINED): False,
        (UNDEFINED, False): False,
    },
    "OR": {
        (True, True): True,
        (True, False): True,
        (False, True): True,
        (False, False): False,
        (True, UNDEFINED): True,
        (UNDEFINED, True): True,
    },
}


def truth(value: Any) -> Any:
    return value if type_of(value) == "boolean" else UNDEFINED


def logic(operator: str, left: Any, right: Any) -> Any:
    return LOGIC[operator].get((truth(left), truth(right)), UNDEFINED)


def negation(value: Any) -> Any:
    return UNDEFINED if truth(value) is UNDEFINED else not value


# --- operators ------------------------------------------------------------------------------------


def equality(left: Any, right: Any) -> Any:
    if left is UNDEFINED or right is UNDEFINED:
        return UNDEFINED
    return is_equal(left, right)


def relation(test: Callable[[int], bool]) -> Callable[[Any, Any], Any]:
    def run(left: Any, right: Any) -> Any:
        if type_of(left) != type_of(right):
            return UNDEFINED
        if type_of(left) in ("undefined", "array", "object"):
            return UNDEFINED
        if left != left or right != right:
            return False  # NaN
        return test(compare(left, right))

    return run


def arithmetic(compute: Callable[[float, float], float]) -> Callable[[Any, Any], Any]:
    return lambda a, b: compute(float(a), float(b)) if both("number", a, b) else UNDEFINED


def quotient(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.inf if (left > 0) == (math.copysign(1, right) > 0) else -math.inf


def rest(left: float, right: float) -> float:
    return math.nan if right == 0 or not math.isfinite(left) else math.fmod(left, right)


def to_int32(value: Any) -> int:
    if not math.isfinite(value):
        return 0
    low: int = math.trunc(value) % 2**32
    return low - 2**32 if low >= 2**31 else low


def bits(compute: Callable[[int, int], int]) -> Callable[[Any, Any], Any]:
    def run(left: Any, right: Any) -> Any:
        if not both("number", left, right):
            return UNDEFINED
        return to_int32(compute(to_int32(left), to_int32(right)))

    return run


def unsigned_shift(left: Any, right: Any) -> Any:
    if not both("number", left, right):
        return UNDEFINED
    return (to_int32(left) % 2**32) >> (to_int32(right) % 32)


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "=": equality,
    "!=": lambda a, b: negation(equality(a, b)),
    "<": relation(lambda order: order < 0),
    "<=": relation(lambda order: order <= 0),
    ">": relation(lambda order: order > 0),
    ">=": relation(lambda order: order >= 0),
    "+": arithmetic(lambda a, b: a + b),
    "-": arithmetic(lambda a, b: a - b),
    "*": arithmetic(lambda a, b: a * b),
    "/": arithmetic(quotient),
    "%": arithmetic(rest),
    "&": bits(lambda a, b: a & b),
    "|": bits(lambda a, b: a | b),
    "^": bits(lambda a, b: a ^ b),
    "<<": bits(lambda a, b: a << (b % 32)),
    ">>": bits(lambda a, b: a >> (b % 32)),
    ">>>": unsigned_shift,
    "||": lambda a, b: from_units(units(a) + units(b)) if both("string", a, b) else UNDEFINED,
    "??": lambda a, b: b if a is UNDEFINED else a,
}

UNARY: dict[str, Callable[[Any], Any]] = {
    "-": lambda a: -a if type_of(a) == "number" else UNDEFINED,
    "+": lambda a: a if type_of(a) == "number" else UNDEFINED,
    "~": lambda a: to_int32(~to_int32(a)) if type_of(a) == "number" else UNDEFINED,
    "NOT": negation,
}


def between(value: Any, low: Any, high: Any) -> Any:
    return logic("AND", BINARY[">="](value, low), BINARY["<="](value, high))


def one_of(value: Any, items: list[Any]) -> Any:
    if value is UNDEFINED:
        return UNDEFINED
    return any(equality(value, item) is True for item in items)


def access(value: Any, key: Any) -> Any:
    if type_of(value) == "object" and type_of(key) == "string":
        return value.get(key, UNDEFINED)
    if type_of(value) == "array" and type_of(key) == "number":
        return value[int(key)] if key in range(len(value)) else UNDEFINED
    return UNDEFINED


def like(value: Any, pattern: Any, escape: str | None) -> Any:
    """By way of a regular expression, unlike the original."""
    if not both("string", value, pattern):
        return UNDEFINED
    source, position = "", 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if escape and character == escape and position < len(pattern):
            source += re.escape(pattern[position])
            position += 1
        elif character == "%":
            source += ".*"
        elif character == "_":
            source += "."
        elif character == "[" and "]" in pattern[position:]:
            end = pattern.index("]", position)
            source += character_set(pattern[position:end])
            position = end + 1
        else:
            source += re.escape(character)
    return re.fullmatch(source, value, re.DOTALL) is not None


def character_set(content: str) -> str:
    negated = content.startswith("^")
    escaped = re.sub(r"([\\\]\[^&~|])", r"\\\1", content[1:] if negated else content)
    if not escaped:
        return r"[\s\S]" if negated else r"(?!)"
    return f"[{'^' if negated else ''}{escaped}]"
