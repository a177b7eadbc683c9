"""The NoSQL API of one worker: a request in, a response out, never an exception.

    1  path        what it names, and its shape
    2  preflight   a browser asks whether it may (only if origins are configured)
    3  who         the signature, or a token
    4  route       shape, method and headers → a row of the table
    5  may they    key, read-only key, permission
    6  handler     translation to the store
    7  refusal     an error of ours becomes status, sub-status and a body; anything else is a bug

`make_service` is what a server calls, once per worker process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path as Folder
from time import perf_counter
from typing import Final

import orjson

from armillary.api.control.service import Controls
from armillary.api.core.faults import strike
from armillary.api.core.gateway import Gateway
from armillary.api.core.paths import Path, parse_path
from armillary.api.core.principals import FULL, authenticate
from armillary.api.core.settings import EMULATOR_KEY, GatewaySettings, told_apart
from armillary.api.errors import INTERNAL, wire
from armillary.api.http.messages import Begun, Request, Response, Shortcut
from armillary.api.nosql.authorization import authorize
from armillary.api.nosql.call import Call, refusal, reply, with_headers
from armillary.api.nosql.cors import cors_headers, preflight
from armillary.api.nosql.fast.creates import HotCreates
from armillary.api.nosql.fast.queries import HotQueries
from armillary.api.nosql.fast.reads import HotReads
from armillary.api.nosql.operation_names import container_named, operation_name
from armillary.api.nosql.options import Options
from armillary.api.nosql.routes import Route, find_route
from armillary.clock import Clock, new_random
from armillary.config import Settings
from armillary.engine.base import Engine
from armillary.errors import BadInput, DbError, UnknownMethod
from armillary.partition.budgets.opening import open_ledger
from armillary.partition.provisioning.partitions import PartitionLimits
from armillary.partition.request_units import PROFILES, metadata_ru
from armillary.partition.usage.statistics import open_statistics
from armillary.store.catalog.accounts import AccountStore
from armillary.store.catalog.controls import FAULTS, SharedControls
from armillary.store.catalog.records import ensure_catalog
from armillary.store.throughput.meter import Meter
from armillary.store.upkeep.housekeeper import ROUND_SECONDS, SPARE_ROUND_SECONDS, Housekeeper

log = logging.getLogger("armillary.api")

POINT_READ_SEGMENTS: Final = 6
NOWHERE: Final = Path((), ())
WRITES: Final = frozenset({"POST", "PUT", "DELETE"})
BEGUN_BYTES_MAX: Final = 32 * 1024  # of a body that the loop reads itself: a millisecond at most


class NosqlService:
    def __init__(
        self,
        account: AccountStore,
        settings: GatewaySettings | None = None,
        housekeeper: Housekeeper | None = None,
        wall: Clock | None = None,
        shared: SharedControls | None = None,
    ) -> None:
        self.shared = shared or SharedControls(account.engine)
        self._faults = self.shared.cells  # HOT: looked at by every request; 0 while there are none
        self.gateway = Gateway(
            account, settings or GatewaySettings(), wall or self.shared.own_clock
        )
        self._housekeeper = housekeeper
        self.controls = Controls(self.gateway, self.shared)
        self.shortcuts: tuple[Shortcut, ...] = ()
        if self.gateway.settings.quick_reads and not self.gateway.settings.cors_origins:
            self.shortcuts = (
                HotReads(self.gateway, self._faults),
                HotQueries(self.gateway, self._faults),
                HotCreates(
                    self.gateway,
                    self._faults,
                    lambda request: self._routed(self._bare(request))[0],
                    BEGUN_BYTES_MAX,
                ),
            )

    def is_quick(self, request: Request) -> bool:
        """Point reads. By their form alone: whoever answers finds out about the rest."""
        return (
            request.method == "GET"
            and self.gateway.settings.quick_reads
            and "/docs/" in request.target
            and request.target.rstrip("/").count("/") == POINT_READ_SEGMENTS
            and not self._faults[FAULTS]  # one of them may be a delay
        )

    def handle(self, request: Request) -> Response:
        try:
            if self.shared.polls:
                self.shared.poll()
            response = self._answered(request)
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
            or len(request.body) > BEGUN_BYTES_MAX
            or not self.gateway.settings.quick_reads
            or not self.gateway.engine.never_waits
            or self.gateway.settings.cors_origins
            or self._faults[FAULTS]
        ):
            return None
        bare = self._bare(request)
        options = bare.options
        if options.is_query or options.is_batch or "/docs" not in request.target:
            return None
        try:
            call, route = self._routed(bare)
            return None if route.begin is None else route.begin(call)
        except DbError as error:
            return refusal(bare, error)

    def defer_to(self, defer: Callable[[Callable[[], None]], object] | None) -> None:
        """The calling thread runs an event loop; `defer` calls at the end of its turn. What `begin`
        and `shortcuts` begin there then goes to the writer together. None: it has ended."""
        defers = getattr(self.gateway.engine, "defer_to", None)
        if defers is not None:
            defers(defer)

    def _answered(self, request: Request) -> Response:
        call = self._bare(request)
        try:
            return self._answer(call)
        except DbError as error:
            return refusal(call, error)

    def close(self) -> None:
        if self._housekeeper is not None:
            self._housekeeper.close()
        self.controls.close()
        self.gateway.close()
        self.shared.close()
        if self.gateway.account.meter is not None:
            self.gateway.account.meter.close()

    def _bare(self, request: Request) -> Call:
        return Call(self.gateway, request, NOWHERE, Options(request.headers), FULL)

    def _answer(self, bare: Call) -> Response:
        request, gateway = bare.request, self.gateway
        if request.method == "OPTIONS" and gateway.settings.cors_origins:
            return preflight(bare)
        if self.controls.serves(request.target):
            return self.controls.handle(request)
        call, route = self._routed(bare)
        if self._faults[FAULTS]:
            strike(
                self.shared,
                operation_name(call, route.variant),
                lambda: container_named(call),
            )
        return self._counted(call, route) if route.is_management else route.handler(call)

    def _routed(self, bare: Call) -> tuple[Call, Route]:
        """Who asks for what, and may they."""
        request, gateway = bare.request, self.gateway
        path = parse_path(request.target)
        principal = authenticate(gateway, request, path)
        call = Call(gateway, request, path, bare.options, principal)
        try:
            route = find_route(request.method, path.shape, call.options)
        except KeyError as error:
            raise BadInput(f"The request path {request.target} is invalid.") from error
        if route is None:
            raise UnknownMethod
        authorize(call, route)
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


def make_service(
    engine: Engine, settings: Settings, *, keys: Sequence[str] = (), first: bool = True
) -> NosqlService:
    """`keys`: the lines of a key file; without any, the well-known one of the emulator. `first`:
    this worker looks often for background work, the others only where they have written."""
    limits = PartitionLimits(
        settings.partition.bytes, settings.partition.ru, settings.partition.logical_bytes
    )
    throughput, address = settings.throughput, settings.engine.url
    is_folder = "://" not in address and address != ":memory:"
    ensure_catalog(engine)
    shared = SharedControls(engine, Folder(address) if is_folder else None, polls="://" in address)
    ledger = open_ledger(address, throughput.enforce)
    meter = Meter(
        engine,
        ledger,
        statistics=open_statistics(address, engine.now_ms()),
        enforce=throughput.enforce,
        burst=throughput.burst,
        serverless=throughput.serverless,
        metadata=throughput.metadata,
        limits=limits,
        profile=PROFILES[throughput.profile],
        stopwatch=perf_counter,
    )
    account = AccountStore(
        engine,
        random=new_random(),
        limits=limits,
        classic=throughput.profile == "classic",
        serverless=throughput.serverless,
        meter=meter,
    )
    full, read_only = told_apart(keys)
    gateway = GatewaySettings(
        keys=full or (EMULATOR_KEY,),
        read_only_keys=read_only,
        consistency=settings.api.consistency,
        cors_origins=settings.api.cors_origins,
        trust_forwarded=settings.api.trust_forwarded,
        accept_entra=settings.api.accept_entra,
        gateway_merge=settings.query.gateway_merge,
        quick_reads="://" not in address,
    )
    # Every worker knows best where it has written; leases see to it that one of them does the work.
    round_s = ROUND_SECONDS if first else SPARE_ROUND_SECONDS
    housekeeper = Housekeeper(account, ledger=ledger, round_s=round_s)
    return NosqlService(account, gateway, housekeeper, shared=shared)
