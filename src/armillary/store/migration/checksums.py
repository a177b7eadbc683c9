"""What a container holds, as one number per logical partition: two containers that should hold the
same are compared without keeping either in memory.

A checksum is the sum of the digests of its items, so it does not depend on their order; with it
goes their number. Keys are kept as digests of eight bytes: some 150 bytes per logical partition.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

WRAP = (1 << 64) - 1


class Checksum(NamedTuple):
    items: int
    digest: int


Checksums = Mapping[int, Checksum]


def checksums(items: Iterable[tuple[bytes, Any]]) -> dict[int, Checksum]:
    """Of items with their partition keys as JSON, by the digest of the key."""
    found: dict[int, Checksum] = {}
    for key, item in items:
        place = _digest(key)
        count, total = found.get(place, Checksum(0, 0))
        text = orjson.dumps(item, option=orjson.OPT_SORT_KEYS)
        found[place] = Checksum(count + 1, (total + _digest(text)) & WRAP)
    return found


def differences(one: Checksums, other: Checksums) -> int:
    """Logical partitions that are not the same in both."""
    return sum(one.get(place) != other.get(place) for place in one.keys() | other.keys())


def _digest(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest())
