"""What to do, in terms that no query language owns: the steps from items to result rows.

    base ──▶ sources ──▶ where ──▶ order ──▶ fold ──▶ output ──▶ distinct ──▶ offset, limit
    items    combina-    only      keys      groups,  one        equal        a slice
             tions       true                states   value      rows once

A plan is a pipeline rather than a free tree: every front end has these steps in this order, each
may be missing, and `explain.py` prints what is there as a tree. Expressions are the nodes of
`sql/ast.py`, which are about values and not about text. `simple_plan` is what a front end needs
that asks for items of one container by a filter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from armillary.partition.ranges import EPK_MAX, EPK_MIN
from armillary.query.expr import nodes
from armillary.query.expr.evaluate import Computed
from armillary.query.expr.queries import BoundQuery, BoundSource
from armillary.store.items.requests import Key

T = TypeVar("T")


class Piece(msgspec.Struct, frozen=True):
    """A part of the hash space to be read; of one logical partition when `key` is given."""

    start: bytes = EPK_MIN
    end: bytes = EPK_MAX
    key: Key | None = None


@dataclass(frozen=True, slots=True)
class SortKey:
    expr: nodes.Expr
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Rank:
    """Best first by a score that needs to know all rows: full text, vectors, or both fused."""

    score: nodes.Call


@dataclass(frozen=True, slots=True)
class Fold:
    """Rows become groups. No keys: exactly one group, even of nothing."""

    keys: tuple[nodes.Expr, ...]
    aggregates: tuple[nodes.Call, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """`bound` knows the names and inner queries of the expressions. `base` is a plan whose rows
    take the place of items: it has to be finished before the first of our rows exists.
    """

    bound: BoundQuery
    output: nodes.Expr
    where: nodes.Expr | None = None
    order: tuple[SortKey, ...] = ()
    rank: Rank | None = None
    fold: Fold | None = None
    distinct: bool = False
    offset: int = 0
    limit: int | None = None
    base: Plan | None = None
    computed: Mapping[str, Computed] = field(default_factory=dict)
    """Properties of items that are expressions."""
    known: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """What has been found out about this plan and holds for every run of it; see `fact`. A plan
    made by `replace` begins with nothing."""

    @property
    def sources(self) -> tuple[BoundSource, ...]:
        return self.bound.sources

    @property
    def reads_items(self) -> bool:
        return self.base is None and bool(self.bound.sources)

    @property
    def blocks(self) -> bool:
        """Whether its rows are known only when all of its input has been seen."""
        return self.fold is not None or self.distinct


def fact(plan: Plan, name: str, find: Callable[[Plan], T]) -> T:
    """What `find` says of the plan, found once: plans of repeated queries are kept, and looking
    through their expressions takes longer than a short answer. Two threads may both find it.
    """
    if name not in plan.known:
        plan.known[name] = find(plan)
    found: T = plan.known[name]
    return found


def conjuncts(where: nodes.Expr | None) -> Iterator[nodes.Expr]:
    """`a AND (b AND c)` → a, b, c."""
    if isinstance(where, nodes.Logical) and where.operator == "AND":
        for term in where.terms:
            yield from conjuncts(term)
    elif where is not None:
        yield where


def simple_plan(
    where: nodes.Expr | None = None,
    output: nodes.Expr | None = None,
    *,
    name: str = "c",
    stored: bool = False,
    order: tuple[SortKey, ...] = (),
    offset: int = 0,
    limit: int | None = None,
) -> Plan:
    """Items of the container, which expressions call `name`, that pass a filter.

    `where` may have conditions for the index (`AtPath`, or any other expression) and what the front
    end decides in its own way (`Native`) as terms of one AND. `stored`: rows are `StoredRow`s, the
    items as they lie in the store. `pages.run_plan` runs it.
    """
    root = nodes.Identifier(name)
    made = nodes.StoredItem() if stored else output or root
    source = BoundSource(root, root, name, "item", None)
    seen = nodes.ArrayLiteral((made, *([] if where is None else [where])))
    bound = BoundQuery(seen, made, where, (), False, (source,), (), (), (), (), ())
    return Plan(bound, made, where, order, offset=offset, limit=limit)
