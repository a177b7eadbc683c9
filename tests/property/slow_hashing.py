"""The hashes again, slowly and from the description alone: the second opinion for hashing.py.

Nothing is shared with the product: MurmurHash3 is written out on Python integers, bit strings are
texts of 0 and 1. Facts: nosql-rest 4.3.
"""

import struct
from typing import Any

from armillary.values import UNDEFINED


def rotate(value: int, by: int, width: int) -> int:
    return (value << by | value >> (width - by)) & (1 << width) - 1


def little(data: bytes) -> int:
    return int.from_bytes(data, "little")


def murmur_32(data: bytes) -> int:
    """MurmurHash3 x86_32, seed 0."""

    def scramble(block: int) -> int:
        return rotate(block * 0xCC9E2D51 % 2**32, 15, 32) * 0x1B873593 % 2**32

    state = 0
    whole = len(data) - len(data) % 4
    for at in range(0, whole, 4):
        state ^= scramble(little(data[at : at + 4]))
        state = (rotate(state, 13, 32) * 5 + 0xE6546B64) % 2**32
    state ^= scramble(little(data[whole:]))
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B % 2**32
    state = (state ^ state >> 13) * 0xC2B2AE35 % 2**32
    return state ^ state >> 16


def murmur_128(data: bytes) -> tuple[int, int]:
    """MurmurHash3 x64_128, seed 0: (h1, h2)."""
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F

    def first(block: int) -> int:
        return rotate(block * c1 % 2**64, 31, 64) * c2 % 2**64

    def second(block: int) -> int:
        return rotate(block * c2 % 2**64, 33, 64) * c1 % 2**64

    def finish(value: int) -> int:
        value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD % 2**64
        value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 % 2**64
        return value ^ value >> 33

    h1 = h2 = 0
    whole = len(data) - len(data) % 16
    for at in range(0, whole, 16):
        h1 ^= first(little(data[at : at + 8]))
        h1 = ((rotate(h1, 27, 64) + h2) * 5 + 0x52DCE729) % 2**64
        h2 ^= second(little(data[at + 8 : at + 16]))
        h2 = ((rotate(h2, 31, 64) + h1) * 5 + 0x38495AB5) % 2**64
    h2 ^= second(little(data[whole + 8 :]))
    h1 ^= first(little(data[whole : whole + 8]))
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = (h1 + h2) % 2**64
    h2 = (h2 + h1) % 2**64
    h1, h2 = finish(h1), finish(h2)
    h1 = (h1 + h2) % 2**64
    return h1, (h2 + h1) % 2**64


def marker(value: Any) -> bytes | None:
    for mark, known in enumerate((UNDEFINED, None, False, True)):
        if value is known:
            return bytes([mark])
    return None


def double(value: float) -> float:
    return 0.0 if value == 0 else float(value)  # one zero, as JSON numbers compare


def hashed_bytes(value: Any, end: bytes) -> bytes:
    if isinstance(value, str):
        return b"\x08" + value.encode() + end
    return marker(value) or b"\x05" + struct.pack("<d", double(value))


def ordered_bytes(value: Any) -> bytes:
    if isinstance(value, str):
        data = [min(byte + 1, 255) for byte in value.encode()]
        return bytes([8, *data[:101]]) if len(data) > 100 else bytes([8, *data, 0])
    return marker(value) or ordered_number(double(value))


def ordered_number(value: float) -> bytes:
    """Sign turned, eight bits, then sevens each followed by a 1 for "more" or a 0 for "last"."""
    raw = int.from_bytes(struct.pack(">d", value), "big")
    turned = raw + 2**63 if raw < 2**63 else 2**64 - raw
    bits = f"{turned:064b}"
    groups = [bits[at : at + 7] for at in range(8, 64, 7)]
    while len(groups) > 1 and groups[-1] == "0000000":
        groups.pop()
    text = bits[:8] + "".join(group + "1" for group in groups[:-1]) + groups[-1] + "0"
    return b"\x05" + int(text, 2).to_bytes(len(text) // 8, "big")


def cut(value: Any) -> Any:
    """The first 100 UTF-16 units, counted character by character."""
    if not isinstance(value, str):
        return value
    units, out = 0, ""
    for char in value:
        units += 2 if ord(char) > 0xFFFF else 1
        if units > 100:
            break
        out += char
    return out


def epk(values: tuple[Any, ...], kind: str, version: int) -> bytes:
    if not values:
        return b""
    if kind == "MultiHash":
        return b"".join(epk((value,), "Hash", 2) for value in values)
    if version == 2:
        h1, h2 = murmur_128(b"".join(hashed_bytes(value, b"\xff") for value in values))
        return (h2 % 2**62).to_bytes(8, "big") + h1.to_bytes(8, "big")
    short = [cut(value) for value in values]
    hashed = murmur_32(b"".join(hashed_bytes(value, b"\x00") for value in short))
    return ordered_number(float(hashed)) + b"".join(map(ordered_bytes, short))
