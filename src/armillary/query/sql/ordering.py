"""Rules about ORDER BY: a key is a path of the document or a vector's distance; a rank is a score.

Wrong keys are the one place where the original answers with a bare number (2206) and no position,
and ordering by an element of a joined array is not an error of the text but refused by the planner.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from armillary.query.expr.queries import BoundQuery, BoundSource
from armillary.query.plan.weights import wrong_weights
from armillary.query.problems import QueryError
from armillary.query.sql import ast
from armillary.query.sql.calls import number, signature_errors
from armillary.query.sql.syntax import syntax_of

NOT_A_PATH: Final = QueryError(
    2206,
    "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.",
)
CORRELATED: Final = QueryError(None, "Order-by over correlated collections is not supported.")
#: The most alike come first; the others can't be asked for (azure-cosmos 4.17, its tests).
VECTOR_DIRECTION: Final = QueryError(
    None,
    "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported.",
)
RANK_DIRECTION: Final = QueryError(
    None, "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed."
)
#: Functions whose value can be a key; the second is what the rewriter makes of a full-text score.
_SORTABLE: Final = frozenset({"VECTORDISTANCE", "_FULLTEXTSCORE"})
_SCORES: Final = frozenset({"VECTORDISTANCE", "FULLTEXTSCORE"})


def order_errors(bound: BoundQuery) -> tuple[list[QueryError], list[QueryError]]:
    """Errors and refusals for the ORDER BY of an outermost query."""
    clause = syntax_of(bound).order_by
    if clause is None:
        return [], []
    if isinstance(clause, ast.OrderByRank):
        refused = [] if clause.descending is None else [RANK_DIRECTION]
        return list(_rank_source_errors(syntax_of(bound).source)), refused
    sources = {source.alias: source for source in bound.sources}
    found = [_key_error(item.expr, bound, sources) for item in clause.items]
    # One of each is enough: none of them says which key it means.
    errors = list(dict.fromkeys(each for each in found if each and each is not CORRELATED))
    refused = [CORRELATED] if CORRELATED in found else []
    if any(item.has_direction and _is_distance(item.expr) for item in clause.items):
        refused.append(VECTOR_DIRECTION)
    return errors, refused


def _is_distance(key: ast.Expr) -> bool:
    return isinstance(key, ast.Call) and key.function == "VECTORDISTANCE"


def _key_error(
    key: ast.Expr, bound: BoundQuery, sources: dict[str | None, BoundSource]
) -> QueryError | None:
    root = ast.path_root(key)
    if root is not None:
        source = sources.get(root.name)
        # An unknown name has been reported already.
        return _path_error(key, source, bound) if source else None
    if isinstance(key, ast.Call) and key.function in _SORTABLE:
        return None
    varying = ast.Identifier | ast.Subquery | ast.UdfCall | ast.Call
    if not any(isinstance(node, varying) for node in ast.walk(key)):
        message = "Constant expression is not allowed in the ORDER BY clause."
        return QueryError(None, message, key.start, key.end)
    return NOT_A_PATH


def _path_error(key: ast.Expr, source: BoundSource, bound: BoundQuery) -> QueryError | None:
    if source is not bound.sources[0] or source.yields == "elements":
        return CORRELATED
    if source.yields == "rows":
        return None if _is_path_inside(key, source.query) else NOT_A_PATH
    is_whole_item = source.yields == "item" and isinstance(key, ast.Identifier)
    return NOT_A_PATH if is_whole_item else None


def _is_path_inside(key: ast.Expr, query: BoundQuery | None) -> bool:
    """Whether a path into the rows of a subquery is one of the document: `r.f` over
    `(SELECT VALUE {"f": c.a} FROM c) AS r` is `c.a`."""
    if query is None or query.is_grouped or query.distinct:
        return False
    if not isinstance(syntax_of(query).select, ast.SelectValue):
        return False  # a list of properties is not looked through
    names: list[str] = []
    while isinstance(key, ast.Member):
        names.append(key.name)
        key = key.base
    found: ast.Expr | None = query.output
    while names and isinstance(found, ast.ObjectLiteral):
        name = names.pop()
        values = [each.value for each in found.members if each.name == name]
        found = values[-1] if values else None
    root = None if found is None else ast.path_root(found)
    if found is None or root is None:
        return False
    first = query.sources[0]
    if root.name != first.alias:
        return False
    if first.yields == "rows":
        return _is_path_inside(found, first.query)
    return first.yields == "path" or (first.yields == "item" and bool(names or found is not root))


# --- ORDER BY RANK ---


@dataclass(frozen=True, slots=True)
class RankedCalls:
    """What is wrong with a rank, and the expressions in it that are still to be bound."""

    errors: list[QueryError]
    arguments: list[ast.Expr]


def rank_errors(score: ast.Call | ast.UdfCall) -> RankedCalls:
    if isinstance(score, ast.Call) and score.function in _SCORES:
        return RankedCalls(signature_errors(score), list(score.args))
    if isinstance(score, ast.Call) and score.function == "RRF":
        return _fusion_errors(score)
    return RankedCalls([_not_a_score(score)], list(score.args))


def _fusion_errors(fusion: ast.Call) -> RankedCalls:
    """RRF(score, score, … [, weights])."""
    errors = [] if len(fusion.args) == 1 else signature_errors(fusion)
    arguments: list[ast.Expr] = []
    others: list[ast.Expr] = []
    for arg in fusion.args:
        if isinstance(arg, ast.Call) and arg.function in _SCORES:
            errors += signature_errors(arg)
            arguments += arg.args
        else:
            others.append(arg)
            arguments.append(arg)
    scores = len(fusion.args) - len(others)
    weights = others if others and others[0] is fusion.args[-1] else []
    if len(others) > len(weights) or scores == 0 or len(fusion.args) == 1:
        errors.append(_not_a_score(fusion))
    elif weights and not _are_weights(weights[0], scores):
        errors.append(wrong_weights(fusion))
    return RankedCalls(errors, arguments)


def _are_weights(expr: ast.Expr, count: int) -> bool:
    """A parameter may be (azure-cosmos 4.17, its hybrid tests); its value is checked later."""
    return isinstance(expr, ast.Parameter) or (
        isinstance(expr, ast.ArrayLiteral)
        and len(expr.items) == count
        and all(number(item) is not None for item in expr.items)
    )


def _not_a_score(call: ast.Call | ast.UdfCall) -> QueryError:
    message = (
        "The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore "
        "function call."
    )
    return QueryError("SC2221", message, call.start, call.end)


def _rank_source_errors(source: ast.From | None) -> Iterator[QueryError]:
    if source is None:
        return
    if len(source.sources) > 1:
        message = "The JOIN operator is not allowed with the ORDER BY RANK clause."
        yield QueryError("SC2224", message, source.start, source.end)
    for each in source.sources:
        if each.iterates:
            message = (
                "The FROM clause with the IN operator is not allowed with the ORDER BY RANK clause."
            )
            yield QueryError("SC2223", message, each.start, each.end)
        if isinstance(each.collection, ast.Subquery):
            message = "Subqueries in the FROM clause are not allowed with the ORDER BY RANK clause."
            yield QueryError("SC2225", message, each.collection.start, each.collection.end)
