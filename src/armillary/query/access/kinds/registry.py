"""The kinds of index besides ranges and composites, and what queries ask of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from armillary.query.access.coverage import other_index
from armillary.query.access.kinds import full_text, spatial, vector
from armillary.query.access.kinds.base import AccessKind, Measure
from armillary.query.access.lookups import Lookup, Unplaced
from armillary.query.expr import nodes
from armillary.query.expr.evaluate import Scope

if TYPE_CHECKING:
    from armillary.query.run.items import StoreView

KINDS: Final[tuple[AccessKind, ...]] = (spatial.KIND, full_text.KIND, vector.KIND)
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
