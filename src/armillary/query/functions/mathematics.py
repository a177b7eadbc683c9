"""Mathematical functions (reference 6.3): doubles, except the Int* family, which is exact int64.

Where Python raises (overflow, outside the domain) the answer is what IEEE arithmetic says:
Infinity or NaN. Those may be used on the way; only returning one is an error.
"""

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from decimal import Context as Precision

from armillary.query.functions.base import INT64_MAX, Context, Function, integer, is_number
from armillary.values import JSON, UNDEFINED

_EXACT = 2.0**52  # from here on every double is a whole number
_DECIMALS = Precision(prec=800)  # any double has fewer digits


def _double(compute: Callable[..., float], overflow: float = math.inf) -> Callable[..., JSON]:
    def run(*arguments: JSON) -> JSON:
        if not all(map(is_number, arguments)):
            return UNDEFINED
        try:
            return compute(*map(float, arguments))
        except OverflowError:
            return overflow
        except ValueError:
            return math.nan

    return run


def _keep_whole(compute: Callable[[float], float]) -> Callable[[JSON], JSON]:
    """Rounding of an integer is itself, exact up to 64 bits; of a double it is a double, because
    Python would make an integer of any length.
    """

    def run(value: JSON) -> JSON:
        if not is_number(value):
            return UNDEFINED
        return value if type(value) is int or not math.isfinite(value) else float(compute(value))

    return run


def absolute(value: JSON) -> JSON:
    if not is_number(value):
        return UNDEFINED
    result = abs(value)
    return result if result <= INT64_MAX or type(result) is float else float(result)


def sign(value: JSON) -> JSON:
    if not is_number(value):
        return UNDEFINED
    return value if value != value else (value > 0) - (value < 0)


def round_half_away(value: JSON, places: JSON = 0) -> JSON:
    """Midpoints go away from zero. Decided on the digits people see, so 2.675 has a midpoint."""
    digits = integer(places)
    if not is_number(value) or digits is None:
        return UNDEFINED
    if not math.isfinite(value) or (abs(value) >= _EXACT and digits >= 0) or value == 0:
        return value
    if type(value) is int and digits >= 0:
        return value
    if not -400 < digits < 400:  # beyond any double: nothing to cut off, or nothing left
        return value if digits > 0 else 0
    step = Decimal(1).scaleb(-digits)
    rounded = Decimal(repr(value)).quantize(step, ROUND_HALF_UP, _DECIMALS)
    return float(rounded)


def power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        odd = exponent.is_integer() and exponent % 2 == 1
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        return math.inf if base == 0 else math.nan


def logarithm(value: float, base: float = math.e) -> float:
    if value == 0:
        return -math.inf if base > 1 else math.inf
    if base == math.e:
        return math.log(value)
    if base == 10:
        return math.log10(value)
    divisor = math.log(base) if base > 0 else math.nan
    return math.log(value) / divisor if divisor else math.nan


def log10(value: float) -> float:
    return -math.inf if value == 0 else math.log10(value)


def cotangent(value: float) -> float:
    tangent = math.tan(value)
    return 1 / tangent if tangent else math.copysign(math.inf, tangent)


def number_bin(value: JSON, size: JSON = 1) -> JSON:
    if not is_number(value) or not is_number(size) or size == 0:
        return UNDEFINED
    count = float(value) / float(size)
    return math.floor(count) * float(size) if math.isfinite(count) else count


def random_number(context: Context) -> float:
    return context.random()


# --- exact integers -------------------------------------------------------------------------------


def _wrap(value: int) -> int:
    """Two's complement: what does not fit starts again at the other end."""
    return (value + 2**63) % 2**64 - 2**63


def _int64(compute: Callable[..., int | None]) -> Callable[..., JSON]:
    def run(*arguments: JSON) -> JSON:
        whole = [integer(each) for each in arguments]
        if None in whole:
            return UNDEFINED
        result = compute(*whole)
        return UNDEFINED if result is None else _wrap(result)

    return run


def divide(left: int, right: int) -> int | None:
    """Toward zero, unlike Python's `//`."""
    if right == 0:
        return None
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def modulo(left: int, right: int) -> int | None:
    """The sign of the dividend, unlike Python's `%`."""
    if right == 0:
        return None
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


# Shift counts take their low 6 bits, as .NET does for 64-bit integers (unverified).
_INTEGERS: dict[str, tuple[int, Callable[..., int | None]]] = {
    "IntAdd": (2, lambda a, b: a + b),
    "IntSub": (2, lambda a, b: a - b),
    "IntMul": (2, lambda a, b: a * b),
    "IntDiv": (2, divide),
    "IntMod": (2, modulo),
    "IntBitAnd": (2, lambda a, b: a & b),
    "IntBitOr": (2, lambda a, b: a | b),
    "IntBitXor": (2, lambda a, b: a ^ b),
    "IntBitNot": (1, lambda a: ~a),
    "IntBitLeftShift": (2, lambda a, n: a << (n & 63)),
    "IntBitRightShift": (2, lambda a, n: a >> (n & 63)),
}

_DOUBLES: dict[str, tuple[int, int, Callable[..., float]]] = {
    "ACOS": (1, 1, math.acos),
    "ASIN": (1, 1, math.asin),
    "ATAN": (1, 1, math.atan),
    "ATN2": (2, 2, math.atan2),
    "COS": (1, 1, math.cos),
    "COT": (1, 1, cotangent),
    "DEGREES": (1, 1, lambda radians: 180 / math.pi * radians),
    "EXP": (1, 1, math.exp),
    "LOG": (1, 2, logarithm),
    "LOG10": (1, 1, log10),
    "PI": (0, 0, lambda: math.pi),
    "POWER": (2, 2, power),
    "RADIANS": (1, 1, lambda degrees: math.pi * degrees / 180),
    "SIN": (1, 1, math.sin),
    "SQRT": (1, 1, math.sqrt),
    "SQUARE": (1, 1, lambda value: value * value),
    "TAN": (1, 1, math.tan),
}

FUNCTIONS = (
    *(Function(name, least, most, _double(run)) for name, (least, most, run) in _DOUBLES.items()),
    *(Function(name, count, count, _int64(run)) for name, (count, run) in _INTEGERS.items()),
    Function("ABS", 1, 1, absolute),
    Function("CEILING", 1, 1, _keep_whole(math.ceil)),
    Function("FLOOR", 1, 1, _keep_whole(math.floor)),
    Function("NumberBin", 1, 2, number_bin),
    Function("RAND", 0, 0, random_number, deterministic=False, context=True),
    Function("ROUND", 1, 2, round_half_away),
    Function("SIGN", 1, 1, sign),
    Function("TRUNC", 1, 1, _keep_whole(math.trunc)),
)
