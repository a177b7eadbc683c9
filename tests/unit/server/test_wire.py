"""Without these, what a request is could depend on how the network cut it, a stranger could fill
the memory, or two programs could read two different requests out of one stream."""

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary.server.bounds import Bounds
from armillary.server.http.wire import CONTINUE, Continue, Event, Incoming, Refusal, RequestReader

SMALL = Bounds(target_bytes=100, head_bytes=400, headers=10, body_bytes=200)


def read(pieces: Iterable[bytes], bounds: Bounds = SMALL) -> list[Event]:
    reader = RequestReader(bounds)
    events = [event for piece in pieces for event in reader.receive(piece)]
    reader.close()
    return events


def plain(events: list[Event]) -> list[object]:
    return [
        (e.request, e.keep_alive, e.old) if isinstance(e, Incoming) else e
        for e in events
        if not isinstance(e, Continue)
    ]


def get(path: str, *headers: str, version: str = "1.1") -> bytes:
    lines = [f"GET {path} HTTP/{version}", "Host: localhost", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def post(path: str, body: bytes, *headers: str) -> bytes:
    head = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def chunked(path: str, *chunks: bytes, trailer: bytes = b"") -> bytes:
    head = f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    sizes = [b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks]
    return head + b"".join(sizes) + b"0\r\n" + trailer + b"\r\n"


def one(*pieces: bytes, bounds: Bounds = SMALL) -> Incoming:
    (event,) = read(pieces, bounds)
    assert isinstance(event, Incoming)
    return event


# --- any cut ------------------------------------------------------------------------------------

STREAM = (
    get("/dbs/a?x=1", "X-Ms-Date: today")
    + post("/dbs", b'{"id": "a"}')
    + chunked("/dbs/a", b"abc", b"defg" * 20, trailer=b"Authorization: none\r\n")
    + get("/up", "Connection: Upgrade", "Upgrade: h2c")
    + b"\r\n"
    + get("/last", "Connection: close")
    + b"GET /never HTTP/1.1\r\n\r\n"
)


def test_a_stream_cut_at_every_byte_gives_the_same_requests() -> None:
    whole = plain(read([STREAM]))
    assert len(whole) == 5
    for cut in range(1, len(STREAM)):
        assert plain(read([STREAM[:cut], STREAM[cut:]])) == whole, cut


def test_a_stream_of_single_bytes_gives_the_same_requests() -> None:
    assert plain(read(bytes([byte]) for byte in STREAM)) == plain(read([STREAM]))


PARTS = st.one_of(
    st.builds(get, st.sampled_from(["/", "/a", "/a/b?c=d", "/" + "p" * 99, "/" + "p" * 100])),
    st.builds(post, st.just("/docs"), st.binary(max_size=220)),
    st.builds(lambda chunks: chunked("/c", *chunks), st.lists(st.binary(min_size=1, max_size=60))),
    st.builds(lambda size: get("/h", "X: " + "v" * size), st.integers(0, 420)),
    st.sampled_from(
        [
            get("/close", "Connection: close"),
            get("/old", version="1.0"),
            get("/old", "Connection: keep-alive", version="1.0"),
            get("/new", version="2.0"),
            post("/expect", b"abc", "Expect: 100-continue"),
            b"GET /nohost HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            b"NONSENSE\r\n\r\n",
            b"GET /fold HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
            b"\x16\x03\x01",
        ]
    ),
)


@given(st.lists(PARTS, min_size=1, max_size=5), st.data())
def test_any_cut_gives_the_same_events(parts: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(parts)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8))
    edges = [0, *sorted(cuts), len(stream)]
    pieces = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert plain(read(pieces)) == plain(read([stream]))


@pytest.mark.parametrize("size", [376, 377])
def test_a_head_at_its_bound_does_not_pay_for_what_came_before_it(size: int) -> None:
    before = get("/h", "X: " + "v" * 285) * 3
    stream = before + get("/h", "X: " + "v" * size)
    for cut in range(len(before), len(stream)):
        for pieces in ([stream[:cut], b"", stream[cut:]], [stream[:cut], stream[cut:]]):
            last = read(pieces)[-1]
            assert isinstance(last, Incoming if size == 376 else Refusal)


@given(st.binary(max_size=300))
def test_noise_is_refused_and_never_breaks_the_reader(noise: bytes) -> None:
    for event in read([noise, noise]):
        assert isinstance(event, Incoming | Refusal | Continue)


# --- what a request is --------------------------------------------------------------------------


def test_names_are_lower_case_and_values_trimmed() -> None:
    request = one(get("/", "X-Ms-Date:   Sun, 15 Nov \t ", "Empty:")).request
    assert request.headers == {"host": "localhost", "x-ms-date": "Sun, 15 Nov", "empty": ""}


def test_a_trailer_is_no_header() -> None:
    request = one(chunked("/", b"abc", trailer=b"Authorization: forged\r\n")).request
    assert (request.body, "authorization" in request.headers) == (b"abc", False)


def test_the_host_of_an_absolute_target_counts() -> None:
    request = one(get("http://evil.example/dbs?x")).request
    assert (request.target, request.headers["host"]) == ("/dbs?x", "evil.example")


@pytest.mark.parametrize(
    ("headers", "version", "keep_alive"),
    [
        ((), "1.1", True),
        (("Connection: close",), "1.1", False),
        ((), "1.0", False),
        (("Connection: keep-alive",), "1.0", True),
    ],
)
def test_who_stays_connected(headers: tuple[str, ...], version: str, keep_alive: bool) -> None:
    event = one(get("/", *headers, version=version))
    assert (event.keep_alive, event.old) == (keep_alive, version == "1.0")


def test_a_client_that_asks_first_is_told_to_go_on() -> None:
    stream = post("/", b"abc", "Expect: 100-continue")
    reader = RequestReader(SMALL)
    assert reader.receive(stream[:-3]) == [CONTINUE]
    (event,) = reader.receive(stream[-3:])
    assert isinstance(event, Incoming)
    assert event.request.body == b"abc"


def test_a_client_that_asks_for_too_much_is_told_before_it_sends() -> None:
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 201\r\nExpect: 100-continue\r\n\r\n"
    assert [type(event) for event in read([head])] == [Refusal]


def test_an_upgrade_is_ignored_and_the_next_request_read() -> None:
    stream = get("/a", "Connection: Upgrade", "Upgrade: h2c") + get("/b")
    events = read([stream])
    assert [e.request.target for e in events if isinstance(e, Incoming)] == ["/a", "/b"]


# --- bounds and refusals ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "status"),
    [
        (get("/" + "p" * 100), 414),
        (get("/", "X: " + "v" * 400), 431),
        (get("/", *(f"X{n}: 1" for n in range(10))), 431),
        (post("/", b"b" * 201), 413),
        (chunked("/", b"b" * 100, b"b" * 101), 413),
        (chunked("/", b"b", trailer=b"T: " + b"t" * 400 + b"\r\n"), 431),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        (b"GET /\r\n\r\n", 505),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET / HTTP/1.1\nHost: a\n\n", 400),
        (post("/", b"abc", "Content-Length: 3"), 400),
        (post("/", b"abc", "Transfer-Encoding: chunked"), 400),
        (post("/", b"abc", "Connection: Upgrade", "Upgrade: h2c"), 501),
        (b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    ],
    ids=lambda value: None if isinstance(value, bytes) else str(value),
)
def test_what_is_refused_and_nothing_after_it_is_read(stream: bytes, status: int) -> None:
    events = read([stream, get("/after")])
    assert [e.status if isinstance(e, Refusal) else e for e in events] == [status]


@pytest.mark.parametrize(
    "start",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nX: ",
        b"GET / HTTP/1.1\r\nHost: a\r\nX",
        b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;",
        b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: ",
        b"GET /",
    ],
)
def test_what_never_ends_is_refused_while_it_comes(start: bytes) -> None:
    reader = RequestReader(SMALL)
    assert reader.receive(start) == []
    for _ in range(50):
        if events := reader.receive(b"v" * 20):
            break
    assert [type(event) for event in events] == [Refusal]


def test_at_the_bound_is_within_the_bound() -> None:
    assert len(one(get("/" + "p" * 99)).request.target) == 100
    assert len(one(post("/", b"b" * 200)).request.body) == 200
