"""A shape takes nothing that the parser would refuse or read otherwise. Without this, two readings
of one stream would be possible, which is how requests are smuggled."""

import re
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from armillary.api.http.messages import Request
from armillary.server.bounds import Bounds
from armillary.server.http.templates import TEMPLATES_MAX, Templates
from armillary.server.http.wire import Incoming, RequestReader


class Words:
    """Hands back what it was given."""

    method = "GET"
    has_body = False
    waits = False
    target = rb"/([a-z]+)/([a-z]*)"
    captured: Final = {"date": rb"[0-9]+", "key": rb"\[[ -~]*\]"}
    fixed = frozenset({"level"})
    ignored = frozenset({"empty"})

    def accepts(self, request: Request) -> bool:
        return "no" not in request.headers

    @staticmethod
    def answer(*groups: bytes) -> bytes | None:
        return b"|".join(groups)


def read(data: bytes) -> Request | None:
    """What the parser makes of it, if it is exactly one request."""
    reader = RequestReader(Bounds())
    events = reader.receive(data)
    if len(events) != 1 or not isinstance(events[0], Incoming) or reader.in_request:
        return None
    return events[0].request if events[0].keep_alive else None


def learned(shapes: Templates, data: bytes) -> object:
    request = read(data)
    return None if request is None else shapes.find(data, request)


LINES = ["Host: localhost", "Date: 5", 'KEY: ["a b"]', "level: x", "User-Agent: me", "Empty: "]
ORDINARY = "\r\n".join(["GET /ab/cd HTTP/1.1", *LINES, "", ""]).encode()

pieces = st.sampled_from(
    [
        *(
            b"\r\n",
            b"\n",
            b"\r",
            b" ",
            b"\t",
            b":",
            b"\x00",
            b"\x7f",
            b"\xff",
            b"a",
            b"7",
            b"]",
            b"/",
        ),
        *(b"Host: b\r\n", b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n"),
        *(b"Date: 6\r\n", b" folded", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.0"),
        *(b"?x", b"%20", b"Connection: close\r\n"),
    ]
)


@settings(deadline=None)
@given(st.integers(0, len(ORDINARY)), st.integers(0, 20), pieces)
@example(ORDINARY.index(b"User") + 12, 2, b"you")
@example(ORDINARY.index(b"Date: ") + 6, 1, b"77")
def test_what_matches_is_read_alike(at: int, cut: int, piece: bytes) -> None:
    shapes = Templates([Words()])
    request = read(ORDINARY)
    assert request is not None
    shape = shapes.find(ORDINARY, request)
    assert shape is not None
    changed = ORDINARY[:at] + piece + ORDINARY[at + cut :]
    found = shape.match(changed)
    if found is None:
        return
    seen = read(changed)
    assert seen is not None
    wanted = re.match(Words.target, seen.target.encode())
    assert wanted is not None
    values = [seen.headers[name].encode() for name in Words.captured]
    assert tuple(found) == (wanted.group(), *wanted.groups(), *values)
    assert seen.headers["level"] == request.headers["level"]
    assert seen.headers["host"] == request.headers["host"]
    assert seen.headers.keys() == request.headers.keys()
    assert seen.body == b""


@settings(deadline=None)
@given(st.permutations(LINES), st.sets(st.sampled_from(LINES[1:])))
def test_any_order_and_any_choice_of_headers_has_a_shape(order: list[str], left: set[str]) -> None:
    lines = [one for one in order if one not in left]
    data = "\r\n".join(["GET /ab/cd HTTP/1.1", *lines, "", ""]).encode()
    request = read(data)
    assert request is not None
    shape = Templates([Words()]).find(data, request)
    assert shape is not None
    found = shape.match(data)
    assert found is not None
    values = [request.headers.get(name, "").encode() for name in Words.captured]
    assert tuple(found) == (b"/ab/cd", b"ab", b"cd", *values)


@pytest.mark.parametrize(
    "data",
    [
        b"GET /ab/cd HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
        b"GET /ab/cd HTTP/1.1\r\nHost: a\r\nX: 1\r\nX: 2\r\n\r\n",
        b"GET /ab/cd HTTP/1.1\r\nHost: a\r\nX:1\r\n\r\n",
        b"GET /ab/cd HTTP/1.1\r\nHost: a\r\nX:  1\r\n\r\n",
        b"GET /ab/cd HTTP/1.1\r\nHost: a\r\nX: 1 \r\n\r\n",
        b"GET /ab/cd HTTP/1.1\r\nHost: a\r\nNo: 1\r\n\r\n",
        b"GET /ab/cd HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
        b"GET /ab/cd HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
        b"POST /ab/cd HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        b"\r\nGET /ab/cd HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
def test_strange_requests_have_no_shape(data: bytes) -> None:
    assert learned(Templates([Words()]), data) is None


def test_shapes_are_shared_and_bounded() -> None:
    shapes = Templates([Words()])
    first = learned(shapes, ORDINARY)
    assert learned(shapes, ORDINARY.replace(b"me", b"you")) is first
    for number in range(TEMPLATES_MAX + 1):
        learned(shapes, ORDINARY.replace(b"level: x", b"level: %d" % number))
    assert len(shapes._known) <= TEMPLATES_MAX
