"""Gremlin for one worker: sessions that a server runs on its connections.

    1  WebSocket     messages out of bytes
    2  request       op, arguments; what is malformed is answered at once
    3  login         the first request of a connection is challenged and kept; see `login`
    4  evaluation    one after the other: small reads on the event loop, others in a worker thread,
                     long ones in the lane of their graph

`make_streams` is what a server calls, once per worker process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final, TypeAlias

from armillary.api.core.gateway import Gateway
from armillary.api.core.streams import Answer, ClientGone, Event, Hangup, Peer, Quick, Send, Work
from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.execution import Context, Execution
from armillary.api.gremlin.login import Login, log_in, user_of
from armillary.api.gremlin.wire.requests import (
    GremlinRequest,
    Malformed,
    parse_request,
)
from armillary.api.gremlin.wire.responses import (
    NO_CONTENT,
    challenge,
    failure,
    nothing_used,
    response,
)
from armillary.api.gremlin.wire.websocket import Message, WebSocket
from armillary.clock import new_random
from armillary.config import GremlinSettings, Settings
from armillary.errors import DbError, Throttled, Unauthorized
from armillary.limits import (
    GREMLIN_IDLE_SECONDS_MAX,
    GREMLIN_TOKENS_MAX,
    GREMLIN_WAITING_MAX,
)

Run: TypeAlias = Callable[[Send], None]
HOUR_SECONDS: Final = 3600
BYTECODE: Final = "Bytecode is not supported. Send the traversal as a script (a string)."
SESSIONS: Final = "Sessions and transactions are not supported."
BUSY: Final = "Connection is too busy. Please retry after sometime or open more connections."


def make_streams(gateway: Gateway, settings: Settings | None = None) -> GremlinStreams:
    chosen = GremlinSettings() if settings is None else settings.gremlin
    return GremlinStreams(gateway, chosen)


class GremlinStreams:
    def __init__(
        self,
        gateway: Gateway,
        settings: GremlinSettings | None = None,
    ) -> None:
        self.context = Context(gateway, settings or GremlinSettings(), new_random())
        self._tokens: dict[int, float] = {}
        self._lock = threading.Lock()

    def open(self, peer: Peer) -> GremlinSession:
        return GremlinSession(self)

    def close(self) -> None:
        pass

    def log_in(self, sasl: object) -> Login:
        login = log_in(self.context.gateway, sasl)
        if login.is_token:
            self._count_token(hash(sasl))
        return login

    def _count_token(self, token: int) -> None:
        """Distinct resource tokens of the last hour are few, as in the service."""
        now = monotonic()
        with self._lock:
            self._tokens = {key: at for key, at in self._tokens.items() if at > now - HOUR_SECONDS}
            if token not in self._tokens and len(self._tokens) >= GREMLIN_TOKENS_MAX:
                raise Throttled(
                    f"More than {GREMLIN_TOKENS_MAX} resource tokens were used in an hour.",
                    retry_after_ms=HOUR_SECONDS * 1000,
                )
            self._tokens[token] = now


class GremlinSession:
    """One client."""

    def __init__(self, streams: GremlinStreams) -> None:
        self._streams = streams
        context = streams.context
        self._socket = WebSocket(context.gateway.settings.cors_origins)
        self._login: Login | None = None
        self._logging_in = 0
        self._lane = ""
        self._challenged: GremlinRequest | None = None
        self._held: list[GremlinRequest] = []
        """Came while another was challenged. One challenge is enough, and gremlin-driver for Java
        stands no second one."""
        self._held_bytes = 0
        """Of what waits for a login."""
        self._executions: set[Execution] = set()
        """That wait or run."""
        self._waiting = 0
        self._heard_at = monotonic()
        self._closed = False

    # --- what the server calls --------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        return self._socket.busy or self._challenged is not None

    @property
    def held_bytes(self) -> int:
        return self._socket.held_bytes + self._held_bytes

    def at_once(self, data: bytes) -> bytes | None:
        return None

    def receive(self, data: bytes) -> Sequence[Event]:
        self._heard_at = monotonic()
        messages, out = self._socket.receive(data)
        events: list[Event] = [Answer(out)] if out else []
        for message in messages:
            events += self._message(message)
        if self._socket.closed:
            self.close()
            events.append(Hangup())
        return events

    def tick(self) -> Sequence[Event]:
        """Silent, which is no fault: a pool keeps connections for later. A ping for each; after an
        hour without a word the service lets them go, and so do we. One that asked something and did
        not log in has no such time: what it asked is held for it."""
        if self._challenged is not None and not self._logging_in:
            return (Hangup(self._socket.goodbye("not logged in")),)
        if monotonic() - self._heard_at < GREMLIN_IDLE_SECONDS_MAX or self._waiting:
            ping = self._socket.ping()
            return (Answer(ping),) if ping else ()
        return (Hangup(self._socket.goodbye("idle")),)

    def close(self) -> None:
        self._closed = True
        for one in tuple(self._executions):
            one.budget.cancel()

    # --- requests ---------------------------------------------------------------------------------

    def _message(self, message: Message) -> list[Event]:
        strict = self._streams.context.settings.strict
        try:
            request = parse_request(message, strict=strict)
        except Malformed as error:
            return [self._refusal(error.mime, error.id, error.error)]
        if request.op == "authentication":
            return self._authentication(request)
        if request.op == "close":
            attributes = {"x-ms-status-code": NO_CONTENT}
            return [self._answer(response(request.mime, request.id, NO_CONTENT, attributes, []))]
        if request.op == "bytecode" or request.processor == "traversal":
            return [self._malformed(request, BYTECODE)]
        if request.processor == "session":
            return [self._malformed(request, SESSIONS)]
        if request.op != "eval" or request.processor != "":
            text = f"The operation '{request.op}' of '{request.processor}' is not supported."
            return [self._malformed(request, text)]
        if self._login is not None or self._logging_in:
            return self._evaluation(request)
        if self._challenged is None:
            self._challenged, self._held_bytes = request, len(message.data)
            return [self._answer(challenge(request.mime, request.id))]
        if len(self._held) >= GREMLIN_WAITING_MAX:
            return [self._refusal(request.mime, request.id, ScriptError(BUSY, "busy"))]
        self._held.append(request)
        self._held_bytes += len(message.data)
        return []

    def _evaluation(self, request: GremlinRequest) -> list[Event]:
        execution = Execution(self._streams.context, request)

        def run(send: Send) -> None:
            login = self._login
            if login is None:  # it came before a login that failed
                self._fail(request, Unauthorized(), send)
            else:
                execution.run(login, send)

        return self._later(request, run, execution)

    def _authentication(self, request: GremlinRequest) -> list[Event]:
        """Then the request that was challenged and those that came meanwhile. The answer may have
        another id than the challenge."""
        kept, self._challenged = self._challenged, None
        held, self._held, self._held_bytes = self._held, [], 0
        execution = None if kept is None else Execution(self._streams.context, kept)
        sasl = request.text("sasl")
        self._lane = user_of(sasl)
        self._logging_in += 1

        def run(send: Send) -> None:
            try:
                login = self._login = self._streams.log_in(sasl)
            except DbError as error:
                self._fail(kept or request, error, send)
                return
            finally:
                self._logging_in -= 1
            if execution is not None:
                execution.run(login, send)

        events = self._later(request, run, execution)
        for one in held:
            events += self._evaluation(one)
        return events

    def _later(self, request: GremlinRequest, run: Run, execution: Execution | None) -> list[Event]:
        """In a thread; in the lane of the graph when the traversal may be long."""
        if self._waiting >= GREMLIN_WAITING_MAX:
            return [self._refusal(request.mime, request.id, ScriptError(BUSY, "busy"))]
        self._waiting += 1
        if execution is not None:
            self._executions.add(execution)

        def ended() -> None:
            self._waiting -= 1
            if execution is not None:
                self._executions.discard(execution)

        def work(send: Send) -> None:
            try:
                if self._closed:
                    raise ClientGone
                run(lambda data: self._send(send, data))
            finally:
                ended()

        def quick() -> bytes | None:
            login = self._login
            if login is None or self._closed or execution is None:
                return None
            messages = execution.run_here(login)
            if messages is None:
                return None
            ended()
            return b"".join([self._socket.frame(one) for one in messages])

        size = len(request.text("gremlin") or "")
        if execution is None:
            return [Work(work, size)]
        lane = "" if execution.is_short else self._lane
        in_thread = Work(work, size, lane, execution.budget)
        is_quick = request.op == "eval" and execution.may_be_small
        return [Quick(quick, in_thread) if is_quick else in_thread]

    # --- answers ----------------------------------------------------------------------------------

    def _send(self, send: Send, data: bytes) -> None:
        framed = self._socket.frame(data)
        if not framed:
            raise ClientGone
        send(framed)

    def _fail(self, request: GremlinRequest, error: DbError, send: Send) -> None:
        send(self._failed(request.mime, request.id, error))

    def _answer(self, data: bytes) -> Event:
        return Answer(self._socket.frame(data))

    def _malformed(self, request: GremlinRequest, text: str) -> Event:
        return self._refusal(request.mime, request.id, ScriptError(text, "malformed"))

    def _refusal(self, mime: str, id: str, error: Exception) -> Event:
        return self._answer(self._failed(mime, id, error))

    def _failed(self, mime: str, id: str, error: Exception) -> bytes:
        """Of what did not run."""
        activity = self._streams.context.new_uuid()
        return failure(mime, id, error, activity, nothing_used(activity))[0]
