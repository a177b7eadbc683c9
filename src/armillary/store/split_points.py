"""Where to cut a physical partition: at half of its bytes, between two partition key values.

Bytes rather than item count, because a storage split exists to get back under the size limit, and
counting could leave one half still over it. A logical partition is never cut, so a partition of one
key can't be split.

The sizes are read in short snapshots while writers go on: a cut that is a little off is still a
good one. Of very many keys, neighbours are added up, so that memory stays bounded.
"""

from collections.abc import Sequence
from itertools import pairwise

from armillary.encoding.hashing import split_epk_key
from armillary.errors import NotSplittable
from armillary.limits import SPLIT_POINT_PARTS, SPLIT_POINT_ROWS
from armillary.partition.ranges import Range
from armillary.store import layout
from armillary.store.containers import ContainerStore
from armillary.store.rows import unpack_logical


def byte_median(sizes: Sequence[tuple[bytes, int]]) -> bytes:
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


def split_point(store: ContainerStore, owner: Range) -> bytes:
    """The EPK at which a physical partition is cut in two."""
    sizes: list[tuple[bytes, int]] = []
    start = layout.LP
    while True:
        with store.engine.read(owner.space) as reader:
            rows = list(reader.scan(start, layout.after(layout.LP), limit=SPLIT_POINT_ROWS))
        sizes += ((key[1:], unpack_logical(row).size_bytes) for key, row in rows)
        if len(sizes) > SPLIT_POINT_PARTS:
            sizes = joined(sizes)
        if len(rows) < SPLIT_POINT_ROWS:
            break
        start = rows[-1][0] + b"\x00"
    return split_epk_key(byte_median(sizes), 0, store.state.definition.partition_key)[0]


def joined(sizes: Sequence[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
    """Neighbours added up, under the first one's key, while they are small beside the whole. Hardly
    more than half as many are left, of at most a few ten-thousandths each, or one large key."""
    small = 4 * sum(size for _, size in sizes) // SPLIT_POINT_PARTS
    found: list[tuple[bytes, int]] = []
    for key, size in sizes:
        if found and found[-1][1] + size <= small:
            found[-1] = (found[-1][0], found[-1][1] + size)
        else:
            found.append((key, size))
    return found
