"""Query plans: what a client needs to run a query over many partitions and merge the answers.

    SELECT c.x FROM c ORDER BY c.a
    ──▶ merge by c.a, ascending, the rows that each partition gives for
        SELECT c._rid, [{"item": c.a}] AS orderByItems, {"x": c.x} AS payload
        FROM c
        WHERE ({documentdb-formattableorderbyquery-filter})
        ORDER BY c.a

The client replaces the placeholder by `true`, or by a filter where it goes on after a pause. Texts
and fields are those that the original's planner makes (nosql-rest 5.4 and 5.5, nosql-query 9);
sentences of our own where it refuses and the words are not known. Nothing here reads data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.models import ValueModel
from armillary.encoding.partition_key import KeyValues, PartitionKeyDefinition
from armillary.limits import QUERY_COUNT_MAX
from armillary.query.expr.evaluate import Frame, Scope
from armillary.query.expr.queries import BoundQuery
from armillary.query.expr.text import print_expression
from armillary.query.functions import Context
from armillary.query.gateway.documents import (
    AGGREGATE_NAMES,
    DistinctType,
    QueryInfo,
    plan_document,
)
from armillary.query.gateway.features import (
    blocking,
    check_features,
    is_vector,
    needs_plan,
    refused,
)
from armillary.query.gateway.hybrid import hybrid_info
from armillary.query.plan.key_ranges import is_point, key_range, key_ranges
from armillary.query.plan.policies import metrics_of
from armillary.query.plan.vector_order import is_ascending
from armillary.query.sql import ast
from armillary.query.sql.aggregates import is_aggregate
from armillary.query.sql.planning import count_of
from armillary.query.sql.printer import print_query
from armillary.query.sql.syntax import syntax_of
from armillary.values import JSON

__all__ = ["FILTER", "needs_plan", "plan_scope", "query_plan"]

FILTER: Final = ast.Parameter("({documentdb-formattableorderbyquery-filter})")
COMPOSED: Final = "Compositions of aggregates and other expressions are not allowed."

_NO_CONTEXT: Final = Context(now_ticks=0, random=lambda: 0.0)


def query_plan(
    bound: BoundQuery,
    parameters: Mapping[str, JSON],
    definition: PartitionKeyDefinition,
    features: Collection[str] | None = None,
    *,
    key: KeyValues | None = None,
    vector_policy: JSON = None,
    model: ValueModel = JSON_MODEL,
) -> dict[str, JSON]:
    """The plan document for a query, for a client that knows `features` (None: all of them), of one
    partition `key` if it named one. Raises RefusedQuery for a query that can't be merged by this
    client or by any.

    `vector_policy` is the container's `vectorEmbeddingPolicy`: it says which way vectors sort.
    """
    scope = msgspec.structs.replace(plan_scope(parameters), model=model)
    if features is not None:
        check_features(bound, features)
    ranges = key_ranges(bound, scope, definition) if key is None else [key_range(key, definition)]
    rank = syntax_of(bound).order_by
    if isinstance(rank, ast.OrderByRank):
        skip, take = _page(syntax_of(bound), scope)
        hybrid = hybrid_info(bound, rank, scope, skip, take, features or (), vector_policy)
        return plan_document(hybrid, ranges)
    info = _Rewriter(bound, scope, is_point(ranges), vector_policy).info()
    return plan_document(info, ranges)


def plan_scope(parameters: Mapping[str, JSON]) -> Scope:
    """Constants only: a plan is made before there is a row, or a time."""
    return Scope(Frame(), parameters, _NO_CONTEXT)


# --- rewriting ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rewriter:
    bound: BoundQuery
    scope: Scope
    is_pinned: bool
    vector_policy: JSON

    def info(self) -> QueryInfo:
        bound, query = self.bound, syntax_of(self.bound)
        if blocking(bound) is not None:
            return self._distinct_count()
        if bound.is_grouped:
            return self._paged(self._folded(), always=True)
        info = QueryInfo(has_select_value=isinstance(query.select, ast.SelectValue))
        if query.order_by is not None:
            return self._ordered(info)
        if query.distinct:
            text = query if query.top or query.page else None
            return self._paged((replace(info, distinct="Unordered"), text), always=True)
        return self._paged((info, None), always=False)

    # --- TOP and OFFSET ---

    def _paged(self, made: tuple[QueryInfo, ast.Query | None], *, always: bool) -> QueryInfo:
        """With what TOP and OFFSET become. They are left to the client (`always`) when it changes
        the number of rows; else each partition gives as many as could be needed.
        """
        info, text = made
        query = syntax_of(self.bound)
        top = None if query.top is None else count_of(query.top.count, "TOP", self.scope)
        offset, limit = _offset_limit(query, self.scope)
        if always:
            text = None if text is None else replace(text, top=None, page=None)
        elif limit is not None and self.is_pinned:
            offset = limit = None  # the one partition does it
        elif limit is not None:
            assert offset is not None, "the grammar has both or none"
            most = min(offset + limit, QUERY_COUNT_MAX)  # as far as any text may count
            page = ast.OffsetLimit(ast.Literal(0), ast.Literal(most))
            text = replace(text or query, page=page)
        rewritten = "" if text is None else print_query(text)
        return replace(info, rewritten=rewritten, top=top, offset=offset, limit=limit)

    # --- ORDER BY ---

    def _ordered(self, info: QueryInfo) -> QueryInfo:
        query, order = syntax_of(self.bound), syntax_of(self.bound).order_by
        assert isinstance(order, ast.OrderBy), "ranks have plans of their own"
        where = FILTER if query.where is None else ast.Logical("AND", (query.where, FILTER))
        payload = self.bound.output
        if isinstance(query.select, ast.SelectValue) and not self._is_item(payload):
            where = ast.Logical("AND", (where, ast.Call("IS_DEFINED", (payload,))))
        text = replace(
            query,
            select=order_selection(self.bound, [item.expr for item in order.items], payload),
            where=where,
            distinct=False,
        )
        info = replace(
            info,
            distinct=self._distinct_type(order),
            descending=tuple(map(self._is_descending, order.items)),
            order_by=tuple(print_expression(item.expr) for item in order.items),
            is_non_streaming=any(map(is_vector, order.items)),
        )
        return self._paged((info, text), always=query.distinct)

    def _is_item(self, expr: ast.Expr) -> bool:
        return isinstance(expr, ast.Identifier) and expr.name == self.bound.container

    def _is_descending(self, item: ast.OrderItem) -> bool:
        if is_vector(item):
            assert isinstance(item.expr, ast.Call)
            metrics = metrics_of(self.vector_policy)
            return not is_ascending(item.expr, self.scope, self.bound.container, metrics)
        return item.descending

    def _distinct_type(self, order: ast.OrderBy) -> DistinctType:
        """Equal rows come one after another when the rows are made of the first sort keys."""
        query = syntax_of(self.bound)
        if not query.distinct:
            return "None"
        if isinstance(query.select, ast.SelectStar):
            return "Unordered"
        if isinstance(query.select, ast.SelectValue):
            chosen = {query.select.expr}
        else:
            chosen = {item.expr for item in query.select.items}
        keys = {item.expr for item in order.items[: len(chosen)]}
        return "Ordered" if keys == chosen else "Unordered"

    # --- aggregates and GROUP BY ---

    def _folded(self) -> tuple[QueryInfo, ast.Query]:
        query = syntax_of(self.bound)
        if query.group_by and (query.distinct or query.order_by is not None):
            word = "DISTINCT" if query.distinct else "ORDER BY"
            raise refused(f"'{word}' is not supported together with GROUP BY.")
        info = QueryInfo(group_by=tuple(map(print_expression, query.group_by)))
        if isinstance(query.select, ast.SelectValue):
            info, payload = self._folded_value(info, query.select.expr)
            value: ast.Selection = ast.SelectValue(payload)
        else:
            assert isinstance(query.select, ast.SelectList), "the binder refuses *"
            info, payload = self._folded_list(info, query.select)
            value = ast.SelectList((ast.SelectItem(payload, "payload"),))
        if query.group_by:
            keys = ast.SelectItem(_items(query.group_by), "groupByItems")
            value = ast.SelectList((keys, ast.SelectItem(payload, "payload")))
        return info, replace(query, select=value, distinct=False)

    def _folded_value(self, info: QueryInfo, expr: ast.Expr) -> tuple[QueryInfo, ast.Expr]:
        info = replace(info, has_select_value=True)
        if not _is_alone(expr):
            return info, expr
        assert isinstance(expr, ast.Call)
        name = AGGREGATE_NAMES[expr.function]
        return replace(info, aggregates=(name,)), ast.ArrayLiteral((_partial(expr),))

    def _folded_list(self, info: QueryInfo, select: ast.SelectList) -> tuple[QueryInfo, ast.Expr]:
        kinds: dict[str, str | None] = {}
        members: list[ast.Property] = []
        for name, item in zip(self.bound.output_names, select.items, strict=True):
            expr = item.expr
            is_folded = _is_alone(expr)
            if is_folded:
                assert isinstance(expr, ast.Call)
                kinds[name] = AGGREGATE_NAMES[expr.function]
                expr = _partial(expr)
            else:
                kinds[name] = None
            members.append(ast.Property(name, expr))
        info = replace(info, aliases=tuple(kinds), alias_aggregates=kinds)
        return info, ast.ObjectLiteral(tuple(members))

    # --- COUNT of a query with DISTINCT ---

    def _distinct_count(self) -> QueryInfo:
        """SELECT VALUE COUNT(1) FROM (SELECT DISTINCT …): the partitions give what is distinct, the
        client counts it. No recorded plan shows the text (unverified).
        """
        query, inner = syntax_of(self.bound), self.bound.sources[0].query
        is_plain = query == ast.Query(query.select, query.source) and len(self.bound.sources) == 1
        if inner is None or not inner.distinct or inner.is_grouped or not is_plain:
            raise refused("A query over a subquery that groups can't be merged from partitions.")
        match query.select:
            case ast.SelectValue(expr):
                alias = ""
            case ast.SelectList((ast.SelectItem(expr),)):
                alias = self.bound.output_names[0]
            case _:
                raise refused(COMPOSED)
        counts_rows = isinstance(expr, ast.Call) and expr.function == "COUNT"
        if not counts_rows or not isinstance(expr.args[0], ast.Literal):  # type: ignore[union-attr]
            raise refused("Only COUNT(1) can be merged from a subquery with DISTINCT.")
        return QueryInfo(
            print_query(syntax_of(inner)),
            distinct="Unordered",
            has_select_value=isinstance(query.select, ast.SelectValue),
            distinct_count_alias=alias,
        )


def order_selection(bound: BoundQuery, keys: list[ast.Expr], payload: ast.Expr) -> ast.SelectList:
    """`alias._rid, [{"item": key}, …] AS orderByItems, payload`."""
    alias = bound.sources[0].alias
    assert alias is not None, "a sort key begins at a name"
    return ast.SelectList(
        (
            ast.SelectItem(ast.Member(ast.Identifier(alias), "_rid")),
            ast.SelectItem(_items(keys), "orderByItems"),
            ast.SelectItem(payload, "payload"),
        )
    )


def _items(exprs: Collection[ast.Expr]) -> ast.ArrayLiteral:
    return ast.ArrayLiteral(tuple(_object(item=expr) for expr in exprs))


def _object(**members: ast.Expr) -> ast.ObjectLiteral:
    return ast.ObjectLiteral(tuple(ast.Property(name, expr) for name, expr in members.items()))


def _is_alone(expr: ast.Expr) -> bool:
    """Whether it is an aggregate. One inside something else can't be merged."""
    if is_aggregate(expr):
        return True
    if any(is_aggregate(node) for node in _own(expr)):
        raise refused(COMPOSED)
    return False


def _own(expr: ast.Expr) -> list[ast.Node]:
    """The nodes of an expression, without those of queries inside it, which fold for themselves."""
    found: list[ast.Node] = []
    waiting: list[ast.Node] = [expr]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.Subquery):
            found.append(node)
            waiting.extend(ast.children(node))
    return found


def _partial(call: ast.Call) -> ast.ObjectLiteral:
    """What a partition gives for an aggregate, so that it can be merged with others."""
    (argument,) = call.args
    count = ast.Call("COUNT", (argument,))
    match call.function:
        case "AVG":
            return _object(item=_object(sum=ast.Call("SUM", (argument,)), count=count))
        case "MIN" | "MAX":
            both = _object(**{call.function.lower(): call, "count": count})
            return _object(item=call, item2=both)
    return _object(item=call)


# --- counts ---------------------------------------------------------------------------------------


def _page(query: ast.Query, scope: Scope) -> tuple[int | None, int | None]:
    """(skip, take) of a query that is ranked."""
    offset, limit = _offset_limit(query, scope)
    if query.top is not None:
        return offset, count_of(query.top.count, "TOP", scope)
    return offset, limit


def _offset_limit(query: ast.Query, scope: Scope) -> tuple[int | None, int | None]:
    if query.page is None:
        return None, None
    return (
        count_of(query.page.offset, "OFFSET", scope),
        count_of(query.page.limit, "LIMIT", scope),
    )
