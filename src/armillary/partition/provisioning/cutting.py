"""Where to cut a physical partition: at half of its bytes, between two partition key values.

    key      a   b │ c   d   e       in the order of their hashes: 13 and 37 bytes differ by
    bytes    9   4 │ 30  5   2       less than 43 and 7, and no cut can go through c

Bytes rather than item count, because a storage split exists to get back under the size limit, and
counting could leave one half still over it. A logical partition is never cut, so a partition of one
key can't be split. Pure; who reads the sizes is `store/moves/split_points.py`, or a replay.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

from armillary.errors import NotSplittable
from armillary.limits import SPLIT_POINT_PARTS

N = TypeVar("N", int, float)


def byte_median(sizes: Sequence[tuple[bytes, N]]) -> bytes:
    """The first key of the right half, such that the halves are as equal as whole keys allow."""
    if len(sizes) < 2:
        raise NotSplittable
    total = sum(size for _, size in sizes)
    left = sizes[0][1]
    best, distance = sizes[1][0], abs(total - 2 * left)
    for (_, size), (following, _) in pairwise(sizes[1:]):
        left += size
        if abs(total - 2 * left) < distance:
            best, distance = following, abs(total - 2 * left)
    return best


def joined(
    sizes: Sequence[tuple[bytes, int]], parts: int = SPLIT_POINT_PARTS
) -> list[tuple[bytes, int]]:
    """Neighbours added up, under the first one's key, while they are small in the whole. Hardly
    more than half as many are left, of at most a few ten-thousandths each, or one large key."""
    small = 4 * sum(size for _, size in sizes) // parts
    found: list[tuple[bytes, int]] = []
    for key, size in sizes:
        if found and found[-1][1] + size <= small:
            found[-1] = (found[-1][0], found[-1][1] + size)
        else:
            found.append((key, size))
    return found
