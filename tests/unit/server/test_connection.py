"""Without these, a slow, greedy or broken client could take the server from all others."""

import logging
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from select import select

import pytest
from tests.support.raw_http import Answers, get, post
from tests.unit.server.conftest import Running, Start

from armillary.server.http.connection import Connection


def until(wanted: object, look: object, seconds: float = 60.0) -> None:
    """Wait until `look()` is `wanted`."""
    assert callable(look)
    end = time.monotonic() + seconds
    while (seen := look()) != wanted:
        assert time.monotonic() < end, seen
        time.sleep(0.005)


def ask(server: Running, request: bytes) -> tuple[int, bytes]:
    with server.connect() as client:
        client.sendall(request)
        answer = Answers(client).get()
        return answer.status, answer.body


def is_amid_a_request(server: Running) -> bool:
    """A client that has only just come is a handshake, and no connection yet."""
    peers = list(server.hub.pool.peers)
    return any(peer._reader.in_request for peer in peers if isinstance(peer, Connection))


# --- framing ------------------------------------------------------------------------------------


def test_a_request_cut_at_every_byte_is_answered(start: Start) -> None:
    server = start()
    request = post("/quick/a", b'{"id":"1"}', "X-Ms-Date: now")
    with server.connect() as client:
        answers = Answers(client)
        for cut in range(1, len(request)):
            client.sendall(request[:cut])
            time.sleep(0.0005)  # two segments, not one
            client.sendall(request[cut:])
            assert answers.get().json() == ["POST", "/quick/a", '{"id":"1"}', False]
    assert len(server.service.requests) == len(request) - 1


def test_a_get_after_a_post_in_one_segment_is_answered_after_it(start: Start) -> None:
    server = start()
    with server.connect() as client:
        client.sendall(post("/wait/write", b"{}") + get("/quick/read"))
        until(1, lambda: len(server.service.requests))
        time.sleep(0.05)  # in which the second must not be begun
        assert [one.target for one in server.service.requests] == ["/wait/write"]
        server.service.gate("write").set()
        answers = Answers(client)
        assert answers.get().json()[1] == "/wait/write"
        assert answers.get().json()[1] == "/quick/read"


def test_answers_go_out_in_order_although_a_later_one_is_done_first(start: Start) -> None:
    server = start()
    with server.connect() as client:
        client.sendall(get("/wait/a") + get("/slow/b") + get("/quick/c"))
        until(3, lambda: len(server.service.requests))
        client.settimeout(0.05)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.settimeout(60)
        server.service.gate("a").set()
        answers = Answers(client)
        assert [answers.get().json()[1] for _ in "abc"] == ["/wait/a", "/slow/b", "/quick/c"]


def test_quick_requests_run_on_the_loop_and_others_in_threads(start: Start) -> None:
    server = start()
    ask(server, get("/quick"))
    (loop_thread,) = server.service.threads
    ask(server, get("/slow"))
    (other,) = server.service.threads - {loop_thread}
    assert other.startswith("request")


def test_thousands_of_pipelined_requests_keep_their_order(start: Start) -> None:
    server = start(pipeline=16, inline=4)
    count = 3_000
    with server.connect() as client:
        client.sendall(b"".join(get(f"/quick/{number}") for number in range(count)))
        answers = Answers(client)
        seen = [answers.get().json()[1] for _ in range(count)]
    assert seen == [f"/quick/{number}" for number in range(count)]


def test_what_the_answer_is_made_of(start: Start) -> None:
    server = start()
    with server.connect() as client:
        answers = Answers(client)
        client.sendall(get("/quick/a", method="HEAD"))
        head = answers.next(head=True)
        client.sendall(get("/quick/a") + get("/status/204") + get("/status/304"))
        whole, no_content, not_modified = answers.get(), answers.get(), answers.get()
        client.sendall(b"GET /quick HTTP/1.0\r\n\r\n")
        old = answers.get()
        assert answers.next() is None
    assert head is not None
    assert int(head.headers["content-length"]) == len(whole.body) + 1  # HEAD is a letter longer
    assert whole.headers["date"].endswith(" GMT")
    assert "connection" not in whole.headers
    for empty in (no_content, not_modified):
        assert "content-length" not in empty.headers
    assert old.headers["connection"] == "close"


def test_a_client_that_waits_for_a_word_gets_it(start: Start) -> None:
    server = start()
    request = post("/quick", b"abc", "Expect: 100-continue")
    with server.connect() as client:
        answers = Answers(client)
        client.sendall(request[:-3])
        assert answers.get().status == 100
        client.sendall(request[-3:])
        assert answers.get().json()[2] == "abc"


def test_a_client_that_said_all_it_had_to_say_still_gets_its_answer(start: Start) -> None:
    server = start()
    with server.connect() as client:
        client.sendall(get("/wait/a"))
        until(1, lambda: len(server.service.requests))
        client.shutdown(socket.SHUT_WR)
        time.sleep(0.02)
        server.service.gate("a").set()
        answers = Answers(client)
        assert answers.get().status == 200
        assert answers.next() is None


def test_a_refusal_comes_after_the_answers_before_it_and_is_not_lost_in_a_reset(
    start: Start,
) -> None:
    server = start(body_bytes=1_000)
    with server.connect() as client:
        client.sendall(get("/wait/a") + post("/quick", b"x" * 500_000))
        time.sleep(0.05)
        server.service.gate("a").set()
        client.sendall(b"x" * 500_000)
        answers = Answers(client)
        assert answers.get().json()[1] == "/wait/a"
        refusal = answers.get()
        assert (refusal.status, refusal.headers["connection"]) == (413, "close")
        assert refusal.json()["code"] == "RequestEntityTooLarge"
        assert answers.next() is None
    until(0, server.peers)


@pytest.mark.parametrize("path", ["/bug", "/quick", "/split"])
def test_a_bug_of_the_service_is_a_500_and_is_logged(
    start: Start, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    server = start()
    if path == "/quick":
        server.service.is_quick = None  # type: ignore[method-assign, assignment]
    with caplog.at_level(logging.ERROR, "armillary.server"), server.connect() as client:
        client.sendall(get(path) + get("/alive"))
        answers = Answers(client)
        assert answers.get().status == 500
        assert answers.get().status == 200  # and the connection goes on
    assert "a bug" in caplog.text


# --- clients that are slow, silent or gone ------------------------------------------------------


def test_a_client_that_never_reads_is_stopped_and_others_are_served(start: Start) -> None:
    server = start(write_buffer_bytes=100_000, write_s=0.6, pipeline=8)
    with server.connect() as greedy:
        greedy.setblocking(False)
        requests, sent = get("/large/1000000") * 2_000, 0
        for _ in range(20):
            try:
                sent += greedy.send(requests[sent:])
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:
                break  # on a slow machine its time is up already
        handled = len(server.service.requests)
        assert handled < 100  # what the buffers of the system took, and no more
        assert ask(server, get("/quick"))[0] == 200
        until(0, server.peers)  # and its time is up


def test_a_client_that_reads_slowly_gets_everything(start: Start) -> None:
    # The bound is long enough that a busy machine does not make this client a silent one.
    server = start(write_buffer_bytes=10_000, write_s=2.5)
    size = 8_000_000
    with server.connect() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20_000)
        client.sendall(get(f"/large/{size}"))
        begin, received = time.monotonic(), 0
        while received < size:
            piece = client.recv(300_000)
            assert piece, "the server gave up on a client that reads"
            received += len(piece)
            due = begin + 3.0 * received / size  # the whole takes longer than the bound
            time.sleep(max(0.0, due - time.monotonic()))
    assert received > size


def test_a_head_that_trickles_in_is_given_up(start: Start) -> None:
    server = start(head_s=0.2)
    # Reset, or broken pipe, before it has said all.
    with server.connect() as client, pytest.raises(OSError):
        for byte in get("/quick", "X: " + "y" * 1_000):
            client.sendall(bytes([byte]))
            time.sleep(0.01)
    until(0, server.peers)
    assert server.service.requests == []


def test_a_body_that_never_comes_is_given_up(start: Start) -> None:
    server = start(body_s=0.2)
    with server.connect() as client:
        client.sendall(post("/quick", b"abc")[:-1])
        assert Answers(client).next() is None
    until(0, server.peers)


def test_an_idle_connection_ends_and_a_busy_one_does_not(start: Start) -> None:
    # Long enough that a busy machine makes none of the three silent that is not.
    server = start(idle_s=1.0, first_byte_s=1.0, head_s=1.0, body_s=1.0)
    with server.connect() as silent, server.connect() as idle, server.connect() as busy:
        busy.sendall(get("/wait/a"))
        idle.sendall(get("/quick"))
        answers = Answers(idle)
        assert answers.get().status == 200
        assert answers.next() is None
        assert silent.recv(1) == b""
        until(1, server.peers)
        server.service.gate("a").set()
        assert Answers(busy).get().status == 200


def test_a_client_that_goes_away_takes_its_waiting_requests_with_it(start: Start) -> None:
    server = start()
    with server.connect() as client:
        client.sendall(post("/wait/a", b"") + post("/quick/b", b""))
        until(1, lambda: len(server.service.requests))
        # A reset. A plain close looks like a client that waits for its answers.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    until(0, server.peers)
    server.service.gate("a").set()
    assert ask(server, get("/quick/c"))[0] == 200
    assert [one.target for one in server.service.requests] == ["/wait/a", "/quick/c"]


def test_more_connections_than_allowed_are_refused(start: Start) -> None:
    server = start(connections=2)
    with server.connect() as one, server.connect() as two:
        for client in (one, two):
            client.sendall(get("/quick"))
            assert Answers(client).get().status == 200
        with server.connect() as three:
            assert Answers(three).next() is None
        one.close()
        until(1, server.peers)
        assert ask(server, get("/quick"))[0] == 200


def test_more_work_than_allowed_is_refused_with_503(start: Start) -> None:
    server = start(waiting=1)
    with server.connect() as client:
        client.sendall(get("/wait/a"))
        until(1, lambda: len(server.service.requests))
        assert ask(server, get("/slow"))[0] == 503
        server.service.gate("a").set()
        assert Answers(client).get().status == 200
    assert ask(server, get("/slow"))[0] == 200


def test_a_body_that_comes_in_has_room_though_others_stall(start: Start) -> None:
    """Any client may begin a body: those that stall must not be a way to refuse all others."""
    server = start(receiving_bytes=1_000_000)
    receiving = server.hub.pool.receiving
    body = b"x" * 400_000
    with server.connect() as one, server.connect() as two:
        for client in (one, two):
            client.sendall(post("/quick", body)[:-1])
        until(799_998, lambda: receiving.bytes)
        with server.connect() as three:
            # In two parts: how a body is cut on its way is chance, and a whole one is not held.
            three.sendall(post("/quick", body)[:-1])
            until(True, lambda: len(server.hub.pool.peers) < 3)  # the slowest had to go
            three.sendall(body[-1:])
            assert Answers(three).get().status == 200
        until(399_999, lambda: receiving.bytes)
        found = [client for client in (one, two) if select([client], [], [], 0)[0]]
        assert [Answers(client).get().status for client in found] == [503]
        (other,) = {one, two} - set(found)
        other.sendall(body[-1:])
        assert Answers(other).get().status == 200
        until(0, lambda: receiving.bytes)


def test_a_body_that_is_too_much_alone_is_refused(start: Start) -> None:
    server = start(receiving_bytes=100_000)
    with server.connect() as client:
        client.sendall(post("/quick", b"x" * 400_000)[:-1])
        assert Answers(client).get().status == 503
    until(0, lambda: server.hub.pool.receiving.bytes)


def test_who_may_not_send_is_told_before_the_body_is_in(start: Start) -> None:
    server = start(screened_bytes=10_000)
    body = b"x" * 400_000
    with server.connect() as client:
        client.sendall(post("/stranger", body)[:100_000])
        assert Answers(client).get().status == 401
    assert ask(server, post("/friend", body))[0] == 200
    assert [one.target for one in server.service.requests] == ["/friend"]


def test_nothing_is_learned_from_what_was_refused(start: Start) -> None:
    """A template costs more than a signature: strangers could keep a worker busy with them."""
    server = start()
    known = server.hub._templates._known
    with server.connect() as client:
        answers = Answers(client)
        client.sendall(post("/later/refused", b"0"))
        assert answers.get().status == 401
        assert not known
        client.sendall(post("/later/first", b"0"))
        assert answers.get().status == 200
        assert len(known) == 1
        many = "".join(f"x-{number}: a\r\n" for number in range(60)).encode()
        client.sendall(post("/later/first", b"0").replace(b"\r\n\r\n", b"\r\n" + many + b"\r\n", 1))
        assert answers.get().status == 200
        assert len(known) == 1


def test_a_head_that_is_too_large_is_refused_on_a_known_request_too(start: Start) -> None:
    server = start()
    with server.connect() as client:
        answers = Answers(client)
        one = post("/later/first", b"0").replace(b"\r\n\r\n", b"\r\nuser-agent: a\r\n\r\n", 1)
        client.sendall(one)
        assert answers.get().status == 200
        (template,) = server.hub._templates._known.values()
        assert template.match(one) is not None
        assert (
            template.match(one.replace(b"user-agent: a", b"user-agent: " + b"a" * 70_000)) is None
        )


# --- the end ------------------------------------------------------------------------------------


def test_a_drain_answers_what_is_under_way_and_ends_the_rest(start: Start) -> None:
    server = start()
    with server.connect() as busy, server.connect() as half, server.connect() as idle:
        busy.sendall(get("/wait/a"))
        half.sendall(get("/quick/b")[:-1])
        idle.sendall(get("/quick"))
        idle_answers = Answers(idle)
        idle_answers.get()
        until(2, lambda: len(server.service.requests))
        server.begin_stop()
        assert idle_answers.next() is None
        with pytest.raises(ConnectionRefusedError):
            server.connect()
        half.sendall(b"\n")
        server.service.gate("a").set()
        for client in (half, busy):
            answers = Answers(client)
            last = answers.get()
            assert (last.status, last.headers["connection"]) == (200, "close")
            assert answers.next() is None
    server.stop()


def test_what_was_sent_before_the_stop_is_answered(start: Start) -> None:
    server = start()
    kept = [server.connect() for _ in range(30)]
    for client in kept:
        client.sendall(get("/quick"))
        Answers(client).get()
    new = [server.connect() for _ in range(30)]
    for client in (*kept, *new):
        client.sendall(get("/quick"))
    server.begin_stop()
    for client in (*kept, *new):
        with client:
            answers = Answers(client)
            assert answers.get().status == 200
            assert answers.next() is None
    server.stop()


def test_a_drain_does_not_wait_for_ever(start: Start) -> None:
    server = start(drain_s=0.2)
    with server.connect() as client:
        client.sendall(get("/quick")[:-1])
        until(True, lambda: is_amid_a_request(server))
        server.stop()  # which would not end while it waits for the rest
        assert Answers(client).next() is None


# --- hosts and probes ---------------------------------------------------------------------------


def test_a_strange_host_is_refused_before_the_service_sees_it(start: Start) -> None:
    server = start()
    status, body = ask(server, b"GET /quick HTTP/1.1\r\nHost: evil.example:8081\r\n\r\n")
    assert status == 403
    assert b"evil.example" in body
    assert server.service.requests == []


@pytest.mark.parametrize("path", ["/_armillary/health", "/ready", "/alive"])
def test_probes_are_answered_without_the_service(start: Start, path: str) -> None:
    server = start()
    assert ask(server, get(path))[0] == 200
    assert ask(server, post(path, b""))[0] == 405
    assert server.service.requests == []


def test_ready_says_no_while_stopping(start: Start) -> None:
    server = start()
    with server.connect() as client:
        client.sendall(post("/wait/b", b"") + get("/ready") + get("/alive"))
        until(1, lambda: len(server.service.requests))
        server.begin_stop()
        until(True, lambda: server.hub.draining)
        server.service.gate("b").set()
        answers = Answers(client)
        answers.get()
        assert answers.get().status == 503
        assert answers.get().status == 200


# --- templates ----------------------------------------------------------------------------------


def test_a_request_like_one_before_takes_the_fast_path(start: Start) -> None:
    server = start()
    with server.connect() as client:
        answers = Answers(client)
        client.sendall(get("/quick/a", "Say: hello"))
        assert answers.get().json() == ["GET", "/quick/a", "", False]
        client.sendall(get("/quick/b", "Say: again"))
        assert answers.get().json() == "short b"
        client.sendall(get("/quick/c", "Say: long"))
        assert answers.get().json() == ["GET", "/quick/c", "", False]
    assert server.service.fast.said == [b"again"]


def test_only_whole_and_single_requests_take_the_fast_path(start: Start) -> None:
    """Cut, joined, or while another is under way: the order of answers is the parser's business."""
    server = start()
    one, two = get("/quick/a", "Say: one"), get("/quick/b", "Say: two")
    with server.connect() as client:
        answers = Answers(client)
        client.sendall(one)
        answers.get()
        client.sendall(one + two)
        assert [answers.get().json()[1] for _ in "12"] == ["/quick/a", "/quick/b"]
        client.sendall(one[:20])
        until(True, lambda: is_amid_a_request(server))
        client.sendall(one[20:])
        assert answers.get().json()[1] == "/quick/a"
        client.sendall(get("/wait/w"))
        until(5, lambda: len(server.service.requests))
        client.sendall(two)
        server.service.gate("w").set()
        assert answers.get().json()[1] == "/wait/w"
        assert answers.get().json()[1] == "/quick/b"
        client.sendall(two)
        assert answers.get().json() == "short b"


def test_what_was_refused_is_no_example(start: Start) -> None:
    """A strange Host is refused before the service sees it, and so it must stay."""
    server = start()
    stranger = get("/quick/a", "Say: hello").replace(b"localhost", b"evil.example")
    with server.connect() as client:
        answers = Answers(client)
        for _ in range(3):
            client.sendall(stranger)
            assert answers.get().status == 403


def test_a_bug_of_a_fast_path_is_a_500(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    server = start()
    with server.connect() as client:
        answers = Answers(client)
        client.sendall(get("/quick/a", "Say: hello"))
        answers.get()
        with caplog.at_level(logging.CRITICAL, "armillary.server"):
            client.sendall(get("/quick/a", "Say: bug"))
            assert answers.get().status == 500
        client.sendall(get("/quick/a", "Say: hello"))
        assert answers.get().json() == "short a"


# --- requests of several clients at once --------------------------------------------------------


@contextmanager
def standing(server: Running) -> Iterator[None]:
    """The loop waits; what is sent meanwhile it finds in one turn."""
    stands, goes_on = threading.Event(), threading.Event()

    def stand() -> None:
        stands.set()
        assert goes_on.wait(60)

    server.on_loop(stand)
    assert stands.wait(60)
    yield
    goes_on.set()


def known(client: socket.socket) -> Answers:
    """A client whose requests have a template."""
    answers = Answers(client)
    client.sendall(get("/quick/a", "Say: hello"))
    assert answers.get().status == 200
    return answers


def test_requests_of_one_turn_are_answered_after_all_are_read(start: Start) -> None:
    """Each by itself would find the caches of the processor cold after a system call."""
    server = start()
    turns: list[int] = []
    receive = server.hub.pool._receive_gathered
    with ExitStack() as stack:
        clients = [stack.enter_context(server.connect()) for _ in range(5)]
        answers = [known(client) for client in clients]

        def counted() -> None:
            turns.append(len(server.hub.pool._gathered))
            receive()

        server.hub.pool._receive_gathered = counted  # type: ignore[method-assign]
        with standing(server):
            for letter, client in zip("abcde", clients, strict=True):
                client.sendall(get(f"/quick/{letter}", "Say: again"))
        assert [one.get().json() for one in answers] == [f"short {one}" for one in "abcde"]
        assert turns == [5]
        # What is unknown, or in pieces, waits for its turn all the same.
        with standing(server):
            clients[0].sendall(get("/quick/a", "Else: 1"))
            clients[1].sendall(get("/quick/b", "Say: again") * 2)
            clients[2].sendall(get("/quick/c", "Say: again")[:20])
        assert answers[0].get().json()[1] == "/quick/a"
        assert [answers[1].get().json()[1] for _ in "12"] == ["/quick/b"] * 2
        clients[2].sendall(get("/quick/c", "Say: again")[20:])
        assert answers[2].get().status == 200


def test_a_known_request_and_the_end_of_its_client_in_one_turn(start: Start) -> None:
    server = start()
    with server.connect() as other, server.connect() as client:
        known(other)
        answers = known(client)
        with standing(server):
            client.sendall(get("/quick/l", "Say: again"))
            client.shutdown(socket.SHUT_WR)
        assert answers.get().json() == "short l"
        assert answers.next() is None


def test_a_bug_of_one_client_is_not_that_of_those_it_came_with(
    start: Start, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start()
    with server.connect() as one, server.connect() as other:
        broken, answers = known(one), known(other)

        def fails(connection: Connection, data: bytes) -> bool:
            if b"/quick/x" in data:
                raise RuntimeError("planted")
            return answer(connection, data)

        answer = Connection._answer_known
        monkeypatch.setattr(Connection, "_answer_known", fails)
        with caplog.at_level(logging.CRITICAL, "armillary.server"), standing(server):
            one.sendall(get("/quick/x", "Say: again"))
            other.sendall(get("/quick/o", "Say: again"))
        assert answers.get().json() == "short o"
        assert broken.next() is None
