"""The kinds of index besides ranges, and what queries ask of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from armillary.query.access.coverage import other_index
from armillary.query.access.kinds import composite, full_text, spatial, vector
from armillary.query.access.kinds.base import AccessKind, Columns, Measure
from armillary.query.access.lookups import JointLookup, Lookup, OrderIndex, Unplaced
from armillary.query.expr import nodes
from armillary.query.expr.evaluate import Scope
from armillary.store.index.paths import Path
from armillary.store.index.plan import IndexPlan

if TYPE_CHECKING:
    from armillary.query.run.items import StoreView

KINDS: Final[tuple[AccessKind, ...]] = (
    composite.KIND,
    spatial.KIND,
    full_text.KIND,
    vector.KIND,
)
CALLS: Final = {name: reader for kind in KINDS for name, reader in kind.calls.items()}
BELOW: Final = {name: reader for kind in KINDS for name, reader in kind.below.items()}
_BY_PREFIX: Final = {kind.prefix: kind for kind in KINDS}


def placed(view: StoreView, access: Unplaced) -> Lookup | None:
    """The ranges it means, if there is such an index."""
    index, make = other_index(view, access.kind, access.path), _BY_PREFIX[access.kind].lookup
    return None if index is None or make is None else make(access, index)


def measure_of(call: nodes.Call, alias: str, scope: Scope) -> Measure | None:
    makers = (kind.measure for kind in KINDS if kind.measure is not None)
    found = (make(call, alias, scope) for make in makers)
    return next((one for one in found if one is not None), None)


def first_rows(*asked: Any, rows_of: Callable[..., Any]) -> list[Any] | None:
    """From the index of one of them; None when none can say."""
    readers = (kind.first_rows for kind in KINDS if kind.first_rows is not None)
    found = (read(*asked, rows_of=rows_of) for read in readers)
    return next((rows for rows in found if rows is not None), None)


def joint_lookups(index: IndexPlan, lookups: Mapping[Path, Lookup]) -> list[JointLookup]:
    makers = (kind.joint for kind in KINDS if kind.joint is not None)
    return [one for make in makers for one in make(index, lookups)]


def order_index(
    view: StoreView,
    paths: list[Path],
    descending: tuple[bool, ...],
    lookups: Mapping[Path, Lookup],
) -> OrderIndex | None:
    finders = (kind.order for kind in KINDS if kind.order is not None)
    found = (find(view, paths, descending, lookups) for find in finders)
    return next((one for one in found if one is not None), None)


def has_order(index: IndexPlan, paths: list[Path], descending: tuple[bool, ...]) -> bool:
    known = (kind.has_order for kind in KINDS if kind.has_order is not None)
    return any(has(index, paths, descending) for has in known)


def has_columns(index: IndexPlan, columns: Columns) -> bool:
    known = (kind.has_columns for kind in KINDS if kind.has_columns is not None)
    return any(has(index, columns) for has in known)
