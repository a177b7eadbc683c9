"""Operators on values: access, logic, comparison, arithmetic, concatenation (reference 3).

Every one is total: JSON values and UNDEFINED in, a JSON value or UNDEFINED out, never an error for
a wrong type. `BINARY` and `UNARY` map the operators of the language to these functions, so that an
evaluator or a compiler needs no branch per operator. LIKE is in `like.py`, the way a result leaves
(`3`, not `3.0`; no NaN) in `output.py`.

Logic has three values, and what is not a boolean counts as undefined:

    AND    true   false  undef        OR     true  false  undef
    true   true   false  undef        true   true  true   true
    false  false  false  false        false  true  false  undef
    undef  undef  false  undef        undef  true  undef  undef
"""

import math
from collections.abc import Callable
from typing import TypeAlias

from armillary.errors import BadInput
from armillary.limits import QUERY_STRING_CHARACTERS_MAX
from armillary.query.expr.units import gather
from armillary.values import JSON, UNDEFINED, Undefined, comparable, same

Logic: TypeAlias = bool | Undefined


# --- access ---------------------------------------------------------------------------------------


def member(value: JSON, name: str) -> JSON:
    """`value.name`; undefined when there is no such member, or the value is no object."""
    return value.get(name, UNDEFINED) if type(value) is dict else UNDEFINED


def element(value: JSON, index: JSON) -> JSON:
    """`value[index]`: a string names a member of an object, a whole number an element of an array.
    Negative and fractional numbers give undefined (unverified).
    """
    if type(index) is str:
        return member(value, index)
    if type(value) is not list:
        return UNDEFINED
    if type(index) is float and index.is_integer():
        index = int(index)
    if type(index) is not int or not 0 <= index < len(value):
        return UNDEFINED
    return value[index]


# --- logic ----------------------------------------------------------------------------------------


def logical_and(left: JSON, right: JSON) -> Logic:
    if left is False or right is False:
        return False
    return True if left is True and right is True else UNDEFINED


def logical_or(left: JSON, right: JSON) -> Logic:
    if left is True or right is True:
        return True
    return False if left is False and right is False else UNDEFINED


def logical_not(value: JSON) -> Logic:
    return not value if type(value) is bool else UNDEFINED


def coalesce(left: JSON, right: JSON) -> JSON:
    return right if left is UNDEFINED else left


def conditional(test: JSON, then: JSON, otherwise: JSON) -> JSON:
    return then if test is True else otherwise


# --- comparison -----------------------------------------------------------------------------------


def _defined(left: JSON, right: JSON) -> bool:
    return left is not UNDEFINED and right is not UNDEFINED


def equal(left: JSON, right: JSON) -> Logic:
    """Different types are not equal; undefined is not even that."""
    return same(left, right) if _defined(left, right) else UNDEFINED


def not_equal(left: JSON, right: JSON) -> Logic:
    return not same(left, right) if _defined(left, right) else UNDEFINED


def less(left: JSON, right: JSON) -> Logic:
    pair = comparable(left, right)
    return UNDEFINED if pair is None else bool(pair[0] < pair[1])


def less_or_equal(left: JSON, right: JSON) -> Logic:
    pair = comparable(left, right)
    return UNDEFINED if pair is None else bool(pair[0] <= pair[1])


def greater(left: JSON, right: JSON) -> Logic:
    return less(right, left)


def greater_or_equal(left: JSON, right: JSON) -> Logic:
    return less_or_equal(right, left)


def between(value: JSON, low: JSON, high: JSON) -> Logic:
    """Both ends belong. `5 BETWEEN 6 AND "z"` is false, because one side of the AND decides."""
    return logical_and(less_or_equal(low, value), less_or_equal(value, high))


def contained(
    value: JSON, items: tuple[JSON, ...], equals: Callable[[JSON, JSON], bool] = same
) -> Logic:
    """`IN`: undefined items never match; a strict expansion to ORs would differ (unverified)."""
    return any(equals(value, item) for item in items) if value is not UNDEFINED else UNDEFINED


# --- arithmetic -----------------------------------------------------------------------------------


def _numbers(left: JSON, right: JSON) -> bool:
    kind, other = type(left), type(right)
    return (kind is int or kind is float) and (other is int or other is float)


def add(left: JSON, right: JSON) -> JSON:
    """Through doubles, as everything here: 2^53 + 1 is 2^53. The Int* functions are exact."""
    return float(left) + float(right) if _numbers(left, right) else UNDEFINED


def subtract(left: JSON, right: JSON) -> JSON:
    return float(left) - float(right) if _numbers(left, right) else UNDEFINED


def multiply(left: JSON, right: JSON) -> JSON:
    return float(left) * float(right) if _numbers(left, right) else UNDEFINED


def divide(left: JSON, right: JSON) -> JSON:
    if not _numbers(left, right):
        return UNDEFINED
    if right == 0:
        if left == 0 or left != left:
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    return float(left) / float(right)


def remainder(left: JSON, right: JSON) -> JSON:
    """C's fmod: the sign of the dividend."""
    # HOT: a scan that takes every n-th item; the other two looks cost as much as the sum itself.
    kind, other = type(left), type(right)
    if not ((kind is int or kind is float) and (other is int or other is float)):
        return UNDEFINED
    try:
        return math.fmod(left, right)
    except ValueError:  # by 0, or of an infinity
        return math.nan


def negate(value: JSON) -> JSON:
    if type(value) is float:
        return -value
    if type(value) is not int:
        return UNDEFINED
    return -value if value != -(2**63) else float(-value)


def plus(value: JSON) -> JSON:
    return value if type(value) in (int, float) else UNDEFINED


# --- bits, as JavaScript has them -----------------------------------------------------------------


def _low_bits(value: int | float) -> int:
    """The low 32 bits; NaN and infinities count as 0."""
    return int(value) & 0xFFFFFFFF if math.isfinite(value) else 0


def _signed(bits: int) -> int:
    bits &= 0xFFFFFFFF
    return bits - 2**32 if bits & 0x80000000 else bits


def _bitwise(compute: Callable[[int, int], int]) -> Callable[[JSON, JSON], JSON]:
    def run(left: JSON, right: JSON) -> JSON:
        if not _numbers(left, right):
            return UNDEFINED
        return compute(_low_bits(left), _low_bits(right))

    return run


bit_and = _bitwise(lambda a, b: _signed(a & b))
bit_or = _bitwise(lambda a, b: _signed(a | b))
bit_xor = _bitwise(lambda a, b: _signed(a ^ b))
shift_left = _bitwise(lambda a, b: _signed(a << (b & 31)))
shift_right = _bitwise(lambda a, b: _signed(a) >> (b & 31))
shift_right_unsigned = _bitwise(lambda a, b: a >> (b & 31))


def bit_not(value: JSON) -> JSON:
    return _signed(~_low_bits(value)) if type(value) in (int, float) else UNDEFINED


# --- strings --------------------------------------------------------------------------------------


def concatenate(left: JSON, right: JSON) -> JSON:
    if type(left) is not str or type(right) is not str:
        return UNDEFINED
    if len(left) + len(right) > QUERY_STRING_CHARACTERS_MAX:
        raise BadInput(
            f"`||` would return a string of {len(left) + len(right)} characters; "
            f"at most {QUERY_STRING_CHARACTERS_MAX} are allowed."
        )
    return gather(left + right)


BINARY: dict[str, Callable[[JSON, JSON], JSON]] = {
    "=": equal,
    "!=": not_equal,
    "<": less,
    "<=": less_or_equal,
    ">": greater,
    ">=": greater_or_equal,
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": remainder,
    "&": bit_and,
    "|": bit_or,
    "^": bit_xor,
    "<<": shift_left,
    ">>": shift_right,
    ">>>": shift_right_unsigned,
    "||": concatenate,
    "??": coalesce,
}

UNARY: dict[str, Callable[[JSON], JSON]] = {
    "-": negate,
    "+": plus,
    "~": bit_not,
    "NOT": logical_not,
}
