"""A whole query, run naively: the second opinion for the real executor.

No index, no plan, no compilation: recursion over the AST, clause by clause in the order of the
reference (section 4). Operators and most functions are written a second time in `naive_values.py`
and `naive_functions.py`. Use:

    run("SELECT VALUE c.id FROM c WHERE c.n > @n", items, {"@n": 3})

It trusts that the text passed the binder: what static checks forbid has no meaning here.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cmp_to_key
from typing import Any

from tests.property import naive_functions as functions
from tests.property.naive_values import (
    BINARY,
    UNARY,
    access,
    between,
    compare,
    distinct,
    is_equal,
    like,
    logic,
    negation,
    one_of,
    type_of,
)

from armillary.query.functions import Context
from armillary.query.sql import ast
from armillary.query.sql.parser import parse
from armillary.query.sql.syntax import inner_query
from armillary.values import UNDEFINED

Scope = dict[str, Any]
FIXED = Context(now_ticks=17_000_000_000_000_000, random=lambda: 0.5)


class QueryFailed(Exception):
    """An error that only running can find: a number without JSON form, a subquery with two rows."""


@dataclass(frozen=True)
class World:
    """Everything a query sees beside its text."""

    items: Sequence[Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    context: Context = FIXED
    udfs: Mapping[str, Callable[..., Any]] = field(default_factory=dict)


def run(
    query: str | ast.Query,
    items: Sequence[Any] = (),
    parameters: Mapping[str, Any] | None = None,
    context: Context = FIXED,
    udfs: Mapping[str, Callable[..., Any]] | None = None,
) -> list[Any]:
    parsed = parse(query) if isinstance(query, str) else query
    world = World(items, parameters or {}, context, udfs or {})
    return [leaving(row) for row in rows_of(parsed, {}, world, outermost=True)]


def leaving(value: Any) -> Any:
    """As JSON prints it: whole doubles are integers, and NaN has no form."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise QueryFailed(f"{value} has no JSON form")
        return int(value) if value == int(value) and abs(value) <= 2**53 else value
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [leaving(each) for each in value]
    if isinstance(value, dict):
        return {name: leaving(each) for name, each in value.items()}
    return value


# --- clauses --------------------------------------------------------------------------------------


def rows_of(query: ast.Query, scope: Scope, world: World, outermost: bool = False) -> list[Any]:
    if isinstance(query.order_by, ast.OrderBy):
        scopes = ordered_by_item(query, query.order_by, world)
    else:
        everything = list(from_clause(query, scope, world, outermost))
        scopes = [s for s in everything if passes(query, s, world)]
        if query.order_by is not None:
            scopes = ranked(query.order_by, scopes, everything, world)
    groups = grouped(query, scopes, world)
    if groups is None:
        projected = [select(query, s, world, None) for s in scopes]
    else:
        projected = [select(query, g[0] if g else scope, world, g) for g in groups]
    rows = [row for row in projected if row is not UNDEFINED]
    if query.distinct:
        rows = distinct(rows)
    if query.page is not None:
        offset = int(value(query.page.offset, {}, world))
        rows = rows[offset:][: int(value(query.page.limit, {}, world))]
    if query.top is not None:
        rows = rows[: int(value(query.top.count, {}, world))]
    return rows


def from_clause(query: ast.Query, scope: Scope, world: World, outermost: bool) -> Iterator[Scope]:
    """Scopes, one per combination. Only aliases of this FROM and of enclosing queries are in."""
    scopes = [scope]
    for number, source in enumerate(query.source.sources if query.source else ()):
        container = outermost and number == 0
        scopes = [
            {**each, alias_of(source): found}
            for each in scopes
            for found in source_values(source, each, world, container)
        ]
    yield from scopes


def source_values(source: ast.Source, scope: Scope, world: World, container: bool) -> Iterator[Any]:
    for found in collection_values(source.collection, scope, world, container):
        if not source.iterates:
            yield found
        elif type_of(found) == "array":
            yield from found


def collection_values(
    collection: ast.Expr, scope: Scope, world: World, container: bool
) -> list[Any]:
    match collection:
        case ast.Subquery():
            return rows_of(inner_query(collection), scope, world, outermost=container)
        case ast.Identifier(name=name):
            return list(world.items) if container else [scope[name]]
        case ast.Member(base=base, name=name):
            key: Any = name
        case ast.Index(base=base, index=index):
            key = value(index, scope, world)
        case _:
            raise AssertionError(f"not a collection: {collection}")
    found = [access(each, key) for each in collection_values(base, scope, world, container)]
    return [each for each in found if each is not UNDEFINED]


def alias_of(source: ast.Source) -> str:
    """The name a source binds, "" for none."""
    if source.alias is not None:
        return source.alias.name
    match source.collection:
        case ast.Identifier(name=name) | ast.Member(name=name):
            return name
        case _:
            return ""


def grouped(query: ast.Query, scopes: list[Scope], world: World) -> list[list[Scope]] | None:
    """The rows of each group, or None when the query does not aggregate."""
    if not query.group_by:
        return [scopes] if has_aggregate(query.select) else None
    groups: list[tuple[list[Any], list[Scope]]] = []
    for scope in scopes:
        key = [value(expr, scope, world) for expr in query.group_by]
        for other, members in groups:
            if all(is_equal(a, b) for a, b in zip(key, other, strict=True)):
                members.append(scope)
                break
        else:
            groups.append((key, [scope]))
    return [members for _, members in groups]


def has_aggregate(node: ast.Node) -> bool:
    if isinstance(node, ast.Subquery):
        return False
    if isinstance(node, ast.Call) and node.function in functions.AGGREGATES:
        return True
    return any(has_aggregate(child) for child in ast.children(node))


def select(query: ast.Query, scope: Scope, world: World, group: list[Scope] | None) -> Any:
    match query.select:
        case ast.SelectStar():
            assert query.source is not None
            return scope[alias_of(query.source.sources[0])]
        case ast.SelectValue(expr=expr):
            return value(expr, scope, world, group)
        case ast.SelectList(items=items):
            row: dict[str, Any] = {}
            unnamed = 0
            for item in items:
                name = item.alias or own_name(item.expr)
                if name is None:
                    unnamed += 1
                    name = f"${unnamed}"
                found = value(item.expr, scope, world, group)
                if found is not UNDEFINED:
                    row[name] = found
            return row


def own_name(expr: ast.Expr) -> str | None:
    match expr:
        case ast.Identifier(name=name) | ast.Member(name=name):
            return name
        case _:
            return None


# --- order ----------------------------------------------------------------------------------------


def passes(query: ast.Query, scope: Scope, world: World) -> bool:
    return query.where is None or value(query.where, scope, world) is True


def ordered_by_item(query: ast.Query, order: ast.OrderBy, world: World) -> list[Scope]:
    """Equal keys: by item, descending when the first key falls; rows of one item as they were."""
    found: list[tuple[int, Scope]] = []
    for number, item in enumerate(world.items):
        alone = replace(world, items=[item])
        scopes = from_clause(query, {}, alone, outermost=True)
        found += [(number, scope) for scope in scopes if passes(query, scope, world)]
    keys = [[value(item.expr, scope, world) for item in order.items] for _, scope in found]
    directions = [is_descending(item, world) for item in order.items]

    def before(one: int, other: int) -> int:
        for a, b, down in zip(keys[one], keys[other], directions, strict=True):
            if order_of_keys := compare(a, b):
                return -order_of_keys if down else order_of_keys
        between = found[one][0] - found[other][0]
        return (-between if directions[0] else between) or one - other

    return [found[at][1] for at in sorted(range(len(found)), key=cmp_to_key(before))]


def ranked(
    order: ast.OrderByRank, scopes: list[Scope], everything: list[Scope], world: World
) -> list[Scope]:
    scores = rank_scores(order.score, scopes, everything, world)
    best = sorted(range(len(scopes)), key=lambda at: -scores[at])  # stable: ties as they were
    return [scopes[at] for at in best]


def is_descending(item: ast.OrderItem, world: World) -> bool:
    """VectorDistance puts the most alike first, whatever the direction says."""
    if isinstance(item.expr, ast.Call) and item.expr.function == "VECTORDISTANCE":
        return not is_euclidean(item.expr, world)
    return item.descending


def is_euclidean(call: ast.Call, world: World) -> bool:
    options = value(call.args[3], {}, world) if len(call.args) > 3 else {}
    return str(options.get("distanceFunction", "cosine")).lower() == "euclidean"


def rank_scores(
    call: ast.Call | ast.UdfCall, scopes: list[Scope], everything: list[Scope], world: World
) -> list[float]:
    """One score per row, larger is better. Statistics of terms are over all items."""
    assert isinstance(call, ast.Call)
    if call.function == "RRF":
        return fused(call, scopes, everything, world)
    if call.function == "VECTORDISTANCE":
        sign = -1 if is_euclidean(call, world) else 1
        distances = [value(call, scope, world) for scope in scopes]
        return [-math.inf if d is UNDEFINED else sign * d for d in distances]
    path, *terms = call.args
    words = [value(term, {}, world) for term in terms]
    if len(words) == 1 and type_of(words[0]) == "array":
        words = words[0]
    texts = [value(path, scope, world) for scope in everything]

    def ask(name: str, *arguments: Any) -> Any:
        return functions.call(name, list(arguments), world.context)

    lengths = [ask("_FULLTEXTWORDCOUNT", text) for text in texts]
    total = sum(length for length in lengths if length is not UNDEFINED)
    hits = [sum(ask("FULLTEXTCONTAINS", t, word) is True for t in texts) for word in words]
    scores = [
        ask("_FULLTEXTSCORE", value(path, scope, world), words, len(texts), total, hits)
        for scope in scopes
    ]
    return [-1.0 if score is UNDEFINED else score for score in scores]


def fused(
    call: ast.Call, scopes: list[Scope], everything: list[Scope], world: World
) -> list[float]:
    parts = [arg for arg in call.args if isinstance(arg, ast.Call)]
    rest = [value(arg, {}, world) for arg in call.args if not isinstance(arg, ast.Call)]
    weights = rest[0] if rest else [1] * len(parts)
    totals = [0.0] * len(scopes)
    for part, weight in zip(parts, weights, strict=True):
        scores = rank_scores(part, scopes, everything, world)
        best = sorted(set(scores), reverse=True)
        for row, score in enumerate(scores):
            totals[row] += weight / (60 + best.index(score) + 1)
    return totals


# --- expressions ----------------------------------------------------------------------------------


def value(expr: ast.Expr, scope: Scope, world: World, group: list[Scope] | None = None) -> Any:
    """The value of an expression. Inside an aggregating SELECT, `group` is the rows it is about."""

    def of(inner: ast.Expr) -> Any:
        return value(inner, scope, world, group)

    match expr:
        case ast.Literal(value=constant):
            return constant
        case ast.Parameter(name=name):
            return world.parameters.get(name, UNDEFINED)
        case ast.Identifier(name=name):
            return scope.get(name, UNDEFINED)
        case ast.Member(base=base, name=name):
            return access(of(base), name)
        case ast.Index(base=base, index=index):
            return access(of(base), of(index))
        case ast.ArrayLiteral(items=items):
            return [each for each in map(of, items) if each is not UNDEFINED]
        case ast.ObjectLiteral(members=members):
            pairs = [(each.name, of(each.value)) for each in members]
            return {name: each for name, each in pairs if each is not UNDEFINED}
        case ast.Call(function=name, args=args) if name in functions.AGGREGATES:
            rows = [scope] if group is None else group
            return functions.aggregate(name, [value(args[0], row, world) for row in rows])
        case ast.Call(function=name, args=args):
            return functions.call(name, [of(arg) for arg in args], world.context)
        case ast.UdfCall(name=name, args=args):
            given = [of(arg) for arg in args]
            return UNDEFINED if UNDEFINED in given else world.udfs[name](*given)
        case ast.Unary(operator=operator, operand=operand):
            return UNARY[operator](of(operand))
        case ast.Binary(operator=operator, left=left, right=right):
            return BINARY[operator](of(left), of(right))
        case ast.Logical(operator=operator, terms=(first, *others)):
            result = of(first)
            for other in others:
                result = logic(operator, result, of(other))
            return result
        case ast.Between(operand=operand, low=low, high=high, negated=negated):
            found = between(of(operand), of(low), of(high))
            return negation(found) if negated else found
        case ast.In(operand=operand, items=items, negated=negated):
            found = one_of(of(operand), [of(item) for item in items])
            return negation(found) if negated else found
        case ast.Like(operand=operand, pattern=pattern, escape=escape, negated=negated):
            found = like(of(operand), of(pattern), escape)
            return negation(found) if negated else found
        case ast.Conditional(test=test, then=then, otherwise=otherwise):
            return of(then) if of(test) is True else of(otherwise)
        case ast.Let(name=name, value=bound, body=body):
            return value(body, {**scope, name: of(bound)}, world, group)
        case ast.Subquery():
            return subquery(expr, scope, world)
        case _:
            raise AssertionError(f"no meaning for {expr}")


def subquery(expr: ast.Subquery, scope: Scope, world: World) -> Any:
    query = inner_query(expr)
    if expr.kind == "ALL":
        if query.where is None:
            return True
        return not rows_of(replace(query, where=ast.Unary("NOT", query.where)), scope, world)
    rows = rows_of(query, scope, world)
    match expr.kind:
        case "EXISTS":
            return bool(rows)
        case "ARRAY":
            return rows
        case "FIRST":
            return rows[0] if rows else UNDEFINED
        case "LAST":
            return rows[-1] if rows else UNDEFINED
        case _:
            if len(rows) > 1:
                raise QueryFailed("a scalar subquery has more than one row")
            return rows[0] if rows else UNDEFINED
