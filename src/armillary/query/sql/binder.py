"""AST → bound query: resolves every name and makes every check that needs no data.

A scope is what can be said at a place: the aliases of the FROM clauses around it, and names of
LET. The first source of the outermost FROM is the container whatever it is called; every other
source starts from an alias in scope. SELECT aliases are never in scope.

Problems are collected, not raised at the first, and come out together as one BadQuery, in the order
of the text. The rules about functions, aggregates and clauses are in modules of their own; here are
names and the walk. Facts: nosql-query 2.3, 4.1, 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from armillary import limits
from armillary.query.expr.queries import BoundQuery, BoundSource, Yields
from armillary.query.problems import BadQuery, QueryError, RefusedQuery
from armillary.query.sql import ast
from armillary.query.sql.aggregates import is_aggregate, misused, ungrouped_errors
from armillary.query.sql.calls import call_errors
from armillary.query.sql.clauses import (
    clause_errors,
    limit_errors,
    paged_subqueries,
    subquery_errors,
)
from armillary.query.sql.ordering import RankedCalls, order_errors, rank_errors
from armillary.query.sql.syntax import inner_query, syntax_of

UNRESOLVED: Final = "SC2001"

#: None for a name bound by LET.
Scope: TypeAlias = Mapping[str, BoundSource | None]


def bind(query: ast.Query) -> BoundQuery:
    """Raises BadQuery with everything that is wrong, or RefusedQuery when the query is right but
    is one that the original does not serve.
    """
    # First, because they also bound the work of everything below.
    if too_much := list(limit_errors(query)):
        raise BadQuery.of(list(paged_subqueries(query)) or too_much)
    binder = _Binder()
    bound = binder.query(query, {}, is_outermost=True)
    if binder.errors:
        found = sorted(binder.errors, key=_position)
        raise BadQuery.of(found[: limits.QUERY_ERRORS_MAX])
    if binder.refusals:
        raise RefusedQuery.of(binder.refusals)
    return bound


def output_names(items: tuple[ast.SelectItem, ...]) -> tuple[str, ...]:
    """The alias; else the last name of a path; else `$1`, `$2`, … counting only the nameless."""
    names: list[str] = []
    nameless = 0
    for item in items:
        if item.alias is not None:
            names.append(item.alias)
        elif isinstance(item.expr, ast.Member | ast.Identifier):
            names.append(item.expr.name)
        else:
            nameless += 1
            names.append(f"${nameless}")
    return tuple(names)


def _position(error: QueryError) -> tuple[bool, int]:
    return error.start < 0, error.start


@dataclass(slots=True)
class _Level:
    """One query being bound."""

    aggregates: list[ast.Call] = field(default_factory=list)
    subqueries: list[tuple[ast.Subquery, BoundQuery]] = field(default_factory=list)
    # Insertion-ordered sets.
    parameters: dict[str, None] = field(default_factory=dict)
    udfs: dict[str, None] = field(default_factory=dict)
    clause: str = ""
    in_aggregate: bool = False

    def include(self, inner: BoundQuery) -> None:
        self.parameters.update(dict.fromkeys(inner.parameters))
        self.udfs.update(dict.fromkeys(inner.udfs))


class _Binder:
    def __init__(self) -> None:
        self.errors: list[QueryError] = []
        self.refusals: list[QueryError] = []

    def query(
        self, query: ast.Query, outer: Scope, *, is_outermost: bool, is_subquery: bool = False
    ) -> BoundQuery:
        level = _Level()
        before = len(self.errors)
        sources, scope = self._sources(query.source, outer, level, is_outermost)
        level.clause = "WHERE"
        if query.where is not None:
            self._walk(query.where, scope, level)
        level.clause = "GROUP BY"
        for key in query.group_by:
            self._walk(key, scope, level)
        level.clause = "SELECT"
        self._walk(query.select, scope, level)
        level.clause = "ORDER BY"
        if isinstance(query.order_by, ast.OrderBy):
            self._walk(query.order_by, scope, level)
        elif query.order_by is not None:
            self._rank(query.order_by, scope, level)
        for counted in (query.top, query.page):
            if counted is not None:
                self._walk(counted, scope, level)
        sources = _with_star(query.select, sources)
        items = query.select.items if isinstance(query.select, ast.SelectList) else ()
        bound = BoundQuery(
            query,
            _output(query.select, items, sources),
            query.where,
            query.group_by,
            query.distinct,
            sources,
            tuple(level.aggregates),
            output_names(items),
            tuple(level.parameters),
            tuple(level.udfs),
            tuple(level.subqueries),
        )
        has_names = all(error.code != UNRESOLVED for error in self.errors[before:])
        self._check(bound, is_subquery, has_names)
        return bound

    def _check(self, bound: BoundQuery, is_subquery: bool, has_names: bool) -> None:
        self.errors += clause_errors(syntax_of(bound))
        if has_names:  # what an unknown name is grouped by is no further mistake
            self.errors += ungrouped_errors(bound)
        if is_subquery:
            self.errors += subquery_errors(syntax_of(bound))
        else:
            errors, refusals = order_errors(bound)
            self.errors += errors
            self.refusals += refusals

    # --- FROM ---

    def _sources(
        self, clause: ast.From | None, outer: Scope, level: _Level, is_outermost: bool
    ) -> tuple[tuple[BoundSource, ...], Scope]:
        scope = dict(outer)
        own: dict[str, BoundSource] = {}
        sources: list[BoundSource] = []
        for position, source in enumerate(clause.sources if clause else ()):
            # Through subqueries too: FROM (SELECT … FROM c) s begins with the container.
            is_container = is_outermost and position == 0
            bound = self._source(source, scope, level, is_container)
            sources.append(bound)
            if bound.alias is None:
                continue
            if bound.alias in own:
                place = source.alias or source.collection
                message = (
                    f"The input alias '{bound.alias}' is specified more than once "
                    "in the FROM clause."
                )
                self.errors.append(QueryError("SC2011", message, place.start, place.end))
            own[bound.alias] = scope[bound.alias] = bound
        return tuple(sources), scope

    def _source(
        self, source: ast.Source, scope: Scope, level: _Level, is_container: bool
    ) -> BoundSource:
        collection = source.collection
        alias = source.alias.name if source.alias else _default_alias(collection)
        if isinstance(collection, ast.Subquery):
            query = inner_query(collection)
            inner = self.query(query, scope, is_outermost=is_container, is_subquery=True)
            level.include(inner)
            yields: Yields = "elements" if source.iterates else "rows"
            return BoundSource(source, collection, alias, yields, None, inner)
        root = ast.path_root(collection)
        assert root is not None, "the grammar allows only paths from a name"
        if not is_container:
            self._resolve(root, scope)
        start = None if is_container else root.name
        if source.iterates:
            return BoundSource(source, collection, alias, "elements", start)
        whole = is_container and collection is root
        return BoundSource(source, collection, alias, "item" if whole else "path", start)

    # --- expressions ---

    def _resolve(self, name: ast.Identifier, scope: Scope) -> None:
        if name.name not in scope:
            message = f"Identifier '{name.name}' could not be resolved."
            self.errors.append(QueryError(UNRESOLVED, message, name.start, name.end))

    def _walk(self, node: ast.Node, scope: Scope, level: _Level) -> None:
        match node:
            case ast.Identifier():
                self._resolve(node, scope)
            case ast.Parameter(name):
                level.parameters[name] = None
            case ast.Subquery():
                self._subquery(node, scope, level)
            case ast.Let(name, value, body):
                self._walk(value, scope, level)
                self._walk(body, {**scope, name: None}, level)
            case ast.Call():
                self._call(node, scope, level)
            case _:
                if isinstance(node, ast.UdfCall):
                    level.udfs[node.name] = None
                elif isinstance(node, ast.Index):
                    self._index(node)
                for child in ast.children(node):
                    self._walk(child, scope, level)

    def _subquery(self, node: ast.Subquery, scope: Scope, level: _Level) -> None:
        inner = self.query(inner_query(node), scope, is_outermost=False, is_subquery=True)
        level.include(inner)
        level.subqueries.append((node, inner))
        if node.kind == "SCALAR" and inner.gives_many_rows:
            message = "The cardinality of a scalar subquery result set cannot be greater than one."
            self.errors.append(QueryError(None, message, node.start, node.end))

    def _call(self, call: ast.Call, scope: Scope, level: _Level) -> None:
        self.errors += call_errors(call)
        if not is_aggregate(call) or level.in_aggregate:
            for arg in call.args:
                self._walk(arg, scope, level)
            return
        self.errors += misused(call, level.clause)
        level.aggregates.append(call)
        level.in_aggregate = True
        for arg in call.args:
            self._walk(arg, scope, level)
        level.in_aggregate = False

    def _index(self, node: ast.Index) -> None:
        index = node.index
        if isinstance(index, ast.Literal | ast.Parameter) or _is_constant(index):
            return
        message = "The specified query includes 'member indexer' which is currently not supported."
        self.errors.append(QueryError("SC2990", message, index.start, index.end))

    def _rank(self, clause: ast.OrderByRank, scope: Scope, level: _Level) -> None:
        """Scores stand only here, so their calls are not checked like calls elsewhere."""
        calls: RankedCalls = rank_errors(clause.score)
        self.errors += calls.errors
        for node in calls.arguments:
            self._walk(node, scope, level)


def _with_star(select: ast.Selection, sources: tuple[BoundSource, ...]) -> tuple[BoundSource, ...]:
    """`SELECT * FROM c.tags[0]`: what has no name gets one that no text can write."""
    if not isinstance(select, ast.SelectStar) or not sources or sources[0].alias is not None:
        return sources
    return (replace(sources[0], alias="*"), *sources[1:])


def _output(
    select: ast.Selection, items: tuple[ast.SelectItem, ...], sources: tuple[BoundSource, ...]
) -> ast.Expr:
    """What SELECT makes, as one expression: a list of items is an object of them."""
    if isinstance(select, ast.SelectValue):
        return select.expr
    if isinstance(select, ast.SelectStar):
        alias = sources[0].alias if sources else None
        return ast.Identifier(alias or "*")  # without a FROM an error elsewhere
    pairs = zip(output_names(items), items, strict=True)
    return ast.ObjectLiteral(tuple(ast.Property(name, item.expr) for name, item in pairs))


def _default_alias(collection: ast.Expr) -> str | None:
    """The last name of the path. A path that ends in a number, or a subquery, has none."""
    if isinstance(collection, ast.Identifier | ast.Member):
        return collection.name
    return None


def _is_constant(expr: ast.Expr) -> bool:
    varying = ast.Identifier | ast.Subquery | ast.UdfCall | ast.Call
    return not any(isinstance(node, varying) for node in ast.walk(expr))
