"""The sizes of the keys of a physical partition, read to find where to cut it.

The rule is in `partition/cutting`. The sizes are read in short snapshots while writers go on: a cut
that is a little off is still a good one. Of very many keys, neighbours are added up, so that memory
stays bounded.
"""

from armillary.encoding.hashing import split_epk_key
from armillary.limits import SPLIT_POINT_PARTS, SPLIT_POINT_ROWS
from armillary.partition.provisioning.cutting import byte_median, joined
from armillary.partition.ranges import Range
from armillary.store.items.containers import ContainerStore
from armillary.store.rows import layout
from armillary.store.rows.secondary import unpack_logical


def split_point(store: ContainerStore, owner: Range) -> bytes:
    """The EPK at which a physical partition is cut in two."""
    sizes: list[tuple[bytes, int]] = []
    start = layout.LP
    while True:
        with store.engine.read(owner.space) as reader:
            rows = list(reader.scan(start, layout.after(layout.LP), limit=SPLIT_POINT_ROWS))
        sizes += ((key[1:], unpack_logical(row).size_bytes) for key, row in rows)
        if len(sizes) > SPLIT_POINT_PARTS:
            sizes = joined(sizes, SPLIT_POINT_PARTS)
        if len(rows) < SPLIT_POINT_ROWS:
            break
        start = rows[-1][0] + b"\x00"
    return split_epk_key(byte_median(sizes), 0, store.state.definition.partition_key)[0]
