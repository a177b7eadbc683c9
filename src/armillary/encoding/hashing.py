"""From a key value to its place: the effective partition key (EPK), and what makes it unique.

    ("redmond",) ──hash──▶ EPK 22E3…63 ──bisect over ranges──▶ physical partition
          └──────identity──▶ BLAKE2b ──▶ digest, 8 bytes in every item's header

The EPK decides where a key lives but is not identity: different keys can share one (design 4).
`key_identity` is. EPKs are bytes here, upper-case hex on the wire; both sort alike.

    V2         x64-128 Murmur of all components, top two bits cleared: 16 bytes
    MultiHash  one such hash per level, so that a prefix of the key is a prefix of the EPK
    V1         x86-32 Murmur written as an order-preserving number, then the components again in
               order-preserving form; strings count to 100 UTF-16 units: variable length

Inside a longer key an EPK must end somewhere. Fixed-length ones stay raw; V1 is escaped:

    raw  05 C1 00 2A         key  05 C1 00 FF 2A 00 01         bound  05 C1 00 FF 2A

Values must have passed `partition_key.check_key`. Facts: nosql-rest 4.3, 4.4; partitioning 5.1.
HOT: `locate` once per point operation; numbers in its docstring; reference
tests/property/slow_hashing.py.
"""

import struct
from bisect import bisect_left
from hashlib import blake2b
from typing import Final

import mmh3

from armillary.encoding.partition_key import Component, KeyValues, PartitionKeyDefinition
from armillary.errors import BadInput
from armillary.limits import PARTITION_KEY_V1_CHARACTERS
from armillary.values import UNDEFINED

EPK_MIN: Final = b""
EPK_MAX: Final = b"\xff"  # exclusive; no EPK begins with FF
HASH_BYTES: Final = 16  # of one V2 hash
DIGEST_BYTES: Final = 8

_V2_MASK: Final = 2**126 - 1
_V1_HASH_MAX: Final = 2**32 - 1
_V1_STRING_BYTES: Final = 100  # longer strings keep one byte more and no terminator
_ESCAPED_ZERO: Final = b"\x00\xff"
_END: Final = b"\x00\x01"

_pack_double: Final = struct.Struct("<d").pack
_pack_double_big: Final = struct.Struct(">d").pack
_murmur_128: Final = mmh3.mmh3_x64_128_uintdigest
_murmur_32: Final = mmh3.mmh3_32_uintdigest
#: UTF-8 bytes plus one, so that 00 can end a string (FF never occurs in UTF-8).
_PLUS_ONE: Final = bytes(min(byte + 1, 255) for byte in range(256))


def locate(values: KeyValues, definition: PartitionKeyDefinition) -> tuple[bytes, bytes]:
    """(EPK, digest) in one pass: 1.0 µs for one string under V2, 5 µs under V1. No cache: a
    miss costs 1.4 µs, and 1 == True would share an entry.
    """
    if definition.version == 2 and len(values) == 1:
        value = values[0]
        if type(value) is str:
            identity = b"\x08%b\xff" % value.encode()
        else:
            identity = _tagged(value)
        return (
            (_murmur_128(identity) & _V2_MASK).to_bytes(16, "big"),
            blake2b(identity, digest_size=8).digest(),
        )
    return epk(values, definition), key_digest(values, definition)


def epk(values: KeyValues, definition: PartitionKeyDefinition) -> bytes:
    """The place of a key on the ring, or of a prefix of a hierarchical key."""
    if not values:
        return EPK_MIN
    if definition.kind == "MultiHash":
        return b"".join([_hash_v2(_tagged(value)) for value in values])
    if definition.version == 2:
        return _hash_v2(b"".join(map(_tagged, values)))
    cut = [_cut(value) for value in values]
    hashed = _murmur_32(b"".join([_tagged(value, b"\x00") for value in cut]))
    return _ordered_number(hashed) + b"".join(map(_ordered, cut))


def epk_hex(values: KeyValues, definition: PartitionKeyDefinition) -> str:
    return epk(values, definition).hex().upper()


def parse_epk_hex(text: str) -> bytes:
    """An EPK as clients send it: a range bound in hex of either case."""
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise BadInput(f"The effective partition key '{text}' is not hexadecimal.") from error


def even_bounds(definition: PartitionKeyDefinition, count: int) -> list[bytes]:
    """The count - 1 inner boundaries of a new container with `count` equal ranges."""
    if definition.version == 2:
        step = _V2_MASK // count
        return [(step * i).to_bytes(HASH_BYTES, "big") for i in range(1, count)]
    step = _V1_HASH_MAX // count
    return [_ordered_number(step * i) for i in range(1, count)]


def middle(start: bytes, end: bytes, definition: PartitionKeyDefinition) -> bytes:
    """The EPK that halves the hashes between two bounds, whether or not any key lies there."""
    if definition.version == 2:
        top = 1 << (8 * HASH_BYTES - 2)  # the two highest bits of a V2 hash are 0
        low = int.from_bytes(start[:HASH_BYTES].ljust(HASH_BYTES, b"\0"), "big")
        high = min(top, int.from_bytes(end[:HASH_BYTES].ljust(HASH_BYTES, b"\0"), "big"))
        return ((low + high) // 2).to_bytes(HASH_BYTES, "big")
    hashes = range(1 << 32)
    low, high = (bisect_left(hashes, bound, key=_bound_v1) for bound in (start, end))
    return _bound_v1((low + high) // 2)


def position(epk: bytes, definition: PartitionKeyDefinition) -> float:
    """Where an EPK or a bound of ranges lies on the ring, from 0 to 1: for pictures, not for
    routing."""
    if definition.version == 2:
        return min(1.0, int.from_bytes(epk[:8].ljust(8, b"\0"), "big") / (1 << 62))
    return bisect_left(range(1 << 32), epk, key=_bound_v1) / (1 << 32)


def _bound_v1(hash_value: int) -> bytes:
    return _ordered_number(float(hash_value))


def prefix_range(values: KeyValues, definition: PartitionKeyDefinition) -> tuple[bytes, bytes]:
    """[start, end) of the EPKs of every key that begins with these values."""
    start = epk(values, definition)
    return start, start + b"\xff"


# --- identity -------------------------------------------------------------------------------------


def key_identity(values: KeyValues, definition: PartitionKeyDefinition) -> bytes:
    """Equal exactly when two keys are one logical partition. Under V1 strings that agree in their
    first 100 UTF-16 units are, by rule.
    """
    if definition.version == 1:
        values = tuple(map(_cut, values))
    return b"".join(map(_tagged, values))


def key_digest(values: KeyValues, definition: PartitionKeyDefinition) -> bytes:
    return blake2b(key_identity(values, definition), digest_size=DIGEST_BYTES).digest()


# --- EPKs inside keys -----------------------------------------------------------------------------


def epk_key(epk: bytes, definition: PartitionKeyDefinition) -> bytes:
    """The EPK of a full key as a component of a longer key: it ends by itself and sorts alike."""
    if definition.version == 2:
        return epk
    return epk.replace(b"\x00", _ESCAPED_ZERO) + _END


def epk_key_bound(bound: bytes, definition: PartitionKeyDefinition) -> bytes:
    """A range bound in the same order: epk < bound exactly when epk_key(epk) < this."""
    if definition.version == 2:
        return bound
    return bound.replace(b"\x00", _ESCAPED_ZERO)


def split_epk_key(key: bytes, offset: int, definition: PartitionKeyDefinition) -> tuple[bytes, int]:
    """(the EPK that `epk_key` wrote at `offset`, the offset after it)."""
    if definition.version == 2:
        levels = len(definition.paths) if definition.kind == "MultiHash" else 1
        end = offset + HASH_BYTES * levels
        return key[offset:end], end
    # Every 00 inside is followed by FF, so the first 00 01 is the end.
    end = key.index(_END, offset)
    return key[offset:end].replace(_ESCAPED_ZERO, b"\x00"), end + len(_END)


# --- bytes of one component -----------------------------------------------------------------------


def _tagged(value: Component, string_end: bytes = b"\xff") -> bytes:
    """Type and value, as the hashes take them. With FF as the end of strings (no byte of UTF-8),
    a sequence of components reads in one way only, so these bytes are an identity too.
    """
    if type(value) is str:
        return b"\x08" + value.encode() + string_end
    return _marker(value) or b"\x05" + _pack_double(_double(value))


def _ordered(value: Component) -> bytes:
    """Type and value in bytes that sort like values: the tail of a V1 EPK."""
    if type(value) is str:
        data = value.encode()
        if len(data) > _V1_STRING_BYTES:
            return b"\x08" + data[: _V1_STRING_BYTES + 1].translate(_PLUS_ONE)
        return b"\x08" + data.translate(_PLUS_ONE) + b"\x00"
    return _marker(value) or _ordered_number(_double(value))


def _marker(value: Component) -> bytes | None:
    if value is UNDEFINED:
        return b"\x00"
    if value is None:
        return b"\x01"
    if value is False:
        return b"\x02"
    if value is True:
        return b"\x03"
    return None


def _double(value: Component) -> float:
    assert isinstance(value, int | float), "a checked component is a scalar"
    return value + 0.0  # also makes -0.0 the 0.0 it is equal to


def _ordered_number(value: float) -> bytes:
    """05, then the bits of the double in ascending order: 8 first, then 7 a byte whose lowest bit
    says that more follow. Trailing zero bits are not written.
    """
    bits = int.from_bytes(_pack_double_big(value), "big")
    # Positive numbers above negative ones; negative ones turned around.
    bits = bits ^ 1 << 63 if bits < 1 << 63 else -bits & (1 << 64) - 1
    out = bytearray((5, bits >> 56))
    rest = bits << 8 & (1 << 64) - 1
    while True:
        head, rest = rest >> 56, rest << 7 & (1 << 64) - 1
        out.append(head | 1 if rest else head & 0xFE)
        if not rest:
            return bytes(out)


def _hash_v2(data: bytes) -> bytes:
    return (_murmur_128(data) & _V2_MASK).to_bytes(HASH_BYTES, "big")


def _cut(value: Component) -> Component:
    """V1 takes a string's first 100 UTF-16 units. Half a surrogate pair at the cut is dropped."""
    if type(value) is not str:
        return value
    if value.isascii():
        return value[:PARTITION_KEY_V1_CHARACTERS]
    units = value.encode("utf-16-le")[: 2 * PARTITION_KEY_V1_CHARACTERS]
    return units.decode("utf-16-le", "ignore")
