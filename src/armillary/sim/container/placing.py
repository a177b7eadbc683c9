"""The places of very many keys on the ring, by the real hash.

    key 7 ──▶ 05, then the double 7.0 ──Murmur──▶ EPK 19C0…  ──▶ its first 62 bits, as an integer

Keys of a simulation are numbers, so that all of them have nine bytes and one array operation hashes
them all: ten million in seconds instead of a minute. Places are integers below 2^62; an EPK has 126
bits, and the rest of them decides nothing that a simulation looks at.

HOT: once per key of a population that is placed key by key. The reference is
`encoding.hashing.epk`; tests/property/test_sim_placing.py compares.
"""

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from armillary.encoding.hashing import EPK_MAX, HASH_BYTES, epk
from armillary.encoding.partition_key import parse_definition

Places: TypeAlias = npt.NDArray[np.uint64]
Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

DEFINITION: Final = parse_definition({"paths": ["/key"], "kind": "Hash", "version": 2})
PLACE_BITS: Final = 62
RING: Final = 1 << PLACE_BITS
_MASK: Final = np.uint64(RING - 1)
_C1: Final = np.uint64(0x87C37B91114253D5)
_C2: Final = np.uint64(0x4CF5AD432745937F)
_F1: Final = np.uint64(0xFF51AFD7ED558CCD)
_F2: Final = np.uint64(0xC4CEB9FE1A85EC53)
_BYTES: Final = np.uint64(9)
CHUNK: Final = 1 << 20


def place(key: float) -> int:
    """Of one key, through the product's own hash."""
    return place_of(epk((key,), DEFINITION))


def place_of(bound: bytes) -> int:
    """An EPK, or a bound of a range, as a place; the end of the ring is 2^62."""
    if bound >= EPK_MAX:
        return RING
    return int.from_bytes(bound[:8].ljust(8, b"\0"), "big")


def bound_of(where: int) -> bytes:
    """The EPK at which a range that begins here begins."""
    if where >= RING:
        return EPK_MAX
    return b"" if where == 0 else where.to_bytes(8, "big").ljust(HASH_BYTES, b"\0")


def places(keys: Floats) -> Places:
    """Of many keys, a million at a time."""
    found = np.empty(len(keys), np.uint64)
    for start in range(0, len(keys), CHUNK):
        found[start : start + CHUNK] = _hash(keys[start : start + CHUNK])
    return found


def _hash(keys: Floats) -> Places:
    """MurmurHash3 x64-128 of nine bytes: one short block, so no loop."""
    bits = (np.asarray(keys, np.float64) + 0.0).view(np.uint64)
    first = (bits << np.uint64(8)) | np.uint64(5)
    last = bits >> np.uint64(56)
    h2 = _rotated(last * _C2, 33) * _C1 ^ _BYTES
    h1 = _rotated(first * _C1, 31) * _C2 ^ _BYTES
    h1 = h1 + h2
    h2 = h2 + h1
    h1, h2 = _mixed(h1), _mixed(h2)
    h1 = h1 + h2
    return (h2 + h1) & _MASK


def _rotated(words: Places, left: int) -> Places:
    return (words << np.uint64(left)) | (words >> np.uint64(64 - left))


def _mixed(words: Places) -> Places:
    words = (words ^ (words >> np.uint64(33))) * _F1
    words = (words ^ (words >> np.uint64(33))) * _F2
    return words ^ (words >> np.uint64(33))
