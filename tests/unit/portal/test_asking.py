"""A query between the page and the control. Pages must add up, and mistakes keep their place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from armillary.errors import BadInput
from armillary.portal.data.asking import Answer, Mistake, mistakes_of, question
from armillary.portal.data.client import Refused


def page(rows: list[Any], token: str | None) -> dict[str, Any]:
    return {
        "rows": rows,
        "continuation": token,
        "charge_ru": 2.5,
        "elapsed_ms": 1.0,
        "partitions": ["0", "1"],
        "partitions_read": 1,
        "retrieved_items": 3,
        "index": {"used": ["/a/?"], "possible": ["/b/?"], "only": False},
        "plan": [f"after {token}"],
    }


def test_pages_add_up() -> None:
    answer = Answer({"query": "…", "max_items": 2})
    answer.add(page([1, 2], "t"))
    answer.add(page([3], None))
    assert (answer.rows, answer.charge_ru, answer.pages) == ([1, 2, 3], 5.0, 2)
    assert (answer.partitions_read, answer.retrieved_items) == (2, 6)
    assert (answer.used, answer.plan, answer.continuation) == (["/a/?"], ["after t"], None)


def test_fields_become_a_request() -> None:
    body = question("SELECT 1", '{"@a": 1, "b": [2]}', '["x", 1]', 25)
    assert body == {
        "query": "SELECT 1",
        "max_items": 25,
        "parameters": [{"name": "@a", "value": 1}, {"name": "@b", "value": [2]}],
        "partition_key": ["x", 1],
    }
    assert question("SELECT 1", " ", "", 25) == {"query": "SELECT 1", "max_items": 25}


@pytest.mark.parametrize(("parameters", "key"), [("{", ""), ("[1]", ""), ("", "{}")])
def test_wrong_fields_are_refused(parameters: str, key: str) -> None:
    with pytest.raises((ValueError, BadInput)):
        question("SELECT 1", parameters, key, 25)


def test_mistakes_are_found_in_a_message_and_nothing_else_is_lost() -> None:
    def refused(message: str) -> Refused:
        return Refused(400, "BadRequest", message, {})

    inner = {"location": {"start": 9, "end": 13}, "code": "SC1001", "message": "near 'FORM'"}
    text = json.dumps({"errors": [inner]})
    assert mistakes_of(refused(text)) == [Mistake("near 'FORM' (SC1001)", 9, 13)]
    assert mistakes_of(refused('{"Errors": ["no index"]}')) == [Mistake("no index")]
    for odd in ("plain words", "[1]", "{}", '{"errors": [5]}'):
        assert mistakes_of(refused(odd)) == [Mistake(odd)]
