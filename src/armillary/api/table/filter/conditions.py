"""From a filter to the plan: what index and partition key can use, and what has to be computed.

    PartitionKey eq 'a' and Age gt 30 and not (City eq 'Rome')
        AtPath($pk = "a")    one logical partition
        AtPath(Age > 30)     a range of the index
        Native               the whole filter, decides

A filter of comparisons with constants, joined by `and` and `or`, needs no `Native`: the value model
compares as the filter does. `ne`, `not`, `Timestamp` and comparisons of two properties do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from armillary.api.table.filter.grammar import (
    And,
    Compare,
    Filter,
    Literal,
    Not,
    Or,
    Property,
    Truth,
    parse_filter,
)
from armillary.api.table.filter.predicate import Predicate, predicate
from armillary.encoding.edm import values as edm
from armillary.encoding.edm.values import PARTITION_KEY, ROW_KEY, stored_name
from armillary.query.expr import nodes
from armillary.query.plan.nodes import Plan, SortKey, simple_plan

SIGNS: Final[dict[str, nodes.PathOperator]] = {
    "eq": "=",
    "gt": ">",
    "ge": ">=",
    "lt": "<",
    "le": "<=",
}
#: The seconds of an item's time are below those of the Timestamp by less than one.
MOMENT_SIGNS: Final[dict[str, nodes.PathOperator]] = {
    "eq": "=",
    "gt": ">=",
    "ge": ">=",
    "lt": "<=",
    "le": "<=",
}
_ROOT: Final = nodes.Identifier("c")
KEY_ORDER: Final = (
    SortKey(nodes.Member(_ROOT, PARTITION_KEY)),
    SortKey(nodes.Member(_ROOT, ROW_KEY)),
)


class Question(NamedTuple):
    """A filter, ready to be asked of any table. Kept, so that its plan keeps what it finds out."""

    plan: Plan
    point: tuple[str, str] | None
    """PartitionKey and RowKey, when the filter fixes both."""
    holds: Predicate
    shape: str
    """The filter without its constants, for statistics."""


@lru_cache(maxsize=512)
def question(text: str, *, storage: bool, ordered: bool) -> Question:
    """`ordered`: by PartitionKey and RowKey, as Storage answers. Raises BadInput."""
    order = KEY_ORDER if ordered else ()
    if not text.strip():
        return Question(simple_plan(stored=True, order=order), None, lambda item: True, "")
    node = parse_filter(text)
    holds = predicate(node, storage=storage)
    return Question(
        simple_plan(_where(node, holds), stored=True, order=order),
        _point(node),
        holds,
        shape_of(node),
    )


def with_predicate(plan: Plan, more: Predicate) -> Plan:
    """The same plan for items that also pass `more`, whatever it looks at."""
    terms = (nodes.Native(more, None, "range of the signature"),)
    if plan.where is not None:
        terms = (plan.where, *terms)  # type: ignore[assignment]
    return simple_plan(_joined("AND", terms), stored=True, order=plan.order)


# --- conditions ---------------------------------------------------------------------------------


def _where(node: Filter, holds: Predicate) -> nodes.Expr:
    if _is_plain(node):
        found = _condition(node, hint=False)
        assert found is not None
        return found
    native = nodes.Native(holds, tuple(sorted(_paths(node))), shape_of(node))
    hint = _condition(node, hint=True)
    return native if hint is None else _joined("AND", (hint, native))


def _is_plain(node: Filter) -> bool:
    """Whether the value model answers it alone."""
    match node:
        case And(terms) | Or(terms):
            return all(map(_is_plain, terms))
        case Compare(sign, left, right):
            return sign != "ne" and left.name != "Timestamp" and isinstance(right, Literal)
        case Truth(name):
            return name.name != "Timestamp"
        case Not():
            return False


def _condition(node: Filter, *, hint: bool) -> nodes.Expr | None:
    """What every item that passes fulfils; None: nothing that an index could use."""
    match node:
        case And(terms):
            found = [_condition(one, hint=hint) for one in terms]
            return _joined("AND", [one for one in found if one is not None])
        case Or(terms):
            found = [_condition(one, hint=hint) for one in terms]
            if any(one is None for one in found):
                return None
            return _joined("OR", [one for one in found if one is not None])
        case Truth(name):
            return nodes.AtPath(path_of(name), "=", True, hint)
        case Compare(sign, left, Literal() as right) if sign in SIGNS:
            if left.name == "Timestamp":
                return _moment(sign, right)
            return nodes.AtPath(path_of(left), SIGNS[sign], right.tagged, hint)
    return None


def _moment(sign: str, literal: Literal) -> nodes.Expr | None:
    kind, text = literal.value
    if kind != edm.DATETIME:
        return None
    second = (int(text) - edm.UNIX_TICKS) // edm.TICKS_PER_SECOND
    return nodes.AtPath(("_ts",), MOMENT_SIGNS[sign], second, hint=True)


def _joined(operator: nodes.LogicalOperator, terms: Iterable[nodes.Expr]) -> nodes.Expr:
    found = tuple(terms)
    return found[0] if len(found) == 1 else nodes.Logical(operator, found)


def path_of(name: Property) -> tuple[str, ...]:
    known = {"PartitionKey": PARTITION_KEY, "RowKey": ROW_KEY, "Timestamp": "_etag"}
    return (known.get(name.name) or stored_name(name.name),)


def _paths(node: Filter) -> set[tuple[str, ...]]:
    return {path_of(name) for name in _properties(node)}


def _properties(node: Filter) -> Iterator[Property]:
    match node:
        case And(terms) | Or(terms):
            for one in terms:
                yield from _properties(one)
        case Not(term):
            yield from _properties(term)
        case Truth(name):
            yield name
        case Compare(_, left, right):
            yield left
            if isinstance(right, Property):
                yield right


def _point(node: Filter) -> tuple[str, str] | None:
    found: dict[str, str] = {}
    for one in node.terms if isinstance(node, And) else (node,):
        if (
            isinstance(one, Compare)
            and one.operator == "eq"
            and one.left.name in ("PartitionKey", "RowKey")
            and isinstance(one.right, Literal)
            and one.right.value[0] == edm.STRING
        ):
            found.setdefault(one.left.name, one.right.value[1])
    return (found["PartitionKey"], found["RowKey"]) if len(found) == 2 else None


# --- for people ---------------------------------------------------------------------------------


def shape_of(node: Filter) -> str:
    """The filter with `?` for its constants."""
    match node:
        case And(terms):
            return " and ".join(_inner_shape(one) for one in terms)
        case Or(terms):
            return " or ".join(_inner_shape(one) for one in terms)
        case Not(term):
            return f"not {_inner_shape(term)}"
        case Truth(name):
            return name.name
        case Compare(sign, left, right):
            return f"{left.name} {sign} {right.name if isinstance(right, Property) else '?'}"


def _inner_shape(node: Filter) -> str:
    text = shape_of(node)
    return f"({text})" if isinstance(node, And | Or) else text
