"""Best first by score (`Rank`): a ranked plan becomes a plan with an ordinary sort key.

    full text    statistics of the words are gathered first; the key is then one function of an item
    vectors      the distance is such a function already
    both fused   the fused score of a row depends on the ranks of all rows, so the scores of all
                 rows are gathered and fused, and the key looks them up by `_rid`

Ties go by rid, rising. A row without a score comes last. Facts: reference 6.7, nosql-rest 5.6.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from armillary.query.evaluate import Frame, Scope, constant
from armillary.query.functions import Context
from armillary.query.functions.full_text import fuse
from armillary.query.plan import Fold, Plan, SortKey
from armillary.query.sql import ast
from armillary.query.vector_order import is_ascending
from armillary.query.weights import fusion_weights
from armillary.values import JSON, UNDEFINED

SCORES = "@ scores"  # no text can name it
NO_SCORE = -1.0
FARTHEST = -sys.float_info.max  # of a vector that has no distance


@dataclass(frozen=True, slots=True)
class Asking:
    """How a ranking asks for what it has to know first."""

    parameters: Mapping[str, JSON]
    context: Context
    results: Callable[[Plan], list[Any]]
    """The results of a plan's aggregates over everything."""
    rows: Callable[[Plan], list[JSON]]
    """Every row of a plan."""


def ranked(plan: Plan, asking: Asking) -> tuple[Plan, Mapping[str, JSON]]:
    """The plan with a sort key instead of its rank, and the parameters it then needs."""
    if plan.rank is None:
        return plan, asking.parameters
    score = plan.rank.score
    if score.function != "RRF":
        key = SortKey(ast.Unary("-", _score(plan, score, asking)))
        return replace(plan, rank=None, order=(key,)), asking.parameters
    factors = fusion_weights(score, Scope(Frame(), asking.parameters, asking.context))
    components = [arg for arg in score.args if isinstance(arg, ast.Call)]
    rid = ast.Member(ast.Identifier(_alias(plan)), "_rid")
    output = ast.ArrayLiteral((rid, *(_score(plan, each, asking) for each in components)))
    gathered = asking.rows(replace(plan, rank=None, output=output, offset=0, limit=None))
    columns = [[row[number + 1] for row in gathered] for number in range(len(components))]
    fused = fuse(columns, factors) if gathered else []
    scores = {row[0]: value for row, value in zip(gathered, fused, strict=True)}
    key = SortKey(ast.Unary("-", ast.Index(ast.Parameter(SCORES), rid)))
    return replace(plan, rank=None, order=(key,)), {**asking.parameters, SCORES: scores}


def _alias(plan: Plan) -> str:
    alias = plan.bound.container
    assert alias is not None, "the binder ranks items only"
    return alias


def _score(plan: Plan, call: ast.Call, asking: Asking) -> ast.Expr:
    """A number for each row, larger is better."""
    if call.function == "VECTORDISTANCE":
        scope = Scope(Frame(), asking.parameters, asking.context)
        is_smaller_better = is_ascending(call, scope, _alias(plan), asking.context.metrics)
        closeness = ast.Unary("-", call) if is_smaller_better else call
        return ast.Binary("??", closeness, ast.Literal(FARTHEST))
    path, *terms = call.args
    words = [_constant(term, asking) for term in terms]
    if len(words) == 1 and isinstance(words[0], list):
        words = words[0]
    listed = [_literal(word) for word in words]
    count, total, hits = _statistics(plan, path, listed, asking)
    known = ast.Call(
        "_FullTextScore",
        (
            path,
            ast.ArrayLiteral(tuple(listed)),
            ast.Literal(count),
            ast.Literal(total),
            ast.ArrayLiteral(tuple(ast.Literal(each) for each in hits)),
        ),
    )
    return ast.Binary("??", known, ast.Literal(NO_SCORE))


def _statistics(
    plan: Plan, path: ast.Expr, terms: list[ast.Expr], asking: Asking
) -> tuple[int, int, list[int]]:
    """How many items there are, how many words they have, and how many hold each term; of all
    items, whether they pass the filter or not.
    """
    words = ast.Call("_FullTextWordCount", (path,))
    holders = [ast.Call("FullTextContains", (path, term)) for term in terms]
    aggregates = (
        ast.Call("COUNT", (ast.Literal(1),)),
        ast.Call("SUM", (words,)),
        *(ast.Call("COUNTIF", (holder,)) for holder in holders),
    )
    fold = Fold((), tuple(dict.fromkeys(aggregates)))
    everything = replace(
        plan, where=None, rank=None, fold=fold, output=aggregates[0], offset=0, limit=None
    )
    results = dict(zip(fold.aggregates, asking.results(everything), strict=True))
    count, total, *hits = (results[call] for call in aggregates)
    return int(count), int(total), [int(each) for each in hits]


def _constant(expr: ast.Expr, asking: Asking) -> Any:
    known, value = constant(expr, Scope(Frame(), asking.parameters, asking.context))
    return value if known else UNDEFINED


def _literal(value: JSON) -> ast.Expr:
    if isinstance(value, dict):
        members = (ast.Property(name, _literal(inner)) for name, inner in value.items())
        return ast.ObjectLiteral(tuple(members))
    if isinstance(value, list):
        return ast.ArrayLiteral(tuple(map(_literal, value)))
    return ast.Literal(value)
