"""What a command may use, and where it runs. Without these a pipeline of a few bytes could hold a
thread or the memory of the server for as long as it likes, and clients that wait for changes could
take every thread there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from bson import Int64
from tests.support.mongo import Wire, message

from armillary.api.core.streams import ClientGone, Later, Work
from armillary.api.mongo.length import lane_of
from armillary.api.mongo.wire.messages import Request
from armillary.encoding.bson.values import Document, decode, encode
from armillary.limits import MB

RANGE: Document = {"$range": [0, 30_000]}
EACH: Document = {"$map": {"input": RANGE, "as": "a", "in": "$$a"}}
FAR: Document = {"$in": [{"$add": ["$$a", 10**6]}, RANGE]}
OUT_OF_TIME, TOO_MUCH = 50, 146
REGEX = "^(a+)+$b"

#: Each would take minutes.
ENDLESS: dict[str, list[Document]] = {
    "unwind": [
        stage
        for name in "abc"
        for stage in ({"$set": {name: {"$range": [0, 3_000]}}}, {"$unwind": f"${name}"})
    ]
    + [{"$count": "n"}],
    "map in map": [
        {"$project": {"x": {"$sum": {"$map": {"input": RANGE, "in": {"$sum": EACH}}}}}},
    ],
    "filter": [{"$project": {"x": {"$filter": {"input": RANGE, "as": "a", "cond": FAR}}}}],
    "reduce": [
        {
            "$project": {
                "x": {"$reduce": {"input": RANGE, "initialValue": 0, "in": {"$sum": EACH}}}
            }
        }
    ],
    "lookup": [
        {"$lookup": {"from": "c", "as": "x", "pipeline": [
            {"$lookup": {"from": "c", "as": "x", "pipeline": [
                {"$lookup": {"from": "c", "as": "x", "pipeline": [
                    {"$lookup": {"from": "c", "as": "x", "pipeline": [
                        {"$lookup": {"from": "c", "as": "x", "pipeline": [{"$count": "n"}]}},
                        {"$count": "n"},
                    ]}}, {"$count": "n"},
                ]}}, {"$count": "n"},
            ]}}, {"$count": "n"},
        ]}},
    ],
    "regular expression": [{"$match": {"s": {"$regex": REGEX}}}],
    "regexFindAll": [{"$project": {"x": {"$regexFindAll": {"input": "$s", "regex": REGEX}}}}],
    "facet": [
        {"$facet": {"x": [
            {"$set": {"a": RANGE}}, {"$unwind": "$a"},
            {"$set": {"b": RANGE}}, {"$unwind": "$b"}, {"$count": "n"},
        ]}},
    ],
    "group": [
        {"$set": {"a": RANGE}}, {"$unwind": "$a"}, {"$set": {"b": RANGE}}, {"$unwind": "$b"},
        {"$group": {"_id": {"$mod": ["$b", 2]}, "n": {"$sum": 1}}},
    ],
}  # fmt: skip
DOUBLED = {"$concatArrays": ["$$value", "$$value"]}
#: Each would keep gigabytes.
LARGE: dict[str, list[Document]] = {
    "range": [{"$project": {"x": {"$size": {"$range": [0, 2_000_000_000]}}}}],
    "doubled arrays": [
        {"$project": {"x": {"$reduce": {
            "input": {"$range": [0, 40]}, "initialValue": [1, 2, 3], "in": DOUBLED,
        }}}},
    ],
    "doubled texts": [
        {"$project": {"x": {"$reduce": {
            "input": {"$range": [0, 40]}, "initialValue": "$s",
            "in": {"$concat": ["$$value", "$$value"]},
        }}}},
    ],
    "replaceAll": [
        {"$project": {"x": {"$replaceAll": {
            "input": {"$replaceAll": {"input": "$s", "find": "a", "replacement": "$s"}},
            "find": "a", "replacement": "$s",
        }}}},
    ],
    "push": [
        {"$set": {"a": RANGE}}, {"$unwind": "$a"}, {"$group": {"_id": None, "x": {"$push": "$s"}}},
    ],
    "sort": [
        {"$set": {"a": RANGE}}, {"$unwind": "$a"}, {"$sort": {"a": -1, "s": 1}},
    ],
    "arrays of arrays": [
        {"$project": {"x": {"$reduce": {
            "input": RANGE, "initialValue": [],
            "in": {"$concatArrays": ["$$value", [{"$range": [0, 1_000]}]]},
        }}}},
    ],
    "one array that grows": [
        {"$project": {"x": {"$reduce": {
            "input": RANGE, "initialValue": [[1]],
            "in": [{"$concatArrays": [{"$first": "$$value"}, {"$first": "$$value"}]}],
        }}}},
    ],
    "facet": [{"$facet": {"x": [{"$set": {"a": RANGE}}]}}],
    "rows of another collection": [
        {"$lookup": {"from": "c", "as": "x", "pipeline": [{"$set": {"a": RANGE}}]}},
    ],
    "sample": [{"$set": {"a": RANGE}}, {"$sample": {"size": 1_000_000}}],
    "first of a sort": [{"$set": {"a": RANGE}}, {"$sort": {"a": 1}}, {"$limit": 9_000}],
    "documents": [
        {"$project": {"x": {"$map": {
            "input": {"$range": [0, 900_000]}, "in": {"a": "$$this", "b": ["$$this"]},
        }}}},
    ],
    "fields": [
        {"$project": {str(at): {"$map": {
            "input": RANGE, "in": {"$concat": ["$s", {"$toString": "$$this"}]},
        }} for at in range(40)}},
    ],
    "matches": [
        {"$project": {"x": {"$regexFindAll": {
            "input": {"$reduce": {
                "input": {"$range": [0, 9]}, "initialValue": "$s",
                "in": {"$concat": ["$$value", "$$value"]},
            }},
            "regex": "a",
        }}}},
    ],
    "zip": [{"$project": {"x": {"$zip": {"inputs": [{"$range": [0, 1_000_000]}] * 40}}}}],
    **{
        f"{name} of each group": [
            {"$set": {"a": RANGE}}, {"$unwind": "$a"},
            {"$group": {"_id": "$a", "x": {name: {"$concat": ["$s", {"$toString": "$a"}]}}}},
            {"$count": "n"},
        ]
        for name in ("$first", "$last", "$min", "$max")
    },
    "objects merged": [
        {"$set": {"a": RANGE}}, {"$unwind": "$a"},
        {"$group": {"_id": None, "x": {"$mergeObjects": {"$arrayToObject": [[
            {"k": {"$toString": "$a"}, "v": "$s"},
        ]]}}}},
        {"$count": "n"},
    ],
    "clauses": [{"$match": {"$or": [{"n": at} for at in range(20_000)]}}],
    "parts": [{"$set": {"x": {"$switch": {"branches": [
        {"case": {"$eq": ["$n", at]}, "then": at} for at in range(20_000)
    ]}}}}],
    "regular expressions": [
        {"$match": {"$or": [{"s": {"$regex": f"{at}(a|b)?" * 100}} for at in range(40)]}},
    ],
    "long regular expression": [{"$match": {"s": {"$regex": "(a|b)?" * 1_000}}}],
}  # fmt: skip


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("armillary.api.mongo.call.MONGO_MEMORY_BYTES_MAX", 4 * MB)
        patch.setattr("armillary.api.mongo.aggregate.stages.PRUNE_BYTES", MB)
        yield filled()


def filled() -> Wire:
    made = Wire()
    texts = [{"_id": number, "s": "a" * 4_000} for number in range(40)]
    assert made.run({"insert": "c", "documents": texts})["n"] == 40
    return made


def aggregate(pipeline: list[Document], **more: Any) -> Document:
    return {"aggregate": "c", "pipeline": pipeline, "cursor": {}, **more}


@pytest.mark.parametrize("name", ENDLESS)
def test_every_loop_of_a_pipeline_ends_at_its_deadline(wire: Wire, name: str) -> None:
    found = wire.run(aggregate(ENDLESS[name], maxTimeMS=40))
    assert found.get("code") in (OUT_OF_TIME, TOO_MUCH), found


@pytest.mark.parametrize("name", LARGE)
def test_what_a_pipeline_keeps_is_bounded(wire: Wire, name: str) -> None:
    found = wire.run(aggregate(LARGE[name]))
    assert found.get("code") not in (None, 1, OUT_OF_TIME), found


ARRAYS: Document = {"$map": {"input": {"$range": [0, 600]}, "in": {"$range": [0, 5]}}}
#: Each makes more than the bound in all and holds little of it at a time.
PASSING: dict[str, tuple[Document, Any]] = {
    "sums of sums": (
        {"$sum": {"$map": {"input": {"$range": [0, 10]}, "in": {"$sum": {"$range": [0, 9_000]}}}}},
        10 * sum(range(9_000)),
    ),
    "arrays made flat": (
        {"$size": {"$reduce": {
            "input": ARRAYS, "initialValue": [],
            "in": {"$concatArrays": ["$$value", "$$this"]},
        }}},
        3_000,
    ),
    "texts put together": (
        {"$strLenCP": {"$reduce": {
            "input": {"$range": [0, 1_500]}, "initialValue": "",
            "in": {"$concat": ["$$value", ", element"]},
        }}},
        1_500 * 9,
    ),
    "filter": (
        {"$size": {"$filter": {"input": {"$range": [0, 30]}, "as": "a", "cond": {
            "$in": ["$$a", {"$range": [0, 9_000]}],
        }}}},
        30,
    ),
}  # fmt: skip


#: One call each, which nothing interrupts: with a step for every pair of elements they would take
#: minutes, and no other thread would run meanwhile.
AT_ONCE: dict[str, tuple[Document, Any]] = {
    "product": ({"$multiply": [Int64(2**63 - 1)] * 60_000}, float("inf")),
    "characters": (
        {"$trim": {"input": "a" * 300_000, "chars": "b" * 1_000_000 + "a"}},
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_ONCE)
def test_what_is_not_interrupted_is_short(name: str) -> None:
    expression, expected = AT_ONCE[name]
    found = filled().run(aggregate([{"$limit": 1}, {"$project": {"_id": 0, "x": expression}}]))
    assert found["cursor"]["firstBatch"] == [{"x": expected}]


def test_an_update_of_many_fields_looks_at_each_once() -> None:
    change = {"q": {"_id": 1}, "u": {"$set": {f"f{at}": at for at in range(30_000)}}}
    assert filled().run({"update": "c", "updates": [change]})["nModified"] == 1


def test_a_stage_that_sets_many_fields_ends_at_its_deadline(wire: Wire) -> None:
    for below in ("", ".a"):
        stage = {"$set": {f"f{at}{below}": "$n" for at in range(4_000)}}
        found = wire.run(aggregate([stage] * 40, maxTimeMS=40))
        assert found.get("code") in (OUT_OF_TIME, TOO_MUCH), found


def test_paths_that_conflict_are_found_whichever_comes_first() -> None:
    for first, second, place in (("a", "a", "a"), ("a", "a.b", "a"), ("a.b.c", "a.b", "a.b")):
        change = {"q": {"_id": 1}, "u": {"$set": {first: 1}, "$inc": {second: 1}}}
        (error,) = filled().run({"update": "c", "updates": [change]})["writeErrors"]
        assert error["code"] == 40
        assert f"would create a conflict at '{place}'" in error["errmsg"]


def test_nothing_is_kept_for_a_deviation(wire: Wire) -> None:
    thousand = {"$range": [0, 1_000]}
    stages: list[Document] = [{"$limit": 1}, {"$set": {"a": thousand}}, {"$unwind": "$a"}]
    fold: Document = {
        "$group": {"_id": None, "p": {"$stdDevPop": "$a"}, "s": {"$stdDevSamp": "$a"}}
    }
    (found,) = wire.run(aggregate([*stages, fold]))["cursor"]["firstBatch"]
    assert found["p"] == pytest.approx(288.6749902572095)
    assert found["s"] == pytest.approx(288.8194360957494)


@pytest.mark.parametrize("name", PASSING)
def test_what_was_let_go_does_not_count(wire: Wire, name: str) -> None:
    expression, expected = PASSING[name]
    found = wire.run(aggregate([{"$limit": 1}, {"$project": {"x": expression}}]))
    assert found["cursor"]["firstBatch"] == [{"_id": 0, "x": expected}]


def test_what_one_document_made_does_not_count_for_the_next(wire: Wire) -> None:
    grown = {"$reduce": {"input": {"$range": [0, 6]}, "initialValue": "$s", "in": {
        "$concat": ["$$value", "$$value"],
    }}}  # fmt: skip
    measured: Document = {"$project": {"x": {"$strLenCP": grown}}}
    found = wire.run(aggregate([measured, {"$match": {"x": 4_000 << 6}}, {"$count": "n"}]))
    assert found["cursor"]["firstBatch"] == [{"n": 40}]


def test_a_sort_with_a_limit_holds_little(wire: Wire) -> None:
    stages: list[Document] = [
        {"$set": {"a": {"$range": [0, 200]}}},
        {"$unwind": "$a"},
        {"$sort": {"a": -1}},
    ]
    found = wire.run(aggregate([*stages, {"$limit": 2}, {"$project": {"a": 1}}]))
    assert found["cursor"]["firstBatch"] == [{"_id": 0, "a": 199}, {"_id": 1, "a": 199}]


def test_pipelines_inside_another_hold_nothing_when_they_are_over(wire: Wire) -> None:
    inside: list[Document] = [{"$sort": {"s": 1}}, {"$limit": 20_000}, {"$count": "n"}]
    stages: list[Document] = [
        {"$lookup": {"from": "c", "as": "x", "pipeline": inside}},
        {"$project": {"x": 1}},
    ]
    found = wire.run(aggregate([*stages, *stages, {"$match": {"x": [{"n": 40}]}}, {"$count": "n"}]))
    assert found["cursor"]["firstBatch"] == [{"n": 40}]


def test_updates_and_filters_end_at_their_deadline(wire: Wire) -> None:
    slow: Any = 1
    for _ in range(3):
        slow = {"$sum": {"$map": {"input": {"$range": [0, 2_000]}, "in": slow}}}
    for command in (
        {"update": "c", "updates": [{"q": {}, "u": [{"$set": {"x": slow}}], "multi": True}]},
        {"update": "c", "updates": [{"q": {"s": {"$regex": REGEX}}, "u": {"$set": {"x": 1}}}]},
        {"delete": "c", "deletes": [{"q": {"s": {"$regex": REGEX}}, "limit": 0}]},
        {"findAndModify": "c", "query": {"s": {"$regex": REGEX}}, "remove": True},
        {"find": "c", "filter": {"s": {"$regex": REGEX}}},
        {"find": "c", "filter": {"$expr": {"$gt": [slow, 0]}}},
        {"count": "c", "query": {"s": {"$regex": REGEX}}},
        {"distinct": "c", "key": "_id", "query": {"s": {"$regex": REGEX}}},
    ):
        found = wire.run({**command, "maxTimeMS": 40})
        codes = [found.get("code"), *(one["code"] for one in found.get("writeErrors", ()))]
        assert OUT_OF_TIME in codes, (command, found)


# --- where commands run ---------------------------------------------------------------------------

ONE: Document = {"_id": 7}
CASES: list[tuple[Document, bool]] = [
    ({"find": "c", "filter": ONE}, False),
    ({"find": "c", "filter": {"_id": 7, "tenant": "a"}, "projection": {"a": 1}}, False),
    ({"find": "c", "filter": ONE, "projection": {"a": {"$sum": EACH}}}, True),
    ({"find": "c", "filter": {"_id": {"$gt": 1}}}, True),
    ({"find": "c", "filter": {"_id": 7, "s": {"$regex": REGEX}}}, True),
    ({"find": "c", "filter": {"n": 1}}, True),
    ({"find": "c"}, True),
    ({"update": "c", "updates": [{"q": ONE, "u": {"$set": {"a": 1}}}]}, False),
    ({"update": "c", "updates": [{"q": ONE, "u": [{"$set": {"a": 1}}]}]}, True),
    ({"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]}, True),
    ({"update": "c", "updates": [{"q": ONE, "u": {}}] * 2}, True),
    ({"delete": "c", "deletes": [{"q": ONE, "limit": 1}]}, False),
    ({"delete": "c", "deletes": [{"q": {}, "limit": 0}]}, True),
    ({"findAndModify": "c", "query": ONE, "update": {"$inc": {"n": 1}}}, False),
    ({"findAndModify": "c", "query": ONE, "update": [{"$set": {"n": 1}}]}, True),
    ({"aggregate": "c", "pipeline": [], "cursor": {}}, True),
    ({"count": "c"}, True),
    ({"distinct": "c", "key": "a"}, True),
    ({"explain": {"find": "c"}}, True),
    ({"getMore": Int64(1), "collection": "c"}, True),
    ({"insert": "c", "documents": [{}]}, False),
    ({"listCollections": 1}, False),
]


@pytest.mark.parametrize(("command", "is_long"), CASES, ids=lambda one: str(one)[:60])
def test_what_may_be_long_takes_its_turn_with_queries(command: Document, is_long: bool) -> None:
    whole = Request(1, {**command, "$db": "db"}, encode(command))
    assert bool(lane_of(whole)) is is_long
    for name in ("updates", "deletes"):  # drivers send them beside the command
        if name in command:
            rest = {key: one for key, one in command.items() if key != name}
            arrays: dict[str, list[bytes]] = {name: [encode(one) for one in command[name]]}
            apart = Request(1, {**rest, "$db": "db"}, encode(rest), arrays)
            assert bool(lane_of(apart)) is is_long


def test_statements_that_are_no_documents_are_told_so(wire: Wire) -> None:
    broken = Request(1, {"update": "c", "$db": "db"}, b"", {"updates": [b"\x05\0\0\0\x07"]})
    assert lane_of(broken)


# --- clients that wait ----------------------------------------------------------------------------


def test_a_client_that_waits_for_changes_holds_no_thread() -> None:
    wire = Wire()
    wire.run({"insert": "c", "documents": [{"_id": 1}]})
    stages = [{"$changeStream": {"fullDocument": "updateLookup"}}, {"$match": MATCHED}]
    opened = wire.run(aggregate(stages))["cursor"]
    asked = {"getMore": opened["id"], "collection": "c", "maxTimeMS": 60_000, "$db": "db"}
    (work,) = wire.session.receive(message(asked))
    assert isinstance(work, Work)
    found: list[bytes] = []
    for _ in range(3):
        with pytest.raises(Later):
            work.run(found.append)
    other = Wire(wire.service)
    other.run({"insert": "c", "documents": [{"_id": 2}]})
    work.run(found.append)
    (event,) = decode(b"".join(found)[21:])["cursor"]["nextBatch"]
    assert event["fullDocument"] == {"_id": 2}
    # A client that left is not worked for.
    (work,) = wire.session.receive(message(asked))
    assert isinstance(work, Work)
    wire.session.close()
    with pytest.raises(ClientGone):
        work.run(found.append)


MATCHED: Document = {"operationType": {"$in": ["insert", "update", "replace"]}}
