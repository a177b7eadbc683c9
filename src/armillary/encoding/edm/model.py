"""The value model of tables: how EDM values compare, sort, and what terms they have in an index.

    code   values                                   order
       2   null
       3   Boolean                                  false, true
       4   NaN                                      equal to itself, comparable with nothing else
       5   Int32, Int64, Double, plain numbers      by value, exact for 64 bits
       6   String, plain strings (the keys)         by UTF-16 code unit
       7   DateTime                                 by time
       8   Guid                                     by text
       9   Binary                                   by byte
      10   arrays, 11 other objects                 what another API could have left; not exact

Numbers of all types are one code, because a literal of a filter compares with each of them by
value. Facts: table 4, 6.
"""

from __future__ import annotations

import base64
import math
from typing import Any, Final

from armillary.encoding.edm import values as edm
from armillary.encoding.edm.values import TYPE, VALUE
from armillary.encoding.framed_model import ESCAPED, UNDEFINED_CODE, FramedModel, Scalar
from armillary.encoding.partition_key import Component
from armillary.encoding.terms import WHOLE_END, cesu8, number_bytes
from armillary.errors import BadInput
from armillary.limits import TERM_CUT_BYTES
from armillary.values import JSON, UNDEFINED

NULL_CODE: Final = 2
BOOLEAN_CODE: Final = 3
NAN_CODE: Final = 4
NUMBER_CODE: Final = 5
STRING_CODE: Final = 6
DATETIME_CODE: Final = 7
GUID_CODE: Final = 8
BINARY_CODE: Final = 9
ARRAY_CODE: Final = 10
OBJECT_CODE: Final = 11
_REST_BYTES: Final = 2  # an integer of 64 bits is at most 1,024 above the double below it
_EXACT_BELOW: Final = 1 << 53


class EdmModel(FramedModel):
    name = "edm"
    inner_names = frozenset({TYPE, VALUE})

    def is_scalar(self, value: JSON) -> bool:
        kind = type(value)
        if kind is dict:
            return edm.is_tagged(value) and value[TYPE] in _TYPES
        return kind is not list

    def scalar(self, value: JSON) -> Scalar:
        kind = type(value)
        if kind is dict:
            if value.get(TYPE) == edm.STRING and type(value.get(VALUE)) is str and len(value) == 2:
                return Scalar(STRING_CODE, cesu8(value[VALUE]))  # HOT: most properties are strings
            found = _tagged_scalar(value) if edm.is_tagged(value) else None
            return found or Scalar(OBJECT_CODE, exact=False)
        if kind is str:
            return Scalar(STRING_CODE, cesu8(value))
        if kind is bool:
            return Scalar(BOOLEAN_CODE, b"\x01" if value else b"\x00")
        if kind is int or kind is float:
            return _number(value)
        if value is UNDEFINED:
            return Scalar(UNDEFINED_CODE)
        if value is None:
            return Scalar(NULL_CODE)
        return Scalar(ARRAY_CODE, exact=False)

    def term(self, value: JSON, cut: int = TERM_CUT_BYTES) -> bytes:
        # HOT: once per property of a written entity; most are short texts in ASCII.
        text = value.get(VALUE) if type(value) is dict and value.get(TYPE) == edm.STRING else value
        if (
            type(text) is str
            and len(text) <= cut
            and text.isascii()
            and "\x00" not in text
            and (text is value or len(value) == len(self.inner_names))
        ):
            return STRING_HEAD + text.encode() + WHOLE_END
        return super().term(value, cut)

    def key(self, value: JSON) -> Component:
        """Entities have strings here (`check_body`); other scalars are possible in questions."""
        if not self.is_scalar(value):
            raise BadInput("The PartitionKey of an entity is a string.")
        if type(value) is not dict:
            plain: Component = value
            return plain
        kind, data = value[TYPE], value[VALUE]
        if kind == edm.INT64:
            return int(data)
        if kind == edm.DOUBLE and data != "NaN":
            return edm.double_of(data)
        found: Component = data
        return found

    def check_body(self, document: dict[str, JSON]) -> None:
        """The stored form of an entity, by whichever API it is written."""
        row_key, partition_key = document.get(edm.ROW_KEY), document.get(edm.PARTITION_KEY)
        if type(row_key) is not str or type(partition_key) is not str:
            raise BadInput(
                f"An item of a table has the strings '{edm.PARTITION_KEY}' (PartitionKey) and "
                f"'{edm.ROW_KEY}' (RowKey)."
            )
        if document.get("id") != edm.item_id(row_key):
            raise BadInput(f"The 'id' of an item of a table is its '{edm.ROW_KEY}'.")
        for name, value in document.items():
            if name in _OWN_NAMES:
                continue
            if name[:1] == "$" and edm.shown_name(name) not in edm.RESERVED:
                raise BadInput(f"The property name '{name}' is not possible in a table.")
            if type(value) is dict and len(value) == len(self.inner_names):
                kind, data = value.get(TYPE), value.get(VALUE)
                # HOT: nothing can be wrong with these but their type.
                if type(kind) is int and type(data) is _PLAIN.get(kind):
                    continue
            if type(value) is not dict or self.scalar(value).code == OBJECT_CODE:
                raise BadInput(
                    f"The property '{name}' of an item of a table must be of the form "
                    f'{{"{TYPE}": type, "{VALUE}": value}}.'
                )


def _tagged_scalar(value: dict[str, Any]) -> Scalar | None:
    """None: the type is unknown, or the value is none of that type."""
    kind = value[TYPE]
    try:
        if kind not in _TYPES or type(kind) is not int:
            return None
        return _SCALARS[kind](value[VALUE])
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None


def number_term(kind: JSON, value: JSON) -> bytes | None:
    """The term of a plain Int32 or Double. None: it is something else. HOT."""
    if type(kind) is not int:
        return None
    if type(value) is int:
        if kind != edm.INT32 or not edm.INT32_MIN <= value <= edm.INT32_MAX:
            return None
    elif type(value) is not float or kind != edm.DOUBLE or value != value:
        return None
    return NUMBER_HEAD + number_bytes(value).replace(b"\x00", ESCAPED) + WHOLE_END


def _number(value: int | float) -> Scalar:
    if type(value) is float:
        return Scalar(NUMBER_CODE, number_bytes(value))
    if -_EXACT_BELOW <= value <= _EXACT_BELOW:
        return Scalar(NUMBER_CODE, number_bytes(value))
    below = float(value)
    if int(below) > value:
        below = math.nextafter(below, -math.inf)
    rest = int(value) - int(below)
    tail = rest.to_bytes(_REST_BYTES, "big") if rest else b""
    return Scalar(NUMBER_CODE, number_bytes(below) + tail)


def _double(value: Any) -> Scalar:
    if type(value) not in (int, float, str):
        raise TypeError
    number = edm.double_of(value)
    return Scalar(NAN_CODE) if number != number else Scalar(NUMBER_CODE, number_bytes(number))


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    return value


def _boolean(value: Any) -> Scalar:
    if type(value) is not bool:
        raise TypeError
    return Scalar(BOOLEAN_CODE, b"\x01" if value else b"\x00")


def _int32(value: Any) -> Scalar:
    if type(value) is not int or not edm.INT32_MIN <= value <= edm.INT32_MAX:
        raise ValueError
    return Scalar(NUMBER_CODE, number_bytes(value))


def _int64(value: Any) -> Scalar:
    number = edm.parse_integer(_text(value), edm.INT64_MIN, edm.INT64_MAX)
    if str(number) != value:
        raise ValueError
    return _number(number)


def _datetime(value: Any) -> Scalar:
    text = _text(value)
    if len(text) != edm.TICK_DIGITS or not text.isdecimal() or int(text) > edm.TICKS_MAX:
        raise ValueError
    return Scalar(DATETIME_CODE, int(text).to_bytes(8, "big"))


def _guid(value: Any) -> Scalar:
    if edm.parse_guid(_text(value)) != value:
        raise ValueError
    return Scalar(GUID_CODE, bytes.fromhex(value.replace("-", "")))


_SCALARS: Final = {
    edm.DOUBLE: _double,
    edm.STRING: lambda value: Scalar(STRING_CODE, cesu8(_text(value))),
    edm.BINARY: lambda value: Scalar(BINARY_CODE, base64.b64decode(_text(value), validate=True)),
    edm.GUID: _guid,
    edm.BOOLEAN: _boolean,
    edm.DATETIME: _datetime,
    edm.INT32: _int32,
    edm.INT64: _int64,
}

_PLAIN: Final = {edm.STRING: str, edm.BOOLEAN: bool, edm.DOUBLE: float}
_OWN_NAMES: Final = edm.RESERVED | {edm.PARTITION_KEY, edm.ROW_KEY}
STRING_HEAD: Final = bytes((STRING_CODE,))
NUMBER_HEAD: Final = bytes((NUMBER_CODE,))
_TYPES: Final = tuple(_SCALARS)  # asked with values that may not hash

EDM_MODEL: Final = EdmModel()
