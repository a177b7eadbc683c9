"""A line in the log for every request, whatever protocol it came by; only when `log.requests` asks
for it (`Gateway.logs_requests`). The names of the facts are those of the original's log table
`CDBDataPlaneRequests`."""

from __future__ import annotations

import logging
from typing import TypeAlias

log = logging.getLogger("armillary.requests")

Facts: TypeAlias = dict[str, str | int | float]


def log_request(facts: Facts) -> None:
    """At least `Method`, `Path`, `StatusCode` and `DurationMs`; a protocol that has other words
    puts its own there: `find`, `shop.orders`, an error code."""
    shown = f"{facts['Method']} {facts['Path']} {facts['StatusCode']}"
    log.info("%s in %s ms", shown, facts["DurationMs"], extra={"facts": facts})
