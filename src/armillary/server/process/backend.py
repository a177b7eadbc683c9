"""What is behind the connections of one worker: an engine, the account, and its protocols.

On a folder, one writer process writes for all workers, also when there is only one: writes then do
not fight with reads for the interpreter's lock (design.md, section 3). The process that started the
writer watches it: if it dies, a new one takes its place at the same address, and workers find it
there.
"""

from __future__ import annotations

import importlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from armillary.api.core.streams import StreamService
from armillary.api.http.messages import Service
from armillary.config import LogSettings
from armillary.engine.base import Engine
from armillary.engine.lmdb.process.handshake import WriterAddress
from armillary.engine.lmdb.process.writer_process import WriterChild, WriterProcess
from armillary.errors import Unavailable
from armillary.server.process.front import Listener
from armillary.server.process.plan import Plan
from armillary.server.registry import ProtocolSpec

if TYPE_CHECKING:
    from armillary.server.http.observing import Observer

HANDLERS_PATH = "armillary.store.commands:HANDLERS"
PACKED_PATH = "armillary.store.rows.layout:PACKED"
SEALED_PATH = "armillary.store.rows.layout:SEALED"
CODECS_PATH = "armillary.store.commands:CODECS"
RESTARTS_MAX = 5
RESTART_SECONDS = 60.0

log = logging.getLogger("armillary.server")


def start_writer(plan: Plan, child: WriterChild | None = None) -> WriterProcess | None:
    """The writer process, for an engine that has one; in a child that was started ahead."""
    if plan.folder is None:
        return None
    durability = plan.settings.engine.durability
    return WriterProcess(
        plan.folder,
        HANDLERS_PATH,
        CODECS_PATH,
        child=child,
        durability=durability,
        packed=load(PACKED_PATH),
        sealed=load(SEALED_PATH),
    )


def load_ahead(plan: Plan) -> None:
    """Everything a `Backend` imports before the server is ready."""
    main = plan.protocols[0]
    for path in (plan.opener, main.factory, *main.mounted):
        load(path)
    if main.mounted:
        importlib.import_module("armillary.api.http.mounts")
    if plan.folder is not None:
        importlib.import_module("armillary.engine.lmdb.process.worker")
        load(HANDLERS_PATH)


class Backend:
    """The engine of one worker, the account over it, and a service for each protocol, made when it
    is asked for. `first` does the work that one process does for all."""

    def __init__(self, plan: Plan, address: WriterAddress | None, *, first: bool) -> None:
        self._plan = plan
        self.engine = _open(plan, address)
        self._services: dict[str, Service | StreamService] = {}
        self._lock = threading.Lock()
        try:
            if first and plan.databases:
                _declare(plan, self.engine)
            self.gateway = load(plan.opener)(
                self.engine, plan.settings, keys=plan.keys, first=first
            )
            self.observer, self._end_traces = _observer(plan.settings.log)
        except BaseException:
            self.engine.close()
            raise

    def service(self, spec: ProtocolSpec) -> Service | StreamService:
        """Takes as long as its libraries take to import, the first time."""
        with self._lock:
            found = self._services.get(spec.name)
            if found is None:
                found = self._services[spec.name] = self._make(spec)
            return found

    def listeners(self, bound: Mapping[str, list[socket.socket]]) -> list[Listener]:
        """For the sockets of each protocol. The first protocol of the plan is loaded at once."""
        main = self._plan.protocols[0]
        return [
            Listener(
                spec.name,
                bound[spec.name],
                partial(self.service, spec),
                eager=spec is main,
                shows_certificate=any("{ca}" in line for line in spec.shown),
            )
            for spec in self._plan.protocols
            if spec.name in bound
        ]

    def serve_loop(self, loop: Any | None) -> None:
        self.gateway.serve_loop(loop)

    def trouble(self) -> str:
        """Why requests can't be served just now; empty when they can."""
        health = self.engine.health()
        return "" if health is None else health.trouble

    def close(self) -> None:
        for service in self._services.values():
            service.close()
        self.gateway.close()
        self._end_traces()
        self.engine.close()

    def _make(self, spec: ProtocolSpec) -> Service | StreamService:
        made: Service | StreamService = load(spec.factory)(self.gateway, self._plan.settings)
        if not spec.mounted:
            return made
        from armillary.api.http.mounts import Mounts

        assert isinstance(made, Service)
        others = [load(one)(self.gateway, self._plan.settings) for one in spec.mounted]
        return Mounts(made, others)


def _observer(asked: LogSettings) -> tuple[Observer | None, Callable[[], None]]:
    """What watches requests, if the settings ask for that."""
    if not (asked.requests or asked.traces):
        return None, lambda: None
    from armillary.server.http.observing import Observer

    if not asked.traces:
        return Observer(logged=True), lambda: None
    from armillary.server.http.tracing import open_tracer

    tracer, end = open_tracer()
    log.warning("traces are on: requests take the general path, fast paths are off")
    return Observer(logged=asked.requests, tracer=tracer), end


def _open(plan: Plan, address: WriterAddress | None) -> Engine:
    durability = plan.settings.engine.durability
    if address is not None:
        from armillary.engine.lmdb.process.worker import LmdbWorkerEngine

        assert plan.folder is not None
        return LmdbWorkerEngine(
            plan.folder,
            address,
            durability=durability,
            packed=load(PACKED_PATH),
            sealed=load(SEALED_PATH),
            codecs=load(CODECS_PATH),
        )
    from armillary.engine.opening import open_engine

    handlers, packed, sealed = load(HANDLERS_PATH), load(PACKED_PATH), load(SEALED_PATH)
    engine = plan.settings.engine
    options: dict[str, Any] = {}
    if plan.on_postgres:
        options = {
            "writers": engine.writers,
            "readers_max": engine.readers,
            "timeout_ms": engine.timeout_ms,
            "start_s": None,  # a server waits for its database
        }
    return open_engine(
        plan.engine, handlers, durability=durability, packed=packed, sealed=sealed, **options
    )


def _declare(plan: Plan, engine: Engine) -> None:
    from armillary.declare.applying import apply_declared

    for line in apply_declared(engine, plan.settings, plan.databases):
        log.warning("%s", line)


def load(path: str) -> Any:
    """`package.module:attribute`"""
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


class WriterWatch:
    """Puts a new writer in the place of a dead one. `give_up` is called when they keep dying."""

    def __init__(self, writer: WriterProcess, give_up: Callable[[], None]) -> None:
        self._writer = writer
        self._give_up = give_up
        self._deaths: list[float] = []
        self._stop, self._stopped = socket.socketpair()
        self._closing = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="writer watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop watching; the writer goes on. Is idempotent."""
        with self._closing:
            if self._stop.fileno() >= 0:
                self._stop.close()
                self._thread.join()
                self._stopped.close()

    def _watch(self) -> None:
        while self._writer.dies_before(self._stopped):
            now = time.monotonic()
            self._deaths = [at for at in self._deaths if now - at < RESTART_SECONDS] + [now]
            code = self._writer.process.returncode
            if len(self._deaths) > RESTARTS_MAX:
                log.critical("the writer process died again (%s); giving up", code)
                self._give_up()
                return
            log.error("the writer process died (%s); starting another", code)
            try:
                self._writer.restart()
            except Unavailable as error:
                log.critical("no new writer process: %s", error)
                self._give_up()
                return
