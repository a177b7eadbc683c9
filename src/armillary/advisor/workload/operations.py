"""One operation at one moment: what traces hold, and what workloads are played out as."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from armillary.advisor.workload.model import Operation, OperationKind
from armillary.encoding.paths import Path
from armillary.values import JSON


@dataclass(frozen=True, slots=True)
class TimedOperation:
    """`fields` are the values known to the caller, by path: the whole item of a create, the key
    fields of a read, what the filter of a query fixes."""

    ts_ms: float
    """Milliseconds since 1970, or since the beginning of what was made up."""
    kind: OperationKind
    fields: Mapping[Path, JSON] = field(default_factory=dict)
    id: str | None = None
    body_bytes: int = 0
    """Of the item; of a query, of one result."""
    charge_ru: float | None = None
    """As it was measured; None to have it computed."""
    template: Operation | None = None
    """The line of the workload, or the query template, that this is an instance of."""
    results: int = 1
    """Of a query."""
    items: tuple[Mapping[Path, JSON], ...] = ()
    """Of a batch: the fields of each of its items."""
