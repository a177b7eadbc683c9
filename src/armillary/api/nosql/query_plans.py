"""The plan a client asks for when it runs a query over several ranges itself. Facts: nosql-rest
5.3 to 5.5.

    SELECT VALUE AVG(c.a) FROM c
        aggregates      Average
        rewritten       SELECT VALUE [{"item": {"sum": SUM(c.a), "count": COUNT(c.a)}}] FROM c

The client sends the rewritten text to every range and puts the answers together: it sorts by
`orderByItems`, folds `groupByItems` and aggregates, cuts TOP and OFFSET. An empty text means: send
the original. Rewriting is one pass over the clauses; what is rewritten depends only on which of
them are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from armillary.encoding.hashing import EPK_MAX, EPK_MIN
from armillary.errors import BadInput, NotSupported
from armillary.query.nested import output_of
from armillary.query.plan import Piece, Plan
from armillary.query.sql import ast
from armillary.query.sql.binder import output_names
from armillary.query.sql.bound import BoundQuery
from armillary.query.sql.printer import print_expression, print_query
from armillary.values import JSON

#: In parentheses: a client resumes with `a OR b`, beside the filter that was there before.
FILTER: Final = ast.Parameter("({documentdb-formattableorderbyquery-filter})")

#: Function → the name clients know, the feature a client must have beside `Aggregate`.
AGGREGATES: Final[dict[str, tuple[str, str | None]]] = {
    "COUNT": ("Count", None),
    "SUM": ("Sum", None),
    "MIN": ("Min", None),
    "MAX": ("Max", None),
    "AVG": ("Average", None),
    "COUNTIF": ("CountIf", "CountIf"),
    "MAKELIST": ("MakeList", "ListAndSetAggregate"),
    "MAKESET": ("MakeSet", "ListAndSetAggregate"),
}


@dataclass(frozen=True, slots=True)
class Info:
    """`queryInfo`, without what is the same for all."""

    distinct_type: str = "None"
    top: int | None = None
    offset: int | None = None
    limit: int | None = None
    order_by: tuple[str, ...] = ()
    order_by_expressions: tuple[str, ...] = ()
    group_by_expressions: tuple[str, ...] = ()
    group_by_aliases: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    alias_types: tuple[tuple[str, str | None], ...] = ()
    rewritten: str = ""
    has_select_value: bool = False
    dcount_alias: str | None = None
    non_streaming: bool = False

    def json(self) -> dict[str, JSON]:
        dcount = None if self.dcount_alias is None else {"dCountAlias": self.dcount_alias}
        return {
            "distinctType": self.distinct_type,
            "top": self.top,
            "offset": self.offset,
            "limit": self.limit,
            "orderBy": list(self.order_by),
            "orderByExpressions": list(self.order_by_expressions),
            "groupByExpressions": list(self.group_by_expressions),
            "groupByAliases": list(self.group_by_aliases),
            "aggregates": list(self.aggregates),
            "groupByAliasToAggregateType": dict(self.alias_types),
            "rewrittenQuery": self.rewritten,
            "hasSelectValue": self.has_select_value,
            "dCountInfo": dcount,
            "hasNonStreamingOrderBy": self.non_streaming,
        }


def plan_json(info: Info, pieces: Sequence[Piece] | None) -> dict[str, JSON]:
    return {
        "partitionedQueryExecutionInfoVersion": 2,
        "queryInfo": info.json(),
        "queryRanges": query_ranges(pieces),
    }


def query_ranges(pieces: Sequence[Piece] | None) -> list[JSON]:
    """Sorted and disjoint. A known key is one point, both ends included."""
    if pieces is None:
        pieces = [Piece(EPK_MIN, EPK_MAX)]
    return [
        {
            "min": one.start.hex().upper(),
            "max": (one.start if one.key is not None else one.end).hex().upper(),
            "isMinInclusive": True,
            "isMaxInclusive": one.key is not None,
        }
        for one in sorted(pieces, key=lambda piece: piece.start)
    ]


def needs_merge(plan: Plan) -> bool:
    """Whether the answers of several ranges, one after the other, are not the answer."""
    return (
        plan.base is not None
        or plan.blocks
        or bool(plan.order)
        or plan.rank is not None
        or plan.limit is not None
        or plan.offset > 0
    )


# --- features -------------------------------------------------------------------------------------


def check_features(info: Info, listed: str | None) -> None:
    """Refuse a query that the client says it can't put together."""
    if listed is None:
        return
    known = {one.strip() for one in listed.split(",")}
    missing = [one for one in _features(info) if one not in known]
    if missing:
        lines = (
            f"Query contained {one}, which the calling client does not support." for one in missing
        )
        raise BadInput(
            "Query contains 1 or more unsupported features. Upgrade your SDK to a version that "
            "does support the requested features:\n" + "\n".join(lines)
        )


def _features(info: Info) -> Iterator[str]:
    named = [kind for _, kind in info.alias_types if kind is not None]
    extra = {name: feature for name, feature in AGGREGATES.values() if feature is not None}
    tests: tuple[tuple[str, bool], ...] = (
        ("Aggregate", bool(info.aggregates)),
        ("NonValueAggregate", bool(named) and not info.group_by_expressions),
        ("MultipleAggregates", len(named) > 1),
        ("GroupBy", bool(info.group_by_expressions)),
        ("Distinct", info.distinct_type != "None" and info.dcount_alias is None),
        ("DCount", info.dcount_alias is not None),
        ("OrderBy", bool(info.order_by) and not info.non_streaming),
        ("NonStreamingOrderBy", info.non_streaming),
        ("MultipleOrderBy", len(info.order_by) > 1),
        ("OffsetAndLimit", info.offset is not None),
        ("Top", info.top is not None),
    )
    yield from (name for name, needed in tests if needed)
    yield from dict.fromkeys(extra[kind] for kind in (*info.aggregates, *named) if kind in extra)


# --- rewriting ------------------------------------------------------------------------------------


def make_info(bound: BoundQuery, plan: Plan, *, one_key: bool = False) -> Info:
    """`one_key`: the filter leaves one logical partition, so OFFSET needs nobody's help."""
    query = bound.query
    if plan.rank is not None:
        raise NotSupported(
            "Full-text and hybrid ranking over several partitions is not planned for clients yet. "
            "Give the partition key."
        )
    if plan.base is not None:
        return _dcount(bound, plan)
    info = Info(
        top=plan.limit if query.top is not None else None,
        offset=plan.offset if query.page is not None else None,
        limit=plan.limit if query.page is not None else None,
        has_select_value=isinstance(query.select, ast.SelectValue),
    )
    if query.group_by:
        return _grouped(bound, info)
    if bound.aggregates:
        return _aggregated(bound, info)
    if isinstance(query.order_by, ast.OrderBy):
        return _ordered(bound, plan, info)
    if query.distinct:
        return _distinct(query, info)
    if query.page is not None:
        return _paged(query, info, one_key)
    return info


def _distinct(query: ast.Query, info: Info) -> Info:
    cut = query.top is not None or query.page is not None
    text = print_query(replace(query, top=None, page=None)) if cut else ""
    return replace(info, distinct_type="Unordered", rewritten=text)


def _paged(query: ast.Query, info: Info, one_key: bool) -> Info:
    if one_key:
        return replace(info, offset=None, limit=None)
    return replace(info, rewritten=print_query(_from_the_start(query, info)))


def _from_the_start(query: ast.Query, info: Info) -> ast.Query:
    """`OFFSET 1 LIMIT 2` → `OFFSET 0 LIMIT 3`: any of a range's first three may be wanted."""
    if info.offset is None or info.limit is None:
        return query
    page = ast.OffsetLimit(ast.Literal(0), ast.Literal(info.offset + info.limit))
    return replace(query, page=page)


def _ordered(bound: BoundQuery, plan: Plan, info: Info) -> Info:
    query = bound.query
    assert isinstance(query.order_by, ast.OrderBy)
    alias = bound.container
    if alias is None:
        raise NotSupported("ORDER BY over several partitions needs a FROM that names the item.")
    items = query.order_by.items
    payload = output_of(bound)
    where: list[ast.Expr] = [] if query.where is None else [query.where]
    where.append(FILTER)
    if isinstance(query.select, ast.SelectValue):
        where.append(ast.Call("IS_DEFINED", (payload,)))
    keys = ast.ArrayLiteral(tuple(_item(one.expr) for one in items))
    columns = (
        ast.SelectItem(ast.Member(ast.Identifier(alias), "_rid")),
        ast.SelectItem(keys, "orderByItems"),
        ast.SelectItem(payload, "payload"),
    )
    text = replace(
        query,
        select=ast.SelectList(columns),
        where=_all(where),
        distinct=False,
        top=None if query.distinct else query.top,
        page=None if query.distinct else query.page,
    )
    is_vector = isinstance(items[0].expr, ast.Call) and items[0].expr.function == "VECTORDISTANCE"
    return replace(
        info,
        distinct_type=_distinct_type(query, payload),
        order_by=tuple("Descending" if key.descending else "Ascending" for key in plan.order),
        order_by_expressions=tuple(print_expression(one.expr) for one in items),
        rewritten=print_query(text if query.distinct else _from_the_start(text, info)),
        non_streaming=is_vector,
    )


def _distinct_type(query: ast.Query, payload: ast.Expr) -> str:
    """Ordered: equal rows come one after the other, so the client need not remember them all."""
    if not query.distinct:
        return "None"
    assert isinstance(query.order_by, ast.OrderBy)
    values = (
        {one.value for one in payload.members}
        if isinstance(payload, ast.ObjectLiteral)
        else {payload}
    )
    return "Ordered" if values == {one.expr for one in query.order_by.items} else "Unordered"


def _aggregated(bound: BoundQuery, info: Info) -> Info:
    """Without GROUP BY. ORDER BY stays in the text: one row is in every order."""
    query = replace(bound.query, top=None, page=None)
    info = replace(info, distinct_type="Unordered" if query.distinct else "None")
    if isinstance(query.select, ast.SelectValue):
        kind = _kind(query.select.expr)
        if kind is None:
            raise _composed()
        select = ast.SelectValue(ast.ArrayLiteral((_partial(query.select.expr),)))
        text = print_query(replace(query, select=select))
        return replace(info, aggregates=(kind,), rewritten=text)
    names, types, payload = _columns(bound)
    select_list = ast.SelectList((ast.SelectItem(payload, "payload"),))
    text = print_query(replace(query, select=select_list))
    return replace(info, group_by_aliases=names, alias_types=types, rewritten=text)


def _grouped(bound: BoundQuery, info: Info) -> Info:
    query = replace(bound.query, top=None, page=None)
    keys = ast.ArrayLiteral(tuple(map(_item, query.group_by)))
    info = replace(
        info,
        group_by_expressions=tuple(map(print_expression, query.group_by)),
        distinct_type="Unordered" if query.distinct else "None",
    )
    payload: ast.Expr
    if isinstance(query.select, ast.SelectValue):
        kind = _kind(query.select.expr)
        payload = query.select.expr
        if kind is not None:
            payload = ast.ArrayLiteral((_partial(query.select.expr),))
            info = replace(info, aggregates=(kind,))
    else:
        names, types, payload = _columns(bound)
        info = replace(info, group_by_aliases=names, alias_types=types)
    select = ast.SelectList(
        (ast.SelectItem(keys, "groupByItems"), ast.SelectItem(payload, "payload"))
    )
    return replace(info, rewritten=print_query(replace(query, select=select)))


def _columns(
    bound: BoundQuery,
) -> tuple[tuple[str, ...], tuple[tuple[str, str | None], ...], ast.ObjectLiteral]:
    """Aliases, their aggregates, and the object of partial results."""
    select = bound.query.select
    assert isinstance(select, ast.SelectList), "the binder refuses `*` beside aggregates"
    names = output_names(select.items)
    types: list[tuple[str, str | None]] = []
    members: list[ast.Property] = []
    for name, item in zip(names, select.items, strict=True):
        kind = _kind(item.expr)
        types.append((name, kind))
        members.append(ast.Property(name, item.expr if kind is None else _partial(item.expr)))
        if kind is None and any(one in bound.aggregates for one in ast.walk(item.expr)):
            raise _composed()
    return names, tuple(types), ast.ObjectLiteral(tuple(members))


def _partial(expr: ast.Expr) -> ast.ObjectLiteral:
    """What one range has to say of an aggregate, so that a client can fold it with others."""
    assert isinstance(expr, ast.Call)
    count = ast.Call("COUNT", expr.args)
    match expr.function:
        case "AVG":
            parts = {"sum": ast.Call("SUM", expr.args), "count": count}
            return _object({"item": _object(parts)})
        case "MIN" | "MAX":
            parts = {expr.function.lower(): expr, "count": count}
            return _object({"item": expr, "item2": _object(parts)})
        case _:
            return _object({"item": expr})


def _dcount(bound: BoundQuery, plan: Plan) -> Info:
    """`SELECT COUNT(1) FROM (SELECT DISTINCT …)`: the client counts the different rows."""
    inner = bound.sources[0].query
    select = bound.query.select
    is_value = isinstance(select, ast.SelectValue)
    exprs = (
        [select.expr]
        if isinstance(select, ast.SelectValue)
        else [one.expr for one in select.items]
        if isinstance(select, ast.SelectList)
        else []
    )
    is_count = len(exprs) == 1 and _kind(exprs[0]) == "Count" and bound.query.where is None
    if inner is None or not inner.query.distinct or inner.is_grouped or not is_count:
        raise NotSupported(
            "A query whose FROM is a query over all items runs in one partition only. "
            "Give the partition key."
        )
    alias = "" if is_value else bound.output_names[0]
    text = print_query(inner.query)
    return Info(
        distinct_type="Unordered", rewritten=text, dcount_alias=alias, has_select_value=is_value
    )


def _kind(expr: ast.Expr) -> str | None:
    if isinstance(expr, ast.Call) and expr.function in AGGREGATES:
        return AGGREGATES[expr.function][0]
    return None


def _item(expr: ast.Expr) -> ast.ObjectLiteral:
    return _object({"item": expr})


def _object(members: dict[str, Any]) -> ast.ObjectLiteral:
    return ast.ObjectLiteral(tuple(ast.Property(name, value) for name, value in members.items()))


def _all(terms: Sequence[ast.Expr]) -> ast.Expr:
    return terms[0] if len(terms) == 1 else ast.Logical("AND", tuple(terms))


def _composed() -> BadInput:
    return BadInput(
        '{"Errors":["Compositions of aggregates and other expressions are not allowed."]}'
    )
