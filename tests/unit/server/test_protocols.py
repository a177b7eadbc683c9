"""A protocol that the server knows only by its name in the registry. Without these tests a new one
would have to bring its own TLS, limits, time-outs and shutdown."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support.echo_protocol import EchoStreams
from tests.support.raw_http import Answers, get
from tests.support.service import EchoService

from armillary.config import Settings
from armillary.server.binding import bind
from armillary.server.bounds import Bounds
from armillary.server.http.observing import Observer
from armillary.server.listen import is_tls
from armillary.server.loops import new_loop
from armillary.server.pool import Pool
from armillary.server.process import serving
from armillary.server.process.backend import load
from armillary.server.process.front import Front, Listener
from armillary.server.process.plan import make_plan
from armillary.server.process.ports import bind_others
from armillary.server.process.serving import serve_until
from armillary.server.registry import NOSQL, OTHERS, ProtocolSpec

ECHO = ProtocolSpec("echo", "stream", "tests.support.echo_protocol:make_streams", "Echo")


class Running:
    """A worker with three ports: HTTP, another service over HTTP, and the echo protocol."""

    def __init__(self, front: Front) -> None:
        self.loaded: list[str] = []
        self._front = front
        self._stop: Callable[[], object] = lambda: None
        self.http = bind("127.0.0.1", 0)
        self.words = bind("127.0.0.1", 0)
        self.echo = bind("127.0.0.1", 0)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._ready.wait(60)

    @property
    def port(self) -> int:
        return int(self.echo[0].getsockname()[1])

    def connect(self, context: ssl.SSLContext | None = None) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), 60)
        return (
            client if context is None else context.wrap_socket(client, server_hostname="localhost")
        )

    def stop(self) -> None:
        if self._thread.is_alive():
            self._stop()
            self._thread.join(60)
        assert not self._thread.is_alive()

    def _load_echo(self) -> EchoStreams:
        self.loaded.append("echo")
        made: EchoStreams = load(ECHO.factory)(None, Settings())
        return made

    def _run(self) -> None:
        loop = new_loop()
        asyncio.set_event_loop(loop)
        loop.run_until_complete(self._serve())
        loop.run_until_complete(loop.shutdown_default_executor())
        asyncio.set_event_loop(None)
        loop.close()

    async def _serve(self) -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        self._stop = lambda: loop.call_soon_threadsafe(stop.set)
        listeners = [
            Listener("http", self.http, EchoService, eager=True),
            Listener("words", self.words, EchoService),
            Listener("echo", self.echo, self._load_echo),
        ]
        observer = Observer(logged=True)
        await serve_until(
            stop,
            listeners,
            self._front,
            self._ready.set,
            observer=observer,
        )


Start = Callable[..., Running]


@pytest.fixture
def start(certificate: Path) -> Iterator[Start]:
    running: list[Running] = []

    def begin(**bounds: float) -> Running:
        front = Front(certificate, bounds=Bounds(drain_s=30.0, **bounds))  # type: ignore[arg-type]
        running.append(Running(front))
        return running[-1]

    yield begin
    for one in running:
        one.stop()


@contextmanager
def talking(client: socket.socket) -> Iterator[Callable[[bytes, int], bytes]]:
    with client, client.makefile("rb") as answers:

        def say(data: bytes, lines: int = 1) -> bytes:
            client.sendall(data)
            return b"".join(answers.readline() for _ in range(lines))

        yield say


def test_lines_go_back_in_order_whatever_answers_them(start: Start) -> None:
    with talking(start().connect()) as say:
        assert say(b"one\nslow a b\nquick\ntwo\n", 6) == b"one\nslow\na\nb\nquick\ntwo\n"


def test_what_is_answered_at_once_keeps_its_place(start: Start) -> None:
    """What several clients send in one turn of the loop is taken in together."""
    running = start()
    with running.connect() as one, running.connect() as other:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(30):
            line = b"now %d\n" % number
            one.sendall(line)
            other.sendall(line)
            assert received(one, len(line)) == received(other, len(line)) == line
        lines = [b"now a\n", b"slow b c\n", b"now d\n", b"now e\nnow f\n", b"plain\n", b"now g\n"]
        for line in lines:
            one.sendall(line)
        expected = b"now a\nslow\nb\nc\nnow d\nnow e\nnow f\nplain\nnow g\n"
        assert received(one, len(expected)) == expected
        other.sendall(b"now h\n")
        other.shutdown(socket.SHUT_WR)
        assert received(other, 6) == b"now h\n", "who has said all still gets an answer"
        assert other.recv(1) == b""


def received(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        found = client.recv(size - len(data))
        assert found, f"only {data!r}"
        data += found
    return data


def test_who_waits_for_something_holds_no_thread(start: Start) -> None:
    """Clients of change streams wait for minutes, and there may be more of them than threads."""
    running = start(threads=1)
    waiting = [running.connect() for _ in range(5)]
    for one in waiting:
        one.sendall(b"wait\n")
    with talking(running.connect()) as say:
        assert say(b"slow x\n", 2) == b"slow\nx\n"
        waiting.pop().close()
        assert say(b"slow y\ngo\n", 3) == b"slow\ny\ngo\n"
    for one in waiting:
        with talking(one) as say:
            assert say(b"then\n", 2) == b"went on\nthen\n"


def test_who_waits_for_something_does_not_hold_up_the_end(start: Start) -> None:
    running = start()
    with running.connect() as waiting:
        waiting.sendall(b"wait\n")
        with talking(running.connect()) as say:
            assert say(b"slow x\n", 2) == b"slow\nx\n"
        running.stop()  # within the 30 seconds of a drain, or it fails
        assert waiting.recv(1) == b""


def test_a_protocol_is_loaded_by_its_first_client(start: Start) -> None:
    running = start()
    assert running.loaded == []
    for _ in range(2):
        with talking(running.connect()) as say:
            assert say(b"x\n", 1) == b"x\n"
    assert running.loaded == ["echo"]


def test_whatever_comes_in_is_counted(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long query that keeps the loop from it notices by this."""
    pools: list[Pool] = []

    def make(*given: Any) -> Pool:
        pools.append(Pool(*given))
        return pools[-1]

    monkeypatch.setattr(serving, "Pool", make)
    running = start()
    (pool,) = pools
    seen = [pool.arrivals]
    with talking(running.connect()) as say:
        for line in (b"x\n", b"y\n"):
            assert say(line, 1) == line
            seen.append(pool.arrivals)
    http = socket.create_connection(("127.0.0.1", running.http[0].getsockname()[1]), 60)
    with talking(http) as say:
        assert say(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 1).startswith(b"HTTP/1.1")
        seen.append(pool.arrivals)
    assert seen[0] == 0
    assert sorted(set(seen)) == seen


def test_the_same_port_speaks_tls(start: Start, certificate: Path) -> None:
    context = ssl.create_default_context(cafile=certificate / "tls" / "cert.pem")
    running = start()
    with talking(running.connect(context)) as say:
        assert say(b"who\n", 1) == b"True localhost\n"
    with talking(running.connect()) as say:
        assert say(b"who\n", 1) == b"False None\n"


def test_a_client_that_does_not_read_is_not_read_and_blocks_no_other(start: Start) -> None:
    running = start()
    slow = running.connect()
    slow.sendall(b"large\n" * 4)
    with talking(running.connect()) as say:
        assert say(b"slow x\n", 2) == b"slow\nx\n"
    received = 0
    with slow:
        while received < 4 * 200 * 65_536:
            received += len(slow.recv(1 << 20))
    assert received == 4 * 200 * 65_536


def test_a_silent_half_of_a_message_ends_the_connection(start: Start) -> None:
    running = start(body_s=0.05, stream_idle_s=30.0)
    with running.connect() as client:
        client.sendall(b"half a li")
        assert client.recv(10) == b""


def test_a_bug_ends_its_connection_only(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    running = start()
    with running.connect() as client, talking(running.connect()) as say:
        client.sendall(b"bug\n")
        assert client.recv(10) == b""
        assert say(b"x\n", 1) == b"x\n"
    assert "planted" in caplog.text


def test_a_stop_lets_work_end_and_closes_idle_clients(start: Start) -> None:
    running = start()
    with running.connect() as idle, talking(running.connect()) as say:
        assert say(b"slow x\n", 2) == b"slow\nx\n"
        running.stop()
        assert idle.recv(1) == b""


def test_a_service_on_its_own_port_is_logged_and_shown(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """What it counts, it counts in the store: there is one place for the numbers of all."""
    running = start()
    ports = {
        name: int(sockets[0].getsockname()[1])
        for name, sockets in (("http", running.http), ("words", running.words))
    }
    with caplog.at_level(logging.INFO, "armillary.requests"):
        for target in ("/quick/a", "/later/b"):
            with socket.create_connection(("127.0.0.1", ports["words"]), 60) as client:
                client.sendall(get(target))
                assert Answers(client).get().status == 200
    told = [one.message.rpartition(" in ")[0] for one in caplog.records]
    assert told == ["GET /quick/a 200", "GET /later/b 200"]
    with socket.create_connection(("127.0.0.1", ports["http"]), 60) as client:
        client.sendall(get("/_armillary/health"))
        shown = Answers(client).get().json()
    assert shown["protocols"] == {**ports, "echo": running.port}


def test_quit_says_goodbye(start: Start) -> None:
    with start().connect() as client:
        client.sendall(b"quit\n")
        with client.makefile("rb") as answers:
            assert answers.read() == b"bye\n"


@pytest.mark.parametrize(
    ("first", "secure"),
    [
        (b"", False),
        (b"\x16", None),
        (b"\x16\x03\x01", None),
        (b"\x16\x03\x01\x02\x00", True),
        (b"\x16\x03\x03\x00\xf0", True),
        (b"\x16\x01\x00\x00\x01", False),  # a MongoDB message of 278 bytes
        (b"\x16\x03\x00\x00\x01", False),  # of 790 bytes
        (b"\x16\x03\x01\xff\xff", False),
        (b"GET /", False),
    ],
)
def test_tls_is_known_by_more_than_its_first_byte(first: bytes, secure: bool | None) -> None:
    assert is_tls(first) is secure


def test_a_taken_port_that_was_not_chosen_switches_its_protocol_off(tmp_path: Path) -> None:
    taken = bind("127.0.0.1", 0)
    port = int(taken[0].getsockname()[1])
    echo = ProtocolSpec("table", "stream", ECHO.factory, "Table")
    plan = make_plan(environ={}, data=tmp_path, protocols=(NOSQL, echo))
    assert plan.ports == {"table": 8902}
    asked = make_plan(
        environ={"ARMILLARY_TABLE_PORT": str(port)}, data=tmp_path, protocols=(NOSQL, echo)
    )
    with pytest.raises(Exception, match=f"--table-port {port + 1}"):
        bind_others(asked)
    for one in taken:
        one.close()


def test_alongside_a_free_port_the_others_are_free_ones(tmp_path: Path) -> None:
    echo = ProtocolSpec("mongo", "stream", ECHO.factory, "Echo")
    plan = make_plan(environ={}, data=tmp_path, port=0, protocols=(NOSQL, echo))
    assert plan.ports == {"mongo": 0}
    off = make_plan(environ={"ARMILLARY_MONGO_PORT": "off"}, data=tmp_path, protocols=(NOSQL, echo))
    assert off.ports == {}


def test_every_protocol_of_the_registry_has_its_own_port() -> None:
    ports = [getattr(Settings(), one.name).port for one in OTHERS]
    assert len({*ports, 8081}) == len(ports) + 1


def test_who_stalls_gives_way_to_others(start: Start) -> None:
    """Parts of messages share the room of bodies."""
    running = start(receiving_bytes=200_000)
    with running.connect() as stalled, running.connect() as other:
        stalled.sendall(b"here\n" + b"x" * 100)
        assert stalled.recv(5) == b"here\n"
        other.sendall(b"y" * 199_950)
        with suppress(ConnectionError):
            assert stalled.recv(10) == b""
        other.sendall(b"\n")
        assert other.recv(5) == b"yyyyy"
