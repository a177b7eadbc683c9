"""Which indexes would have helped a query and are not there: the potential ones of the index
metrics (nosql-query 7.3).

    c.name = 'x' AND c.age > 15 AND c.town = 'y' AND c.ts > 1
        single      each of the four paths that the policy leaves out
        composite   /name, /town, /age and /name, /town, /ts: paths compared for equality, then one
                    that is compared by order
    c.town = 'y' ORDER BY c.age DESC
        composite   /town ASC, /age DESC: the filter leads, the order follows

Looked for only when somebody asks: it reads the filter once more. It names what the original would
name; this store takes composite indexes for the same things, and intersects single ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from armillary.query.access.filters import accesses
from armillary.query.access.kinds.base import Columns
from armillary.query.access.kinds.registry import has_columns
from armillary.query.access.lookups import Access, Lookup, Unplaced, path_at
from armillary.query.expr.evaluate import Frame, Scope
from armillary.query.functions import Context
from armillary.query.plan.nodes import Plan
from armillary.store.index.paths import ARRAY, Path, path_text
from armillary.store.index.plan import IndexPlan
from armillary.store.rows import layout
from armillary.values import JSON

_NO_CONTEXT = Context(now_ticks=0, random=lambda: 0.0)


def possible_indexes(plan: Plan, parameters: Mapping[str, JSON], index: IndexPlan) -> list[str]:
    """Their names as in the header: `/a/?`, or `/a ASC,/b DESC`."""
    while plan.base is not None:
        plan = plan.base
    if not plan.reads_items:
        return []
    scope = Scope(Frame(), parameters, _NO_CONTEXT, bound=plan.bound)
    found = accesses(plan, scope)
    order = _order(plan)
    paths = [*_paths(found), *(path for path, _ in order)]
    known = [path for path in dict.fromkeys(paths) if path and path[0] not in plan.computed]
    single = [f"{path_text(path)}/?" for path in known if not index.covers(path)]
    composite = [
        _name(columns)
        for columns in _composites(found, order)
        if all(path in known for path, _ in columns) and not has_columns(index, columns)
    ]
    return [*single, *dict.fromkeys(composite)]


def _paths(found: Sequence[Access]) -> Iterator[Path]:
    for access in found:
        if isinstance(access, Lookup):
            if access.kind == layout.IX:
                yield access.path
        elif not isinstance(access, Unplaced):
            yield from _paths(access.parts)


def _order(plan: Plan) -> Columns:
    alias = plan.bound.container
    if alias is None:
        return ()
    keys = [(path_at(key.expr, {alias: ()}), key.descending) for key in plan.order]
    return tuple((path, is_descending) for path, is_descending in keys if path)


def _composites(found: Sequence[Access], order: Columns) -> list[Columns]:
    lookups = [one for one in found if isinstance(one, Lookup) and _is_range(one)]
    equal: Columns = tuple((one.path, False) for one in lookups if one.is_points)
    ranges = [one.path for one in lookups if not one.is_points]
    if order:
        # A range that is not in the order would break it, and then the index is of no use.
        if not set(ranges) <= {path for path, _ in order}:
            return []
        led = {path for path, _ in equal}
        wanted = [equal + tuple(column for column in order if column[0] not in led)]
    else:
        wanted = [(*equal, (path, False)) for path in ranges] or [equal]
    return [columns for columns in wanted if len(columns) > 1]


def _is_range(one: Lookup) -> bool:
    return one.kind == layout.IX and ARRAY not in one.path


def _name(columns: Columns) -> str:
    return ",".join(
        f"{path_text(path)} {'DESC' if is_descending else 'ASC'}" for path, is_descending in columns
    )
