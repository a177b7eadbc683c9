"""How a property value becomes text in a key. The same value must give the same text for ever.

    string      itself
    number      an integer of 64 bits: its digits (`5` and `5.0` are both `5`, `-0.0` is `0`);
                any other double: the shortest text that reads back, in the notation of JavaScript
                (ECMA-262 Number::toString), so that clients in other languages can compute it
    true, false, null
    object, array, missing: refused

Numbers that are equal give equal texts, because to the database they are one value. Text alone
does not tell `null` from `"null"` or `5` from `"5"`: a key whose parts mix types mixes them up.
"""

import math
from decimal import Decimal
from typing import Final

from armillary.errors import BadInput
from armillary.values import JSON

ESCAPE: Final = "\\"
_INT64: Final = range(-(2**63), 2**63)
_WORDS: Final[dict[JSON, str]] = {None: "null", True: "true", False: "false"}


def text_of(value: JSON, where: str) -> str:
    """`where` names the property in messages."""
    if isinstance(value, str):
        return _whole(value, where)
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, int | float):
        return _number(value, where)
    kind = "an array" if isinstance(value, list) else "an object"
    raise BadInput(
        f"'{where}' holds {kind}; a key is made of strings, numbers, booleans and nulls."
    )


def escaped(text: str, separator: str) -> str:
    """A text in which no character of the separator stands bare, so that joined texts can be
    distinguished: `a.b` + `c` is `a\\.b.c`, and `a` + `b.c` is `a.b\\.c`.
    """
    special = {ESCAPE, *separator}
    return "".join(ESCAPE + char if char in special else char for char in text)


def _whole(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadInput(
            f"'{where}' is not valid Unicode: it has half of a surrogate pair."
        ) from error
    return text


def _number(value: int | float, where: str) -> str:
    if isinstance(value, int) and value not in _INT64:
        try:
            value = float(value)
        except OverflowError as error:
            raise BadInput(f"'{where}' is a number beyond doubles.") from error
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadInput(f"'{where}' is {value}; numbers are finite.")
        if not value.is_integer() or int(value) not in _INT64:
            return _shortest(value)
    return str(int(value))


def _shortest(value: float) -> str:
    """ECMA-262 Number::toString. Python's repr has the same digits, in another notation."""
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int), "a finite number"
    text, point = "".join(map(str, digits)), len(digits) + exponent
    minus = "-" if sign else ""
    if len(text) <= point <= 21:
        return minus + text + "0" * (point - len(text))
    if 0 < point <= 21:
        return f"{minus}{text[:point]}.{text[point:]}"
    if -6 < point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    fraction = "." + text[1:] if len(text) > 1 else ""
    return f"{minus}{text[0]}{fraction}e{point - 1:+d}"
