"""A small service for tests of the server: it echoes, and it can be made to wait."""

import json
import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from random import Random
from typing import Any, Final

from armillary.api.http.messages import FastPath, Request, Response, Service, Waiting
from armillary.errors import DbError, OutOfTime
from armillary.server.registry import ProtocolSpec
from armillary.store.catalog.accounts import AccountStore


class EchoService(Service):
    """`/quick…` is answered on the loop, all else in a thread. `/wait/NAME` waits for `let(NAME)`,
    `/long/LANE` works until its budget ends it, `/laneless/NAME` does so without a lane,
    `/large/BYTES` answers with that many bytes, `/bug` and `/split` are bugs of the service."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.fast = EchoPath()
        self.later = LaterPath()
        self.threads: set[str] = set()
        self.ended: list[str] = []
        self._gates: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    @property
    def fast_paths(self) -> Sequence[FastPath]:
        return (self.fast, self.later)

    def gate(self, name: str) -> threading.Event:
        with self._lock:
            return self._gates.setdefault(name, threading.Event())

    def is_quick(self, request: Request) -> bool:
        return request.target.startswith(("/quick", "/large"))

    def lane(self, request: Request) -> str | None:
        return request.target.split("/")[2] if request.target.startswith("/long/") else None

    def screen(self, request: Request) -> Response | None:
        return Response(401, {}, b"") if request.target == "/stranger" else None

    def handle(self, request: Request) -> Response:
        self.requests.append(request)
        self.threads.add(threading.current_thread().name)
        match request.target.split("/")[1:]:
            case ["wait", name]:
                assert self.gate(name).wait(20)
            case ["long" | "laneless", _]:
                assert request.budget is not None
                self.gate("long").set()
                try:
                    while True:
                        request.budget.check()
                except OutOfTime as error:
                    self.ended.append(type(error).__name__)
                    return Response(408, {}, error.message.encode())
            case ["large", size]:
                return Response(200, {}, b"x" * int(size))
            case ["bug"]:
                raise RuntimeError("planted")
            case ["split"]:
                return Response(200, {"X": "a\r\nY: b"})
            case ["later", "refused"]:
                return Response(401, {}, b"")
            case ["status", status]:
                return Response(int(status), {}, b"body")
        return Response(200, {"Content-Type": "application/json"}, echo(request))


class EchoPath:
    """`/quick/WORD` with the header `Say`: answered from bytes to bytes, unless it says `long` or,
    a bug, `bug`."""

    method = "GET"
    has_body = False
    waits = False
    target = rb"/quick/([a-z]+)"
    captured: Final = {"say": rb"[a-z]+"}
    fixed: Final = frozenset[str]()
    ignored: Final = frozenset[str]()

    def __init__(self) -> None:
        self.said: list[bytes] = []

    def accepts(self, request: Request) -> bool:
        return "say" in request.headers

    def answer(self, date_line: bytes, target: bytes, word: bytes, say: bytes) -> bytes | None:
        if say == b"bug":
            raise RuntimeError("planted")
        if say == b"long":
            return None
        self.said.append(say)
        body = b'"short %b"' % word
        return b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (date_line, len(body), body)


class LaterPath:
    """POST `/later/WORD` with a body: begun from bytes, ended when `futures[WORD]` is. The word
    says how: `otherwise` and `again` end on the general path, `bug` is one."""

    method = "POST"
    has_body = True
    waits = True
    target = rb"/later/([a-z]+)"
    captured: Final[dict[str, bytes]] = {}
    fixed: Final = frozenset[str]()
    ignored: Final = frozenset[str]()

    def __init__(self) -> None:
        self.futures: dict[str, Future[None]] = {}
        self.finished: list[str] = []

    def accepts(self, request: Request) -> bool:
        return True

    def answer(self, date_line: bytes, target: bytes, raw: bytes, body: bytes) -> Waiting | None:
        word = raw.decode()
        future = self.futures[word] = Future()
        return Waiting(future, partial(self._finish, word, body), partial(self._otherwise, word))

    def _finish(self, word: str, body: bytes, date_line: bytes) -> bytes | None:
        self.finished.append(word)
        match word:
            case "bug":
                raise RuntimeError("planted")
            case "otherwise" | "again":
                return None
        said = b'"short %b %b"' % (word.encode(), body)
        return b"HTTP/1.1 201 Created\r\n%bContent-Length: %d\r\n\r\n%b" % (
            date_line,
            len(said),
            said,
        )

    def _otherwise(self, word: str, request: Request) -> Response | None:
        # It may have to wait for a database: never on the loop.
        assert threading.current_thread().name.startswith("request")
        return None if word == "again" else Response(409, {}, echo(request))


def echo(request: Request) -> bytes:
    return json.dumps(
        [request.method, request.target, request.body.decode("latin-1"), request.secure]
    ).encode()


class EngineAlone:
    """What a plan opens instead of an account."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    def serve_loop(self, loop: Any) -> None: ...

    def close(self) -> None: ...


def open_engine_alone(engine: Any, settings: Any, **options: Any) -> EngineAlone:
    return EngineAlone(engine)


def make_service(opened: EngineAlone, settings: Any) -> EchoService:
    """What a plan names instead of the API. `/write` goes through the engine's writer."""
    return WritingService(opened.engine)


ECHO = ProtocolSpec("echo", "http", "tests.support.service:make_service")


class WritingService(EchoService):
    def __init__(self, engine: Any) -> None:
        super().__init__()
        self._account = AccountStore(engine, random=Random(os.getpid()))

    def handle(self, request: Request) -> Response:
        match request.target.split("/")[1:]:
            case ["write", name]:
                try:
                    self._account.create_database(name)
                except DbError as error:
                    return Response(503, {}, str(error).encode())
                return Response(201, {"X-Pid": str(os.getpid())})
            case ["list"]:
                names = [one.id for one in self._account.list_databases()]
                return Response(200, {"X-Pid": str(os.getpid())}, json.dumps(names).encode())
            case ["die"]:
                os._exit(3)
        return super().handle(request)
