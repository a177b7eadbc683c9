"""Composite indexes: what several lookups ask for, as ranges of one of them; and rows in an order.

    composite /tenant ASC, /at DESC      c.tenant = "a" AND c.at > 3   →   keys from a,9… to a,3
                                         WHERE c.tenant = "a" ORDER BY c.at DESC   →   from a on

The leading columns have to be compared for equality (or with a list), one more may be compared by
order; columns behind it say nothing (nosql-query 7.2). Lookups speak of terms in an index of one
path; a composite index cuts strings shorter and complements descending columns, so their bounds are
made again. Whether an index is worth it is decided in `choice.py` and `ordered.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from armillary.encoding.models import ValueModel
from armillary.encoding.terms import descending
from armillary.query.access.kinds.base import AccessKind, Columns
from armillary.query.access.lookups import JointLookup, Lookup, OrderIndex, served
from armillary.query.access.term_ranges import Range
from armillary.store.index.kinds.composite import Column, Composite
from armillary.store.index.paths import Path, path_text
from armillary.store.index.plan import IndexPlan
from armillary.store.rows import layout
from armillary.store.rows.layout import after

if TYPE_CHECKING:
    from armillary.query.run.items import StoreView

RANGES_MAX: Final = 256  # lists of values multiply
LOOKUPS_LEAST: Final = 2  # with fewer, the index of the one path is as good


def _composites(index: IndexPlan) -> list[Composite]:
    return [one for one in index.keyed if isinstance(one, Composite)]


# --- filters --------------------------------------------------------------------------------------


def _joint(index: IndexPlan, lookups: Mapping[Path, Lookup]) -> list[JointLookup]:
    found = (_lookup(composite, lookups) for composite in _composites(index))
    return [each for each in found if each is not None]


def _lookup(composite: Composite, lookups: Mapping[Path, Lookup]) -> JointLookup | None:
    if composite.array is not None:
        return None
    beginnings = [composite.prefix]
    ranges: list[Range] = []
    used: list[Lookup] = []
    exact = True
    for column in composite.columns:
        lookup = None if column.place == "nowhere" else lookups.get(column.names)
        if lookup is None or len(beginnings) * len(lookup.ranges) > RANGES_MAX:
            break
        terms = _points(lookup, column, composite.cut)
        used.append(lookup)
        if terms is None:
            bounds = [
                _column_range(each, column, composite.cut, lookup.model) for each in lookup.ranges
            ]
            exact &= lookup.exact and not any(is_cut for _, is_cut in bounds)
            ranges = [(at + low, at + high) for at in beginnings for (low, high), _ in bounds]
            break
        exact &= lookup.exact and all(is_whole for _, is_whole in terms)
        beginnings = [at + part for at in beginnings for part, _ in terms]
    if len(used) < LOOKUPS_LEAST:
        return None
    is_points = not ranges and len(used) == len(composite.columns)
    return JointLookup(
        _name(composite),
        frozenset(lookup.path for lookup in used),
        tuple(sorted(ranges or [(each, after(each)) for each in beginnings])),
        exact,
        is_points,
    )


def _points(lookup: Lookup, column: Column, cut: int) -> list[tuple[bytes, bool]] | None:
    """The terms of a column for each value of a lookup, and whether each stands for that value
    alone. None when the lookup is not about single values, or does not know them.
    """
    if not lookup.is_points:
        return None
    terms: list[tuple[bytes, bool]] = []
    for found, _ in lookup.ranges:
        again = lookup.model.recut(found, cut)
        if again is None:
            return None
        part, is_whole = again
        terms.append((descending(part) if column.descending else part, is_whole))
    return terms


def _column_range(found: Range, column: Column, cut: int, model: ValueModel) -> tuple[Range, bool]:
    """A range of terms as one of a column, and whether it had to be made wider."""
    start, end = found
    low, high = start[: model.shared_bytes(start, cut)], end[: model.shared_bytes(end, cut)]
    is_cut = low != start or high != end
    if high != end:
        high = after(high)
    if column.descending:
        # What is at the end, and all that begins with it, is outside; what begins with the start
        # is inside.
        low, high = after(descending(high)), after(descending(low))
    return (low, high), is_cut


def _name(composite: Composite) -> str:
    """As the metrics tell it: `/a ASC,/b DESC`."""
    return ",".join(
        f"{path_text(column.names)} {'DESC' if column.descending else 'ASC'}"
        for column in composite.columns
    )


# --- orders ---------------------------------------------------------------------------------------


def _order(
    view: StoreView,
    paths: list[Path],
    descending: tuple[bool, ...],
    lookups: Mapping[Path, Lookup],
) -> OrderIndex | None:
    """A composite index of the sort keys, behind columns whose values the filter fixes:

    WHERE c.tenant = "a" ORDER BY c.at DESC      /tenant ASC, /at DESC, from "a" on
    """
    if any(path[0] in view.computed for path in paths) or view.meta.stale_items:
        return None
    found: list[OrderIndex] = []
    for composite in _composites(view.state.plan):
        fixed = len(composite.columns) - len(paths)
        if fixed < 0 or len(composite.columns) == 1 or composite.array is not None:
            continue
        beginning = _fixed(composite, composite.columns[:fixed], lookups, view.computed)
        is_reverse = _direction(composite.columns[fixed:], paths, descending)
        if beginning is None or is_reverse is None:
            continue
        columns = composite.columns[fixed:]
        low, high, bounded = _bounds(beginning, columns, composite.cut, lookups)
        names = [column.names for column in composite.columns[: fixed + bounded]]
        found.append(
            OrderIndex(
                beginning,
                low,
                high,
                tuple(column.descending for column in columns),
                composite.cut,
                composite.model,
                is_reverse,
                _name(composite),
                served=served(names, lookups),
            )
        )
    return max(found, key=lambda index: len(index.served), default=None)


def _fixed(
    composite: Composite,
    columns: Sequence[Column],
    lookups: Mapping[Path, Lookup],
    computed: Collection[str],
) -> bytes | None:
    """What all keys begin with in which each of the columns has the one value of its lookup."""
    beginning = composite.prefix
    for column in columns:
        lookup = lookups.get(column.names)
        if lookup is None or column.place == "nowhere" or column.names[0] in computed:
            return None
        terms = _points(lookup, column, composite.cut)
        if terms is None or len(terms) != 1:
            return None
        beginning += terms[0][0]
    return beginning


def _bounds(
    beginning: bytes, columns: Sequence[Column], cut: int, lookups: Mapping[Path, Lookup]
) -> tuple[bytes, bytes, int]:
    """The keys that lookups of the sort keys leave: of single values, then of one range. And how
    many columns have a say in that.
    """
    bounded = 0
    for column in columns:
        lookup = lookups.get(column.names)
        if lookup is None or not lookup.ranges:
            break
        bounded += 1
        terms = _points(lookup, column, cut)
        if terms is None or len(terms) != 1:
            ranges = [_column_range(each, column, cut, lookup.model)[0] for each in lookup.ranges]
            low, high = min(ranges)[0], max(high for _, high in ranges)
            return beginning + low, beginning + high, bounded
        beginning += terms[0][0]
    return beginning, layout.after(beginning), bounded


def _direction(
    columns: Sequence[Column], paths: list[Path], descending: tuple[bool, ...]
) -> bool | None:
    """Whether columns of exactly these paths have to be read backwards; None when they are not in
    this order at all.
    """
    if [column.names for column in columns] != paths:
        return None
    if any(column.place == "nowhere" for column in columns):
        return None
    stored = tuple(column.descending for column in columns)
    if stored == descending:
        return False
    return True if stored == tuple(not is_descending for is_descending in descending) else None


def _has_order(index: IndexPlan, paths: list[Path], descending: tuple[bool, ...]) -> bool:
    return any(
        composite.array is None and _direction(composite.columns, paths, descending) is not None
        for composite in _composites(index)
    )


def _has_columns(index: IndexPlan, columns: Columns) -> bool:
    turned = tuple((path, not is_descending) for path, is_descending in columns)
    for composite in _composites(index):
        stored = tuple((column.names, column.descending) for column in composite.columns)
        if composite.array is None and stored in (columns, turned):
            return True
    return False


KIND: Final = AccessKind(
    prefix=layout.CX,
    joint=_joint,
    order=_order,
    has_order=_has_order,
    has_columns=_has_columns,
)
