"""How many items have which paths, counted by shape: the set of indexed paths of an item.

An ordered index lacks the items that lack its path, so a query in that order must know whether
there are any. One counter per shape costs one row a write; one per path would cost thirteen. The
number of shapes is bounded: past the bound, items of new shapes count as overflow, and no row is
added while any item is in there. So every item of a shape is either in its row or in the overflow,
never in both.
"""

from collections.abc import Callable
from typing import TypeAlias

from armillary import limits
from armillary.engine.base import Reader, Writer
from armillary.store.rows import layout
from armillary.store.rows.meta import Meta
from armillary.store.rows.secondary import pack_shape, unpack_shape

#: How many items more or fewer of a shape, and what gives its paths, if it has to be asked.
Counted: TypeAlias = tuple[int, Callable[[], frozenset[bytes]]]

OVERFLOW = layout.SHAPE + b"\xff" * 8


def count(tx: Writer, meta: Meta, shape: bytes, counted: Counted) -> None:
    """So many items more of a shape; below zero, fewer."""
    items, paths = counted
    if items > 0:
        _count_in(tx, meta, shape, items, paths)
    elif items < 0:
        _count_out(tx, meta, shape, -items)


def _count_in(
    tx: Writer, meta: Meta, shape: bytes, more: int, paths: Callable[[], frozenset[bytes]]
) -> None:
    key = layout.SHAPE + shape
    row = tx.get(key)
    if row is not None:
        items, known = unpack_shape(row)
        tx.put(key, pack_shape(items + more, known))
        return
    overflow = tx.get(OVERFLOW)
    if overflow is None and meta.shapes < limits.SHAPES_MAX:
        meta.shapes += 1
        tx.put(key, pack_shape(more, b"".join(sorted(paths()))))
        return
    items = unpack_shape(overflow)[0] if overflow is not None else 0
    tx.put(OVERFLOW, pack_shape(items + more, b""))


def _count_out(tx: Writer, meta: Meta, shape: bytes, fewer: int) -> None:
    key = layout.SHAPE + shape
    row = tx.get(key)
    if row is None:
        key = OVERFLOW
        row = tx.get(key)
    assert row is not None, "an item without its shape"
    items, paths = unpack_shape(row)
    if items > fewer:
        tx.put(key, pack_shape(items - fewer, paths))
        return
    tx.delete(key)
    if key != OVERFLOW:
        meta.shapes -= 1


def items_with_path(reader: Reader, path_hash: bytes) -> int | None:
    """How many items have the path, or None when that is not known (too many shapes)."""
    found = 0
    for key, row in reader.scan(layout.SHAPE, layout.after(layout.SHAPE)):
        if key == OVERFLOW:
            return None
        items, paths = unpack_shape(row)
        if any(paths[i : i + 8] == path_hash for i in range(0, len(paths), 8)):
            found += items
    return found
