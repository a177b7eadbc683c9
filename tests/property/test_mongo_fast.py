"""The fast paths of the MongoDB API against the general path: the same reply to every command,
whatever it is that they recognise."""

from __future__ import annotations

from typing import Any

import pytest
from bson.binary import Binary
from bson.int64 import Int64
from bson.objectid import ObjectId
from bson.timestamp import Timestamp
from hypothesis import given
from hypothesis import strategies as st
from tests.support.mongo import PEER, Wire, make_service, message, run_events

from armillary.api.mongo.fast.finds import TEMPLATES_MAX
from armillary.api.mongo.fast.templates import template_of
from armillary.api.mongo.service import Service
from armillary.api.mongo.wire.frames import Frame
from armillary.api.mongo.wire.messages import parse
from armillary.encoding.bson.values import Document, decode

OID = ObjectId(b"0123456789ab")
IDS: list[Any] = [1, 2, -7, Int64(1), Int64(2**40), OID, "a", "é", "a b/c", "", "x" * 300, "ünï$"]
SESSION = {"id": Binary(b"0123456789abcdef", 4)}
TIME = {"clusterTime": Timestamp(5, 1), "signature": {"hash": bytes(20), "keyId": Int64(0)}}


def general(service: Service, data: bytes) -> bytes:
    """The reply of a session that has no fast path."""
    found: list[bytes] = []
    session = service.open(PEER)
    for event in session.receive(data):
        run_events([getattr(event, "otherwise", event)], found.append)
    return b"".join(found)


@pytest.fixture(scope="module")
def service() -> Service:
    made = make_service()
    wire = Wire(made)
    wire.run({"shardCollection": "db.sharded", "key": {"at.region": "hashed"}}, "admin")
    for value in IDS:
        wire.run({"insert": "plain", "documents": [{"_id": value, "v": value, "n": 1.5}]})
        for region in IDS:
            document = {"_id": value, "at": {"region": region}, "more": [value, region]}
            wire.run({"insert": "sharded", "documents": [document]})
    return made


ids = st.sampled_from(IDS) | st.integers(-(2**31), 2**31 - 1) | st.text(max_size=5)
queries = st.one_of(
    st.fixed_dictionaries({"_id": ids}),
    st.fixed_dictionaries({"_id": ids, "at.region": ids}),
    st.fixed_dictionaries({"at.region": ids, "_id": ids}),
)
extras = st.fixed_dictionaries(
    {},
    optional={
        "limit": st.sampled_from([1, -1, 0, Int64(1), 5, "x"]),
        "singleBatch": st.sampled_from([True, False, 1]),
        "batchSize": st.sampled_from([1, 0, 5, -1, None]),
        "lsid": st.just(SESSION),
        "$clusterTime": st.just(TIME),
        "$readPreference": st.just({"mode": "primaryPreferred"}),
        "projection": st.just({"n": 1}),
        "skip": st.just(1),
    },
)


@given(st.sampled_from(["plain", "sharded", "missing"]), st.lists(queries, max_size=6), extras)
def test_a_find_is_answered_as_by_the_general_path(
    service: Service, name: str, asked: list[Document], extra: Document
) -> None:
    wire = Wire(service)
    for query in asked:
        data = message({"find": name, "filter": query, **extra, "$db": "db"}, request_id=77)
        quick, slow = wire.send(data), general(service, data)
        assert quick[12:] == slow[12:]
        assert quick[:4] == slow[:4]
        assert quick[8:12] == (77).to_bytes(4, "little") == slow[8:12]


def test_a_find_like_one_before_needs_no_decoder(service: Service) -> None:
    """Else the comparison above would compare the general path with itself."""
    session = Wire(service).session
    extra = {"limit": 1, "singleBatch": True, "lsid": SESSION, "$db": "db"}
    first = message({"find": "sharded", "filter": {"_id": 1, "at.region": "a"}, **extra})
    run_events(session.receive(first), lambda data: None)
    other = extra | {"lsid": {"id": Binary(bytes(16), 4)}}
    again = message({"find": "sharded", "filter": {"_id": 2, "at.region": "é"}, **other})
    reply = session.at_once(again)
    assert reply is not None
    found = decode(reply[21:])["cursor"]["firstBatch"]
    assert found == [{"_id": 2, "at": {"region": "é"}, "more": [2, "é"]}]
    assert session.at_once(again + b"\0") is None
    assert session.at_once(again[:-1]) is None


FIELDS = {"find": "c", "filter": {"_id": "ab", "s": "cd", "n": 5}, "limit": 1, "lsid": SESSION,
          "$clusterTime": TIME, "$db": "db"}  # fmt: skip


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(st.integers(0, 400), st.integers(1, 255))
def test_what_a_template_accepts_the_decoder_reads_alike(at: int, change: int) -> None:
    good = message(FIELDS)
    template = template_of(parse(Frame(1, 2013, good[16:])))
    assert template is not None
    damaged = bytearray(good)
    damaged[16 + at % (len(good) - 16)] ^= change
    values = template.values(bytes(damaged))
    if values is None or not all(map(is_text, values[:2])):  # `Find` decodes them
        return
    command = parse(Frame(1, 2013, bytes(damaged[16:]))).command
    query = command["filter"]
    assert [query["_id"].encode(), query["s"].encode()] == list(values[:2])
    assert query["n"] == int.from_bytes(values[2], "little", signed=True)
    ignored = {"filter", "lsid", "$clusterTime"}
    assert {k: v for k, v in command.items() if k not in ignored} == {
        k: v for k, v in FIELDS.items() if k not in ignored
    }


def test_a_dropped_collection_is_not_found_by_its_template(service: Service) -> None:
    wire = Wire(service)
    data = message({"find": "brief", "filter": {"_id": 1}, "limit": 1, "$db": "db"})
    wire.run({"insert": "brief", "documents": [{"_id": 1, "v": "old"}]})
    for _ in range(2):
        assert decode(wire.send(data)[21:])["cursor"]["firstBatch"] == [{"_id": 1, "v": "old"}]
    Wire(service).run({"drop": "brief"})
    assert decode(wire.send(data)[21:])["cursor"]["firstBatch"] == []
    wire.run({"insert": "brief", "documents": [{"_id": 1, "v": "new"}]})
    for _ in range(2):
        assert decode(wire.send(data)[21:])["cursor"]["firstBatch"] == [{"_id": 1, "v": "new"}]


def test_connections_share_what_they_learn() -> None:
    made = make_service()
    one, other = Wire(made), Wire(made)
    one.run({"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]})
    for wire, number in ((one, 1), (other, 2)):
        data = message({"find": "c", "filter": {"_id": number}, "limit": 1, "$db": "db"})
        assert wire.session.at_once(data) is None, "each connection asks once"
        assert decode(wire.send(data)[21:])["cursor"]["firstBatch"] == [{"_id": number}]
        assert wire.session.at_once(data) is not None
    assert len(made.finds) == 1


def test_what_connections_share_is_bounded() -> None:
    """A client may send finds of any shape."""
    made = make_service()
    wire = Wire(made)
    wire.run({"insert": "c", "documents": [{"_id": 1}]})
    for number in range(2 * TEMPLATES_MAX):
        wire.run({"find": "c", "filter": {"_id": 1}, "limit": number + 1})
        assert len(made.finds) <= TEMPLATES_MAX
    assert made.finds
