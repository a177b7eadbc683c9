"""The check that every transaction makes first: is this range still what the caller thinks it is?

`Fenced` is control flow inside the store: the caller reads the catalog again and re-routes. It
becomes an error for users only after many rounds, as `RangeGone`.
"""

from armillary.engine.base import Writer
from armillary.errors import Fenced
from armillary.store.rows.meta import FENCE_BYTES, Meta, unpack_meta


def check_fence(row: bytes, fence: bytes) -> None:
    if row[:FENCE_BYTES] != fence:
        raise Fenced


def open_meta(tx: Writer, fence: bytes) -> Meta:
    """The meta row as this command sees it: after the commands before it in the group."""
    check_fence(tx.meta, fence)
    return unpack_meta(tx.meta)
