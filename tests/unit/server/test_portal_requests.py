"""Requests on their way to the portal's process. Without these tests one could arrive changed, or a
second one could hide in the first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from armillary.api.http.messages import Request, Response
from armillary.server.portal.requests import PortalRequests


def reader(admit: Response | None = None) -> PortalRequests:
    return PortalRequests(lambda _: admit, secret="s", secure=False, head_bytes_max=4_000)


def head(line: str, *headers: str) -> bytes:
    return ("\r\n".join([line, "Host: localhost:8081", *headers]) + "\r\n\r\n").encode()


ADDED = b"x-armillary-portal: s\r\nx-forwarded-prefix: /_portal\r\nx-forwarded-proto: http\r\n\r\n"
PLAIN = b"GET /a?b=1 HTTP/1.1\r\nhost: localhost:8081\r\n" + ADDED


def test_the_prefix_goes_and_the_headers_come() -> None:
    requests = reader()
    lies = ("X-Forwarded-Prefix: /evil", "x-armillary-portal: guess", "Forwarded: for=1.2.3.4")
    assert requests.receive(head("GET /_portal/a?b=1 HTTP/1.1", *lies)) == PLAIN
    assert requests.receive(head("GET /_portal HTTP/1.1")).startswith(b"GET / HTTP/1.1\r\n")
    assert requests.refusal is None
    assert requests.leaving is None


BODIES = [
    head("POST /_portal/up HTTP/1.1", "Content-Length: 5") + b"12345",
    head("POST /_portal/up HTTP/1.1", "Transfer-Encoding: chunked") + b"3\r\nabc\r\n0\r\n\r\n",
    head("GET /_portal/a?b=1 HTTP/1.1"),
    head("GET /_portal/a?b=1 HTTP/1.1", "Connection: Upgrade", "Upgrade: h2c"),
]


@given(order=st.lists(st.sampled_from(BODIES), min_size=1, max_size=4), cut=st.integers(1, 50))
def test_any_cut_of_the_stream_says_the_same(order: list[bytes], cut: int) -> None:
    """But for the chunks of a body, whose cut is the stream's."""
    stream = b"".join(order)
    one, many = reader(), reader()
    whole = b"".join(one.receive(part) for part in order)
    pieces = b"".join(many.receive(stream[at : at + cut]) for at in range(0, len(stream), cut))
    assert _joined(pieces) == _joined(whole)
    assert many.refusal is None


def _joined(data: bytes) -> bytes:
    """Chunks of `abc` put together: `1 a 2 bc` is `3 abc`."""
    for cut in (b"1\r\na\r\n1\r\nb\r\n1\r\nc", b"1\r\na\r\n2\r\nbc", b"2\r\nab\r\n1\r\nc"):
        data = data.replace(cut, b"3\r\nabc")
    return data


def test_after_a_websocket_nothing_is_looked_at() -> None:
    requests = reader()
    text = head("GET /_portal/ws HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket")
    out = requests.receive(text + b"\x81\x00frame")
    assert out.endswith(ADDED + b"\x81\x00frame")
    assert requests.receive(b"GET / anything") == b"GET / anything"


def test_a_first_request_that_was_read_already_goes_on() -> None:
    requests = reader()
    headers = {"host": "localhost:8081", "content-length": "8", "expect": "100-continue"}
    first = requests.begin(Request("POST", "/_portal/up", headers, b"1234"), rest_bytes=4)
    assert first.endswith(ADDED + b"1234")
    assert b"expect" not in first
    assert requests.receive(b"5678" + head("GET /_portal/a?b=1 HTTP/1.1")) == b"5678" + PLAIN


def test_a_request_for_something_else_leaves() -> None:
    requests = reader()
    assert requests.receive(head("GET /_portal/a?b=1 HTTP/1.1")) == PLAIN
    assert requests.receive(b"GET /favi") == b""
    assert requests.receive(b"con.ico HTTP/1.1\r\n") == b""
    assert requests.leaving == b"GET /favicon.ico HTTP/1.1\r\n"


def test_what_may_not_pass_does_not() -> None:
    requests = reader(Response(401))
    assert requests.receive(head("POST /_portal/x HTTP/1.1", "Content-Length: 2") + b"hi") == b""
    assert requests.refusal == Response(401)
    endless = reader()
    out = endless.receive(b"GET /_portal/x HTTP/1.1\r\nX: " + b"y" * 5_000)
    assert out == b""
    assert endless.refusal is not None
    assert endless.refusal.status == 431
    broken = reader()
    broken.receive(b"GET /_portal/x NOT-HTTP\r\n\r\n")
    assert broken.refusal is not None
    assert broken.refusal.status == 400
