"""Faults strike: answers that a test asked for, to see what its client makes of them.

Each protocol says which operation it is about to run, by a name of `OPERATIONS`, and on which
container; the first fault that fits raises its error or delays. The list is not looked at while it
is empty. `api/control/faults.py` reads and sets the list.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from armillary.errors import DbError, RangeBusy, RangeGone, Throttled, Unavailable
from armillary.store.catalog.controls import FaultRecord, SharedControls
from armillary.turns import waiting

#: What a fault may name. Everything about databases, containers and settings is `metadata`.
OPERATIONS: Final = (
    "create",
    "query",
    "query_plan",
    "batch",
    "read_feed",
    "change_feed",
    "read",
    "replace",
    "patch",
    "delete",
    "delete_by_key",
    "script",
    "upsert",
    "metadata",
)
GONE: Final[dict[int, type[RangeGone]]] = {1002: RangeGone, 1007: RangeBusy}
WAIT_MS: Final = 100


def strike(
    shared: SharedControls,
    operation: str,
    container: Callable[[], tuple[str, str] | None],
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Raise what the first fault that fits says; go on after a delay. `container` gives database
    and name, and is called only if a fault asks."""
    for fault in shared.faults():
        if not _fits(fault, operation, container) or not shared.take(fault):
            continue
        if fault.effect != "delay":
            raise _error(fault)
        with waiting():
            wait((fault.value or 0) / 1000)


def _fits(
    fault: FaultRecord, operation: str, container: Callable[[], tuple[str, str] | None]
) -> bool:
    if fault.operation is not None and fault.operation != operation:
        return False
    if fault.container is None:
        return True
    found = container()
    return found is not None and fault.container in (found[1], "/".join(found))


def _error(fault: FaultRecord) -> DbError:
    match fault.effect:
        case "429":
            return Throttled(retry_after_ms=WAIT_MS if fault.value is None else fault.value)
        case "410":
            return GONE[fault.value or 1002]()
        case _:
            return Unavailable()
