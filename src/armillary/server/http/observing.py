"""Requests, seen from outside: one line in the log each, and one span of a trace. Only when asked
for; otherwise the service stands alone and nothing is measured.

What the line says is in `api/core/request_log.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Final, TypeAlias

from armillary.api.core.request_log import Facts, log_request
from armillary.api.http.messages import Begun, Request, Response, Service

#: Begins the span of a request, and is given its response at the end.
Tracer: TypeAlias = Callable[[Request], AbstractContextManager[Callable[[Facts], None]]]

HEADERS: Final = {
    "ActivityId": "x-ms-activity-id",
    "PartitionId": "x-ms-documentdb-partitionkeyrangeid",
}
PARTITION_KEY: Final = "x-ms-documentdb-partitionkey"


class Observer:
    """Watches what a port answers. Fast paths stay on for the log: what went from bytes to bytes is
    read again for its line. A span needs the whole call inside it, so a tracer switches them off
    (`keeps_fast_paths`), which the server says when it starts."""

    def __init__(
        self,
        *,
        logged: bool,
        tracer: Tracer | None = None,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._logged = logged
        self._tracer = tracer
        self.stopwatch = stopwatch

    @property
    def keeps_fast_paths(self) -> bool:
        return self._tracer is None

    def handle(self, service: Service, request: Request) -> Response:
        if self._tracer is None:
            return self._timed(service, request)[0]
        with self._tracer(request) as end:
            response, facts = self._timed(service, request)
            end(facts)
            return response

    def begin(self, service: Service, request: Request) -> Begun | Response | None:
        if self._tracer is not None:
            return None
        began = self.stopwatch()
        begun = service.begin(request)
        if isinstance(begun, Begun):
            return Begun(begun.future, partial(self._finish, service, request, begun, began))
        if begun is not None:
            self._note(service, request, begun, began)
        return begun

    def note_bytes(self, service: Service, data: bytes, answer: bytes, began: float) -> None:
        """A request that was answered from bytes to bytes."""
        (method, target, _), headers, body = _taken_apart(data)
        (_, status, _), answered, answer_body = _taken_apart(answer)
        names = {name.lower(): text for name, text in answered.items()}
        request = Request(method, target, {k.lower(): v for k, v in headers.items()}, body)
        self._note(service, request, Response(int(status), names, answer_body), began)

    def _finish(
        self, service: Service, request: Request, begun: Begun, began: float
    ) -> Response | None:
        response = begun.finish()
        if response is not None:
            self._note(service, request, response, began)
        return response

    def _timed(self, service: Service, request: Request) -> tuple[Response, Facts]:
        began = self.stopwatch()
        response = service.handle(request)
        return response, self._note(service, request, response, began)

    def _note(self, service: Service, request: Request, response: Response, began: float) -> Facts:
        facts = facts_of(request, response, (self.stopwatch() - began) * 1000.0)
        operation = service.operation_name(request)
        if operation is not None:
            facts["OperationName"] = operation
        if self._logged:
            log_request(facts)
        return facts


def _taken_apart(data: bytes) -> tuple[list[str], dict[str, str], bytes]:
    """The three words of the first line, the headers, the body."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return first.split(" ", 2), {name: text for name, _, text in pairs}, body


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
    if PARTITION_KEY in request.headers:
        facts["PartitionKey"] = request.headers[PARTITION_KEY]
    charge = response.headers.get("x-ms-request-charge")
    if charge is not None:
        facts["RequestCharge"] = float(charge)
    for name, header in HEADERS.items():
        if header in response.headers:
            facts[name] = response.headers[header]
    return facts
