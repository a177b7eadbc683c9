"""Plans of ORDER BY RANK: several rankings of one query, fused by the client (nosql-rest 5.6).

    1. statistics   how many items, words and hits there are, summed over all partitions
    2. components   one query per score: the best items by it, with all scores of each
    3. fusion       by the client: Σ weight / (60 + rank)

The placeholders in the texts are replaced by the client with the statistics. A vector's score is
written as `VectorDistance` where the original writes a function of its own, `_VectorScore`: both
are only read by the server that wrote them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from armillary.query.expr.evaluate import Scope, constant
from armillary.query.expr.queries import BoundQuery
from armillary.query.expr.text import print_expression
from armillary.query.gateway.documents import HybridInfo, QueryInfo
from armillary.query.plan.policies import metrics_of
from armillary.query.plan.vector_order import is_ascending
from armillary.query.plan.weights import fusion_weights
from armillary.query.sql import ast
from armillary.query.sql.printer import print_query
from armillary.query.sql.syntax import syntax_of
from armillary.values import JSON

_HYBRID: Final = "{{documentdb-formattablehybridsearchquery-{}}}"
_FILTER: Final = ast.Parameter("({documentdb-formattableorderbyquery-filter})")
#: Scores of items that have none. Every real score is better.
_NO_TEXT_SCORE: Final = -1
_NO_VECTOR_SCORE: Final = 1.79769e308
COMPONENT_ROWS_MIN: Final = 120
SKIP_REWRITE: Final = "HybridSearchSkipOrderByRewrite"


@dataclass(frozen=True, slots=True)
class _Component:
    score: ast.Call
    ascending: bool
    worst: ast.Expr


def hybrid_info(
    bound: BoundQuery,
    rank: ast.OrderByRank,
    scope: Scope,
    skip: int | None,
    take: int | None,
    features: Collection[str],
    vector_policy: JSON,
) -> HybridInfo:
    assert isinstance(rank.score, ast.Call), "the binder lets only scores through"
    is_fusion = rank.score.function == "RRF"
    args = rank.score.args if is_fusion else (rank.score,)
    scores = [arg for arg in args if isinstance(arg, ast.Call)]
    signed = fusion_weights(rank.score, scope) if is_fusion else ()
    texts = [call for call in scores if call.function == "FULLTEXTSCORE"]
    metrics = metrics_of(vector_policy)
    components: list[_Component] = []
    for number, call in enumerate(scores):
        is_falling = not signed or signed[number] >= 0
        at = texts.index(call) if call in texts else None
        is_low_best = at is None and is_ascending(call, scope, bound.container, metrics)
        components.append(_component(call, at, is_falling, scope, is_low_best))
    rows = None if take is None else max(2 * ((skip or 0) + take), COMPONENT_ROWS_MIN)
    skips = SKIP_REWRITE in features
    is_single = len(components) == 1
    # Such a client does not ask for the scores of a single ranking: their order is enough.
    writer = _Writer(bound, () if skips and is_single else tuple(components), rows)
    write = writer.plain if skips and not is_single else writer.ordered
    infos = tuple(map(write, components))
    weights = tuple(abs(weight) for weight in signed)
    statistics = _statistics(bound, [_terms(call, scope) for call in texts])
    return HybridInfo(statistics, infos, weights, skip, take, bool(texts))


def _component(
    call: ast.Call, at: int | None, is_falling: bool, scope: Scope, is_low_best: bool
) -> _Component:
    """A negative weight wants the worst first."""
    if at is not None:
        path, terms = _terms(call, scope)
        names = ("totaldocumentcount", f"totalwordcount-{at}", f"hitcountsarray-{at}")
        holes = [ast.Parameter(_HYBRID.format(name)) for name in names]
        score = ast.Call("_FullTextScore", (path, ast.ArrayLiteral(terms), *holes))
        worst: ast.Expr = _number(_NO_TEXT_SCORE if is_falling else _NO_VECTOR_SCORE)
        return _Component(score, not is_falling, worst)
    ascending = is_low_best is is_falling
    limit = _NO_VECTOR_SCORE if ascending else -_NO_VECTOR_SCORE
    return _Component(replace(call, name="VectorDistance"), ascending, _number(limit))


def _number(value: float) -> ast.Expr:
    literal = ast.Literal(abs(value))
    return ast.Unary("-", literal) if value < 0 else literal


def _terms(call: ast.Call, scope: Scope) -> tuple[ast.Expr, tuple[ast.Expr, ...]]:
    """The path and the words to look for: arguments, or arrays of them as older texts have."""
    path, *given = call.args
    words: list[ast.Expr] = []
    for arg in given:
        known, value = constant(arg, scope)
        if known and isinstance(value, list):
            words += [ast.Literal(each) if isinstance(each, str) else arg for each in value]
        else:
            words.append(arg)
    return path, tuple(words)


def _statistics(bound: BoundQuery, texts: list[tuple[ast.Expr, tuple[ast.Expr, ...]]]) -> str:
    counts = [
        _object(
            totalWordCount=_call("SUM", _call("_FullTextWordCount", path)),
            hitCounts=ast.ArrayLiteral(
                tuple(_call("COUNTIF", _call("FullTextContains", path, word)) for word in words)
            ),
        )
        for path, words in texts
    ]
    documents = ast.SelectItem(_call("COUNT", ast.Literal(1)), "documentCount")
    found = ast.SelectItem(ast.ArrayLiteral(tuple(counts)), "fullTextStatistics")
    return print_query(ast.Query(ast.SelectList((documents, found)), syntax_of(bound).source))


def _call(name: str, *args: ast.Expr) -> ast.Call:
    return ast.Call(name, args)


def _object(**members: ast.Expr) -> ast.ObjectLiteral:
    return ast.ObjectLiteral(tuple(ast.Property(name, expr) for name, expr in members.items()))


@dataclass(frozen=True, slots=True)
class _Writer:
    """The text of each component."""

    bound: BoundQuery
    scored: tuple[_Component, ...]
    rows: int | None

    def ordered(self, one: _Component) -> QueryInfo:
        """In the form of ORDER BY, so that clients can page through it."""
        item = ast.ArrayLiteral((_object(item=one.score),))
        payload = _object(payload=self.bound.output, componentScores=self._scores())
        query = syntax_of(self.bound)
        where = _FILTER if query.where is None else ast.Logical("AND", (query.where, _FILTER))
        select = (
            ast.SelectItem(self._rid()),
            ast.SelectItem(item, "orderByItems"),
            ast.SelectItem(payload, "payload"),
        )
        return QueryInfo(
            self._text(one, select, where),
            top=self.rows,
            descending=(not one.ascending,),
            order_by=(print_expression(one.score),),
            is_non_streaming=True,
        )

    def plain(self, one: _Component) -> QueryInfo:
        """Without that form, for clients that take each component whole."""
        select = (
            ast.SelectItem(self._rid()),
            ast.SelectItem(self.bound.output, "payload"),
            ast.SelectItem(self._scores(), "componentScores"),
        )
        return QueryInfo(self._text(one, select, syntax_of(self.bound).where))

    def _rid(self) -> ast.Expr:
        alias = self.bound.sources[0].alias
        assert alias is not None, "a score begins at a name"
        return ast.Member(ast.Identifier(alias), "_rid")

    def _scores(self) -> ast.Expr:
        return ast.ArrayLiteral(
            tuple(ast.Binary("??", each.score, each.worst) for each in self.scored)
        )

    def _text(
        self, one: _Component, select: tuple[ast.SelectItem, ...], where: ast.Expr | None
    ) -> str:
        is_text = one.score.function == "_FULLTEXTSCORE"
        order = ast.OrderBy((ast.OrderItem(one.score, is_text and not one.ascending),))
        top = None if self.rows is None else ast.Top(ast.Literal(self.rows))
        return print_query(
            replace(
                syntax_of(self.bound),
                select=ast.SelectList(select),
                where=where,
                order_by=order,
                page=None,
                top=top,
            )
        )
