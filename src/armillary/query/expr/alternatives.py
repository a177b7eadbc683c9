"""A filter of many alternatives, as clients write it who read many items at once:

    (c.id = @i0 AND c.pk = @p0) OR (c.id = @i1 AND c.pk = @p1) OR …

Each alternative wants a text at one path that all of them name. They are kept by that text, so an
item is asked only the ones it could pass, instead of all in turn: a thousand alternatives for a
thousand items would be half a million comparisons.

Only whether the filter is true is answered: false and undefined are the same here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from armillary.query.expr import nodes
from armillary.query.expr.evaluate import Expression, Row, Scope, constant, make

ALTERNATIVES_MIN: Final = 8
"""Fewer are asked as quickly in turn."""


class _Wanted(NamedTuple):
    path: tuple[str, ...]
    text: str


def make_alternatives(expr: nodes.Expr, scope: Scope) -> Callable[[Row], bool] | None:
    """None: not a filter of this form."""
    if not (
        isinstance(expr, nodes.Logical)
        and expr.operator == "OR"
        and len(expr.terms) >= ALTERNATIVES_MIN
    ):
        return None
    wanted = [dict(_texts(term, scope)) for term in expr.terms]
    path = next((path for path in wanted[0] if all(path in one for one in wanted)), None)
    if path is None:
        return None
    by_text: dict[str, list[Expression]] = {}
    for term, texts in zip(expr.terms, wanted, strict=True):
        by_text.setdefault(texts[path], []).append(make(term, scope).run)
    return _chosen(make(_operand(expr.terms[0], path), scope).run, by_text)


def _chosen(value: Expression, by_text: dict[str, list[Expression]]) -> Callable[[Row], bool]:
    nothing: Sequence[Expression] = ()

    def run(row: Row) -> bool:
        found = value(row)
        if type(found) is not str:
            return False
        return any(alternative(row) is True for alternative in by_text.get(found, nothing))

    return run


def _equalities(term: nodes.Expr) -> Iterator[nodes.Binary]:
    """What a term asks for, all of it at once."""
    if isinstance(term, nodes.Logical) and term.operator == "AND":
        for one in term.terms:
            yield from _equalities(one)
    elif isinstance(term, nodes.Binary) and term.operator == "=":
        yield term


def _texts(term: nodes.Expr, scope: Scope) -> Iterator[_Wanted]:
    for equality in _equalities(term):
        path = nodes.property_path(equality.left)
        if path is not None:
            known, value = constant(equality.right, scope)
            if known and type(value) is str:
                yield _Wanted(path, value)


def _operand(term: nodes.Expr, path: tuple[str, ...]) -> nodes.Expr:
    return next(one.left for one in _equalities(term) if nodes.property_path(one.left) == path)
