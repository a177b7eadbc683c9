"""Without these, a busy port could go unnoticed, HTTPS could need a port of its own, and a client
that says nothing, or one byte a second, could block all others."""

import socket
import ssl
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.raw_http import Answers, get, post
from tests.unit.server.conftest import Running, Start
from tests.unit.server.test_connection import until

from armillary.server.binding import PortBusy, address_of, bind, check_free
from armillary.server.tls import certificate_in


def trusting(certificate: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=certificate_in(certificate).cert_pem)
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


def close(sockets: list[socket.socket]) -> None:
    for one in sockets:
        one.close()


# --- binding ------------------------------------------------------------------------------------


def test_localhost_is_both_loopbacks_on_one_port() -> None:
    sockets = bind("127.0.0.1", 0)
    try:
        assert len({one.getsockname()[1] for one in sockets}) == 1
        families = [one.family for one in sockets]
        assert families in ([socket.AF_INET], [socket.AF_INET, socket.AF_INET6])
        assert address_of(sockets) == f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
    finally:
        close(sockets)


def test_a_busy_port_is_refused_with_a_remedy() -> None:
    first = bind("127.0.0.1", 0)
    port = first[0].getsockname()[1]
    try:
        with pytest.raises(PortBusy, match=f"Port {port} .* armillary serve --port {port + 1}"):
            bind("127.0.0.1", port)
    finally:
        close(first)


def test_a_port_others_share_is_busy_too() -> None:
    # Two servers of one user with shared bindings would take turns answering.
    first = bind("127.0.0.1", 0, shared=True)
    port = first[0].getsockname()[1]
    try:
        with pytest.raises(PortBusy):
            check_free("127.0.0.1", port)
        close(bind("127.0.0.1", port, shared=True))
    finally:
        close(first)
    assert check_free("127.0.0.1", port) == port


# --- one port for both --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "host.docker.internal"])
def test_https_on_the_same_port_under_every_name(
    start: Start, certificate: Path, name: str
) -> None:
    server = start()
    with server.connect() as plain, server.connect() as raw:
        plain.sendall(get("/quick"))
        assert Answers(plain).get().json()[3] is False
        with trusting(certificate).wrap_socket(raw, server_hostname=name) as secure:
            assert secure.selected_alpn_protocol() == "http/1.1"
            answers = Answers(secure)
            secure.sendall(get("/quick") + post("/slow", b"abc"))
            assert answers.get().json() == ["GET", "/quick", "", True]
            assert answers.get().json() == ["POST", "/slow", "abc", True]
            secure.sendall(get("/large/3000000"))
            assert len(answers.get().body) == 3_000_000


def test_no_client_waits_for_a_tls_hello_of_one_byte_at_a_time(
    start: Start, certificate: Path
) -> None:
    server = start(handshake_s=600)
    with server.connect() as slow:
        for byte in hello_bytes(certificate)[:40]:
            slow.sendall(bytes([byte]))
            ask(server)


def test_a_tls_hello_of_one_byte_at_a_time_is_given_up(start: Start, certificate: Path) -> None:
    server = start(handshake_s=0.3)
    # Reset, or broken pipe, before it has said all.
    with server.connect() as slow, pytest.raises(OSError):
        for byte in hello_bytes(certificate):
            slow.sendall(bytes([byte]))
            time.sleep(0.02)
    until(0, server.peers)


@pytest.mark.parametrize("begin", [b"\x16", b"\x16\x03", b"\x16\x03\x01\x00"])
def test_the_beginning_of_a_tls_hello_holds_nothing(start: Start, begin: bytes) -> None:
    """A byte of a hello, then silence: not polled for, and not kept for as long as one that has not
    sent anything."""
    server = start(handshake_s=0.3, first_byte_s=600)
    with server.connect() as silent, server.connect() as ended:
        for one in (silent, ended):
            one.sendall(begin)
        ended.shutdown(socket.SHUT_WR)
        for one in (ended, silent):
            with suppress(ConnectionResetError):  # what it sent was not read
                assert one.recv(1) == b""
    until(0, server.peers)
    ask(server)


def test_a_broken_hello_ends_that_connection_only(start: Start) -> None:
    server = start()
    with server.connect() as client:
        client.sendall(b"\x16\x03\x01\x00\x05hello" + b"\0" * 100)
        while client.recv(100):  # the alert, then the end
            pass
    ask(server)


def test_a_reset_before_the_first_byte_ends_that_connection_only(start: Start) -> None:
    server = start()
    for _ in range(20):
        client = server.connect()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
    server.connect().close()
    ask(server)
    until(0, server.peers)


def hello_bytes(certificate: Path) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting(certificate).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def ask(server: Running) -> None:
    """A request of somebody else."""
    with server.connect() as client:
        client.sendall(get("/quick"))
        assert Answers(client).get().status == 200
