"""Which index has rows in the order that a query wants, and between which bounds of it they are.

    ORDER BY c.at                            /at/?
    WHERE c.at > 3 ORDER BY c.at             /at/?, from 3 on
    WHERE c.tenant = "a" ORDER BY c.at       /tenant ASC,/at ASC where the tenant is "a"
    ORDER BY c.a, c.b DESC                   /a ASC,/b DESC, or /a DESC,/b ASC backwards

Several keys need a composite index of just these, as the original does. `ordered.py` reads what is
found here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from armillary.encoding.models import ValueModel
from armillary.limits import TERM_CUT_BYTES
from armillary.query.access.choice import edge_entry
from armillary.query.access.composite import (
    column_range,
    composite_name,
    points,
    single_lookups,
)
from armillary.query.access.coverage import covers
from armillary.query.access.lookups import Access, Lookup, path_at
from armillary.query.expr import nodes
from armillary.query.plan.nodes import Plan, fact
from armillary.query.run.items import StoreView
from armillary.store.index.composite import Column, Composite
from armillary.store.index.paths import Path, path_text
from armillary.store.index.plan import IndexPlan, path_hash
from armillary.store.rows import layout
from armillary.store.rows.shapes import items_with_path


class OrderIndex(msgspec.Struct, frozen=True):
    """Entries in the order of some keys. `descending`: which columns are stored complemented."""

    prefix: bytes
    """Of all entries that may be wanted: the index, and values that the filter fixes."""
    low: bytes
    high: bytes
    """Bounds of the entries that the filter lets through."""
    descending: tuple[bool, ...]
    cut: int
    model: ValueModel
    is_reverse: bool
    name: str
    path: Path | None = None
    """Of a single index, in which items without the path are missing; None when the filter wants
    none of these."""
    served: frozenset[Path] = frozenset()
    """Paths whose lookups find exactly what is between the bounds."""


def order_paths(plan: Plan) -> list[Path] | None:
    """The paths of the sort keys, if all are paths of the item."""
    alias = plan.bound.container
    if alias is None or plan.base is not None:
        return None
    paths = [_sort_path(key.expr, alias) for key in plan.order]
    found = [path for path in paths if path]
    return found if len(found) == len(paths) else None


def _sort_path(expr: nodes.Expr, alias: str) -> Path | None:
    if isinstance(expr, nodes.Native):
        return expr.path if expr.root == alias else None
    return path_at(expr, {alias: ()})


def _may_be_arrays(view: StoreView, plan: Plan, paths: Sequence[Path]) -> bool:
    """Whether a front end's own sort key may be another value than the one at its path."""
    term = view.state.model.term([])
    return any(
        isinstance(key.expr, nodes.Native)
        and (not covers(view, path) or edge_entry(view, path, term, layout.after(term), False))
        for key, path in zip(plan.order, paths, strict=True)
    )


def order_index(view: StoreView, plan: Plan, accesses: Sequence[Access] = ()) -> OrderIndex | None:
    paths = fact(plan, "order paths", order_paths)
    if paths is None or _may_be_arrays(view, plan, paths):
        return None
    descending = tuple(key.descending for key in plan.order)
    lookups = single_lookups(accesses)
    found = _composite_order(view, paths, descending, lookups)
    if found is not None or len(paths) > 1:
        return found
    (path,) = paths
    if not covers(view, path):
        return None
    prefix = layout.IX + path_hash(path)
    low, high = prefix, layout.after(prefix)
    wanted = lookups.get(path)
    if wanted is not None and wanted.ranges:
        low, high = prefix + wanted.ranges[0][0], prefix + wanted.ranges[-1][1]
    name = f"{path_text(path)}/?"
    missing = path if wanted is None else None
    model = view.state.model
    if missing is not None and not model.missing_first:
        among = _among(plan.order[0].expr)
        if some_lack(view, path, among):
            return None
        missing = None if among else missing
    served = _served((path,), lookups)
    return OrderIndex(
        prefix, low, high, (False,), TERM_CUT_BYTES, model, descending[0], name, missing, served
    )


def _among(expr: nodes.Expr) -> Path:
    return expr.among if isinstance(expr, nodes.Native) else ()


def some_lack(view: StoreView, path: Path, among: Path = ()) -> bool:
    """Whether some item may lack the path, of all items or of those that have another one."""
    if view.meta.stale_items:
        return True
    wanted = items_with_path(view.reader, path_hash(among)) if among else view.meta.items
    found = items_with_path(view.reader, path_hash(path))
    return wanted is None or found is None or found < wanted


def _composite_order(
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
    for composite in view.state.plan.composites:
        fixed = len(composite.columns) - len(paths)
        if fixed < 0 or len(composite.columns) == 1 or composite.array is not None:
            continue
        beginning = _fixed(composite, composite.columns[:fixed], lookups, view.computed)
        is_reverse = direction(composite.columns[fixed:], paths, descending)
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
                composite_name(composite),
                served=_served(names, lookups),
            )
        )
    return max(found, key=lambda index: len(index.served), default=None)


def _served(paths: Iterable[Path], lookups: Mapping[Path, Lookup]) -> frozenset[Path]:
    """Those whose lookups are no wider between bounds than they are."""
    found = (path for path in paths if path in lookups and lookups[path].exact)
    return frozenset(path for path in found if len(lookups[path].ranges) == 1)


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
        terms = points(lookup, column, composite.cut)
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
        terms = points(lookup, column, cut)
        if terms is None or len(terms) != 1:
            ranges = [column_range(each, column, cut, lookup.model)[0] for each in lookup.ranges]
            low, high = min(ranges)[0], max(high for _, high in ranges)
            return beginning + low, beginning + high, bounded
        beginning += terms[0][0]
    return beginning, layout.after(beginning), bounded


def direction(
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


def has_order_index(plan: Plan, index: IndexPlan) -> bool:
    """Whether several sort keys have the composite index that the original wants for them."""
    paths = fact(plan, "order paths", order_paths)
    if len(plan.order) < 2 or paths is None:
        return True
    descending = tuple(key.descending for key in plan.order)
    return any(
        composite.array is None and direction(composite.columns, paths, descending) is not None
        for composite in index.composites
    )
