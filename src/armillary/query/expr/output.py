"""How a computed value leaves a query: as JSON that every client reads (reference 3.3).

Whole doubles become integers (`3`, not `3.0`), numbers JSON has no words for are refused, and half
a surrogate pair (a SUBSTRING can cut one) becomes the replacement character, because UTF-8 can't
carry it. Values that come straight from stored items are already in this form; only computed ones
need the walk.
"""

import math

import orjson

from armillary.errors import NotRepresentable
from armillary.values import JSON, UNDEFINED

_SAFE = 2.0**53


def output(value: JSON) -> JSON:
    """The value to serialise. Undefined members and elements are gone already or go here."""
    kind = type(value)
    if kind is float:
        return _number(value)
    if kind is str:
        return value if value.isascii() else _well_formed(value)
    if kind is list:
        return [output(each) for each in value if each is not UNDEFINED]
    if kind is dict:
        return {output(k): output(v) for k, v in value.items() if v is not UNDEFINED}
    return value


def _number(value: float) -> int | float:
    if not math.isfinite(value):
        raise NotRepresentable
    return int(value) if value.is_integer() and -_SAFE <= value <= _SAFE else value


def _well_formed(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def number_text(value: JSON) -> str:
    """The shortest text that reads back as the same number: `125`, `0.1`, `1e-7`, `2.5e+21`."""
    if type(value) is int:
        return str(value)
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value.is_integer() and -_SAFE <= value <= _SAFE:
        return str(int(value))
    mantissa, mark, exponent = repr(value).partition("e")
    return f"{mantissa}e{int(exponent):+}" if mark else mantissa


def text(value: JSON) -> str:
    """Compact JSON, as ToString writes it: NaN and Infinity as words, nothing escaped that need
    not be.
    """
    kind = type(value)
    if kind is int or kind is float:
        return number_text(value)
    if kind is list:
        return "[" + ",".join(text(each) for each in value) + "]"
    if kind is dict:
        return "{" + ",".join(f"{_quoted(k)}:{text(v)}" for k, v in value.items()) + "}"
    return _quoted(value) if kind is str else {True: "true", False: "false", None: "null"}[value]


def _quoted(value: str) -> str:
    return orjson.dumps(_well_formed(value)).decode()
