"""PyMongo, unmodified, against the service: what applications do with it."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any

import bson
import orjson
import pymongo
import pytest
from bson import CodecOptions, Int64, ObjectId
from bson.raw_bson import RawBSONDocument
from pymongo import AsyncMongoClient, DeleteOne, InsertOne, MongoClient, ReturnDocument, UpdateOne
from pymongo.collation import Collation
from pymongo.cursor import CursorType
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure
from tests.support.mongo import Wire, connected, make_service, message, serving, uri
from tests.unit.encoding.test_bson_stored import EVERY

from armillary.api.core.gateway import Gateway
from armillary.api.core.settings import EMULATOR_KEY, GatewaySettings
from armillary.api.mongo.commands import statements, updating
from armillary.api.mongo.service import Service
from armillary.api.mongo.settings import Settings
from armillary.clock import VirtualClock
from armillary.engine.memory import MemoryEngine
from armillary.store.catalog.accounts import AccountStore
from armillary.store.commands import HANDLERS
from armillary.store.moves.runner import begin_split

Client = MongoClient[dict[str, Any]]


@pytest.fixture(scope="module")
def service() -> Service:
    return make_service()


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[Client]:
    with connected(service) as opened:
        yield opened


def test_documents(client: Client) -> None:
    people = client.shop.people
    people.insert_many([{"_id": n, "age": n, "tags": [f"t{n % 3}"]} for n in range(300)])
    assert people.count_documents({}) == people.estimated_document_count() == 300
    assert len(list(people.find({"age": {"$gte": 100}}).batch_size(7))) == 200
    assert [one["_id"] for one in people.find().sort("age", -1).skip(1).limit(2)] == [298, 297]
    assert people.update_one({"_id": 5}, {"$set": {"x": 1}}).modified_count == 1
    assert people.update_many({"age": {"$lt": 3}}, {"$inc": {"age": 1000}}).modified_count == 3
    assert people.update_one({"_id": 999}, {"$set": {"y": 1}}, upsert=True).upserted_id == 999
    after = people.find_one_and_update(
        {"_id": 7}, {"$push": {"tags": "new"}}, return_document=ReturnDocument.AFTER
    )
    assert after is not None
    assert after["tags"] == ["t1", "new"]
    assert people.delete_many({"age": {"$gte": 1000}}).deleted_count == 3
    assert sorted(people.distinct("tags")) == ["new", "t0", "t1", "t2"]
    with pytest.raises(DuplicateKeyError, match="E11000"):
        people.insert_one({"_id": 5.0})


def test_a_bulk_reports_the_index_of_what_failed(client: Client) -> None:
    many = client.shop.many
    with pytest.raises(BulkWriteError) as ordered:
        many.insert_many([{"_id": n} for n in (1, 2, 1, 3)])
    assert ordered.value.details["writeErrors"][0]["index"] == 2
    assert many.count_documents({}) == 2
    with pytest.raises(BulkWriteError) as unordered:
        many.insert_many([{"_id": n} for n in (1, 4, 2, 5)], ordered=False)
    assert [one["index"] for one in unordered.value.details["writeErrors"]] == [0, 2]
    assert many.count_documents({}) == 4
    done = many.bulk_write(
        [InsertOne({"_id": 9}), UpdateOne({"_id": 9}, {"$set": {"a": 1}}), DeleteOne({"_id": 1})]
    )
    assert (done.inserted_count, done.modified_count, done.deleted_count) == (1, 1, 1)


def test_every_type_is_the_same_bytes_and_readable_by_others(
    service: Service, client: Client
) -> None:
    raw = client.shop.get_collection(
        "types", codec_options=bson.codec_options.CodecOptions(bson.raw_bson.RawBSONDocument)
    )
    raw.insert_one(bson.raw_bson.RawBSONDocument(EVERY))
    found: Any = raw.find_one({})
    assert found is not None
    assert found.raw == EVERY
    store = service.collections.need("shop", "types").store
    stored = orjson.loads(store.read("65f000000000000000000001", ()).text)
    assert stored["text"] == "x"
    assert stored["date"] == {"$date": 1_700_000_000_000}


def test_shard_keys(client: Client) -> None:
    answer = client.admin.command({"shardCollection": "shop.orders", "key": {"region": "hashed"}})
    assert {k: answer[k] for k in ("_t", "ok", "collectionsharded")} == {
        "_t": "ShardCollectionResponse",
        "ok": 1,
        "collectionsharded": "shop.orders",
    }
    orders = client.shop.orders
    orders.insert_many(
        [{"_id": n, "region": r} for n in range(3) for r in ("eu", "us", ObjectId())]
    )
    assert orders.count_documents({"region": "eu"}) == 3
    assert orders.count_documents({"_id": 1}) == 3  # unique per shard key value
    for call, code in (
        (lambda: orders.insert_one({"x": 1}), 61),
        (lambda: orders.update_one({"_id": 1}, {"$set": {"x": 1}}), 61),
        (lambda: orders.update_one({"_id": 1, "region": "eu"}, {"$set": {"region": "us"}}), 66),
    ):
        with pytest.raises(OperationFailure) as caught:
            call()
        assert caught.value.code == code
    assert orders.update_many({"_id": 1}, {"$set": {"x": 1}}).modified_count == 3


def test_indexes(client: Client) -> None:
    items = client.shop.items
    items.create_index([("email", 1)], unique=True)
    items.create_index([("age", 1), ("name", -1)])
    items.insert_one({"email": "a", "age": 1})
    with pytest.raises(DuplicateKeyError):
        items.insert_one({"email": "a"})
    assert set(items.index_information()) == {"_id_", "email_1", "age_1_name_-1"}
    items.drop_index("age_1_name_-1")
    with pytest.raises(OperationFailure) as caught:
        items.drop_index("nothing")
    assert caught.value.code == 27


def test_a_unique_index_is_dropped_with_documents_and_made_while_empty(client: Client) -> None:
    seats = client.shop.rows
    seats.create_index("row", unique=True)
    seats.create_index("seat", unique=True)
    seats.insert_one({"_id": 1, "row": 1, "seat": 1})
    seats.drop_index([("row", 1)])
    seats.insert_many([{"_id": 2, "row": 1, "seat": 2}, {"_id": 3, "row": 1, "seat": 3}])
    assert seats.update_one({"_id": 1}, {"$set": {"row": 2}}).modified_count == 1
    with pytest.raises(DuplicateKeyError) as caught:
        seats.insert_one({"row": 9, "seat": 3})
    assert caught.value.details is not None
    assert caught.value.details["keyPattern"] == {"seat": 1}
    assert set(seats.index_information()) == {"_id_", "seat_1"}
    with pytest.raises(OperationFailure, match="contains documents") as refused:
        seats.create_index("row", unique=True)
    assert refused.value.code == 67
    seats.create_index("row")
    seats.drop_index("row_1")
    seats.drop_indexes()
    seats.insert_one({"_id": 4, "row": 1, "seat": 3})
    with client.start_session() as session, session.start_transaction():
        seats.insert_one({"_id": 5, "row": 1, "seat": 3}, session=session)
    assert seats.count_documents({"row": 1, "seat": 3}) == 3
    seats.delete_many({})
    seats.create_index("row", unique=True)
    seats.insert_one({"row": 1})
    with pytest.raises(DuplicateKeyError):
        seats.insert_one({"row": 1})


def test_an_upsert_that_another_overtakes_changes_what_is_there(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = client.shop.members
    members.create_index("email", unique=True)
    look = statements.first_row
    late: list[str] = []

    def overtaken(*arguments: Any) -> Any:
        found = look(*arguments)
        if found is None and late:
            members.insert_one({"email": late.pop(), "n": 1})
        return found

    monkeypatch.setattr(updating, "first_row", overtaken)
    late.append("a")
    found = members.find_one_and_update(
        {"email": "a"}, {"$inc": {"n": 1}}, upsert=True, return_document=ReturnDocument.AFTER
    )
    assert found is not None
    assert found["n"] == 2
    late.append("b")
    done = members.update_one({"email": {"$eq": "b"}}, {"$inc": {"n": 1}}, upsert=True)
    assert (done.matched_count, done.upserted_id) == (1, None)
    with pytest.raises(DuplicateKeyError):  # the query can never find it
        members.find_one_and_update({"email": "a", "n": 77}, {"$set": {"m": 1}}, upsert=True)
    assert members.count_documents({}) == 2


def test_aggregation(client: Client) -> None:
    sales = client.shop.sales
    sales.insert_many([{"k": n % 3, "v": n} for n in range(30)])
    client.shop.names.insert_many([{"_id": n, "name": f"n{n}"} for n in range(3)])
    rows = list(
        sales.aggregate(
            [
                {"$match": {"v": {"$gte": 3}}},
                {"$group": {"_id": "$k", "total": {"$sum": "$v"}}},
                {
                    "$lookup": {
                        "from": "names",
                        "localField": "_id",
                        "foreignField": "_id",
                        "as": "n",
                    }
                },
                {"$sort": {"_id": 1}},
                {"$project": {"total": 1, "name": {"$arrayElemAt": ["$n.name", 0]}}},
            ]
        )
    )
    assert rows[0] == {"_id": 0, "total": 135, "name": "n0"}
    sales.aggregate([{"$group": {"_id": "$k"}}, {"$out": "kinds"}])
    assert client.shop.kinds.count_documents({}) == 3


def test_a_transaction_is_one_commit(client: Client) -> None:
    bank = client.shop.bank
    bank.insert_many([{"_id": "a", "n": 10}, {"_id": "b", "n": 0}])
    with client.start_session() as session, session.start_transaction():
        bank.update_one({"_id": "a"}, {"$inc": {"n": -5}}, session=session)
        bank.update_one({"_id": "b"}, {"$inc": {"n": 5}}, session=session)
        assert bank.find_one({"_id": "a"}, session=session)["n"] == 5  # type: ignore[index]
        assert bank.find_one({"_id": "a"})["n"] == 10  # type: ignore[index]
    assert {one["_id"]: one["n"] for one in bank.find()} == {"a": 5, "b": 5}
    with client.start_session() as session:
        session.start_transaction()
        bank.update_one({"_id": "a"}, {"$inc": {"n": 1}}, session=session)
        bank.update_one({"_id": "a"}, {"$inc": {"n": 100}})
        with pytest.raises(OperationFailure) as caught:
            session.commit_transaction()
        assert caught.value.code == 112
        assert caught.value.has_error_label("TransientTransactionError")
    assert bank.find_one({"_id": "a"})["n"] == 105  # type: ignore[index]


def test_every_transaction_of_a_collection_with_a_unique_index_is_kept(client: Client) -> None:
    seats = client.shop.seats
    seats.create_index("seat", unique=True)
    with client.start_session() as session:
        for n in range(3):
            with session.start_transaction():
                seats.insert_one({"_id": n, "seat": n}, session=session)
    assert [one["_id"] for one in seats.find().sort("_id", 1)] == [0, 1, 2]


def test_a_transaction_refuses_what_its_snapshot_can_not_answer(client: Client) -> None:
    late, seats = client.shop.late, client.shop.unique_seats
    with client.start_session() as session:
        session.start_transaction()
        assert late.find_one({}, session=session) is None  # there is no such collection
        late.insert_one({"_id": 1})
        with pytest.raises(OperationFailure) as made:
            late.find_one({}, session=session)
        assert made.value.code == 112
        assert made.value.has_error_label("TransientTransactionError")
        session.abort_transaction()

        session.start_transaction()
        assert late.find_one({}, session=session) == {"_id": 1}
        late.drop()
        late.insert_one({"_id": 2})
        with pytest.raises(OperationFailure) as dropped:
            late.find_one({}, session=session)
        assert dropped.value.code == 112
        session.abort_transaction()

        seats.create_index("seat", unique=True)
        seats.insert_one({"_id": 1, "seat": 7})
        session.start_transaction()
        seats.insert_one({"_id": 2, "seat": 7}, session=session)
        with pytest.raises(OperationFailure) as twice:
            session.commit_transaction()
        assert twice.value.code == 11000, "with 112 a driver would try for ever"
        assert not twice.value.has_error_label("TransientTransactionError")

        for stage in ({"$out": "copy"}, {"$merge": "copy"}, {"$unionWith": "late"}):
            with pytest.raises(OperationFailure) as other, session.start_transaction():
                list(seats.aggregate([stage], session=session))
            assert other.value.code == 263


def test_an_exhaust_cursor_is_sent_without_being_asked(client: Client) -> None:
    many = client.shop.exhausted
    many.insert_many([{"_id": n} for n in range(500)])
    for size in (0, 1, 7, 250, 500, 501):
        found = many.find(cursor_type=CursorType.EXHAUST, batch_size=size)
        assert [one["_id"] for one in found] == list(range(500))
    left = many.find(cursor_type=CursorType.EXHAUST, batch_size=2)
    assert [next(left)["_id"] for _ in range(5)] == list(range(5))
    left.close()
    assert many.count_documents({}) == 500


def test_each_reply_of_an_exhaust_cursor_answers_the_one_before(service: Service) -> None:
    wire = Wire(service)
    wire.run({"insert": "streamed", "documents": [{"_id": n} for n in range(7)]})
    cursor = wire.run({"find": "streamed", "batchSize": 2})["cursor"]["id"]
    more = {"getMore": cursor, "collection": "streamed", "batchSize": 2, "$db": "db"}
    data = wire.send(message(more, 77, 1 << 16))
    asked, batches, flags = 77, [], []
    while data:
        size, number, answered, _, flag = struct.unpack_from("<iiiii", data)
        assert answered == asked
        asked = number
        flags.append(flag)
        batches.append([one["_id"] for one in bson.decode(data[21:size])["cursor"]["nextBatch"]])
        data = data[size:]
    assert batches == [[2, 3], [4, 5], [6]]
    assert flags == [2, 2, 0]


def test_a_full_batch_is_not_the_last_unless_it_must_be(client: Client) -> None:
    client.shop.batches.insert_many([{"_id": n} for n in range(4)])

    def sizes(**find: Any) -> list[int]:
        reply = client.shop.command({"find": "batches", **find})["cursor"]
        found = [len(reply["firstBatch"])]
        while reply["id"]:
            more = {"getMore": Int64(reply["id"]), "collection": "batches", "batchSize": 2}
            reply = client.shop.command(more)["cursor"]
            found.append(len(reply["nextBatch"]))
        return found

    assert sizes(batchSize=2) == [2, 2, 0]
    assert sizes(batchSize=2, limit=4) == [2, 2]
    assert sizes(batchSize=3) == [3, 1]
    assert sizes(batchSize=1, filter={"_id": 1}) == [1]


def test_a_hint_gives_the_order(client: Client) -> None:
    hinted = client.shop.hinted
    hinted.create_index([("n", -1)], name="down")
    hinted.create_index([("a", 1), ("n", -1)])
    hinted.insert_many([{"_id": k, "n": k * 7 % 900, "a": k % 3} for k in range(900)])
    down = [one["n"] for one in hinted.find().hint("down").batch_size(100)]
    assert down == sorted(range(900), reverse=True)
    some = hinted.find({"a": 1, "n": {"$gt": 3}}).hint([("n", -1)]).skip(2).limit(5)
    expected = sorted((k * 7 % 900 for k in range(900) if k % 3 == 1), reverse=True)[2:7]
    assert [one["n"] for one in some] == expected
    pairs = [(one["a"], -one["n"]) for one in hinted.find().hint([("a", 1), ("n", -1)])]
    assert pairs == sorted(pairs)
    hinted.insert_many([{"_id": -1}, {"_id": -2, "n": [1, 5000]}])  # no value, several values
    ids = [one["_id"] for one in hinted.find({}, {"_id": 1}).hint("down")]
    assert (len(ids), ids[0], ids[-1]) == (902, -2, -1)
    with client.start_session() as session, session.start_transaction():
        first = hinted.find({"n": {"$lt": 10}}, session=session).hint("down").limit(2)
        assert [one["_id"] for one in first] == [-2, 387]


def test_a_change_stream_goes_on_over_a_split(service: Service, client: Client) -> None:
    client.shop.command(
        {
            "customAction": "CreateCollection",
            "collection": "feed",
            "shardKey": "k",
            "offerThroughput": 4000,
        }
    )
    feed = client.shop.feed
    with feed.watch(full_document="updateLookup", max_await_time_ms=100) as stream:
        feed.insert_many([{"_id": n, "k": n} for n in range(20)])
        seen = {next(stream)["documentKey"]["_id"] for _ in range(10)}
        store = service.collections.need("shop", "feed").store
        begin_split(store, store.state.table.ranges[0].ordinal).run()
        feed.insert_many([{"_id": n, "k": n} for n in range(20, 30)])
        while len(seen) < 30:
            seen.add(next(stream)["documentKey"]["_id"])
        token = stream.resume_token
    assert feed.count_documents({}) == 30
    feed.insert_one({"_id": 99, "k": 1})
    with feed.watch(
        resume_after=token, full_document="updateLookup", max_await_time_ms=100
    ) as stream:
        assert next(stream)["documentKey"]["_id"] == 99


def test_a_client_that_stops_in_a_page_of_events_goes_on_there(client: Client) -> None:
    feed = client.shop.places
    feed.insert_one({"_id": "first"})
    with feed.watch(max_await_time_ms=100) as stream:
        for number in range(5):
            feed.insert_one({"_id": number})
        feed.insert_many([{"_id": number} for number in range(5, 8)])
        tokens = {event["documentKey"]["_id"]: event["_id"] for event in islice(stream, 8)}
    for number, token in tokens.items():
        if number == 7:
            continue
        with feed.watch(resume_after=token, max_await_time_ms=100) as stream:
            found = [event["documentKey"]["_id"] for event in islice(stream, 7 - min(number, 4))]
        # Documents of one batch share a place in the feed: they come again.
        assert found == list(range(min(number + 1, 5), 8))


def test_hints_and_bounds_of_an_index(client: Client) -> None:
    items = client.shop.bounded
    items.create_index([("n", 1)])
    items.insert_many([{"_id": at, "n": n} for at, n in enumerate([5, 1, [2, 9], 7, None])])
    with pytest.raises(OperationFailure) as caught:
        list(items.find({}, hint="m_1"))
    assert caught.value.code == 2
    with pytest.raises(OperationFailure) as caught:
        items.delete_one({"_id": 0}, hint={"m": 1})
    assert caught.value.code == 2
    found = items.find({}).hint("n_1").min([("n", 2)]).max([("n", 7)])
    assert [one["_id"] for one in found] == [2, 0]
    assert items.count_documents({}, hint={"n": 1}) == 5


def test_a_retried_write_happens_once(client: Client) -> None:
    counters = client.shop.counters
    counters.insert_one({"_id": 1, "n": 0})
    with client.start_session() as session:
        lsid = session.session_id
        update = {
            "update": "counters",
            "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}],
            "lsid": lsid,
            "txnNumber": bson.Int64(77),
        }
        first = client.shop.command(update)
        again = client.shop.command(update)
    assert (first["nModified"], again["nModified"]) == (1, 1)
    assert counters.find_one({"_id": 1}) == {"_id": 1, "n": 1}
    assert counters.count_documents({}) == 1


@pytest.mark.parametrize("shard", [None, "place.k"])
def test_a_retried_write_that_changed_nothing_changes_nothing_later(
    client: Client, shard: str | None
) -> None:
    name = f"late_{shard is not None}"
    late = client.shop[name]
    if shard is not None:
        client.admin.command({"shardCollection": f"shop.{name}", "key": {shard: "hashed"}})
    late.insert_one({"_id": 0, "place": {"k": 1}, "n": 0, "same": 1})
    q, u = {"place.k": 1, "n": 5}, {"$inc": {"n": 1}}
    commands: list[dict[str, Any]] = [
        {"update": name, "updates": [{"q": q, "u": u}]},
        {"delete": name, "deletes": [{"q": q, "limit": 1}]},
        {"findAndModify": name, "query": q, "update": u},
        {"findAndModify": name, "query": q, "remove": True},
        {"update": name, "updates": [{"q": {"place.k": 1}, "u": {"$set": {"same": 1}}}]},
        {"update": name, "updates": [{"q": {"place.k": 1, "n": 0}, "u": {"$set": {"n": 4}}}]},
    ]
    with client.start_session() as session:
        for number, command in enumerate(commands):
            command |= {"lsid": session.session_id, "txnNumber": bson.Int64(number)}
        seen = [_result(client.shop.command(command)) for command in commands]
        late.update_one({"_id": 0, "place.k": 1}, {"$set": {"n": 5, "same": 2}})
        assert [_result(client.shop.command(command)) for command in commands] == seen
    nothing = {"n": 0, "updatedExisting": False}
    assert seen == [(0, 0), (0, None), (None, nothing), (None, {"n": 0}), (1, 0), (1, 1)]
    assert late.find_one({}) == {"_id": 0, "place": {"k": 1}, "n": 5, "same": 2}


def _result(reply: dict[str, Any]) -> tuple[Any, Any]:
    if "n" in reply:
        return reply["n"], reply.get("nModified")
    return reply["value"], reply["lastErrorObject"]


def test_expiry_and_charges() -> None:
    clock = VirtualClock()
    service = make_service(MemoryEngine(HANDLERS, clock=clock))
    with connected(service) as client:
        events = client.shop.events
        events.create_index([("_ts", 1)], expireAfterSeconds=10)
        events.insert_many([{"_id": 1}, {"_id": 2, "ttl": 1000}])
        charge = client.shop.command("getLastRequestStatistics")
        assert charge["CommandName"] == "insert"
        assert charge["RequestCharge"] > 0
        clock.advance(20)
        assert [one["_id"] for one in events.find()] == [2]


@pytest.mark.parametrize("commits", [True, False])
def test_a_transaction_has_five_seconds(commits: bool) -> None:
    clock = VirtualClock()
    with (
        connected(make_service(MemoryEngine(HANDLERS, clock=clock))) as client,
        client.start_session() as session,
    ):
        session.start_transaction()
        client.shop.slow.insert_one({"_id": 1}, session=session)
        clock.advance(6)
        with pytest.raises(OperationFailure, match="Transaction is not active") as late:
            if commits:
                session.commit_transaction()
            else:
                client.shop.slow.insert_one({"_id": 2}, session=session)
        assert late.value.code == 2
        assert not late.value.has_error_label("TransientTransactionError")
        assert client.shop.slow.count_documents({}) == 0


def test_the_request_log_has_a_line_per_command(caplog: pytest.LogCaptureFixture) -> None:
    engine = MemoryEngine(HANDLERS, clock=VirtualClock())
    store = AccountStore(engine, random=Random(1))
    for logs in (True, False):
        gateway = Gateway(store, GatewaySettings(logs_requests=logs))
        service = Service(gateway, Settings(require_login=False))
        caplog.clear()
        with caplog.at_level("INFO", "armillary.requests"), connected(service) as client:
            notes = client.shop[f"notes_{logs}"]
            notes.insert_one({"_id": 1, "secret": "s3cret"})
            notes.insert_one({"_id": 2})
            notes.find_one({"_id": 1})
            with pytest.raises(DuplicateKeyError):
                notes.insert_one({"_id": 1})
            with pytest.raises(OperationFailure):
                client.shop.command("no\nsuch")
        facts = [record.__dict__["facts"] for record in caplog.records if "facts" in vars(record)]
        own = [one for one in facts if one["Path"].startswith("shop")]
        if not logs:
            assert facts == []
            continue
        assert [(one["Method"], one["Path"], one["StatusCode"]) for one in own] == [
            ("insert", "shop.notes_True", 0),
            ("insert", "shop.notes_True", 0),
            ("find", "shop.notes_True", 0),
            ("insert", "shop.notes_True", 11000),
            ("no?such", "shop", 59),
        ]
        assert all(one["RequestCharge"] > 0 for one in own[:3])
        assert "s3cret" not in caplog.text


def login(address: str) -> Client:
    return MongoClient(address, serverSelectionTimeoutMS=60_000)


def later(address: str) -> AsyncMongoClient[dict[str, Any]]:
    return AsyncMongoClient(address, serverSelectionTimeoutMS=60_000)


def test_logins() -> None:
    engine = MemoryEngine(HANDLERS, clock=VirtualClock())
    keys = GatewaySettings(keys=(EMULATOR_KEY,), read_only_keys=("cmVhZG9ubHk=",))
    gateway = Gateway(AccountStore(engine, random=Random(1)), keys)
    service = Service(gateway, Settings())
    with serving(service) as port:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-1"):
            with login(uri(port, options=f"&authMechanism={mechanism}")) as client:
                client.db.c.insert_one({"m": mechanism})
        with login(uri(port, key="cmVhZG9ubHk=")) as client:
            assert client.db.c.count_documents({}) == 2
            with pytest.raises(OperationFailure) as refused:
                client.db.c.insert_one({})
            assert refused.value.code == 13
        with login(uri(port, key="wrong")) as client, pytest.raises(OperationFailure) as bad:
            client.db.c.find_one()
        assert bad.value.code == 18
        with login(uri(port, login=False)) as client, pytest.raises(OperationFailure) as no:
            client.db.c.find_one()
        assert no.value.code == 13


def test_the_asynchronous_client(service: Service) -> None:
    async def main(port: int) -> list[Any]:
        async with later(uri(port, login=False)) as client:
            await client.shop.later.insert_many([{"_id": n} for n in range(150)])
            return [one["_id"] async for one in client.shop.later.find().batch_size(50)]

    with serving(make_service()) as port:
        assert asyncio.run(main(port)) == list(range(150))


def test_strict_refuses_what_the_service_refuses() -> None:
    with connected(make_service(strict=True), retryWrites=False) as client:
        things = client.shop.things
        things.insert_many([{"_id": n, "a": n} for n in range(3)])
        with pytest.raises(OperationFailure, match="order-by item is excluded"):
            list(things.find().sort("a", pymongo.ASCENDING))
        things.create_index("a")
        assert [one["a"] for one in things.find().sort("a", -1)] == [2, 1, 0]
        with pytest.raises(OperationFailure) as caught:
            client.shop.command(
                {
                    "insert": "things",
                    "documents": [{}],
                    "lsid": {"id": bson.Binary(b"1" * 16, 4)},
                    "txnNumber": bson.Int64(1),
                }
            )
        assert "Retryable writes are not supported" in str(caught.value)


@pytest.mark.parametrize("ordered", [True, False])
def test_a_retried_insert_over_several_shard_keys_happens_once(
    client: Client, ordered: bool
) -> None:
    name = f"spread_{ordered}"
    client.admin.command({"shardCollection": f"shop.{name}", "key": {"k": "hashed"}})
    documents = [{"_id": n, "k": n % 3} for n in range(12)]
    documents.append({"_id": 0, "k": 0})  # a duplicate, in every attempt
    with client.start_session() as session:
        command = {
            "insert": name,
            "documents": documents,
            "ordered": ordered,
            "lsid": session.session_id,
            "txnNumber": bson.Int64(1),
        }
        for _ in range(3):
            reply = client.shop.command(command)
            assert reply["n"] == 12
            assert [(one["index"], one["code"]) for one in reply["writeErrors"]] == [(12, 11000)]
    assert client.shop[name].count_documents({}) == 12


def test_collations(client: Client) -> None:
    words = client.shop.words
    words.create_index("w")
    words.insert_many([{"_id": n, "w": w} for n, w in enumerate(["b", "A", "a", "É", "e", "B"])])
    weak, plain = Collation("en", strength=1), Collation("en", strength=2)
    assert {one["_id"] for one in words.find({"w": "A"}, collation=plain)} == {1, 2}
    assert {one["_id"] for one in words.find({"w": "e"}, collation=weak)} == {3, 4}
    assert words.count_documents({"w": "e"}, collation=plain) == 1
    ordered = [one["w"] for one in words.find().collation(Collation("en")).sort("w", 1)]
    assert ordered == ["a", "A", "b", "B", "e", "É"]
    assert len(words.distinct("w", collation=weak)) == 3
    grouped = words.aggregate([{"$group": {"_id": "$w"}}], collation=plain)
    assert len(list(grouped)) == 4
    done = words.update_many({"w": {"$in": ["B"]}}, {"$set": {"x": 1}}, collation=plain)
    assert done.modified_count == 2
    assert words.delete_one({"_id": 0, "w": "B"}, collation=plain).deleted_count == 1
    assert words.delete_one({"_id": 5, "w": "b"}).deleted_count == 0
    with pytest.raises(OperationFailure, match="locale"):
        list(words.find({}, collation=Collation("xx")))
    with pytest.raises(OperationFailure, match="regular expression"):
        list(words.find({"w": bson.Regex("a")}, collation=plain))


def test_a_dump_through_a_driver_is_restored_byte_for_byte(client: Client) -> None:
    """What mongodump and mongorestore do: raw documents, indexes and options by way of commands."""
    source = client.dump.items
    source.create_index([("n", 1), ("s", -1)], name="both")
    source.create_index("u", unique=True, name="unique")
    every = RawBSONDocument(EVERY)
    source.insert_many([{"_id": at, "u": at, "every": every} for at in range(250)])
    options: Any = CodecOptions(document_class=RawBSONDocument)
    indexes = list(source.list_indexes())
    dumped: Any = client.dump.get_collection("items", options)
    rows = [one.raw for one in dumped.find()]
    client.drop_database("dump")
    target = client.restored.items
    client.restored.command("createIndexes", "items", indexes=indexes[1:])
    target.insert_many([RawBSONDocument(one) for one in rows])
    restored: Any = client.restored.get_collection("items", options)
    found = restored.find().sort("_id", 1)
    assert [one.raw for one in found] == sorted(rows, key=lambda raw: RawBSONDocument(raw)["_id"])
    assert list(target.list_indexes()) == indexes
