"""The NoSQL API of one worker: a request in, a response out, never an exception.

    1  path        what it names, and its shape
    2  preflight   a browser asks whether it may (only if origins are configured)
    3  who         the signature, or a token
    4  route       shape, method and headers → a row of the table
    5  may they    key, read-only key, permission
    6  handler     translation to the store
    7  refusal     an error of ours becomes status, sub-status and a body; anything else is a bug

`make_service` is what a server calls, once per worker process. The controls of a server
(`api/control`) are another service on the same port.
"""

from __future__ import annotations

import logging
from typing import Final

import orjson

from armillary.api.core.fast import BODY_BYTES_MAX
from armillary.api.core.faults import strike
from armillary.api.core.gateway import Gateway
from armillary.api.core.paths import Path, parse_path, parse_path_twice
from armillary.api.core.principals import FULL, authenticate
from armillary.api.errors import INTERNAL, wire
from armillary.api.http.cors import cors_headers, preflight_headers
from armillary.api.http.messages import Begun, Request, Response, Service
from armillary.api.nosql.authorization import authorize
from armillary.api.nosql.call import Call, refusal, reply, with_headers
from armillary.api.nosql.fast import Creates, Patches, PointReads, Queries
from armillary.api.nosql.operation_names import container_named, logged_name, operation_name
from armillary.api.nosql.options import QUERY, Options
from armillary.api.nosql.routes import Route, find_route
from armillary.api.nosql.scripts import has_triggers
from armillary.clock import MayNotWait
from armillary.config import Settings
from armillary.errors import BadInput, DbError, UnknownMethod
from armillary.partition.request_units import metadata_ru
from armillary.store.catalog.controls import FAULTS

log = logging.getLogger("armillary.api")

QUERY_TYPE: Final = "application/query+json"
KEY_DELETE: Final = "/operations/partitionkeydelete"
LANE_SEGMENTS: Final = 4  # /dbs/a/colls/b
POINT_READ_SEGMENTS: Final = 6
NOWHERE: Final = Path((), ())
WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class NosqlService(Service):
    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self._faults = gateway.shared.cells  # HOT: looked at by every request; 0: there are none
        settings = gateway.settings
        self._parse_path = parse_path_twice if settings.reads_ids_twice else parse_path
        if (settings.quick_reads or settings.loop_reads) and not settings.cors_origins:
            call_of = lambda request: self._routed(self._bare(request))[0]  # noqa: E731
            kinds = (PointReads, Queries, Creates, Patches)
            self._fast_paths = tuple(kind(gateway, call_of) for kind in kinds)

    @property
    def says_where(self) -> bool:
        return True

    def is_quick(self, request: Request) -> bool:
        """Point reads. By their form alone: the handler finds out about the rest."""
        return (
            request.method == "GET"
            and self.gateway.settings.quick_reads
            and "/docs/" in request.target
            and request.target.rstrip("/").count("/") == POINT_READ_SEGMENTS
            and not self._faults[FAULTS]  # one of them may be a delay
        )

    def lane(self, request: Request) -> str | None:
        """Queries, and the deletion of a whole key, by the container they are about."""
        headers = request.headers
        if request.method != "POST" or not (
            any(one in headers for one in QUERY)
            or request.target.endswith(KEY_DELETE)
            or headers.get("content-type", "").startswith(QUERY_TYPE)
        ):
            return None
        return "/".join(request.target.split("/", LANE_SEGMENTS + 1)[: LANE_SEGMENTS + 1])

    def screen(self, request: Request) -> Response | None:
        """A signature is over the headers: who can't sign need not be listened to."""
        bare = self._bare(request)
        try:
            authenticate(self.gateway, request, self._parse_path(request.target))
        except DbError as error:
            return refusal(bare, error)
        return None

    def handle(self, request: Request) -> Response:
        try:
            if self.gateway.shared.polls:
                self.gateway.shared.poll()
            response = self._answered(request)
        except MayNotWait:  # on the event loop
            raise
        except Exception:
            log.exception("a bug: %s %s", request.method, request.target)
            response = _internal(self._bare(request))
        origins = self.gateway.settings.cors_origins
        return with_headers(response, cors_headers(request, origins)) if origins else response

    def begin(self, request: Request) -> Begun | Response | None:
        """A small write, as far as it goes without waiting; None: `handle` it in a thread. On the
        event loop: the answer of the writer then wakes no thread for each request."""
        if (
            request.method not in WRITES
            or len(request.body) > BODY_BYTES_MAX
            or not self.gateway.settings.quick_reads
            or not self.gateway.engine.never_waits
            or self.gateway.settings.cors_origins
            or self._faults[FAULTS]
        ):
            return None
        bare = self._bare(request)
        options = bare.options
        is_script = request.method == "POST" and "/sprocs/" in request.target
        if options.is_query or options.is_batch or not (is_script or "/docs" in request.target):
            return None
        try:
            call, route = self._routed(bare)
            return None if route.begin is None else route.begin(call)
        except DbError as error:
            return refusal(bare, error)

    def handle_soon(self, request: Request) -> Begun | Response:
        """As `handle`, in a thread; but who waits for scripts does not hold the thread."""
        if request.method not in WRITES or self.gateway.settings.cors_origins:
            return self.handle(request)
        bare = self._bare(request)
        is_script = request.method == "POST" and "/sprocs/" in request.target
        if not is_script and not has_triggers(bare):
            return self.handle(request)
        try:
            call, route = self._routed(bare)
            if route.begin is None or self._faults[FAULTS]:
                return self.handle(request)
            return route.begin(call) or self.handle(request)
        except DbError as error:
            return refusal(bare, error)
        except Exception:
            log.exception("a bug: %s %s", request.method, request.target)
            return _internal(bare)

    def operation_name(self, request: Request) -> str | None:
        return logged_name(request)

    def _answered(self, request: Request) -> Response:
        call = self._bare(request)
        try:
            return self._answer(call)
        except DbError as error:
            return refusal(call, error)

    def _bare(self, request: Request) -> Call:
        return Call(self.gateway, request, NOWHERE, Options(request.headers), FULL)

    def _answer(self, bare: Call) -> Response:
        request, gateway = bare.request, self.gateway
        if request.method == "OPTIONS" and gateway.settings.cors_origins:
            headers = preflight_headers(request, gateway.settings.cors_origins)
            return with_headers(reply(bare, 200, ru=0.0), headers)
        call, route = self._routed(bare)
        if self._faults[FAULTS]:
            strike(
                gateway.shared,
                operation_name(call, route.variant),
                lambda: container_named(call),
            )
        return self._counted(call, route) if route.is_management else route.handler(call)

    def _routed(self, bare: Call) -> tuple[Call, Route]:
        """Who asks for what, and may they."""
        request, gateway = bare.request, self.gateway
        path = self._parse_path(request.target)
        principal = authenticate(gateway, request, path)
        call = Call(gateway, request, path, bare.options, principal)
        try:
            route = find_route(request.method, path.shape, call.options)
        except KeyError as error:
            raise BadInput(f"The request path {request.target} is invalid.") from error
        if route is None:
            raise UnknownMethod
        authorize(call, route)
        if route.writes:
            gateway.regions.check_writes(call.host)
        return call, route

    def _counted(self, call: Call, route: Route) -> Response:
        meter = self.gateway.account.meter
        try:
            if meter is not None:
                meter.admit_metadata(metadata_ru(write=route.writes))
            response = route.handler(call)
        except DbError as error:
            if meter is not None:
                meter.note_metadata(wire(error).status)
            raise
        if meter is not None:
            meter.note_metadata(response.status)
        return response


def _internal(call: Call) -> Response:
    body = {
        "code": INTERNAL.code,
        "message": "Unknown server error occurred when processing this request.",
    }
    return reply(call, INTERNAL.status, orjson.dumps(body), ru=0.0)


def make_service(gateway: Gateway, settings: Settings) -> NosqlService:
    """What the server's registry names."""
    return NosqlService(gateway)
