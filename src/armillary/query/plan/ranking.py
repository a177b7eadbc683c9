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

from armillary.query.expr import nodes
from armillary.query.expr.evaluate import Frame, Scope, constant
from armillary.query.functions import Context
from armillary.query.functions.full_text import fuse
from armillary.query.plan.nodes import Fold, Plan, SortKey
from armillary.query.plan.vector_order import is_ascending
from armillary.query.plan.weights import fusion_weights
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
        key = SortKey(nodes.Unary("-", _score(plan, score, asking)))
        return replace(plan, rank=None, order=(key,)), asking.parameters
    factors = fusion_weights(score, Scope(Frame(), asking.parameters, asking.context))
    components = [arg for arg in score.args if isinstance(arg, nodes.Call)]
    rid = nodes.Member(nodes.Identifier(_alias(plan)), "_rid")
    output = nodes.ArrayLiteral((rid, *(_score(plan, each, asking) for each in components)))
    gathered = asking.rows(replace(plan, rank=None, output=output, offset=0, limit=None))
    columns = [[row[number + 1] for row in gathered] for number in range(len(components))]
    fused = fuse(columns, factors) if gathered else []
    scores = {row[0]: value for row, value in zip(gathered, fused, strict=True)}
    key = SortKey(nodes.Unary("-", nodes.Index(nodes.Parameter(SCORES), rid)))
    return replace(plan, rank=None, order=(key,)), {**asking.parameters, SCORES: scores}


def _alias(plan: Plan) -> str:
    alias = plan.bound.container
    assert alias is not None, "the binder ranks items only"
    return alias


def _score(plan: Plan, call: nodes.Call, asking: Asking) -> nodes.Expr:
    """A number for each row, larger is better."""
    if call.function == "VECTORDISTANCE":
        scope = Scope(Frame(), asking.parameters, asking.context)
        is_smaller_better = is_ascending(call, scope, _alias(plan), asking.context.metrics)
        closeness = nodes.Unary("-", call) if is_smaller_better else call
        return nodes.Binary("??", closeness, nodes.Literal(FARTHEST))
    path, *terms = call.args
    words = [_constant(term, asking) for term in terms]
    if len(words) == 1 and isinstance(words[0], list):
        words = words[0]
    listed = [_literal(word) for word in words]
    count, total, hits = _statistics(plan, path, listed, asking)
    known = nodes.Call(
        "_FullTextScore",
        (
            path,
            nodes.ArrayLiteral(tuple(listed)),
            nodes.Literal(count),
            nodes.Literal(total),
            nodes.ArrayLiteral(tuple(nodes.Literal(each) for each in hits)),
        ),
    )
    return nodes.Binary("??", known, nodes.Literal(NO_SCORE))


def _statistics(
    plan: Plan, path: nodes.Expr, terms: list[nodes.Expr], asking: Asking
) -> tuple[int, int, list[int]]:
    """How many items there are, how many words they have, and how many hold each term; of all
    items, whether they pass the filter or not.
    """
    words = nodes.Call("_FullTextWordCount", (path,))
    holders = [nodes.Call("FullTextContains", (path, term)) for term in terms]
    aggregates = (
        nodes.Call("COUNT", (nodes.Literal(1),)),
        nodes.Call("SUM", (words,)),
        *(nodes.Call("COUNTIF", (holder,)) for holder in holders),
    )
    fold = Fold((), tuple(dict.fromkeys(aggregates)))
    everything = replace(
        plan, where=None, rank=None, fold=fold, output=aggregates[0], offset=0, limit=None
    )
    results = dict(zip(fold.aggregates, asking.results(everything), strict=True))
    count, total, *hits = (results[call] for call in aggregates)
    return int(count), int(total), [int(each) for each in hits]


def _constant(expr: nodes.Expr, asking: Asking) -> Any:
    known, value = constant(expr, Scope(Frame(), asking.parameters, asking.context))
    return value if known else UNDEFINED


def _literal(value: JSON) -> nodes.Expr:
    if isinstance(value, dict):
        members = (nodes.Property(name, _literal(inner)) for name, inner in value.items())
        return nodes.ObjectLiteral(tuple(members))
    if isinstance(value, list):
        return nodes.ArrayLiteral(tuple(map(_literal, value)))
    return nodes.Literal(value)
