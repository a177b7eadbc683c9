"""Filters, updates, projections and expressions: tables of cases from the documentation."""

from __future__ import annotations

from typing import Any

import pytest
from bson import Int64
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.regex import Regex
from tests.support.mongo import Wire

from armillary.api.mongo.aggregate.pipeline import compile_pipeline
from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions.compiled import compile_expression, evaluate
from armillary.api.mongo.language import PLAIN, Language
from armillary.api.mongo.match import compile_filter
from armillary.api.mongo.projection import compile_projection
from armillary.api.mongo.update.apply import compile_update
from armillary.api.mongo.update.upserts import base_document

FILTERS: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({"a": 1}, {"a": 1.0}, True),
    ({"a": 1}, {"a": [3, 1]}, True),
    ({"a": [1, 2]}, {"a": [1, 2]}, True),
    ({"a": [1, 2]}, {"a": [2, 1]}, False),
    ({"a": None}, {}, True),
    ({"a": None}, {"a": None}, True),
    ({"a": {"$ne": None}}, {}, False),
    ({"a.b": None}, {"a": [1, 2]}, False),
    ({"a.b": None}, {"a": [{}]}, True),
    ({"a.b": None}, {"a": 4}, True),
    ({"a.b": None}, {"a": []}, False),
    ({"a.0": 5}, {"a": [5, 6]}, True),
    ({"a.1.b": 2}, {"a": [{"b": 1}, {"b": 2}]}, True),
    ({"a.b": 2}, {"a": [{"b": 1}, {"b": 2}]}, True),
    ({"a": {"$gt": 1}}, {"a": "x"}, False),
    ({"a": {"$gt": 1}}, {"a": float("nan")}, False),
    ({"a": {"$gte": None}}, {}, True),
    ({"a": {"$lt": Decimal128("2")}}, {"a": Int64(1)}, True),
    ({"a": {"$in": [Regex("^x")]}}, {"a": "xy"}, True),
    ({"a": {"$in": [None]}}, {}, True),
    ({"a": {"$nin": [1]}}, {"a": [1, 2]}, False),
    ({"a": {"$exists": False}}, {"b": 1}, True),
    ({"a": {"$type": "number"}}, {"a": [1]}, True),
    ({"a": {"$type": "array"}}, {"a": [1]}, True),
    ({"a": {"$mod": [4, -1]}}, {"a": -5}, True),
    ({"a": {"$size": 2}}, {"a": [1, 2]}, True),
    ({"a": {"$all": [1, 2]}}, {"a": [2, 1, 0]}, True),
    ({"a": {"$elemMatch": {"$gt": 1, "$lt": 3}}}, {"a": [0, 4]}, False),
    ({"a": {"$elemMatch": {"b": 1, "c": 2}}}, {"a": [{"b": 1}, {"c": 2}]}, False),
    ({"a": {"$not": {"$gt": 1}}}, {}, True),
    ({"a": {"$regex": "B", "$options": "i"}}, {"a": "abc"}, True),
    ({"$or": [{"a": 1}, {"b": 1}]}, {"b": 1}, True),
    ({"$nor": [{"a": 1}]}, {"a": 2}, True),
    ({"$expr": {"$gt": ["$a", "$b"]}}, {"a": 2, "b": 1}, True),
    ({"a": {"b": 1, "c": 2}}, {"a": {"c": 2, "b": 1}}, False),
    ({"a": {"$bitsAllSet": 5}}, {"a": 7}, True),
    (
        {"a": {"$geoWithin": {"$geometry": {"type": "Polygon", "coordinates": [
            [[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}}}},
        {"a": {"type": "Point", "coordinates": [1, 1]}},
        True,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("query", "document", "wanted"), FILTERS)
def test_filters(query: dict[str, Any], document: dict[str, Any], wanted: bool) -> None:
    assert compile_filter(query, PLAIN)(document) is wanted


BAD_FILTERS: list[tuple[dict[str, Any], int, str]] = [
    ({"a": {"$foo": 1}}, 2, "unknown operator: $foo"),
    ({"$foo": 1}, 2, "unknown top level operator: $foo"),
    ({"$and": []}, 2, "nonempty array"),
    ({"a": {"$in": 1}}, 2, "$in needs an array"),
    ({"a": {"$size": 1.5}}, 2, "$size must be a whole number"),
    ({"a": {"$mod": [0, 1]}}, 2, "divisor cannot be 0"),
    ({"$where": "1"}, 2, "not supported"),
    ({"$expr": {"$foo": 1}}, 168, "Unrecognized expression '$foo'"),
    ({"a": {"$regex": "("}}, 51091, "Regular expression is invalid"),
]


@pytest.mark.parametrize(("query", "code", "text"), BAD_FILTERS)
def test_bad_filters(query: dict[str, Any], code: int, text: str) -> None:
    with pytest.raises(MongoError) as caught:
        compile_filter(query, PLAIN)
    assert caught.value.code == code
    assert text in caught.value.message


def updated(old: dict[str, Any], update: Any, query: Any = None, **options: Any) -> Any:
    return compile_update(update, PLAIN, **options).run(old, False, query or {})


UPDATES: list[tuple[dict[str, Any], Any, dict[str, Any]]] = [
    ({"a": 1}, {"$set": {"b.c": 2}}, {"a": 1, "b": {"c": 2}}),
    ({"a": [1]}, {"$set": {"a.3": 4}}, {"a": [1, None, None, 4]}),
    ({"a": 1, "b": 2}, {"$unset": {"a": ""}}, {"b": 2}),
    ({"a": 2**31 - 1}, {"$inc": {"a": 1}}, {"a": Int64(2**31)}),
    ({}, {"$inc": {"a": 5}}, {"a": 5}),
    ({}, {"$mul": {"a": 5}}, {"a": 0}),
    ({"a": 3}, {"$min": {"a": 2}}, {"a": 2}),
    ({"a": 3}, {"$max": {"a": "x"}}, {"a": "x"}),
    ({"a": 1}, {"$rename": {"a": "b"}}, {"b": 1}),
    ({"a": 6}, {"$bit": {"a": {"and": 3, "or": 8}}}, {"a": 10}),
    ({"a": [1]}, {"$push": {"a": 2}}, {"a": [1, 2]}),
    ({"a": [3]}, {"$push": {"a": {"$each": [1, 2], "$sort": -1, "$slice": 2}}}, {"a": [3, 2]}),
    ({"a": [3]}, {"$push": {"a": {"$each": [1], "$position": 0}}}, {"a": [1, 3]}),
    ({"a": [1]}, {"$addToSet": {"a": {"$each": [1.0, 2]}}}, {"a": [1, 2]}),
    ({"a": [1, 2]}, {"$pop": {"a": -1}}, {"a": [2]}),
    ({"a": [1, 5, 9]}, {"$pull": {"a": {"$gt": 4}}}, {"a": [1]}),
    ({"a": [{"x": 1, "y": 2}]}, {"$pull": {"a": {"x": 1}}}, {"a": []}),
    ({"a": [1, 2, 1]}, {"$pullAll": {"a": [1]}}, {"a": [2]}),
    ({"a": [1, 2]}, {"$inc": {"a.$[]": 10}}, {"a": [11, 12]}),
    ({"a": 1}, [{"$set": {"b": {"$add": ["$a", 1]}}}, {"$unset": "a"}], {"b": 2}),
]


REFUSED_UPDATES: list[tuple[dict[str, Any], Any, int, str]] = [
    (
        {"a": 5},
        {"$inc": {"a": Int64(2**63 - 1)}},
        2,
        "Failed to apply $inc operations to current value ((NumberInt)5) for document {_id: 1}",
    ),
    (
        {"a": 5},
        {"$rename": {"a": "a"}},
        2,
        'The source and target field for $rename must differ: a: "a"',
    ),
    (
        {"a": 5},
        {"$rename": {"a": "a.b"}},
        2,
        'The source and target field for $rename must not be on the same path: a: "a.b"',
    ),
    (
        {"a": 5},
        {"$rename": {"b": "a"}, "$set": {"a": 1}},
        40,
        "Updating the path 'a' would create a conflict at 'a'",
    ),
]


@pytest.mark.parametrize(("old", "update", "code", "text"), REFUSED_UPDATES)
def test_updates_that_are_refused(old: dict[str, Any], update: Any, code: int, text: str) -> None:
    with pytest.raises(MongoError) as caught:
        updated({"_id": 1, **old}, update)
    assert (caught.value.code, caught.value.message) == (code, text)


@pytest.mark.parametrize(("old", "update", "new"), UPDATES)
def test_updates(old: dict[str, Any], update: Any, new: dict[str, Any]) -> None:
    assert updated({"_id": 1, **old}, update) == {"_id": 1, **new}


def test_positional_updates() -> None:
    found = updated({"_id": 1, "a": [1, 5]}, {"$set": {"a.$": 0}}, {"a": {"$gt": 3}})
    assert found["a"] == [1, 0]
    changed = updated(
        {"_id": 1, "g": [{"v": 1}, {"v": 9}]},
        {"$set": {"g.$[big].v": 0}},
        array_filters=[{"big.v": {"$gt": 3}}],
    )
    assert changed["g"] == [{"v": 1}, {"v": 0}]


BAD_UPDATES: list[tuple[dict[str, Any], Any, int]] = [
    ({}, {"$foo": {"a": 1}}, 9),
    ({}, {"$set": {"a": 1}, "$inc": {"a": 1}}, 40),
    ({}, {"$set": {"a.b": 1}, "$unset": {"a": 1}}, 40),
    ({"a": 1}, {"$set": {"a.b": 1}}, 28),
    ({"a": "x"}, {"$inc": {"a": 1}}, 14),
    ({"a": 1}, {"$push": {"a": 1}}, 2),
    ({"a": Int64(2**63 - 1)}, {"$inc": {"a": 1}}, 2),
    ({}, {"$set": {"_id": 2}}, 66),
    ({"a": [1]}, {"$set": {"a.$": 1}}, 2),
    ({"a": [1]}, {"$set": {"a.$[x]": 1}}, 2),
]


@pytest.mark.parametrize(("old", "update", "code"), BAD_UPDATES)
def test_bad_updates(old: dict[str, Any], update: Any, code: int) -> None:
    with pytest.raises(MongoError) as caught:
        updated({"_id": 1, **old}, update)
    assert caught.value.code == code


def test_an_upsert_begins_with_what_must_be_equal() -> None:
    query = {"a": 1, "b": {"$gt": 2}, "$and": [{"c.d": {"$eq": 3}}], "e": {"$in": [4]}}
    assert base_document(query) == {"a": 1, "c": {"d": 3}, "e": 4}


PROJECTIONS: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    ({"a": 1}, {"a": 1, "b": 2}, {"_id": 7, "a": 1}),
    ({"a": 0}, {"a": 1, "b": 2}, {"_id": 7, "b": 2}),
    ({"_id": 0, "a.b": 1}, {"a": [{"b": 1, "c": 2}, 3]}, {"a": [{"b": 1}]}),
    ({"a": {"$slice": 1}}, {"a": [1, 2], "b": 1}, {"_id": 7, "a": [1], "b": 1}),
    ({"a": {"$elemMatch": {"$gt": 1}}}, {"a": [1, 2, 3]}, {"_id": 7, "a": [2]}),
    ({"x": {"$add": ["$a", 1]}}, {"a": 1}, {"_id": 7, "x": 2}),
]


@pytest.mark.parametrize(("projection", "document", "wanted"), PROJECTIONS)
def test_projections(projection: Any, document: dict[str, Any], wanted: dict[str, Any]) -> None:
    project = compile_projection(projection, PLAIN, query={})
    assert project({"_id": 7, **document}) == wanted


def test_inclusion_and_exclusion_do_not_mix() -> None:
    cases = (({"a": 1, "b": 0}, 31254), ({"a": 0, "b": 1}, 31253), ({"$": 1}, 16410))
    for projection, code in cases:
        with pytest.raises(MongoError) as caught:
            compile_projection(projection, PLAIN, query={})
        assert caught.value.code == code


NOW = DatetimeMS(1_700_000_000_123)
EXPRESSIONS: list[tuple[Any, Any]] = [
    ({"$add": [1, 2.5]}, 3.5),
    ({"$add": [2**31 - 1, 1]}, Int64(2**31)),
    ({"$divide": [7, 2]}, 3.5),
    ({"$mod": [-7, 3]}, -1),
    ({"$round": [2.5]}, 2.0),
    ({"$trunc": [-2.7]}, -2.0),
    ({"$pow": [2, 10]}, 1024),
    ({"$concat": ["a", "b"]}, "ab"),
    ({"$concat": ["a", None]}, None),
    ({"$substrCP": ["hello", 1, 3]}, "ell"),
    ({"$split": ["a,b", ","]}, ["a", "b"]),
    ({"$trim": {"input": " x "}}, "x"),
    ({"$indexOfCP": ["abc", "c"]}, 2),
    ({"$cond": [{"$gt": [2, 1]}, "y", "n"]}, "y"),
    ({"$ifNull": ["$missing", 5]}, 5),
    ({"$switch": {"branches": [{"case": False, "then": 1}], "default": 2}}, 2),
    ({"$map": {"input": [1, 2], "in": {"$multiply": ["$$this", 2]}}}, [2, 4]),
    ({"$filter": {"input": [1, 2, 3], "as": "n", "cond": {"$gt": ["$$n", 1]}}}, [2, 3]),
    ({"$reduce": {"input": [1, 2], "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}}, 3),
    ({"$zip": {"inputs": [[1, 2], ["a", "b"]]}}, [[1, "a"], [2, "b"]]),
    ({"$arrayElemAt": [[1, 2], -1]}, 2),
    ({"$slice": [[1, 2, 3], 1, 1]}, [2]),
    ({"$setUnion": [[1, 2], [2.0, 3]]}, [1, 2, 3]),
    ({"$setIsSubset": [[1], [1, 2]]}, True),
    ({"$mergeObjects": [{"a": 1}, {"b": 2}]}, {"a": 1, "b": 2}),
    ({"$objectToArray": {"a": 1}}, [{"k": "a", "v": 1}]),
    ({"$type": "$missing"}, "missing"),
    ({"$toInt": "42"}, 42),
    ({"$convert": {"input": "x", "to": "int", "onError": -1}}, -1),
    ({"$toString": 1.0}, "1"),
    ({"$year": "$$NOW"}, 2023),
    ({"$dayOfWeek": "$$NOW"}, 3),
    (
        {"$dateToString": {"date": "$$NOW", "format": "%Y-%m-%d %H:%M:%S.%L"}},
        "2023-11-14 22:13:20.123",
    ),
    ({"$dateFromString": {"dateString": "2023-11-14T22:13:20.123Z"}}, NOW),
    ({"$dateDiff": {"startDate": DatetimeMS(0), "endDate": "$$NOW", "unit": "year"}}, Int64(53)),
    ({"$let": {"vars": {"x": 1}, "in": {"$add": ["$$x", 1]}}}, 2),
    ({"$regexMatch": {"input": "abc", "regex": "B", "options": "i"}}, True),
    ({"$sum": [1, 2, "x"]}, 3),
    ("$a.b", [1, 2]),
]


@pytest.mark.parametrize(("source", "wanted"), EXPRESSIONS)
def test_expressions(source: Any, wanted: Any) -> None:
    found = evaluate(compile_expression(source, Language(NOW)), {"a": [{"b": 1}, {"b": 2}, 3]})
    assert found == wanted
    assert type(found) is type(wanted)


ROWS = [{"_id": n, "k": n % 2, "v": n, "t": list(range(n))} for n in range(4)]
PIPELINES: list[tuple[list[Any], list[Any]]] = [
    ([{"$match": {"v": {"$gt": 2}}}, {"$project": {"_id": 0, "v": 1}}], [{"v": 3}]),
    (
        [
            {"$group": {"_id": "$k", "n": {"$sum": "$v"}, "all": {"$push": "$v"}}},
            {"$sort": {"_id": 1}},
        ],
        [{"_id": 0, "n": 2, "all": [0, 2]}, {"_id": 1, "n": 4, "all": [1, 3]}],
    ),
    ([{"$unwind": "$t"}, {"$count": "n"}], [{"n": 6}]),
    ([{"$match": {"v": 99}}, {"$count": "n"}], []),
    ([{"$sort": {"v": -1}}, {"$limit": 1}, {"$project": {"v": 1}}], [{"_id": 3, "v": 3}]),
    ([{"$sortByCount": "$k"}, {"$limit": 1}], [{"_id": 0, "count": 2}]),
    ([{"$facet": {"a": [{"$count": "n"}]}}], [{"a": [{"n": 4}]}]),
    (
        [{"$bucket": {"groupBy": "$v", "boundaries": [0, 2, 4]}}],
        [{"_id": 0, "count": 2}, {"_id": 2, "count": 2}],
    ),
    ([{"$skip": 3}, {"$replaceWith": {"x": "$v"}}], [{"x": 3}]),
    ([{"$limit": 1}, {"$unset": ["t", "k"]}, {"$set": {"w": 1}}], [{"_id": 0, "v": 0, "w": 1}]),
]  # fmt: skip


@pytest.mark.parametrize(("pipeline", "wanted"), PIPELINES)
def test_pipelines(pipeline: list[Any], wanted: list[Any]) -> None:
    run = compile_pipeline(pipeline, PLAIN, None)  # type: ignore[arg-type]
    assert list(run(ROWS)) == wanted


def test_strict_refuses_native_stages() -> None:
    strict = Language(strict=True)
    refused: list[list[Any]] = [[{"$bucket": {}}], [{"$unionWith": "x"}]]
    for pipeline in refused:
        with pytest.raises(MongoError) as caught:
            compile_pipeline(pipeline, strict, None)  # type: ignore[arg-type]
        assert caught.value.code == 40324


def test_new_fields_come_in_the_order_of_their_names() -> None:
    """As MongoDB since 5.0: whatever the order in the update, and numbers by value."""
    wire = Wire()
    wire.run({"insert": "c", "documents": [{"_id": 1}]})
    update = {"$set": {"z": 1, "l.10": 1, "l.2": 1}, "$inc": {"b": 2}, "$rename": {"q": "y"}}
    wire.run({"update": "c", "updates": [{"q": {"_id": 1}, "u": update}]})
    (found,) = wire.run({"find": "c"})["cursor"]["firstBatch"]
    assert list(found) == ["_id", "b", "l", "z"]
    assert list(found["l"]) == ["2", "10"]


@pytest.mark.parametrize("value", [".", ".."])
def test_dots_are_ids(value: str) -> None:
    wire = Wire()
    assert wire.run({"insert": "c", "documents": [{"_id": value}]})["n"] == 1
    found = wire.run({"find": "c", "filter": {"_id": value}})["cursor"]["firstBatch"]
    assert found == [{"_id": value}]
