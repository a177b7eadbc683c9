"""Where to cut a physical partition: at half of its bytes, between two partition key values.

Bytes rather than item count, because a storage split exists to get back under the size limit, and
counting could leave one half still over it. A logical partition is never cut, so a partition of one
key can't be split.
"""

from collections.abc import Sequence
from itertools import pairwise

from armillary.encoding.hashing import split_epk_key
from armillary.encoding.partition_key import PartitionKeyDefinition
from armillary.engine.base import Reader
from armillary.errors import NotSplittable
from armillary.store import layout
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


def split_point(reader: Reader, definition: PartitionKeyDefinition) -> bytes:
    """The EPK at which a space is cut in two."""
    sizes = [
        (key[1:], unpack_logical(row).size_bytes)
        for key, row in reader.scan(layout.LP, layout.after(layout.LP))
    ]
    return split_epk_key(byte_median(sizes), 0, definition)[0]
