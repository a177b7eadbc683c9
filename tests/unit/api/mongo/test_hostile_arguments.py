"""Arguments of kinds that nobody sends, and collections that go while a command makes them. Without
these a client finds the command that is answered as a mistake of the server (code 1), or not at
all."""

from __future__ import annotations

import logging
import tracemalloc
from typing import Any

import pytest
from bson import Binary, Code, Decimal128, Int64, ObjectId
from bson.datetime_ms import DatetimeMS
from tests.support.error_kinds import every_kind
from tests.support.mongo import Wire, make_service

from armillary.api.errors import mongo_code
from armillary.api.mongo.commands.changes import token_of
from armillary.api.mongo.fast.inserts import _statements
from armillary.api.mongo.service import Service
from armillary.encoding.bson.values import Document
from armillary.errors import FormatMismatch, TooManyResources
from armillary.store.items.positions import Position, Segment

CODE = Code("c")
"""For Python a text, and one that can't be the key of a dict."""
SIGNALLING = Decimal128("sNaN")
"""Python raises when it is compared."""
SESSION = {"id": Binary(b"0" * 16, 4)}
INTERNAL_ERROR = 1

NAMES: list[Document] = [
    {"find": CODE, "filter": {"_id": 1}},
    {"count": CODE},
    {"insert": CODE, "documents": [{"_id": 1}]},
    {"update": CODE, "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]},
    {"createIndexes": CODE, "indexes": [{"key": {"a": 1}}]},
    {"createIndexes": "c", "indexes": [{"key": {"a": CODE}}]},
    {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": CODE}]},
    {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a\0b"}]},
    *(
        {"aggregate": "c", "pipeline": [{name: {"groupBy": "$n", "output": one} | rest}],
         "cursor": {}}
        for name, rest in (("$bucket", {"boundaries": [0, 9]}), ("$bucketAuto", {"buckets": 2}))
        for one in (["x"], 5, "x", None)
    ),
    *(
        {"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}, "arrayFilters": one}]}
        for one in (5, "x", True, {"x": 1}, Int64(2**62))
    ),
    {"create": CODE},
    {"drop": CODE},
    {"aggregate": CODE, "pipeline": [], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$out": CODE}], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$out": {"db": 5, "coll": "x"}}], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$merge": {"into": {"db": 5, "coll": "x"}}}], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$unionWith": CODE}], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$match": {"s": {"$regex": CODE}}}], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$set": {"x": {"$convert": {"input": 1, "to": CODE}}}}],
     "cursor": {}},
    {"find": "c", "filter": {"n": {"$type": CODE}}},
    {"distinct": "c", "key": CODE},
    {"getMore": Int64(5), "collection": CODE},
    {"shardCollection": CODE, "key": {"a": "hashed"}},
    {"enableSharding": CODE},
    {"customAction": CODE},
    {"customAction": "CreateCollection", "collection": CODE},
    {"customAction": "CreateCollection", "collection": "x", "shardKey": CODE},
    {"explain": {"find": CODE, "filter": {}}},
    {"filemd5": ObjectId(bytes(12)), "root": CODE},
    {"hello": 1, "compression": [CODE, {}]},
    {"saslStart": 1, "mechanism": CODE, "payload": b""},
    {"ping": 1, "$db": CODE},
    {"insert": "c", "documents": [{"_id": 1}], "$db": CODE},
]  # fmt: skip
SIZES: list[Any] = [
    *("#", {}, ObjectId(bytes(12)), float("inf"), float("-inf"), Decimal128("1E-6176"), True)
]
LISTING: list[Document] = [
    {"listCollections": 1},
    {"listIndexes": "c"},
    {"aggregate": "c", "pipeline": []},
    {"aggregate": "c", "pipeline": [{"$changeStream": {}}]},
]
PLACES: list[Any] = [[{}], 5, [], {}, CODE]
RETRIED: list[Document] = [
    *({"stmtIds": [one]} for one in ("x", float("-inf"), None, CODE)),
    {"stmtIds": 5},
    {"stmtId": "x"},
    {"autocommit": False, "txnNumber": {"$in": []}},
]
POINT: Document = {"type": "Point", "coordinates": [1, 2]}
NO_CIRCLES: list[Any] = [[[1, "x"], 1], [POINT | {"coordinates": 5}, 1], {}, None]
AREAS: list[Document] = [
    *(
        {"$centerSphere": one}
        for one in ([0.5], [[1, 2], "$n"], [[1, 2], {}], 5, [[1], 1], [{}, 1])
    ),
    *({"$center": one} for one in NO_CIRCLES),
    *({"$box": one} for one in (5, [], [[1, 2]], [[1, 2], [3]], [[1, 2], "x"], [POINT, {}])),
    *({"$polygon": one} for one in (5, [], [1, 2, 3], [[1, 2], [3, 4]], [[1, 2], [3, 4], [5]])),
]
NO_TEXTS: list[Any] = [5, None, {}, [], CODE]
NO_NUMBERS: list[Any] = ["x", {}, None]
NEARNESS: list[Document] = [
    *({"distanceField": one} for one in NO_TEXTS),
    *({"minDistance": one} for one in NO_NUMBERS),
    {"maxDistance": [1]},
    {"distanceMultiplier": "x"},
    {"query": 5},
]
EXPRESSIONS: list[Document] = [
    {"$zip": {"inputs": [[1], [2, 3]], "useLongestLength": True, "defaults": [1]}},
    {"$zip": {"inputs": [[1], [2, 3]], "useLongestLength": True, "defaults": 5}},
    {"$filter": {"input": [1], "as": {}, "cond": True}},
    {"$map": {"input": [1], "as": 5, "in": 1}},
    {"$sortArray": {"input": [1, 2], "sortBy": "x"}},
    {"$sortArray": {"input": [1, 2], "sortBy": {"a": "x"}}},
    {"$regexMatch": {"input": "x", "regex": "a" * 10_000}},
    {"$sqrt": Decimal128("NaN")},
    {"$unsetField": [{}]},
    {"$unsetField": {"field": 5, "input": "$$ROOT"}},
    {"$getField": [False, b""]},
    {"$bitNot": b""},
    {"$binarySize": 5},
    {"$bsonSize": 5},
    {"$add": [DatetimeMS(2**63 - 1), 1]},
    {"$subtract": [DatetimeMS(0), Decimal128("1E+6144")]},
]
ARGUMENTS: list[Document] = [
    {"find": "c", "filter": {}, "skip": SIGNALLING},
    {"find": "c", "filter": {}, "maxTimeMS": SIGNALLING},
    {"find": "c", "filter": {"n": {"$gt": SIGNALLING, "$mod": [SIGNALLING, 1]}}},
    {"find": "c", "filter": {}, "sort": {"n": SIGNALLING}},
    {"aggregate": "c", "pipeline": [{"$sort": {"n": SIGNALLING}}], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$group": {"_id": SIGNALLING, "n": {"$sum": SIGNALLING}}}],
     "cursor": {}},
    {"insert": "numbers", "documents": [{"_id": SIGNALLING, "n": SIGNALLING}]},
    {"createIndexes": "c", "indexes": [{"key": {"n": SIGNALLING}}]},
    {"shardCollection": "db.s", "key": {"a": SIGNALLING}},
    {"customAction": "CreateCollection", "collection": "x", "offerThroughput": SIGNALLING},
    *({**one, "cursor": {"batchSize": size}} for one in LISTING for size in SIZES),
    *(
        {"insert": "c", "documents": [{"_id": 7}], "lsid": SESSION, "txnNumber": Int64(1), **one}
        for one in RETRIED
    ),
    {"insert": "c", "documents": [{"_id": 7}], "autocommit": False, "txnNumber": 1},
    {"explain": {"aggregate": "c", "pipeline": 1}},
    {"explain": {"find": "c", "filter": 5}},
    {"explain": {"update": "c", "updates": 5}},
    {"explain": {"update": "c", "updates": [5]}},
    *(
        {"aggregate": "c", "pipeline": [{"$merge": {"into": "o", "on": on}}], "cursor": {}}
        for on in PLACES
    ),
    *(
        {"aggregate": "c", "pipeline": [{"$changeStream": {"resumeAfter": one}}], "cursor": {}}
        for one in (
            5,
            {"_data": Int64(2**62)},
            {"_data": b"[]"},
            {"_data": b'{"Continuation": [{"FeedRange": {"value": {"min": "", "max": "FF"}}, '
                      b'"State": {"value": 5}}]}'},
        )
    ),
    {"getMore": Int64(7), "collection": "c", "maxTimeMS": float("nan")},
    *(
        {"aggregate": "c", "pipeline": [{"$set": {"x": expression}}], "cursor": {}}
        for expression in EXPRESSIONS
    ),
    {"aggregate": 1, "pipeline": [{"$documents": "abc"}], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$count": "\0"}], "cursor": {}},
    {"find": "c", "filter": {"$sampleRate": "x"}},
    *(
        {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {f"n.{part}": 1}}}]}
        for part in ("\u00b2", "9" * 5_000)
    ),
    {"find": "c", "filter": {"s.\u00b2": 1, f"s.{'9' * 5_000}": 1}},
    *(
        {"createIndexes": "c", "indexes": [{"key": {"n": 1}, "expireAfterSeconds": one}]}
        for one in (Decimal128("NaN"), float("nan"), float("inf"))
    ),
    *(
        {"find": "c", "filter": {"n": {"$bitsAnySet": one}}}
        for one in (
            float("inf"),
            [2**31, 2**40, Int64(2**62)],
        )
    ),
]  # fmt: skip


@pytest.fixture
def wire() -> Wire:
    made = Wire()
    item = {"_id": 1, "n": Decimal128("1"), "s": "fox"}
    assert made.run({"insert": "c", "documents": [item]})["n"] == 1
    chunk = {"_id": 1, "files_id": 1}
    assert made.run({"insert": "fs.chunks", "documents": [chunk]})["n"] == 1
    return made


def shown(value: Any) -> str:
    return str(value)[:90]


@pytest.mark.parametrize("area", AREAS, ids=str)
def test_an_area_that_is_none_is_a_bad_value(wire: Wire, area: Document) -> None:
    wire.run({"insert": "c", "documents": [{"_id": "g", "g": [1, 2]}]})
    reply = wire.run({"find": "c", "filter": {"g": {"$geoWithin": area}}})
    assert (reply["ok"], reply["code"]) == (0.0, 2)


@pytest.mark.parametrize("wrong", NEARNESS, ids=str)
def test_a_distance_that_is_none_is_said(wire: Wire, wrong: Document) -> None:
    wire.run({"insert": "c", "documents": [{"_id": "g", "g": [1, 2]}]})
    stage = {"$geoNear": {"near": POINT, "distanceField": "z"} | wrong}
    reply = wire.run({"aggregate": "c", "pipeline": [stage], "cursor": {}})
    assert reply["ok"] == 0.0
    assert reply["code"] != INTERNAL_ERROR


@pytest.mark.parametrize("command", [*NAMES, *ARGUMENTS], ids=shown)
def test_what_is_wrong_is_said(
    command: Document, wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        reply = wire.run({**command, "$db": command.get("$db", "db")})
    assert reply.get("code") != INTERNAL_ERROR
    assert all(one["code"] != INTERNAL_ERROR for one in reply.get("writeErrors", ()))
    assert not caplog.records


def test_a_chunk_without_its_fields_is_passed_over(wire: Wire) -> None:
    assert wire.run({"filemd5": 1, "root": "fs"})["numChunks"] == 0


def test_a_resume_token_is_no_longer_than_one_that_was_given(wire: Wire) -> None:
    collection = wire.service.collections.need("db", "c")
    many = tuple(Segment(bytes([0, at >> 8, at & 255]), b"\x10", 0) for at in range(5_000))
    token = token_of(collection, Position("latest", many))
    reply = wire.run(
        {"aggregate": "c", "pipeline": [{"$changeStream": {"resumeAfter": token}}], "cursor": {}}
    )
    assert reply["code"] == 260


def test_a_number_is_not_taken_for_so_many_bytes(wire: Wire) -> None:
    """`bytes(50_000_000)` are that many zeros."""
    stream = {"$changeStream": {"resumeAfter": {"_data": 50_000_000}}}
    tracemalloc.start()
    try:
        wire.run({"aggregate": "c", "pipeline": [stream], "cursor": {}})
        with pytest.raises(TypeError):
            _statements({"lsid": {"id": 50_000_000}, "txnNumber": 1})
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_reply_that_can_not_be_written_is_an_answer(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    monkeypatch.setattr(Service, "run", lambda *given: {"value": deep})
    assert wire.run({"ping": 1})["code"] == 15
    monkeypatch.setattr(Service, "run", lambda *given: {"value": object()})
    assert wire.run({"ping": 1})["code"] == INTERNAL_ERROR


# --- somebody else at the same time ---------------------------------------------------------------

MAKING: list[Document] = [
    {"insert": "c", "documents": [{"_id": 1}]},
    {"createIndexes": "c", "indexes": [{"key": {"a": 1}}]},
    {"create": "c"},
    {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"a": 1}, "upsert": True}]},
    {"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}},
    {"customAction": "CreateCollection", "collection": "c"},
    {"shardCollection": "db.c", "key": {"a": "hashed"}},
]


def code_of(reply: Document) -> int:
    """Of the command, or of its first statement."""
    found: int = (reply if "code" in reply else reply["writeErrors"][0])["code"]
    return found


@pytest.mark.parametrize("command", MAKING, ids=lambda one: next(iter(one)))
def test_a_collection_that_is_dropped_as_it_is_made_does_not_exist(command: Document) -> None:
    service = make_service()
    account = service.gateway.account
    make = account.create_container

    def made_and_gone(database: str, *given: Any, **options: Any) -> Any:
        found = make(database, *given, **options)
        account.delete_database(database)
        return found

    account.create_container = made_and_gone  # type: ignore[method-assign]
    assert code_of(Wire(service).run(command)) == 26


def test_an_insert_makes_a_collection_again_that_was_dropped_meanwhile() -> None:
    service = make_service()
    account = service.gateway.account
    make = account.create_container
    rounds = []

    def made_and_gone_once(database: str, *given: Any, **options: Any) -> Any:
        found = make(database, *given, **options)
        rounds.append(1)
        if len(rounds) == 1:
            account.delete_database(database)
        return found

    account.create_container = made_and_gone_once  # type: ignore[method-assign]
    assert Wire(service).run({"insert": "c", "documents": [{"_id": 1}]})["n"] == 1


def test_an_index_of_a_collection_that_is_dropped_meanwhile() -> None:
    service = make_service()
    wire = Wire(service)
    wire.run({"insert": "c", "documents": [{"_id": 1}]})
    account = service.gateway.account
    replace = account.replace_container

    def replaced_and_gone(*given: Any, **options: Any) -> Any:
        found = replace(*given, **options)
        account.delete_database("db")
        return found

    account.replace_container = replaced_and_gone  # type: ignore[method-assign]
    assert wire.run({"createIndexes": "c", "indexes": [{"key": {"a": 1}}]})["code"] == 26


def test_an_account_that_is_full_is_no_mistake_of_the_server() -> None:
    service = make_service()

    def full(*given: Any, **options: Any) -> Any:
        raise TooManyResources

    service.gateway.account.create_container = full  # type: ignore[method-assign]
    wire = Wire(service)
    for command in MAKING:
        assert code_of(wire.run(command)) == 2


@pytest.mark.parametrize("kind", sorted(every_kind(), key=str), ids=lambda one: one.__name__)
def test_only_damaged_data_is_an_internal_error(kind: Any) -> None:
    found = mongo_code(kind.__new__(kind))
    assert (found == INTERNAL_ERROR) is issubclass(kind, FormatMismatch)
