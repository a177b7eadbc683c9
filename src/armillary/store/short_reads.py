"""The short way to one item: a text key under hash V2, no time to live, no meter.

    key → hash → range → id → item        one flat function

It either finds the item or knows nothing: every doubt (a miss, a moved range, an odd key or id)
answers None, and the caller goes the long way, which says what is wrong.

HOT: once per point read in process; numbers in bench/store.py; the long way is the reference.
"""

from bisect import bisect_right

from armillary.encoding.documents import DIGEST_SLICE, EPK_AT, EPK_LENGTH_AT
from armillary.encoding.hashing import locate
from armillary.engine.base import SpaceGone
from armillary.store.containers import ContainerStore
from armillary.store.layout import DOC, ID
from armillary.store.meta import FENCE_BYTES
from armillary.store.rows import ID_CUT_BYTES

_ID_WHOLE = b"\x00"


def read_json(store: ContainerStore, item_id: str, key: str) -> bytes | None:
    """The item's JSON, or None: ask the long way."""
    state = store._state
    if state is None or not state.is_plain or store.meter is not None:
        return None
    if not key.isascii() or not item_id.isascii() or len(item_id) > ID_CUT_BYTES:
        return None
    epk, digest = locate((key,), state.definition.partition_key)
    table = state.table
    owner = table.ranges[bisect_right(table.starts, epk) - 1]
    space = owner.space
    try:
        meta, _, value = store.engine.read_via(space, ID + epk + _ID_WHOLE + item_id.encode(), DOC)
    except SpaceGone:
        return None
    if value is None or meta[:FENCE_BYTES] != state.fences[space] or value[DIGEST_SLICE] != digest:
        return None
    return value[EPK_AT + value[EPK_LENGTH_AT] :]
