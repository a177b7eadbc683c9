"""A fast path that waits for the writer: answers stay in order, bounds hold, and what ends on
the general path does. Without these, a client could get the answer to another request, or none."""

import logging
import socket
import struct
from collections.abc import Callable
from functools import partial

import pytest
from tests.support.raw_http import Answers, get, post
from tests.unit.server.conftest import Running, Start
from tests.unit.server.test_connection import until as until_soon

from armillary.server.http.connection import Connection

until = partial(until_soon, seconds=30.0)


def all_are(server: Running, look: Callable[[Connection], object]) -> bool:
    """A client that has only just come is a handshake, and no connection yet."""
    peers = list(server.hub.pool.peers)
    return bool(peers) and all(isinstance(one, Connection) and look(one) for one in peers)


def with_template(server: Running, client: socket.socket) -> Answers:
    """The first one takes the general path, and is an example for the others."""
    answers = Answers(client)
    client.sendall(post("/later/first", b"0"))
    assert answers.get().json() == ["POST", "/later/first", "0", False]
    return answers


def begin(server: Running, client: socket.socket, word: str, body: bytes = b"1") -> None:
    client.sendall(post(f"/later/{word}", body))
    until(True, lambda: word in server.service.later.futures)


def end(server: Running, word: str) -> None:
    server.service.later.futures.pop(word).set_result(None)


def test_it_is_answered_when_the_future_is_done(start: Start) -> None:
    server = start()
    with server.connect() as client:
        answers = with_template(server, client)
        for body in (b"1", b"22"):
            begin(server, client, "a", body)
            end(server, "a")
            answer = answers.get()
            assert answer.status == 201
            assert answer.json() == f"short a {body.decode()}"
    assert [one.target for one in server.service.requests] == ["/later/first"]


def test_what_comes_meanwhile_is_answered_behind_it(start: Start) -> None:
    server = start()
    with server.connect() as client:
        answers = with_template(server, client)
        begin(server, client, "a")
        client.sendall(get("/quick/b") + post("/later/c", b"3"))
        until(True, lambda: all_are(server, lambda one: len(one._pipeline) == 3))
        assert len(server.service.requests) == 1  # a GET after a POST sees what the POST did
        end(server, "a")
        assert answers.get().json() == "short a 1"
        assert answers.get().json()[1] == "/quick/b"
        assert answers.get().json()[1] == "/later/c"
        begin(server, client, "d")
        end(server, "d")
        assert answers.get().json() == "short d 1"


def test_what_it_can_not_end_is_read_by_the_parser(start: Start) -> None:
    server = start()
    with server.connect() as client:
        answers = with_template(server, client)
        begin(server, client, "otherwise", b"22")
        end(server, "otherwise")
        answer = answers.get()
        assert answer.status == 409
        assert answer.json() == ["POST", "/later/otherwise", "22", False]
        begin(server, client, "again", b"333")
        end(server, "again")
        assert answers.get().json() == ["POST", "/later/again", "333", False]
        begin(server, client, "a")
        end(server, "a")
        assert answers.get().json() == "short a 1"
    assert [one.target for one in server.service.requests] == ["/later/first", "/later/again"]


def test_a_bug_at_its_end_is_a_500(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    server = start()
    with server.connect() as client, caplog.at_level(logging.CRITICAL, "armillary.server"):
        answers = with_template(server, client)
        begin(server, client, "bug")
        end(server, "bug")
        assert answers.get().status == 500


def test_a_client_that_went_away_is_charged_all_the_same(start: Start) -> None:
    server = start()
    with server.connect() as client:
        with_template(server, client)
        begin(server, client, "a")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    until(0, server.peers)
    end(server, "a")
    until(["a"], lambda: server.service.later.finished)


def test_a_client_that_says_it_is_done_still_gets_its_answer(start: Start) -> None:
    server = start()
    with server.connect() as client:
        answers = with_template(server, client)
        begin(server, client, "a")
        client.shutdown(socket.SHUT_WR)
        until(True, lambda: all_are(server, lambda one: one._hanging_up))
        end(server, "a")
        assert answers.get().json() == "short a 1"
        until(0, server.peers)


def test_a_server_that_stops_waits_for_it_and_says_goodbye(start: Start) -> None:
    server = start()
    with server.connect() as client:
        answers = with_template(server, client)
        begin(server, client, "a")
        server.begin_stop()
        until(True, lambda: server.hub.draining)
        end(server, "a")
        answer = answers.get()
        assert answer.json() == "short a 1"
        assert answer.headers["connection"] == "close"


def test_more_than_may_wait_takes_the_general_path_which_refuses_it(start: Start) -> None:
    server = start(waiting=1)
    with server.connect() as one, server.connect() as two:
        answers, others = with_template(server, one), with_template(server, two)
        begin(server, one, "a")
        two.sendall(post("/later/b", b"2"))
        assert others.get().status == 503
        end(server, "a")
        assert answers.get().json() == "short a 1"
        begin(server, two, "b")
        end(server, "b")
        assert others.get().json() == "short b 1"


def in_pieces(server: Running, client: socket.socket, data: bytes) -> None:
    """Head and body as most HTTP libraries send them: one after the other."""
    head, end_of_head, body = data.partition(b"\r\n\r\n")
    client.sendall(head + end_of_head)
    until(True, lambda: all_are(server, lambda one: one._reader.in_body))
    client.sendall(body)


def test_a_body_that_comes_after_its_head_takes_the_fast_path(start: Start) -> None:
    server = start()
    with server.connect() as client:
        answers = Answers(client)
        in_pieces(server, client, post("/later/first", b"0"))
        assert answers.get().json()[1] == "/later/first"
        for body in (b"1", b"22"):
            in_pieces(server, client, post("/later/a", body))
            until(True, lambda: "a" in server.service.later.futures)
            end(server, "a")
            assert answers.get().json() == f"short a {body.decode()}"
        begin(server, client, "b")  # in one piece again
        end(server, "b")
        assert answers.get().json() == "short b 1"
    assert [one.target for one in server.service.requests] == ["/later/first"]


def test_a_body_in_three_pieces_takes_the_general_path(start: Start) -> None:
    server = start()
    with server.connect() as client:
        answers = with_template(server, client)
        in_pieces(server, client, post("/later/a", b"123")[:-2])
        until(True, lambda: all_are(server, lambda one: one._reader.body_bytes))
        client.sendall(b"23")
        assert answers.get().json() == ["POST", "/later/a", "123", False]
        begin(server, client, "b")
        end(server, "b")
        assert answers.get().json() == "short b 1"
