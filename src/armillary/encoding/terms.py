"""Terms: bytes of JSON values whose order is the order of the values.

    undefined 01 · null 02 · false 03 · true 04 · array 07 · object 08      one byte, no content
    number    05 + 8 bytes      the double: sign bit flipped, or all bits when it is negative
    string    06 + CESU-8 with 00 written as 00 FF, then
                   00 01                     the whole string
                   00 02 + 8-byte BLAKE2b    only its first `cut` bytes; the digest is of all of it

CESU-8 rather than UTF-8, because strings compare by UTF-16 code unit and that is the byte order of
CESU-8: an astral character is two surrogates, and sorts before U+E000. No term is the beginning of
another, so terms can be joined, and each can be complemented to turn its order around.

A term does not always say which value it came from: a cut string, a number that a double cannot
tell from its neighbours, an array, an object. `is_exact` tells; a filter by an inexact term
looks at the item again. Two cut strings with one beginning are not in order among themselves.
"""

import re
from dataclasses import dataclass
from hashlib import blake2b
from struct import Struct
from typing import Final

from armillary.limits import TERM_CUT_BYTES
from armillary.values import JSON, UNDEFINED

UNDEFINED_CODE: Final = 1
NULL_CODE: Final = 2
FALSE_CODE: Final = 3
TRUE_CODE: Final = 4
NUMBER_CODE: Final = 5
STRING_CODE: Final = 6
ARRAY_CODE: Final = 7
OBJECT_CODE: Final = 8

UNDEFINED_TERM: Final = b"\x01"
NULL_TERM: Final = b"\x02"
FALSE_TERM: Final = b"\x03"
TRUE_TERM: Final = b"\x04"
ARRAY_TERM: Final = b"\x07"
OBJECT_TERM: Final = b"\x08"

NUMBER: Final = b"\x05"
STRING: Final = b"\x06"
WHOLE_END: Final = b"\x00\x01"
CUT_END: Final = b"\x00\x02"
DIGEST_BYTES: Final = 8

ZERO: Final = b"\x80\x00\x00\x00\x00\x00\x00\x00"  # the eight bytes of 0
DOUBLE: Final = Struct(">d")
_COMPLEMENT = bytes(255 - byte for byte in range(256))
_EXACT_BELOW = 1 << 53  # from here on a double stands for several integers…
_EXACT_ABOVE = 1 << 63  # …up to here, where 64-bit integers end
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_CONSTANTS: Final[dict[type, bytes]] = {
    type(UNDEFINED): UNDEFINED_TERM,
    type(None): NULL_TERM,
    list: ARRAY_TERM,
    dict: OBJECT_TERM,
}
_SIMPLE_VALUES: Final[dict[int, JSON]] = {
    UNDEFINED_CODE: UNDEFINED,
    NULL_CODE: None,
    FALSE_CODE: False,
    TRUE_CODE: True,
}


@dataclass(frozen=True, slots=True)
class Partial:
    """What an inexact term tells: the type, and the bytes its value begins with."""

    code: int
    beginning: bytes = b""
    digest: bytes = b""


def term_bytes_max(cut: int = TERM_CUT_BYTES) -> int:
    """The longest term there can be: a cut string of nothing but NUL."""
    return 1 + 2 * cut + len(CUT_END) + DIGEST_BYTES


def term(value: JSON, cut: int = TERM_CUT_BYTES) -> bytes:
    kind = type(value)
    if kind is str:
        return string_term(value, cut)
    if kind is bool:
        return TRUE_TERM if value else FALSE_TERM
    if kind is int or kind is float:
        return NUMBER + number_bytes(value)
    return _CONSTANTS[kind]


def number_bytes(value: int | float) -> bytes:
    # Packing the negated number is the cheapest way to flip the sign bit of a positive one.
    if value > 0:
        return DOUBLE.pack(-value)
    if value == 0:
        return ZERO
    return descending(DOUBLE.pack(value))


def string_term(text: str, cut: int = TERM_CUT_BYTES) -> bytes:
    source = cesu8(text)
    if len(source) <= cut:
        return STRING + source.replace(b"\x00", b"\x00\xff") + WHOLE_END
    digest = blake2b(source, digest_size=DIGEST_BYTES).digest()
    return STRING + source[:cut].replace(b"\x00", b"\x00\xff") + CUT_END + digest


def cesu8(text: str) -> bytes:
    """UTF-8 of the UTF-16 code units, so that bytes compare as code units do."""
    if text.isascii():
        return text.encode()
    # More code units than characters (and a byte order mark): some are astral. "utf-16" is built
    # in, "utf-16-le" is looked up and takes five times as long.
    if len(text.encode("utf-16", "surrogatepass")) > 2 * len(text) + 2:
        text = _ASTRAL.sub(_surrogates, text)
    return text.encode("utf-8", "surrogatepass")


def _surrogates(match: re.Match[str]) -> str:
    offset = ord(match[0]) - 0x10000
    return chr(0xD800 + (offset >> 10)) + chr(0xDC00 + (offset & 0x3FF))


def is_exact(value: JSON, cut: int = TERM_CUT_BYTES) -> bool:
    """Does the term of this value stand for this value only?"""
    kind = type(value)
    if kind is str:
        return len(cesu8(value[: cut + 1])) <= cut
    if kind is bool:
        return True
    if kind is int or kind is float:
        return _is_exact_number(value)
    return kind not in (list, dict)


def _is_exact_number(value: int | float) -> bool:
    return abs(value) < _EXACT_BELOW or abs(value) > _EXACT_ABOVE


def descending(ascending: bytes) -> bytes:
    """The same bytes in the opposite order. Applied twice it changes nothing."""
    return ascending.translate(_COMPLEMENT)


def decode_term(data: bytes, offset: int = 0) -> tuple[JSON, int]:
    """The value of the term at `offset`, or a `Partial` when the term is not exact, and where the
    next term begins. For a descending term complement the rest of the key first.
    """
    code = data[offset]
    offset += 1
    if code == NUMBER_CODE:
        return _decode_number(data[offset : offset + 8]), offset + 8
    if code == STRING_CODE:
        return _decode_string(data, offset)
    if code in _SIMPLE_VALUES:
        return _SIMPLE_VALUES[code], offset
    if code in (ARRAY_CODE, OBJECT_CODE):
        return Partial(code), offset
    raise ValueError(f"no term begins with {code:02x}")


def _decode_number(data: bytes) -> JSON:
    """HOT: once per entry of an index that gives an order."""
    is_negative = data[0] < 0x80
    value: float = DOUBLE.unpack(descending(data))[0] if is_negative else -DOUBLE.unpack(data)[0]
    if abs(value) < _EXACT_BELOW:
        return int(value) if value.is_integer() else value
    return value if _is_exact_number(value) else Partial(NUMBER_CODE, data)


def _decode_string(data: bytes, offset: int) -> tuple[JSON, int]:
    end = data.index(b"\x00", offset)
    while data[end + 1] == 0xFF:
        end = data.index(b"\x00", end + 2)
    source = data[offset:end].replace(b"\x00\xff", b"\x00")
    after = end + 2
    if data[end + 1] == CUT_END[1]:
        digest_end = after + DIGEST_BYTES
        return Partial(STRING_CODE, source, data[after:digest_end]), digest_end
    text = source.decode("utf-8", "surrogatepass")
    if not text.isascii():
        # The UTF-16 codec joins the pairs of surrogates again.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text, after


def type_range(code: int) -> tuple[bytes, bytes]:
    """Every term of one type: start <= term < end."""
    return bytes((code,)), bytes((code + 1,))


def string_prefix_range(prefix: str, cut: int = TERM_CUT_BYTES) -> tuple[bytes, bytes]:
    """Every term of a string that begins with `prefix`: start <= term < end.

    When the prefix is itself longer than a term can hold, other strings are in the range as well.
    """
    source = cesu8(prefix)
    start = STRING + source[:cut].replace(b"\x00", b"\x00\xff")
    if len(source) > cut:
        return start + CUT_END, start + b"\x00\x03"
    if not source:
        return type_range(STRING_CODE)
    stripped = start.rstrip(b"\xff")  # only an escaped NUL can end in FF
    return start, stripped[:-1] + bytes((stripped[-1] + 1,))
