# ruff: noqa: E501 (tables)
"""Sessions without sockets: frames cut anywhere, garbage, logins, and clients that leave."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

import armillary
from armillary.api.core.gateway import Gateway
from armillary.api.core.settings import EMULATOR_KEY, GatewaySettings
from armillary.api.core.streams import Answer, ClientGone, Hangup, Peer, Quick, Work
from armillary.api.gremlin.service import GremlinSession, GremlinStreams

MIME = b"application/vnd.gremlin-v2.0+json"


@pytest.fixture(scope="module")
def streams() -> Iterator[GremlinStreams]:
    with armillary.open(":memory:") as account:
        account.create_database("d").create_container("g", "/pk")
        gateway = Gateway(account.store, GatewaySettings())
        yield GremlinStreams(gateway)
        gateway.close()


class Wire:
    """A client of one session, in memory."""

    def __init__(self, streams: GremlinStreams, cut: int = 1 << 20) -> None:
        self.session: GremlinSession = streams.open(Peer(False, None, "localhost:1"))
        self.client = ClientProtocol(parse_uri("ws://localhost:1/"))
        self.cut = cut
        self.ended = False
        self.client.send_request(self.client.connect())
        self.push()

    def push(self) -> list[Any]:
        """What the client has to say, in pieces; the messages that come back."""
        data = b"".join(self.client.data_to_send())
        answers: list[Any] = []
        for at in range(0, len(data), self.cut):
            answers += self.feed(data[at : at + self.cut])
        return answers

    def feed(self, data: bytes) -> list[Any]:
        out: list[bytes] = []
        for event in self.session.receive(data):
            if isinstance(event, Quick):
                answer = event.run()
                event = event.otherwise if answer is None else Answer(answer)
            if isinstance(event, Answer):
                out.append(event.data)
            elif isinstance(event, Work):
                event.run(out.append)
            elif isinstance(event, Hangup):
                self.ended = True
        self.client.receive_data(b"".join(out))
        return [
            orjson.loads(event.data)
            for event in self.client.events_received()
            if isinstance(event, Frame) and event.opcode is Opcode.BINARY
        ]

    def ask(
        self, op: str, args: dict[str, Any], id: str | None = None, processor: str = ""
    ) -> list[Any]:
        body = {
            "requestId": id or str(uuid.uuid4()),
            "op": op,
            "processor": processor,
            "args": args,
        }
        self.client.send_binary(bytes((len(MIME),)) + MIME + orjson.dumps(body))
        return self.push()

    def log_in(self) -> None:
        id = str(uuid.uuid4())
        (challenged,) = self.ask("eval", {"gremlin": "g.inject(1)"}, id)
        assert challenged["status"]["code"] == 407
        sasl = base64.b64encode(f"\0/dbs/d/colls/g\0{EMULATOR_KEY}".encode()).decode()
        (answer,) = self.ask("authentication", {"sasl": sasl}, id, "traversal")
        assert (answer["requestId"], answer["result"]["data"]) == (id, [1])


@pytest.mark.parametrize("cut", [1, 2, 7, 1000])
def test_a_stream_cut_anywhere_gives_the_same_answers(streams: GremlinStreams, cut: int) -> None:
    wire = Wire(streams, cut)
    wire.log_in()
    (answer,) = wire.ask("eval", {"gremlin": "g.inject(x)", "bindings": {"x": "y" * 300}})
    assert answer["result"]["data"] == ["y" * 300]


def test_challenge_has_the_service_s_words(streams: GremlinStreams) -> None:
    (answer,) = Wire(streams).ask("eval", {"gremlin": "g.V()"})
    assert answer["status"] == {
        "code": 407,
        "attributes": {"x-ms-status-code": 407},
        "message": "Graph Service requires Gremlin Client to provide SASL Authentication.",
    }
    assert answer["result"] == {"data": None, "meta": {}}


@pytest.mark.parametrize(
    ("op", "processor", "code"),
    [
        ("bytecode", "traversal", 498),
        ("eval", "session", 498),
        ("close", "session", 204),
        ("keys", "x", 498),
    ],
)
def test_other_operations(streams: GremlinStreams, op: str, processor: str, code: int) -> None:
    wire = Wire(streams)
    wire.log_in()
    (answer,) = wire.ask(op, {"gremlin": "g.V()"}, processor=processor)
    assert answer["status"]["code"] == code
    (answer,) = wire.ask("eval", {"gremlin": "g.inject(2)"})
    assert answer["result"]["data"] == [2]


def test_tags_of_values_are_taken_off_and_unknown_ones_refused(streams: GremlinStreams) -> None:
    wire = Wire(streams)
    wire.log_in()
    typed = {
        "@type": "g:List",
        "@value": [{"@type": "g:Int64", "@value": 3}, {"@type": "g:UUID", "@value": "u"}],
    }
    (answer,) = wire.ask("eval", {"gremlin": "g.inject(x)", "bindings": {"x": typed}})
    assert answer["result"]["data"] == [[3, "u"]]
    bad = {"@type": "gx:ByteBuffer", "@value": ""}
    (answer,) = wire.ask("eval", {"gremlin": "g.inject(x)", "bindings": {"_h": bad}})
    assert answer["status"]["code"] == 498
    assert (
        "Unknown GraphSON type encountered: gx: ByteBuffer.Path: 'args.bindings._h'"
        in answer["status"]["message"]
    )


LARGE = [{"@type": "g:Int32", "@value": at} for at in range(5_000)]


def test_large_bindings_are_taken_apart_by_who_evaluates_them(streams: GremlinStreams) -> None:
    wire = Wire(streams)
    wire.log_in()
    script = {"gremlin": "g.inject(x).unfold().count()", "bindings": {"x": LARGE}}
    (answer,) = wire.ask("eval", script)
    assert answer["result"]["data"] == [5_000]
    wrong = {"gremlin": "g.inject(x)", "bindings": {"x": LARGE, "y": {"@type": "g:No"}}}
    (answer,) = wire.ask("eval", wrong)
    assert answer["status"]["code"] == 498
    assert "Unknown GraphSON type encountered: g: No.Path: 'args.bindings.y'" in str(answer)
    flat = [one for pair in script.items() for one in pair]
    (answer,) = wire.ask("eval", {"@type": "g:Map", "@value": flat})
    assert answer["result"]["data"] == [5_000]


def test_what_waits_for_a_login_is_counted(streams: GremlinStreams) -> None:
    wire = Wire(streams)
    script = {"gremlin": "g.inject(1)", "bindings": {"x": LARGE}}
    wire.ask("eval", script)
    once = wire.session.held_bytes
    assert once > 100_000
    wire.ask("eval", script)
    assert wire.session.held_bytes == 2 * once
    sasl = base64.b64encode(f"\0/dbs/d/colls/g\0{EMULATOR_KEY}".encode()).decode()
    assert len(wire.ask("authentication", {"sasl": sasl}, None, "traversal")) == 2
    assert wire.session.held_bytes == 0


def test_a_text_frame_is_a_bare_request(streams: GremlinStreams) -> None:
    wire = Wire(streams)
    wire.log_in()
    body = {"requestId": str(uuid.uuid4()), "op": "eval", "args": {"gremlin": "g.inject(4)"}}
    wire.client.send_text(orjson.dumps(body))
    (answer,) = wire.push()
    assert answer["result"]["data"] == [4]


def test_web_pages_and_plain_http_are_refused(streams: GremlinStreams) -> None:
    """The emulator's key is public: any page could log in."""
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
    upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    for lines, status in (
        (upgrade + b"Origin: https://evil.example\r\n", b"403"),
        (upgrade + b"Origin: http://localhost.evil.example:8901\r\n", b"403"),
        (b"", b"426"),
    ):
        session = streams.open(Peer(False, None, ""))
        events = session.receive(head + lines + b"\r\n")
        assert isinstance(events[0], Answer)
        assert events[0].data.startswith(b"HTTP/1.1 " + status)
        assert isinstance(events[-1], Hangup)


def test_the_origin_that_netty_sends_is_our_own(streams: GremlinStreams) -> None:
    session = streams.open(Peer(False, None, ""))
    head = b"GET / HTTP/1.1\r\nHost: localhost:8901\r\nOrigin: http://localhost:8901\r\n"
    upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    (event,) = session.receive(head + upgrade)
    assert isinstance(event, Answer)
    assert event.data.startswith(b"HTTP/1.1 101")


def test_a_client_that_leaves_ends_its_traversal(streams: GremlinStreams) -> None:
    wire = Wire(streams)
    wire.log_in()
    many = ",".join(["1"] * 100)
    text = f"g.inject({many})" + f".flatMap(union({','.join(['constant(1)'] * 30)}))" * 4
    body = {"requestId": str(uuid.uuid4()), "op": "eval", "args": {"gremlin": text}}
    wire.client.send_text(orjson.dumps(body))
    (event,) = wire.session.receive(b"".join(wire.client.data_to_send()))
    assert isinstance(event, Work)
    sent = 0

    def send(data: bytes) -> None:
        nonlocal sent
        sent += 1
        if sent == 3:
            wire.session.close()
        if sent > 3:
            raise ClientGone

    with pytest.raises(ClientGone):
        event.run(send)
    assert sent == 4


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.binary(max_size=200), is_text=st.booleans(), framed=st.booleans())
def test_garbage_never_raises(
    streams: GremlinStreams, data: bytes, is_text: bool, framed: bool
) -> None:
    """Fuzz: in frames after a good beginning, and in place of it."""
    wire = Wire(streams)
    if framed:
        wire.client.send_frame(Frame(Opcode.TEXT if is_text else Opcode.BINARY, data)) if hasattr(
            wire.client, "send_frame"
        ) else wire.client.send_binary(data)
        wire.push()
    else:
        wire.session.receive(data)
        streams.open(Peer(False, None, "")).receive(data)


@settings(deadline=None, max_examples=60)
@given(
    head=st.sampled_from((MIME, b"application/vnd.graphbinary-v1.0", b"application/json", b"x")),
    body=st.one_of(
        st.binary(max_size=60),
        st.recursive(
            st.one_of(st.none(), st.integers(-5, 5), st.text(max_size=5)),
            lambda inner: st.one_of(
                st.lists(inner, max_size=3),
                st.dictionaries(
                    st.sampled_from(
                        (
                            "requestId",
                            "op",
                            "args",
                            "@type",
                            "@value",
                            "gremlin",
                            "bindings",
                            "sasl",
                        )
                    ),
                    inner,
                    max_size=4,
                ),
            ),
        ).map(orjson.dumps),
    ),
)
def test_odd_requests_get_answers(streams: GremlinStreams, head: bytes, body: bytes) -> None:
    wire = Wire(streams)
    wire.client.send_binary(bytes((len(head),)) + head + body)
    for event in wire.session.receive(b"".join(wire.client.data_to_send())):
        assert isinstance(event, Answer | Work | Hangup)
        if isinstance(event, Work):
            event.run(lambda data: None)
