"""What a SQL text says, as data: the nodes of clauses, around the expressions of `expr/nodes.py`.

    SELECT TOP 2 c.id, UPPER(c.name) AS n FROM c JOIN t IN c.tags WHERE c.age > @a ORDER BY c.id
    └ Query ─ SelectList(SelectItem…) ─ From(Source, Source) ─ Binary(">") ─ OrderBy(OrderItem…)

The expression nodes are exported here as well: to the parser and the binder it is one grammar.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from armillary.query.expr.nodes import (
    ArrayLiteral,
    Between,
    Binary,
    BinaryOperator,
    Call,
    Conditional,
    Constant,
    Expr,
    Identifier,
    In,
    Index,
    Let,
    Like,
    Literal,
    Logical,
    LogicalOperator,
    Member,
    Node,
    ObjectLiteral,
    Parameter,
    Property,
    Subquery,
    SubqueryKind,
    UdfCall,
    Unary,
    UnaryOperator,
    WholeItem,
    children,
    function_key,
    path_root,
    property_path,
    walk,
)

__all__ = [
    "Alias",
    "ArrayLiteral",
    "Between",
    "Binary",
    "BinaryOperator",
    "Call",
    "Conditional",
    "Constant",
    "Expr",
    "From",
    "Identifier",
    "In",
    "Index",
    "Let",
    "Like",
    "Literal",
    "Logical",
    "LogicalOperator",
    "Member",
    "Node",
    "ObjectLiteral",
    "OffsetLimit",
    "OrderBy",
    "OrderByRank",
    "OrderItem",
    "Parameter",
    "Property",
    "Query",
    "SelectItem",
    "SelectList",
    "SelectStar",
    "SelectValue",
    "Selection",
    "Source",
    "Subquery",
    "SubqueryKind",
    "Top",
    "UdfCall",
    "Unary",
    "UnaryOperator",
    "WholeItem",
    "children",
    "function_key",
    "path_root",
    "property_path",
    "walk",
]

# --- clauses ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SelectStar(WholeItem):
    pass


@dataclass(frozen=True, slots=True)
class SelectValue(Node):
    expr: Expr


@dataclass(frozen=True, slots=True)
class SelectItem(Node):
    """`alias` is None when none was written; the binder derives the output name."""

    expr: Expr
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class SelectList(Node):
    items: tuple[SelectItem, ...]


Selection: TypeAlias = SelectStar | SelectValue | SelectList


@dataclass(frozen=True, slots=True)
class Top(Node):
    count: Literal | Parameter


@dataclass(frozen=True, slots=True)
class Alias(Node):
    """A name given to a source, with its own position."""

    name: str


@dataclass(frozen=True, slots=True)
class Source(Node):
    """`collection [AS alias]`, or `alias IN collection` when `iterates`. A collection is a path
    (Identifier under Members and Indexes with a number) or a Subquery.
    """

    collection: Identifier | Member | Index | Subquery
    alias: Alias | None = None
    iterates: bool = False


@dataclass(frozen=True, slots=True)
class From(Node):
    """The first source, then each JOIN."""

    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class OrderItem(Node):
    expr: Expr
    descending: bool = False
    has_direction: bool = field(default=False, compare=False, repr=False)
    """Whether one was written."""


@dataclass(frozen=True, slots=True)
class OrderBy(Node):
    items: tuple[OrderItem, ...]


@dataclass(frozen=True, slots=True)
class OrderByRank(Node):
    """`ORDER BY RANK score`; best first. `descending` is None when no direction was written."""

    score: Call | UdfCall
    descending: bool | None = None


@dataclass(frozen=True, slots=True)
class OffsetLimit(Node):
    offset: Literal | Parameter
    limit: Literal | Parameter


@dataclass(frozen=True, slots=True)
class Query(Node):
    """One SELECT. Only `select` is always there."""

    select: Selection
    source: From | None = None
    where: Expr | None = None
    group_by: tuple[Expr, ...] = ()
    order_by: OrderBy | OrderByRank | None = None
    page: OffsetLimit | None = None
    distinct: bool = False
    top: Top | None = None
