"""Requests, seen from outside: one line in the log each, and one span of a trace. Only when asked
for; otherwise the service stands alone and nothing is measured.

The names of the line are those of the original's log table `CDBDataPlaneRequests`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias

from armillary.api.http.messages import Request, Response, Service

log = logging.getLogger("armillary.requests")

#: Begins the span of a request, and is given its response at the end.
Facts: TypeAlias = dict[str, str | int | float]
Tracer: TypeAlias = Callable[[Request], AbstractContextManager[Callable[[Facts], None]]]

HEADERS: Final = {
    "ActivityId": "x-ms-activity-id",
    "PartitionId": "x-ms-documentdb-partitionkeyrangeid",
}


PARTITION_KEY: Final = "x-ms-documentdb-partitionkey"
#: What the headers of a POST make of it; the first that is true.
POSTS: Final = (
    ("x-ms-cosmos-is-query-plan-request", "QueryPlan"),
    ("x-ms-documentdb-isquery", "Query"),
    ("x-ms-cosmos-is-batch-request", "Batch"),
    ("x-ms-documentdb-is-upsert", "Upsert"),
)
#: Of one item.
METHODS: Final = {"GET": "Read", "PUT": "Replace", "PATCH": "Patch", "DELETE": "Delete"}


class Observed:
    """A service that is watched."""

    def __init__(
        self,
        service: Service,
        *,
        logged: bool,
        tracer: Tracer | None = None,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._service = service
        self._logged = logged
        self._tracer = tracer
        self._stopwatch = stopwatch

    def is_quick(self, request: Request) -> bool:
        return self._service.is_quick(request)

    def handle(self, request: Request) -> Response:
        if self._tracer is None:
            return self._timed(request)[0]
        with self._tracer(request) as end:
            response, facts = self._timed(request)
            end(facts)
            return response

    def close(self) -> None:
        close: Any = getattr(self._service, "close", None)
        if close is not None:
            close()

    def _timed(self, request: Request) -> tuple[Response, Facts]:
        began = self._stopwatch()
        response = self._service.handle(request)
        facts = facts_of(request, response, (self._stopwatch() - began) * 1000.0)
        if self._logged:
            shown = f"{facts['Method']} {facts['Path']} {response.status}"
            log.info("%s in %s ms", shown, facts["DurationMs"], extra={"facts": facts})
        return response, facts


def facts_of(request: Request, response: Response, duration_ms: float) -> Facts:
    facts: Facts = {
        "Method": request.method,
        "Path": request.target.partition("?")[0],
        "StatusCode": response.status,
        "DurationMs": round(duration_ms, 3),
        "RequestLength": len(request.body),
        "ResponseLength": len(response.body),
        "UserAgent": request.headers.get("user-agent", ""),
    }
    operation = operation_name(request)
    if operation is not None:
        facts["OperationName"] = operation
    if PARTITION_KEY in request.headers:
        facts["PartitionKey"] = request.headers[PARTITION_KEY]
    charge = response.headers.get("x-ms-request-charge")
    if charge is not None:
        facts["RequestCharge"] = float(charge)
    for name, header in HEADERS.items():
        if header in response.headers:
            facts[name] = response.headers[header]
    return facts


def operation_name(request: Request) -> str | None:
    """As the original's logs call it; None for what is not about items."""
    parts = request.target.partition("?")[0].strip("/").split("/")
    if len(parts) not in (5, 6) or parts[4] != "docs":
        return None
    if request.method == "POST":
        headers = request.headers
        return next((name for header, name in POSTS if _is_true(headers.get(header))), "Create")
    return METHODS.get(request.method) if len(parts) == 6 else "ReadFeed"


def _is_true(text: str | None) -> bool:
    return text is not None and text.lower() == "true"
