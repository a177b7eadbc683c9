"""The way from a browser to the portal's process and back, over a real socket and a real process (a
stand-in of forty lines). Without these tests the portal could be started twice, stay dead, outlive
its server, or answer for somebody else."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.raw_http import Answer, Answers
from tests.unit.server.conftest import Running, Start

from armillary.server.portal import keeper as portal_keeper
from armillary.server.portal.door import cookie_name
from armillary.server.portal.keeper import PortalKeeper

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stand-in needs an inherited socket")

Open = Callable[..., tuple[PortalKeeper, Running]]


@pytest.fixture
def opened(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    monkeypatch.setattr(portal_keeper, "MODULE", "tests.support.portal_child")
    monkeypatch.chdir(Path(__file__).parents[3])
    keepers: list[PortalKeeper] = []

    def open_(key: str = "key", **bounds: float) -> tuple[PortalKeeper, Running]:
        keeper = PortalKeeper(tmp_path, key)
        keepers.append(keeper)
        running = start(keeper.door, **bounds)
        keeper.start(f"http://127.0.0.1:{running.port}")
        return keeper, running

    yield open_
    for keeper in keepers:
        keeper.close()


class Visitor:
    """A browser's connection."""

    def __init__(self, keeper: PortalKeeper, server: Running, *, secure: bool = False) -> None:
        self.host = f"localhost:{server.port}"
        self.cookie = f"{cookie_name(self.host, secure)}={keeper.door.token}"
        self.client: socket.socket = server.connect()
        if secure:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.client = context.wrap_socket(self.client)
        self.answers = Answers(self.client)

    def send(self, target: str, *headers: str, method: str = "GET", body: bytes = b"") -> None:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self.host}", f"Cookie: {self.cookie}"]
        lines += [f"Content-Length: {len(body)}"] * bool(body)
        self.client.sendall("\r\n".join([*lines, *headers, "", ""]).encode() + body)

    def ask(self, target: str, *headers: str, method: str = "GET", body: bytes = b"") -> Answer:
        self.send(target, *headers, method=method, body=body)
        return self.answers.get()

    def close(self) -> None:
        self.client.close()


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return found


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("secure", [False, True])
def test_one_process_answers_and_keeps_the_connection(opened: Open, secure: bool) -> None:
    keeper, server = opened()
    visitor = Visitor(keeper, server, secure=secure)
    first = visitor.ask("/_portal/pid?a=1", "Accept: text/html").json()
    assert first["target"] == "/pid?a=1"
    assert first["headers"]["x-forwarded-prefix"] == "/_portal"
    assert first["headers"]["x-forwarded-proto"] == ("https" if secure else "http")
    assert first["headers"]["host"] == visitor.host
    assert visitor.ask("/_portal/again").json()["pid"] == first["pid"]
    other = Visitor(keeper, server, secure=secure)
    assert other.ask("/_portal/").json()["pid"] == first["pid"]
    visitor.close()
    other.close()


def test_a_body_streams_through_and_may_be_larger_than_any_request(opened: Open) -> None:
    keeper, server = opened(body_bytes=100_000, receiving_bytes=1_000_000)
    body = os.urandom(3_000_000)
    visitor = Visitor(keeper, server)
    # Both as the first request of a connection and as a later one.
    for _ in range(2):
        assert visitor.ask("/_portal/up", method="POST", body=body).json()["bytes"] == len(body)
    visitor.close()
    stranger = Visitor(keeper, server)
    stranger.cookie = "none=1"
    stranger.send("/_portal/up", method="POST", body=body[:200_000])
    assert stranger.answers.get().status == 401
    stranger.close()


def test_a_websocket_passes_byte_by_byte(opened: Open) -> None:
    keeper, server = opened()
    visitor = Visitor(keeper, server)
    visitor.send("/_portal/ws", "Connection: Upgrade", "Upgrade: websocket")
    assert visitor.answers.get().status == 101
    sent = os.urandom(300_000)
    visitor.client.sendall(sent[:100])
    echoed = visitor.client.recv(100, socket.MSG_WAITALL)
    visitor.client.sendall(sent[100:])
    while len(echoed) < len(sent):
        echoed += visitor.client.recv(65_536)
    assert echoed == sent
    visitor.close()


def test_other_requests_on_the_same_connection_are_the_servers(opened: Open) -> None:
    keeper, server = opened()
    visitor = Visitor(keeper, server)
    assert visitor.ask("/_portal/").json()["target"] == "/"
    assert visitor.ask("/quick").json()[:2] == ["GET", "/quick"]
    assert visitor.ask("/_portal/x").json()["target"] == "/x"
    visitor.cookie = "none=1"
    assert visitor.ask("/_portal/x").status == 401
    visitor.close()


def test_a_process_that_died_is_replaced(opened: Open) -> None:
    keeper, server = opened()
    visitor = Visitor(keeper, server)
    first = visitor.ask("/_portal/").json()["pid"]
    assert visitor.ask("/quick").status == 200
    os.kill(first, signal.SIGKILL)
    until(lambda: not is_alive(first))
    assert visitor.ask("/_portal/").json()["pid"] != first
    visitor.close()


@pytest.mark.parametrize("end", ["/_portal/idle", "/_portal/die"])
def test_a_visitor_just_when_it_ends_is_met_by_the_next(opened: Open, end: str) -> None:
    keeper, server = opened()
    first, second = Visitor(keeper, server), Visitor(keeper, server)
    pid = first.ask("/_portal/").json()["pid"]
    first.send(end)
    assert first.answers.next() is None  # a browser asks again, on another connection
    assert second.ask("/_portal/").json()["pid"] != pid
    first.close()
    second.close()


def test_one_that_can_not_start_is_said_and_tried_again_only_when_asked(opened: Open) -> None:
    keeper, server = opened(key="broken")
    for _ in range(2):
        visitor = Visitor(keeper, server)
        found = visitor.ask("/_portal/")
        assert found.status == 502
        assert b"does not answer" in found.body
        visitor.close()


def test_it_ends_with_its_server(opened: Open) -> None:
    keeper, server = opened()
    visitor = Visitor(keeper, server)
    pid = visitor.ask("/_portal/").json()["pid"]
    folder = Path(str(keeper.door.address)).parent
    keeper.close()
    until(lambda: not is_alive(pid))
    assert not folder.exists()
    visitor.close()


def test_no_process_is_started_without_a_visitor(opened: Open) -> None:
    keeper, server = opened()
    stranger = Visitor(keeper, server)
    cookie, stranger.cookie = stranger.cookie, "none=1"
    assert stranger.ask("/_portal/").status == 401
    assert keeper.pid is None
    stranger.cookie = cookie
    assert stranger.ask("/_portal/").json()["pid"] == keeper.pid
    stranger.close()
