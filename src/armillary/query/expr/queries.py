"""A query over values with every name resolved: what a plan and inner queries are made from.

A front end makes these; nothing below looks at its syntax. `syntax` is kept for the front end, and
so that the paths which a query can see are found by one walk over its nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from armillary.query.expr import nodes

#: What one row of a source is: a whole item of the container, the value at a path, each element of
#: an array, each row of a subquery.
Yields: TypeAlias = Literal["item", "path", "elements", "rows"]


@dataclass(frozen=True, slots=True)
class BoundSource:
    """`root` is the alias that the path starts from, None when that is the container itself (or
    when the source is a subquery). `query` is the subquery, bound.
    """

    syntax: nodes.Node
    collection: nodes.Expr
    """A path, or a subquery when `query` is given."""
    alias: str | None
    yields: Yields
    root: str | None
    query: BoundQuery | None = None

    @property
    def item_name(self) -> str | None:
        """The name that it gives to the item itself, if that is all it does."""
        is_container = self.yields == "item" and self.root is None and self.query is None
        return (
            self.alias if is_container and isinstance(self.collection, nodes.Identifier) else None
        )


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """`parameters` and `udfs` include those of its subqueries; `aggregates` are those computed over
    this query's own rows.
    """

    syntax: nodes.Node
    output: nodes.Expr
    where: nodes.Expr | None
    group_by: tuple[nodes.Expr, ...]
    distinct: bool
    sources: tuple[BoundSource, ...]
    aggregates: tuple[nodes.Call, ...]
    output_names: tuple[str, ...]
    parameters: tuple[str, ...]
    udfs: tuple[str, ...]
    subqueries: tuple[tuple[nodes.Subquery, BoundQuery], ...]

    @property
    def container(self) -> str | None:
        """The alias that is the item itself, if any."""
        return next((each.alias for each in self.sources if each.yields == "item"), None)

    @property
    def is_grouped(self) -> bool:
        """Whether rows are folded into groups before SELECT; without GROUP BY into exactly one."""
        return bool(self.aggregates or self.group_by)

    @property
    def gives_many_rows(self) -> bool:
        """Whether it may give several rows for one row around it."""
        if self.aggregates and not self.group_by:
            return False
        return any(
            each.yields == "elements" or (each.query is not None and each.query.gives_many_rows)
            for each in self.sources
        )

    def subquery(self, node: nodes.Subquery) -> BoundQuery:
        """The bound form of a subquery that stands in an expression of this query. By identity:
        equal texts may mean different things in different places.
        """
        return next(bound for each, bound in self.subqueries if each is node)
