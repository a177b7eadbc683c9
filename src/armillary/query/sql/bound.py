"""What the binder found out about a query: the AST with every name explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from armillary.query.sql import ast

#: What one row of a source is: a whole item of the container, the value at a path, each element of
#: an array, each row of a subquery.
Yields: TypeAlias = Literal["item", "path", "elements", "rows"]


@dataclass(frozen=True, slots=True)
class BoundSource:
    """`root` is the alias that the path starts from, None when that is the container itself (or
    when the source is a subquery). `query` is the subquery, bound.
    """

    source: ast.Source
    alias: str | None
    yields: Yields
    root: str | None
    query: BoundQuery | None = None


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """One SELECT. `parameters` and `udfs` include those of its subqueries; `aggregates` are those
    computed over this query's own rows.
    """

    query: ast.Query
    sources: tuple[BoundSource, ...]
    aggregates: tuple[ast.Call, ...]
    output_names: tuple[str, ...]
    parameters: tuple[str, ...]
    udfs: tuple[str, ...]
    subqueries: tuple[tuple[ast.Subquery, BoundQuery], ...]

    @property
    def container(self) -> str | None:
        """The alias that is the item itself, if any."""
        return next((each.alias for each in self.sources if each.yields == "item"), None)

    @property
    def is_grouped(self) -> bool:
        """Whether rows are folded into groups before SELECT; without GROUP BY into exactly one."""
        return bool(self.aggregates or self.query.group_by)

    @property
    def gives_many_rows(self) -> bool:
        """Whether it may give several rows for one row around it."""
        if self.aggregates and not self.query.group_by:
            return False
        return any(
            each.yields == "elements" or (each.query is not None and each.query.gives_many_rows)
            for each in self.sources
        )

    def subquery(self, node: ast.Subquery) -> BoundQuery:
        """The bound form of a subquery that stands in an expression of this query. By identity:
        equal texts may mean different things in different places.
        """
        return next(bound for each, bound in self.subqueries if each is node)
