"""Expressions over values: frozen nodes, free of any query language and of evaluation.

    c.age > @a AND ARRAY_CONTAINS(c.tags, "x")
    └ Logical("AND", (Binary(">", Member(Identifier("c"), "age"), Parameter("@a")), Call(…)))

SQL is parsed into them (`sql/ast.py` adds the nodes of its clauses), filters of other protocols are
translated into them. `Native` is what a protocol computes in its own way, `AtPath` a comparison in
terms of indexed paths.

Nodes compare by what they mean, not by where or how they were written: positions, the case of a
function name and `c["a"]` against `c.a` do not count, so "is this output the group key" is `==`.
Positions (`start`, `end`) are character offsets, 0-based and half-open, -1 on nodes that were not
parsed. Parentheses leave no node.

Terms of AND and OR are one flat tuple, because machine-made filters have thousands of them and a
tree of that height could not be walked. The parser bounds the height of everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Literal as OneOf
from typing import TypeAlias

from armillary.store.index.paths import Path
from armillary.values import JSON, Undefined

Constant: TypeAlias = bool | int | float | str | Undefined | None
UnaryOperator: TypeAlias = OneOf["-", "+", "~", "NOT"]
BinaryOperator: TypeAlias = OneOf[
    "*", "/", "%",
    "+", "-", "&", "|", "^",
    "||",
    "=", "!=", "<", ">", "<=", ">=", "<<", ">>", ">>>",
    "??",
]  # fmt: skip
LogicalOperator: TypeAlias = OneOf["AND", "OR"]
PathOperator: TypeAlias = OneOf["=", "<", ">", "<=", ">=", "defined"]
SubqueryKind: TypeAlias = OneOf["SCALAR", "EXISTS", "ARRAY", "ALL", "FIRST", "LAST"]


def function_key(name: str) -> str:
    """One spelling for every way to write a built-in: `array_length` and `ArrayLength` are both
    `ARRAYLENGTH`. A leading underscore stays: `_FullTextScore` is not `FullTextScore`.
    """
    bare = name.lstrip("_")
    return name[: len(name) - len(bare)] + bare.replace("_", "").upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    start: int = field(default=-1, compare=False, repr=False)
    end: int = field(default=-1, compare=False, repr=False)


# --- expressions --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Node):
    """null, true, false, undefined, a number or a string. `1`, `1.0` and `true` are three
    different literals, and NaN is itself, so equality is not Python's.
    """

    value: Constant

    def _key(self) -> tuple[type, Constant]:
        value = self.value
        if isinstance(value, float) and math.isnan(value):
            return float, "NaN"
        return type(value), value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """`name` includes the `@`. The printer writes it as it is, so a rewriter can also put a
    placeholder such as `{documentdb-formattableorderbyquery-filter}` here.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Identifier(Node):
    """The root of a path: an alias of FROM, or a name bound by LET."""

    name: str


@dataclass(frozen=True, slots=True)
class Member(Node):
    """`base.name`, or `base["name"]` when `bracketed` (how it was written, not what it means)."""

    base: Expr
    name: str
    bracketed: bool = field(default=False, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Index(Node):
    """`base[index]`, where index is anything but a string literal."""

    base: Expr
    index: Expr


@dataclass(frozen=True, slots=True)
class ArrayLiteral(Node):
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Property(Node):
    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class ObjectLiteral(Node):
    members: tuple[Property, ...]


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A built-in function or an aggregate. `name` is as written, `function` is its key in tables;
    the name alone lies at `start`..`name_end`.
    """

    name: str = field(compare=False)
    args: tuple[Expr, ...]
    name_end: int = field(default=-1, compare=False, repr=False, kw_only=True)
    function: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "function", function_key(self.name))


@dataclass(frozen=True, slots=True)
class UdfCall(Node):
    """`udf.name(args)`; the name is case-sensitive."""

    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Unary(Node):
    operator: UnaryOperator
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """`<>` is stored as `!=`."""

    operator: BinaryOperator
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Logical(Node):
    """Two or more terms, flat."""

    operator: LogicalOperator
    terms: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Between(Node):
    operand: Expr
    low: Expr
    high: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class In(Node):
    operand: Expr
    items: tuple[Expr, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(Node):
    operand: Expr
    pattern: Expr
    escape: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Conditional(Node):
    """`test ? then : otherwise`."""

    test: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, slots=True)
class Let(Node):
    """`(LET name = value IN body)`."""

    name: str
    value: Expr
    body: Expr


@dataclass(frozen=True, slots=True)
class Subquery(Node):
    """A query over the values in scope, in the syntax of its front end; `queries.py` has what it
    means. As a source of rows it is SCALAR.
    """

    kind: SubqueryKind
    query: Node


@dataclass(frozen=True, slots=True)
class WholeItem(Node):
    """Anything that shows all of an item without naming it, such as `*`."""


@dataclass(frozen=True, slots=True, eq=False)
class Native(Node):
    """What a front end computes of an item in its own way: a condition as a conjunct of the filter
    (only True passes), or a sort key. No index helps with it, so it goes along with conditions that
    find at least the items it passes.
    """

    compute: Callable[[JSON], JSON]
    """Of the decoded item. Must not change it."""
    needs: tuple[tuple[str, ...], ...] | None = None
    """The paths it looks at; None: the whole item."""
    label: str = "native"
    """In `explain`."""
    root: str = field(default="c", kw_only=True)
    path: tuple[str, ...] = field(default=(), kw_only=True)
    """Of a sort key: where no item has an array at this path, the value found there; then an index
    of it may give the order."""
    among: tuple[str, ...] = field(default=(), kw_only=True)
    """Of a sort key: a path that every item has which the filter passes; items without it need not
    be in the index that gives the order."""


@dataclass(frozen=True, slots=True)
class StoredItem(Node):
    """As an output: the item as it lies in the store, bytes and header, not decoded."""


@dataclass(frozen=True, slots=True, eq=False)
class AtPath(Node):
    """Some value at an indexed path compares so with a constant: ("tags", ARRAY), "=", "x" is any
    element of `tags`. `defined` has no value.

    `hint`: another conjunct says as much or more, so this one is for index and partition only and
    is not evaluated.
    """

    path: Path
    operator: PathOperator
    value: JSON = None
    hint: bool = False
    root: str = field(default="c", kw_only=True)


Expr: TypeAlias = (
    Literal
    | Parameter
    | Identifier
    | Member
    | Index
    | ArrayLiteral
    | ObjectLiteral
    | Call
    | UdfCall
    | Unary
    | Binary
    | Logical
    | Between
    | In
    | Like
    | Conditional
    | Let
    | Subquery
    | Native
    | AtPath
    | StoredItem
)


#: What may be another value for another row, or needs a row to be computed at all.
VARYING: TypeAlias = Identifier | Subquery | UdfCall | Let | Native | AtPath | StoredItem

_PLAIN = frozenset({"start", "end", "name_end", "function", "name", "kind", "operator"})
_LEAVES = frozenset({"Native", "AtPath"})
_child_fields: dict[type, tuple[str, ...]] = {}


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below, in the order of the fields."""
    names = _child_fields.get(type(node))
    if names is None:
        names = tuple(each.name for each in fields(node) if each.name not in _PLAIN)
        if type(node).__name__ in _LEAVES:
            names = ()
        _child_fields[type(node)] = names
    for name in names:
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from value


def walk(node: Node) -> Iterator[Node]:
    """Every node, parents first; into subqueries too. Needs no recursion, so height is no
    danger.
    """
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(list(children(node))))


def path_root(expr: Expr) -> Identifier | None:
    """The identifier under a path of members and indexes; None when it is no such path."""
    while isinstance(expr, Member | Index):
        expr = expr.base
    return expr if isinstance(expr, Identifier) else None


def property_path(expr: Expr) -> tuple[str, ...] | None:
    """`c.a["b"]` → c, a, b: a name and the properties below it; None when it is no such path."""
    names: list[str] = []
    while isinstance(expr, Member):
        names.append(expr.name)
        expr = expr.base
    return (expr.name, *reversed(names)) if isinstance(expr, Identifier) else None
