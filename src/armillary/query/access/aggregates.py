"""Aggregates that the index answers alone: no item is loaded.

    COUNT(1)                    the number of items
    COUNT(1) WHERE c.a > 3      the number of entries, when the filter is exact
    … WHERE c.a > 3 AND c.b = 1 the number of rids that both have, or that a composite index has
    COUNT(c.a)                  the items that have the path
    MIN(c.a), MAX(c.a)          the first and the last entry
    MAX(c.a) WHERE c.a < 3      the last entry that the filter finds, when it is exact
    words and holders of terms  `kinds/full_text.py`

`shortcut` says for a plan whether it is one of these; `answer` fills the states from one view, or
says that this view can't (an expired item, a path that is not indexed, a string that was cut).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.terms import ARRAY_TERM, Partial, decode_term
from armillary.query.access.choice import (
    count_items,
    edge_entry,
    has_no_items,
    names_of,
    nothing_expired,
)
from armillary.query.access.coverage import covers
from armillary.query.access.filters import exact_filter
from armillary.query.access.kinds.base import Measure
from armillary.query.access.kinds.registry import measure_of
from armillary.query.access.lookups import Access, Lookup, path_at
from armillary.query.access.term_ranges import ANYTHING, Range, Ranges
from armillary.query.expr import nodes
from armillary.query.expr.evaluate import Scope, constant
from armillary.query.plan.nodes import Plan
from armillary.query.run.items import StoreView
from armillary.store.index.paths import ARRAY, Path, path_text
from armillary.store.rows import layout
from armillary.values import UNDEFINED

Part: TypeAlias = tuple[str, Path] | Measure


@dataclass(frozen=True, slots=True)
class Shortcut:
    """For each aggregate its name and its path, () when it is about whole items."""

    parts: tuple[Part, ...]
    access: Access | None


def shortcut(plan: Plan, scope: Scope) -> Shortcut | None:
    fold = plan.fold
    if fold is None or fold.keys or not plan.reads_items or plan.bound.container is None:
        return None
    if len(plan.sources) != 1:
        return None
    access = None
    if plan.where is not None:
        access = exact_filter(plan, scope)
        if access is None:
            return None
    parts: list[Part] = []
    for call in fold.aggregates:
        part = _part(call, plan, access, scope)
        if part is None:
            return None
        parts.append(part)
    return Shortcut(tuple(parts), access)


def _part(call: nodes.Call, plan: Plan, access: Access | None, scope: Scope) -> Part | None:
    alias = plan.bound.container
    assert alias is not None
    path = path_at(call.args[0], {alias: ()})
    if call.function == "COUNT":
        if path == ():
            return "COUNT", ()
        if path is None:
            varying = any(isinstance(n, nodes.Identifier) for n in nodes.walk(call.args[0]))
            known, value = (False, None) if varying else constant(call.args[0], scope)
            return ("COUNT", ()) if known and value is not UNDEFINED else None
        if access is None:
            return "COUNT", path
        # What passes a condition on a path has the path.
        return ("COUNT", ()) if _is_of(access, path) else None
    if call.function in ("MIN", "MAX") and path:
        if access is None or (_is_of(access, path) and access.kind == layout.IX):
            return call.function, path
        return None
    return measure_of(call, alias, scope) if access is None else None


def _is_of(access: Access, path: Path) -> TypeGuard[Lookup]:
    return isinstance(access, Lookup) and access.path == path


def answer(view: StoreView, found: Shortcut, states: list[Any]) -> bool:
    """Whether the states now hold the answer of this view; if not they are untouched."""
    if not nothing_expired(view):
        return False
    values: list[Any] = []
    for part in found.parts:
        value = _value(view, found, part)
        if value is None:
            return False
        values.append(value)
    for part, state, value in zip(found.parts, states, values, strict=True):
        if not isinstance(part, tuple):
            path: Path = part.path
            state.count += value[1]
            if part.is_total:
                state.total += value[0]
        else:
            name, path = part
            if name == "COUNT":
                state.count += value
            else:
                state.add(*value)
        if path:
            view.metrics.index_used[f"{path_text(path)}/?"] = None
    view.metrics.index_only = True
    if found.access is not None:
        view.metrics.index_used.update(dict.fromkeys(names_of(found.access)))
    return True


def _value(view: StoreView, found: Shortcut, part: Part) -> Any:
    if not isinstance(part, tuple):
        return part.measured(view)
    name, path = part
    return _count(view, found, path) if name == "COUNT" else _edge(view, found, name, path)


def _count(view: StoreView, found: Shortcut, path: Path) -> int | None:
    if path:
        model = view.state.model
        return count_items(view, Lookup(path, (model.everything,), exact=True, model=model))
    return count_items(view, found.access)


def _edge(view: StoreView, found: Shortcut, name: str, path: Path) -> tuple[Any] | None:
    """The least or greatest value, in brackets; one array or object spoils it."""
    if not covers(view, path) or ARRAY in path or view.state.model is not JSON_MODEL:
        return None
    if has_no_items(view):
        return (UNDEFINED,)
    # A filter that is answered by entries of another kind or path never comes here.
    ranges = found.access.ranges if isinstance(found.access, Lookup) else (ANYTHING,)
    last = name == "MAX"
    if any(_terms(view, path, ranges, (ARRAY_TERM, ANYTHING[1]), last)):
        return ([],)
    terms = _terms(view, path, ranges, (ANYTHING[0], ARRAY_TERM), last)
    term = max(terms, default=None) if last else min(terms, default=None)
    if term is None:
        return (UNDEFINED,)
    value, _ = decode_term(term)
    return None if isinstance(value, Partial) else (value,)


def _terms(
    view: StoreView, path: Path, ranges: Ranges, within: Range, last: bool
) -> Iterator[bytes]:
    """Of each range, the first (or last) term inside."""
    for low, high in ranges:
        start, end = max(low, within[0]), min(high, within[1])
        found = edge_entry(view, path, start, end, last) if start < end else None
        if found is not None:
            yield found
