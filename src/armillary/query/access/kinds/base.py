"""What a kind of index says of itself to queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from armillary.query.access.lookups import (
    Access,
    JointLookup,
    Lookup,
    OrderIndex,
    Places,
    Unplaced,
)
from armillary.query.expr import nodes
from armillary.query.expr.evaluate import Scope
from armillary.store.index.kinds.base import OtherIndex
from armillary.store.index.paths import Path
from armillary.store.index.plan import IndexPlan
from armillary.values import JSON

if TYPE_CHECKING:
    from armillary.query.run.items import StoreView


class Reading(Protocol):
    """A filter being read."""

    @property
    def scope(self) -> Scope: ...

    def constants(self, exprs: Sequence[nodes.Expr]) -> list[JSON] | None:
        """Their values; None if one of them is no constant."""
        ...

    def either(self, parts: Sequence[Access | None]) -> Access | None: ...


class Measure(Protocol):
    """An aggregate that an index can answer by itself."""

    @property
    def path(self) -> Path: ...

    @property
    def is_total(self) -> bool:
        """It is a sum, not a count."""
        ...

    def measured(self, view: StoreView) -> tuple[int, int] | None:
        """(the number, of how many items it is the sum); None: the index can't tell."""
        ...


Columns: TypeAlias = tuple[tuple[Path, bool], ...]
"""Paths of an index of several, and whether each is descending."""
CallReader: TypeAlias = Callable[[Reading, nodes.Call, Places], Access | None]
ComparisonReader: TypeAlias = Callable[[Reading, nodes.Call, JSON, Places], Access | None]
Order: TypeAlias = Callable[
    ["StoreView", list[Path], tuple[bool, ...], Mapping[Path, Lookup]], OrderIndex | None
]


@dataclass(frozen=True, slots=True)
class AccessKind:
    prefix: bytes
    """Of its rows."""
    calls: Mapping[str, CallReader] = field(default_factory=dict)
    """By the function of a call that is a filter."""
    below: Mapping[str, ComparisonReader] = field(default_factory=dict)
    """By the function of a call that a filter wants to be below a constant, which is given."""
    lookup: Callable[[Unplaced, OtherIndex], Lookup | None] | None = None
    """What an `Unplaced` asks of this index."""
    measure: Callable[[nodes.Call, str, Scope], Measure | None] | None = None
    """An aggregate, given the name of the item."""
    first_rows: Callable[..., list[Any] | None] | None = None
    """The first rows of a query in its order, as `vector.nearest` has them."""
    joint: Callable[[IndexPlan, Mapping[Path, Lookup]], list[JointLookup]] | None = None
    """What lookups of several paths ask for, of one index each."""
    order: Order | None = None
    """An index of the sort keys, in their directions or all the opposite ones, given the lookups of
    the filter."""
    has_order: Callable[[IndexPlan, list[Path], tuple[bool, ...]], bool] | None = None
    """Whether there is one, whatever the filter."""
    has_columns: Callable[[IndexPlan, Columns], bool] | None = None
    """Whether there is an index of these, whatever it serves."""
