"""An insert of many documents in one command leaves the rows that operations leave, refused ones
too, and its documents are decoded as each by itself."""

from __future__ import annotations

from collections.abc import Callable
from math import isclose
from typing import Any

import pytest
from bson import Decimal128, Int64, ObjectId, Regex, encode
from bson.datetime_ms import DatetimeMS
from bson.timestamp import Timestamp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.mongo import Wire, make_service
from tests.support.mongo_strategies import values

from armillary.api.core.streams import Begun, Event, Work
from armillary.api.mongo.data.collections import Collection
from armillary.api.mongo.data.inserts import Insert, operations_of
from armillary.api.mongo.data.writes import Statement, item_of, record_item
from armillary.api.mongo.wire.frames import OP_MSG, pack
from armillary.encoding.bson.stored import stored_name, to_item, to_stored
from armillary.encoding.bson.values import Document, decode, decode_all_exactly, decode_exactly
from armillary.engine.overlay import OverlayWriter
from armillary.errors import BadInput
from armillary.store.commands import HANDLERS
from armillary.store.index.entries import Entries, index_entries
from armillary.store.inserts.handler import INSERT
from armillary.store.inserts.preparation import Ready, is_plain, ready
from armillary.store.inserts.requests import creates
from armillary.store.items.atomic import ATOMIC
from armillary.store.items.preparation import prepare
from armillary.store.items.routing import key_in
from armillary.store.throughput.gate import Gate

ids = st.sampled_from([1, 2, 3, "a", "é", ObjectId(b"0123456789ab"), ObjectId(bytes(12)), 2.5])
names = st.sampled_from(["a", "b", "id", "$id", "_ts", "$reply", "ttl", "x.y", "$n"])
plain_documents = st.builds(
    lambda own, rest: {"_id": own, **rest}, ids, st.dictionaries(names, values, max_size=4)
)


@pytest.fixture(scope="module")
def collections() -> dict[str, Collection]:
    service = make_service()
    wire = Wire(service)
    wire.run({"create": "plain"})
    index = [
        {"key": {"a": 1}, "name": "a"},
        {"key": {"b.c": 1}, "name": "bc"},
    ]
    wire.run({"createIndexes": "indexed", "indexes": index})
    wire.run({"createIndexes": "all", "indexes": [{"key": {"$**": 1}, "name": "all"}]})
    wire.run({"createIndexes": "pair", "indexes": [{"key": {"a": 1, "b": 1}, "name": "pair"}]})
    wire.run({"insert": "plain", "documents": [{"_id": 3}]})
    wire.run({"insert": "indexed", "documents": [{"_id": 3, "a": 1}]})
    return {
        name: service.collections.need("db", name) for name in ("plain", "indexed", "all", "pair")
    }


def made_ready(collection: Collection, documents: list[Document]) -> Ready | None:
    items = [item_of(collection, one) for one in documents]
    return ready(collection.store.state, items)


@settings(max_examples=150)
@given(
    st.sampled_from(["plain", "indexed", "all"]),
    st.lists(st.lists(plain_documents, min_size=1, max_size=5), min_size=1, max_size=3),
    st.booleans(),
)
def test_the_rows_are_those_of_operations(
    collections: dict[str, Collection], name: str, asked: list[list[Document]], recorded: bool
) -> None:
    collection = collections[name]
    store = collection.store
    state = store.state
    assert is_plain(state)
    epk, key = key_in(state, ())
    owner = state.table.find(epk)
    context = store.context(state, owner)
    with store.engine.read(owner.space) as reader:
        whole, apart = OverlayWriter(reader), OverlayWriter(reader)
        for number, documents in enumerate(asked):
            batch = [
                Insert(at, one, item_of(collection, one), (), 1) for at, one in enumerate(documents)
            ]
            if not batch:
                continue
            statement = (lambda at, n=number: Statement("s", n, at)) if recorded else None
            ops = [
                prepare(state, one, (), store.random).op
                for one in operations_of(collection, batch, statement)
            ]
            items = [one.item for one in batch]
            if statement is not None:
                reply = {"at": [one.at for one in batch]}
                first = batch[0].document
                items.insert(0, record_item(collection.shape, first, statement(0), reply))
            made = ready(state, items)
            assert made is not None
            (answer,) = HANDLERS[INSERT].run(whole, (context, key, made.items))
            done, failed = HANDLERS[ATOMIC].run(apart, (context, key, ops))
            assert answer == failed
            if failed is None:
                gate = Gate(None, state, owner, key.json, "batch")
                assert isclose(made.cost_ru(gate.profile), gate.passed_unread(done))
        assert dict(whole.changes()) == dict(apart.changes())


@given(st.sampled_from(["plain", "indexed", "all"]), st.lists(plain_documents, max_size=5))
def test_entries_are_those_of_each_document(
    collections: dict[str, Collection], name: str, documents: list[Document]
) -> None:
    collection = collections[name]
    found = made_ready(collection, documents)
    assert found is not None
    plan = collection.store.state.plan
    wanted = [index_entries(plan, item_of(collection, one)) for one in documents]
    assert found.leaves == [one.leaves for one in wanted]
    assert [op.entries for op in creates(found.items)] == [
        Entries(ix=one.ix, shape=one.shape) for one in wanted
    ]


def test_what_has_more_than_range_entries_goes_as_operations(
    collections: dict[str, Collection],
) -> None:
    assert not is_plain(collections["pair"].store.state)
    assert made_ready(collections["plain"], [{"_id": "x" * 119 + "é" * 10}]) is None


odd = st.sampled_from(
    [
        {"_id": 1, "d": DatetimeMS(5)},
        {"a": 1, "_id": 2},
        {"_id": 1, "r": Regex("x", "i")},
        {"_id": 1, "n": Decimal128("NaN"), "t": Timestamp(0, 0), "l": Int64(1)},
        {"_id": 1, "at": {"$ref": "x", "$id": 1}},
        {"_id": 1, "deep": [[{"_id": 1, "a": {"x": []}}]]},
    ]
)
any_documents: st.SearchStrategy[Any] = odd | plain_documents
raw_documents = st.one_of(
    any_documents.map(encode),
    st.just(b"\x0d\x00\x00\x00\x0ea\x00\x01\x00\x00\x00\x00\x00"),  # a symbol
    st.just(b"\x0c\x00\x00\x00\x10a\x00\x01\x00\x00\x00\x01"),  # no end
    st.just(b"\x0f\x00\x00\x00\x10a\x00\x01\x00\x00\x00\x0aa\x00\x00"),  # a name twice
)


@given(st.lists(raw_documents, max_size=4))
def test_many_are_decoded_as_each(raw: list[bytes]) -> None:
    assert told(lambda: decode_all_exactly(raw)) == told(lambda: [*map(decode_exactly, raw)])


def told(decoded: Callable[[], list[Document]]) -> str:
    try:
        return repr(decoded())
    except BadInput as error:
        return error.message


@given(plain_documents)
def test_an_item_has_the_members_of_its_document(document: Document) -> None:
    wanted: dict[str, Any] = {}
    for name, value in document.items():
        wanted[stored_name(name)] = to_stored(value, 1)
    item = to_item(document)
    assert list(item.items())[1:] == list(wanted.items())
    assert to_item(document, ttl=7) == {**item, "ttl": 7}


# --- on the event loop ----------------------------------------------------------------------------

small = st.dictionaries(st.sampled_from(["a", "b", "ttl", "$x"]), values, max_size=2)
inserted = st.lists(
    st.tuples(
        st.sampled_from(["plain", "sharded"]),
        st.lists(
            st.builds(
                lambda own, shard, rest: {"_id": own, **shard, **rest},
                ids,
                st.sampled_from([{"s": 1}, {"s": 1}, {"s": "x"}, {}]),
                small,
            ),
            min_size=1,
            max_size=5,
        ),
        st.booleans(),
        st.none() | st.integers(1, 3),
    ),
    max_size=5,
)


@settings(max_examples=60)
@given(inserted)
def test_an_insert_on_the_loop_is_answered_as_in_a_thread(commands: list[Any]) -> None:
    """A second attempt of a retryable one too, and what is stored is the same."""
    loop, thread = Wire(make_service()), Wire(make_service())
    loop.service.engine.never_waits = True  # type: ignore[misc]
    for wire in (loop, thread):
        wire.run({"shardCollection": "db.sharded", "key": {"s": "hashed"}}, "admin")
        wire.run({"create": "plain"})
        for name in ("plain", "sharded"):  # known from now on
            wire.run({"find": name})
    for name, documents, ordered, number in commands:
        command = {"insert": name, "ordered": ordered, "lsid": {"id": bytes(16)}}
        if number is not None:
            command["txnNumber"] = Int64(number)
        data = with_section({**command, "$db": "db"}, "documents", documents)
        answers = [decode(wire.send(data)[21:]) for wire in (loop, thread)]
        for one in answers:
            one.pop("$clusterTime"), one.pop("operationTime")
        assert answers[0] == answers[1]
    found = [
        [wire.run({"find": name})["cursor"]["firstBatch"] for name in ("plain", "sharded")]
        for wire in (loop, thread)
    ]
    assert repr(found[0]) == repr(found[1])


def test_small_inserts_begin_on_the_loop() -> None:
    """Else the comparison above would compare threads with themselves."""
    wire = Wire(make_service())
    wire.service.engine.never_waits = True  # type: ignore[misc]
    wire.run({"create": "plain"})
    wire.run({"find": "plain"})

    def event(documents: list[Document]) -> Event:
        data = with_section({"insert": "plain", "$db": "db"}, "documents", documents)
        return wire.session.receive(data)[0]

    assert isinstance(event([{"_id": 1}]), Begun)
    assert isinstance(event([{"_id": n} for n in range(2, 150)]), Begun)
    assert isinstance(event([{"_id": n} for n in range(1000, 1300)]), Work)
    assert isinstance(event([{"_id": n, "x": "x" * 40_000} for n in (2000, 2001)]), Work)


def with_section(command: Document, name: str, documents: list[Document]) -> bytes:
    section = name.encode() + b"\0" + b"".join(map(encode, documents))
    body = bytes(5) + encode(command) + b"\x01" + (len(section) + 4).to_bytes(4, "little") + section
    return pack(1, 0, OP_MSG, body)
