"""Frames and messages: a stream may be cut anywhere, and no bytes of a client break a session."""

from __future__ import annotations

import struct
import zlib
from random import Random
from typing import Any

import pytest
from bson import Decimal128, Int64
from hypothesis import given
from hypothesis import strategies as st
from tests.support.mongo import Wire, message

from armillary.api.core.gateway import Gateway
from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.core.streams import ClientGone, Work
from armillary.api.mongo.service import Service
from armillary.api.mongo.settings import Settings
from armillary.api.mongo.wire.frames import OP_COMPRESSED, OP_MSG, OP_QUERY, FrameReader, pack
from armillary.clock import VirtualClock
from armillary.encoding.bson.values import decode, encode
from armillary.engine.memory import MemoryEngine
from armillary.limits import MONGO_COMMAND_BYTES_MAX, MONGO_LOGIN_BYTES_MAX
from armillary.store.catalog.accounts import AccountStore
from armillary.store.commands import HANDLERS


@given(bodies=st.lists(st.binary(max_size=40), max_size=5), cut=st.integers(1, 7))
def test_any_cut_gives_the_same_frames(bodies: list[bytes], cut: int) -> None:
    stream = b"".join(pack(at, 0, OP_MSG, body) for at, body in enumerate(bodies))
    reader = FrameReader(1000)
    found = [f for at in range(0, len(stream), cut) for f in reader.receive(stream[at : at + cut])]
    assert [frame.body for frame in found] == bodies


def test_documents_may_come_in_a_section_of_their_own() -> None:
    wire = Wire()
    rows = b"".join(encode({"_id": n}) for n in range(3))
    name = b"documents\x00"
    section = b"\x01" + struct.pack("<i", 4 + len(name) + len(rows)) + name + rows
    command = b"\x00" + encode({"insert": "c", "$db": "db"})
    for body in (command + section, section + command):
        reply = decode(wire.send(pack(1, 0, OP_MSG, b"\x00" * 4 + body))[21:])
        assert reply["ok"] == 1.0
        wire.run({"delete": "c", "deletes": [{"q": {}, "limit": 0}]})


def test_a_compressed_request_is_answered_compressed() -> None:
    wire = Wire()
    body = message({"listDatabases": 1, "$db": "admin"})[16:]
    packed = struct.pack("<iiB", OP_MSG, len(body), 2) + zlib.compress(body)
    answer = wire.send(pack(1, 0, OP_COMPRESSED, packed))
    assert struct.unpack_from("<iiii", answer)[3] == OP_COMPRESSED
    assert decode(zlib.decompress(answer[25:])[5:])["ok"] == 1.0


def test_an_old_handshake_is_answered_in_its_own_form() -> None:
    wire = Wire()
    body = struct.pack("<i", 0) + b"admin.$cmd\x00" + struct.pack("<ii", 0, -1)
    answer = wire.send(pack(7, 0, OP_QUERY, body + encode({"ismaster": 1, "helloOk": True})))
    assert struct.unpack_from("<iiii", answer)[2:] == (7, 1)
    assert decode(answer[36:])["setName"] == "globaldb"
    other = wire.send(pack(8, 0, OP_QUERY, body + encode({"find": "c"})))
    assert decode(other[36:])["code"] == 352


def test_no_reply_when_none_is_wanted() -> None:
    wire = Wire()
    assert wire.send(message({"insert": "c", "documents": [{"_id": 1}], "$db": "db"}, 1, 2)) == b""
    assert wire.run({"count": "c"})["n"] == 1


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<iiii", 5, 1, 0, OP_MSG),
        struct.pack("<iiii", 50_000_000, 1, 0, OP_MSG),
        pack(1, 0, 999, b""),
        pack(1, 0, OP_MSG, b""),
        pack(1, 0, OP_MSG, b"\x00\x01\x00\x00\x00"),
        pack(1, 0, OP_MSG, b"\x00" * 4 + b"\x07" + encode({"ping": 1})),
        pack(1, 0, OP_MSG, b"\x00" * 5 + struct.pack("<i", 500) + b"\x00"),
        pack(1, 0, OP_COMPRESSED, struct.pack("<iiB", OP_MSG, 10, 9) + b"x"),
        pack(1, 0, OP_COMPRESSED, struct.pack("<iiB", OP_MSG, 3, 2) + zlib.compress(b"x" * 9999)),
    ],
)
def test_what_is_no_message_ends_the_connection(data: bytes) -> None:
    wire = Wire()
    assert wire.send(data) == b""
    assert not wire.open


def test_bad_bson_is_refused_and_the_connection_stays() -> None:
    wire = Wire()
    bad = bytearray(encode({"ping": 1, "x": "abc"}))
    bad[-6:-2] = b"\xff\xff\xff\xff"
    answer = wire.send(pack(1, 0, OP_MSG, b"\x00" * 5 + bytes(bad)))
    assert decode(answer[21:])["code"] == 22
    assert wire.run({"ping": 1})["ok"] == 1.0


VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab$.", max_size=3) | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.text("ab$.", max_size=3), inner, max_size=2)
    ),
    max_leaves=5,
)
NAMES = ["insert", "find", "update", "delete", "aggregate", "findAndModify", "count", "distinct",
         "createIndexes", "getMore", "killCursors", "create", "explain"]  # fmt: skip
FIELDS = ["documents", "filter", "updates", "deletes", "pipeline", "cursor", "query", "update",
          "key", "indexes", "sort", "projection", "limit", "batchSize", "collection", "cursors",
          "let", "lsid", "txnNumber", "maxTimeMS"]  # fmt: skip


@given(
    name=st.sampled_from(NAMES),
    target=st.just("c") | VALUES,
    fields=st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4),
)
def test_any_command_is_answered(name: str, target: Any, fields: dict[str, Any]) -> None:
    reply = Wire().run({name: target, **fields})
    assert reply["ok"] in (0.0, 1.0, 1)
    assert reply.get("code") != 1, reply  # a bug of ours


@given(data=st.binary(max_size=80), at=st.integers(0, 60), bit=st.integers(0, 7))
def test_a_damaged_message_never_raises(data: bytes, at: int, bit: int) -> None:
    good = bytearray(message({"find": "c", "filter": {"a": 1}, "$db": "db"}))
    good[at % len(good)] ^= 1 << bit
    Wire().send(bytes(good) + data)


def test_a_limit_and_a_skip_beyond_any_list_are_answered() -> None:
    wire = Wire()
    wire.run({"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]})
    most = Int64(2**63 - 1)
    asked = {"find": "c", "sort": {"_id": 1}, "skip": most, "limit": most}
    assert wire.run(asked)["cursor"]["firstBatch"] == []
    found = wire.run(asked | {"skip": 1})["cursor"]["firstBatch"]
    assert [one["_id"] for one in found] == [2]
    assert wire.run(asked | {"limit": Decimal128("9E+30"), "skip": 0})["ok"] in (0.0, 1.0)


def strangers() -> Wire:
    """A client of a server that wants a login."""
    gateway = Gateway(AccountStore(MemoryEngine(HANDLERS, clock=VirtualClock()), random=Random(1)))
    return Wire(Service(gateway, Settings(require_login=True)))


def test_who_has_not_logged_in_sends_little() -> None:
    large = {"ping": 1, "$db": "admin", "comment": "x" * MONGO_LOGIN_BYTES_MAX}
    wire = strangers()
    assert wire.send(message(large)[:100]) == b""
    assert not wire.open, "it is not waited for"
    packed = zlib.compress(message(large)[16:])
    head = struct.pack("<iiB", OP_MSG, len(message(large)) - 16, 2)
    wire = strangers()
    assert wire.send(pack(1, 0, OP_COMPRESSED, head + packed)) == b""
    assert not wire.open
    wire = strangers()
    login = {
        "saslStart": 1,
        "mechanism": "PLAIN",
        "payload": f"\0localhost\0{EMULATOR_KEY}".encode(),
    }
    assert wire.run(login, "$external")["done"]
    assert wire.send(message(large))
    assert wire.session.held_bytes == 0
    wire.send(message(large)[:50_000])
    assert wire.session.held_bytes == 50_000


def large(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "comment": ["x"] * 20_000, "$db": "db"}


def test_a_long_command_is_taken_apart_in_a_thread() -> None:
    wire = Wire()
    wire.run({"insert": "c", "documents": [{"_id": 1}]})
    (event,) = wire.session.receive(message(large({"find": "c", "filter": {"_id": 1}})))
    assert isinstance(event, Work)
    assert event.lane
    found: list[bytes] = []
    event.run(found.append)
    assert decode(found[0][21:])["cursor"]["firstBatch"] == [{"_id": 1}]


def test_what_is_wrong_in_a_long_command_is_answered_as_in_a_short_one() -> None:
    wire = Wire()
    sent = message(large({"find": "c"}))
    not_bson = sent.replace(b"\x04comment\x00", b"\x77comment\x00")
    assert decode(wire.send(not_bson)[21:])["code"] == 22
    assert wire.open
    no_section = sent[:16] + sent[16:20] + b"\x09" + sent[21:]
    assert wire.send(no_section) == b""
    assert not wire.open


def test_much_that_is_packed_is_unpacked_in_a_thread() -> None:
    wire = Wire()
    body = message({"find": "c", "comment": "x" * 2_000_000, "$db": "db"})[16:]
    packed = struct.pack("<iiB", OP_MSG, len(body), 2) + zlib.compress(body)
    (event,) = wire.session.receive(pack(1, 0, OP_COMPRESSED, packed))
    assert isinstance(event, Work)
    assert event.lane == "large commands"


def test_a_client_that_leaves_ends_the_work_on_its_long_command() -> None:
    wire = Wire()
    (event,) = wire.session.receive(message(large({"find": "c"})))
    wire.session.close()
    assert isinstance(event, Work)
    with pytest.raises(ClientGone):
        event.run(lambda _: None)


def test_documents_alongside_a_command_do_not_make_it_long() -> None:
    wire = Wire()
    rows = b"".join(encode({"_id": n, "text": "x" * 1000}) for n in range(300))
    section = b"\x01" + struct.pack("<i", 14 + len(rows)) + b"documents\x00" + rows
    command = b"\x00" + encode({"insert": "c", "$db": "db"})
    (event,) = wire.session.receive(pack(1, 0, OP_MSG, b"\x00" * 4 + command + section))
    assert not isinstance(event, Work) or event.lane != "large commands"


def test_a_command_is_no_longer_than_a_document() -> None:
    wire = Wire()
    wire.send(message({"ping": 1, "$db": "admin", "comment": "x" * MONGO_COMMAND_BYTES_MAX}))
    assert not wire.open
    documents = [{"_id": at, "s": "x" * 1_000_000} for at in range(20)]
    section = b"documents\0" + b"".join(map(encode, documents))
    command = encode({"insert": "c", "$db": "db"})
    body = bytes(5) + command + b"\1" + struct.pack("<i", len(section) + 4) + section
    assert decode(Wire().send(pack(1, 0, OP_MSG, body))[21:])["n"] == 20
