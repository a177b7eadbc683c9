"""System functions once more, written from the reference: the second opinion's vocabulary.

Dates, spatial, full text, vectors and regular expressions are taken from the real table: a second
implementation of those would only copy the first. The others are written again, as plainly as the
reference says them.
"""

import json
import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from tests.property.naive_values import (
    by_order,
    distinct,
    from_units,
    is_equal,
    logic,
    type_of,
    units,
)

from armillary.query.functions import FUNCTIONS as REAL
from armillary.query.functions import Context
from armillary.values import UNDEFINED

Run = Callable[..., Any]

SIGNS = {
    "a": "array",
    "o": "object",
    "n": "number",
    "s": "string",
    "b": "boolean",
}


def typed(signature: str, run: Run) -> Run:
    """`signature` has a letter per argument (`i` is a whole number, `.` anything defined); the last
    one repeats for more. Anything else gives undefined.
    """

    def checked(*arguments: Any) -> Any:
        letters = signature.ljust(len(arguments), signature[-1:])
        for letter, argument in zip(letters, arguments):  # noqa: B905
            if argument is UNDEFINED:
                return UNDEFINED
            if letter == "i" and not whole(argument):
                return UNDEFINED
            if letter in SIGNS and type_of(argument) != SIGNS[letter]:
                return UNDEFINED
        return run(*(int(a) if k == "i" else a for k, a in zip(letters, arguments)))  # noqa: B905

    return checked


def whole(value: Any) -> bool:
    if type_of(value) != "number" or not math.isfinite(value):
        return False
    return value == math.floor(value) and -(2**63) <= int(value) < 2**63


# --- arrays ---------------------------------------------------------------------------------------


def has(array: list[Any], value: Any, partial: bool = False) -> bool:
    if partial and type_of(value) == "object":
        return any(
            type_of(each) == "object"
            and all(k in each and is_equal(each[k], v) for k, v in value.items())
            for each in array
        )
    return any(is_equal(each, value) for each in array)


def folded(operator: str, test: Run) -> Run:
    def run(first: Any, *others: Any) -> Any:
        result = test(first, others[0])
        for other in others[1:]:
            result = logic(operator, result, test(first, other))
        return result

    return run


def portion(array: list[Any], start: int, count: int = 2**63) -> list[Any]:
    start = max(0, start + len(array)) if start < 0 else start
    return [each for at, each in enumerate(array) if start <= at < start + count]


def of_numbers(array: list[Any], run: Callable[[list[float]], Any], empty: Any) -> Any:
    if any(type_of(each) != "number" for each in array):
        return UNDEFINED
    return run([float(each) for each in array]) if array else empty


def middle(numbers: list[float]) -> float:
    numbers = sorted(numbers)
    half = len(numbers) // 2
    return numbers[half] if len(numbers) % 2 else (numbers[half - 1] + numbers[half]) / 2


def extreme(array: list[Any], choose: Callable[..., Any]) -> Any:
    if not array or any(type_of(each) in ("array", "object") for each in array):
        return UNDEFINED
    return choose(array, key=by_order)


def inside(value: Any, array: list[Any]) -> bool:
    return any(is_equal(value, each) for each in array)


def pick(index: Any, *options: Any) -> Any:
    return options[int(index) - 1] if whole(index) and 1 <= index <= len(options) else UNDEFINED


# --- numbers --------------------------------------------------------------------------------------


def ieee(run: Callable[..., float]) -> Run:
    def guarded(*arguments: Any) -> Any:
        try:
            return run(*map(float, arguments))
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan
        except ZeroDivisionError:
            return math.inf

    return typed("n", guarded)


def rounding(run: Callable[[float], int]) -> Run:
    return typed("n", lambda x: run(x) if math.isfinite(x) else x)


def raised(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf if base > 0 or exponent % 2 == 0 else -math.inf
    except ValueError:
        return math.inf if base == 0 else math.nan


def logarithm(value: float, base: float = math.e) -> float:
    if base == 1:
        return math.nan
    return -math.inf if value == 0 else math.log(value) / math.log(base)


def away_from_zero(value: Any, places: int = 0) -> Any:
    if places >= 0 and (isinstance(value, int) or abs(value) >= 2**53):
        return value
    step = Decimal(10) ** -places
    return float((Decimal(repr(value)) / step).quantize(Decimal(1), ROUND_HALF_UP) * step)


def wrapped(run: Callable[..., int]) -> Run:
    def exact(*arguments: int) -> Any:
        try:
            return (run(*arguments) + 2**63) % 2**64 - 2**63
        except ZeroDivisionError:
            return UNDEFINED

    return typed("i", exact)


def toward_zero(a: int, b: int) -> int:
    return a // b if (a < 0) == (b < 0) else -(-a // b)


# --- strings --------------------------------------------------------------------------------------


def ascii_or_simple(text: str, change: Callable[[str], str]) -> str:
    """Letter by letter, and only when one letter stays one letter."""
    kept = "\u0130\u0131"
    return "".join(change(c) if len(change(c)) == 1 and c not in kept else c for c in text)


def upper(text: str) -> str:
    return ascii_or_simple(text, str.upper)


def cased(test: Callable[[str, str], bool]) -> Run:
    def run(text: str, other: str, ignore: bool = False) -> bool:
        return test(upper(text), upper(other)) if ignore else test(text, other)

    return typed("ssb", run)


def find(text: str, other: str, start: int = 0) -> int:
    whole_text, part = units(text), units(other)
    for at in range(max(0, start), len(whole_text) - len(part) + 1):
        if whole_text[at : at + len(part)] == part:
            return at
    return -1


def find_last(text: str, other: str, *last: int) -> int:
    whole_text, part = units(text), units(other)
    if last:
        whole_text = whole_text[: max(0, last[0] + 1)]
        if last[0] < 0:
            return -1
    for at in range(len(whole_text) - len(part), -1, -1):
        if whole_text[at : at + len(part)] == part:
            return at
    return -1


def cut(text: str, start: int, length: int) -> str:
    return "" if start < 0 or length <= 0 else from_units(units(text)[start : start + length])


def strip(text: str, characters: str | None, left: bool, right: bool) -> str:
    def drop(c: str) -> bool:
        return c.isspace() if characters is None else c in characters

    while left and text and drop(text[0]):
        text = text[1:]
    while right and text and drop(text[-1]):
        text = text[:-1]
    return text


def stripper(left: bool, right: bool) -> Run:
    return typed("ss", lambda text, *c: strip(text, c[0] if c else None, left, right))


def repeated(text: str, times: float) -> Any:
    if not math.isfinite(times) or times < 0 or len(units(text)) * int(times) > 10_000:
        return UNDEFINED
    return text * int(times)


def read_json(kind: str) -> Run:
    def refuse(word: str) -> Any:
        raise ValueError(word)

    def run(text: str) -> Any:
        try:
            value = json.loads(text, parse_constant=refuse)
        except ValueError:
            return UNDEFINED
        return value if type_of(value) == kind else UNDEFINED

    return typed("s", run)


def written(value: Any) -> str:
    match type_of(value):
        case "number" if not math.isfinite(value):
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        case "number":
            is_short = isinstance(value, float) and value == int(value) and abs(value) <= 2**53
            return json.dumps(int(value) if is_short else value).replace("e-0", "e-")
        case "array":
            return "[" + ",".join(map(written, value)) + "]"
        case "object":
            return "{" + ",".join(f"{written(k)}:{written(v)}" for k, v in value.items()) + "}"
        case _:
            return json.dumps(value, ensure_ascii=False)


# --- the table ------------------------------------------------------------------------------------


def is_a(*kinds: str) -> Run:
    return lambda value: type_of(value) in kinds


contains = cased(lambda text, other: other in text)
array_has = typed("a.b", has)

OWN: dict[str, Run] = {
    "ISARRAY": is_a("array"),
    "ISBOOL": is_a("boolean"),
    "ISBOOLEAN": is_a("boolean"),
    "ISDEFINED": lambda value: value is not UNDEFINED,
    "ISNULL": is_a("null"),
    "ISNUMBER": is_a("number"),
    "ISOBJECT": is_a("object"),
    "ISSTRING": is_a("string"),
    "ISPRIMITIVE": is_a("null", "boolean", "number", "string"),
    "ISINTEGER": whole,
    "ISFINITENUMBER": lambda value: type_of(value) == "number" and math.isfinite(value),
    "ARRAYCONCAT": typed("a", lambda *arrays: [each for array in arrays for each in array]),
    "ARRAYCONTAINS": array_has,
    "ARRAYCONTAINSANY": folded("OR", array_has),
    "ARRAYCONTAINSALL": folded("AND", array_has),
    "ARRAYLENGTH": typed("a", len),
    "ARRAYSLICE": typed("aii", portion),
    "ARRAYSUM": typed("a", lambda array: of_numbers(array, sum, 0)),
    "ARRAYAVG": typed("a", lambda array: of_numbers(array, lambda n: sum(n) / len(n), UNDEFINED)),
    "ARRAYMEDIAN": typed("a", lambda array: of_numbers(array, middle, UNDEFINED)),
    "ARRAYMIN": typed("a", lambda array: extreme(array, min)),
    "ARRAYMAX": typed("a", lambda array: extreme(array, max)),
    "SETUNION": typed("aa", lambda a, b: distinct(a + b)),
    "SETINTERSECT": typed("aa", lambda a, b: [each for each in distinct(b) if inside(each, a)]),
    "SETDIFFERENCE": typed("aa", lambda a, b: [x for x in distinct(a) if not inside(x, b)]),
    "SETEQUAL": typed(
        "aa", lambda a, b: all(inside(x, b) for x in a) and all(inside(x, a) for x in b)
    ),
    "OBJECTTOARRAY": typed(
        "oss", lambda value, k="k", v="v": [{k: name, v: each} for name, each in value.items()]
    ),
    "CHOOSE": pick,
    "IIF": lambda test, then, otherwise: then if test is True else otherwise,
    "ABS": typed("n", abs),
    "SIGN": typed("n", lambda x: 0 if x == 0 else math.copysign(1, x)),
    "SQUARE": ieee(lambda x: x * x),
    "CEILING": rounding(math.ceil),
    "FLOOR": rounding(math.floor),
    "TRUNC": rounding(math.trunc),
    "ROUND": typed("ni", away_from_zero),
    "POWER": ieee(raised),
    "SQRT": ieee(math.sqrt),
    "EXP": ieee(math.exp),
    "LOG": ieee(logarithm),
    "LOG10": ieee(lambda x: -math.inf if x == 0 else math.log10(x)),
    "SIN": ieee(math.sin),
    "COS": ieee(math.cos),
    "TAN": ieee(math.tan),
    "COT": ieee(lambda x: 1 / math.tan(x)),
    "ASIN": ieee(math.asin),
    "ACOS": ieee(math.acos),
    "ATAN": ieee(math.atan),
    "ATN2": ieee(math.atan2),
    "DEGREES": ieee(math.degrees),
    "RADIANS": ieee(math.radians),
    "PI": lambda: math.pi,
    "NUMBERBIN": typed(
        "nn", lambda x, size=1: math.floor(x / size) * size if size != 0 else UNDEFINED
    ),
    "INTADD": wrapped(lambda a, b: a + b),
    "INTSUB": wrapped(lambda a, b: a - b),
    "INTMUL": wrapped(lambda a, b: a * b),
    "INTDIV": wrapped(toward_zero),
    "INTMOD": wrapped(lambda a, b: a - b * toward_zero(a, b)),
    "INTBITAND": wrapped(lambda a, b: a & b),
    "INTBITOR": wrapped(lambda a, b: a | b),
    "INTBITXOR": wrapped(lambda a, b: a ^ b),
    "INTBITNOT": wrapped(lambda a: -a - 1),
    "INTBITLEFTSHIFT": wrapped(lambda a, n: a * 2 ** (n % 64)),
    "INTBITRIGHTSHIFT": wrapped(lambda a, n: a // 2 ** (n % 64)),
    "CONCAT": typed("s", lambda *texts: from_units(units("".join(texts)))),
    "CONTAINS": contains,
    "STARTSWITH": cased(lambda text, other: text[: len(other)] == other),
    "ENDSWITH": cased(lambda text, other: other == "" or text[-len(other) :] == other),
    "STRINGEQUALS": cased(lambda text, other: text == other),
    "CONTAINSANYCS": folded("OR", contains),
    "CONTAINSALLCS": folded("AND", contains),
    "CONTAINSANYCI": folded("OR", lambda text, other: contains(text, other, True)),
    "CONTAINSALLCI": folded("AND", lambda text, other: contains(text, other, True)),
    "INDEXOF": typed("ssi", find),
    "LASTINDEXOF": typed("ssi", find_last),
    "LEFT": typed("si", lambda text, k: cut(text, 0, k)),
    "RIGHT": typed("si", lambda text, k: from_units(units(text)[-k:]) if k > 0 else ""),
    "LENGTH": typed("s", lambda text: len(units(text))),
    "LOWER": typed("s", lambda text: ascii_or_simple(text, str.lower)),
    "UPPER": typed("s", upper),
    "REVERSE": typed("s", lambda text: "".join(reversed(text))),
    "LTRIM": stripper(True, False),
    "RTRIM": stripper(False, True),
    "TRIM": stripper(True, True),
    "REPLACE": typed("sss", lambda text, old, new: new.join(text.split(old)) if old else UNDEFINED),
    "REPLICATE": typed("sn", repeated),
    "SUBSTRING": typed("sii", cut),
    "STRINGSPLIT": typed("ss", lambda text, mark: text.split(mark) if mark else [text]),
    "STRINGJOIN": typed(
        "as",
        lambda array, mark: (
            mark.join(array) if all(type_of(x) == "string" for x in array) else UNDEFINED
        ),
    ),
    "STRINGTOARRAY": read_json("array"),
    "STRINGTOBOOLEAN": read_json("boolean"),
    "STRINGTONULL": read_json("null"),
    "STRINGTONUMBER": read_json("number"),
    "STRINGTOOBJECT": read_json("object"),
    "TOSTRING": typed(".", lambda value: value if type_of(value) == "string" else written(value)),
}

AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "COUNTIF", "MAKELIST", "MAKESET")


def call(name: str, arguments: list[Any], context: Context) -> Any:
    if name in OWN:
        return OWN[name](*arguments)
    function = REAL[name]
    assert function.run is not None
    return function.run(context, *arguments) if function.context else function.run(*arguments)


def aggregate(name: str, values: list[Any]) -> Any:
    defined = [value for value in values if value is not UNDEFINED]
    match name:
        case "COUNT":
            return len(defined)
        case "COUNTIF":
            return sum(value is True for value in defined)
        case "MAKELIST":
            return defined
        case "MAKESET":
            return distinct(defined)
        case "MIN" | "MAX":
            return extreme(defined, min if name == "MIN" else max)
        case _:
            empty = 0 if name == "SUM" else UNDEFINED
            return of_numbers(defined, sum if name == "SUM" else lambda n: sum(n) / len(n), empty)
