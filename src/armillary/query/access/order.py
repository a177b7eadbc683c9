"""Which index has rows in the order that a query wants, and between which bounds of it they are.

    ORDER BY c.at                            /at/?
    WHERE c.at > 3 ORDER BY c.at             /at/?, from 3 on
    WHERE c.tenant = "a" ORDER BY c.at       /tenant ASC,/at ASC where the tenant is "a"
    ORDER BY c.a, c.b DESC                   /a ASC,/b DESC, or /a DESC,/b ASC backwards

Several keys need a composite index of just these, as the original does. `ordered.py` reads what is
found here.
"""

from __future__ import annotations

from collections.abc import Sequence

from armillary.limits import TERM_CUT_BYTES
from armillary.query.access.choice import edge_entry
from armillary.query.access.coverage import covers
from armillary.query.access.kinds import registry
from armillary.query.access.lookups import Access, OrderIndex, path_at, served, single_lookups
from armillary.query.expr import nodes
from armillary.query.plan.nodes import Plan, fact
from armillary.query.run.items import StoreView
from armillary.store.index.paths import Path, path_text
from armillary.store.index.plan import IndexPlan, path_hash
from armillary.store.rows import layout
from armillary.store.rows.shapes import items_with_path


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
    found = registry.order_index(view, paths, descending, lookups)
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
    return OrderIndex(
        prefix,
        low,
        high,
        (False,),
        TERM_CUT_BYTES,
        model,
        descending[0],
        name,
        missing,
        served((path,), lookups),
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


def has_order_index(plan: Plan, index: IndexPlan) -> bool:
    """Whether several sort keys have the composite index that the original wants for them."""
    paths = fact(plan, "order paths", order_paths)
    if len(plan.order) < 2 or paths is None:
        return True
    return registry.has_order(index, paths, tuple(key.descending for key in plan.order))
