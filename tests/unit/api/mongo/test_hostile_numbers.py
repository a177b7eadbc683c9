"""Numbers that are no whole number, wherever one is wanted. Without these an infinity, a NaN or a
decimal of six thousand digits is answered as a mistake of the server (code 1)."""

from __future__ import annotations

from typing import Any

import pytest
from bson import Decimal128, Int64
from pymongo.errors import OperationFailure
from tests.support.mongo import connected

NUMBERS = (
    float("inf"),
    float("-inf"),
    float("nan"),
    1.5,
    Int64(2**62),
    Decimal128("Infinity"),
    Decimal128("NaN"),
    Decimal128("1E+6144"),
)


def commands(number: Any) -> list[dict[str, Any]]:
    convert = {"$convert": {"input": "$n", "to": number}}
    return [
        {"find": "c", "filter": {"n": {"$type": number}}},
        {"find": "c", "filter": {"a": {"$size": number}}},
        {"find": "c", "filter": {"n": {"$mod": [number, number]}}},
        {"find": "c", "filter": {}, "limit": number},
        {"aggregate": "c", "pipeline": [{"$project": {"x": convert}}], "cursor": {}},
        {"aggregate": "c", "pipeline": [{"$limit": number}], "cursor": {}},
        {"createIndexes": "c", "indexes": [{"key": {"n": number}}]},
        {"customAction": "CreateCollection", "collection": "x", "offerThroughput": number},
        {
            "customAction": "CreateCollection",
            "collection": "y",
            "autoScaleSettings": {"maxThroughput": number},
        },
        {"insert": "c", "documents": [{"n": 1}], "txnNumber": number},
        {"commitTransaction": 1, "txnNumber": number, "autocommit": False},
        {"find": "c", "filter": {}, "collation": {"locale": "en", "strength": number}},
    ]


def test_every_place_says_what_is_wrong() -> None:
    wrong: list[str] = []
    with connected() as client:
        client.shop.c.insert_one({"n": 5, "a": [1, 2]})
        for number in NUMBERS:
            for command in commands(number):
                try:
                    client.shop.command(command)
                except OperationFailure as error:
                    if error.code == 1:
                        wrong.append(f"{command}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("number", [2, 2.0, Int64(2), Decimal128("2")])
def test_a_type_code_is_a_number_of_any_type(number: Any) -> None:
    with connected() as client:
        client.shop.c.insert_many([{"n": "text"}, {"n": 5}])
        assert [one["n"] for one in client.shop.c.find({"n": {"$type": number}})] == ["text"]
