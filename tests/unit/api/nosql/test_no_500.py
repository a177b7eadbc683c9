"""Requests that were answered 500, which is for mistakes of ours only."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.nosql import Api, document, pk

DOCS = "/dbs/d/colls/c/docs"
QUERY = {"x-ms-documentdb-isquery": "true", "content-type": "application/query+json"}
CROSS = {"x-ms-documentdb-query-enablecrosspartition": "true"}


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_a_patch_condition_with_a_subquery(api: Api) -> None:
    api.item({"id": "1", "pk": "a", "n": [1, 2]})
    for condition, status in (
        ("from c where exists (select value x from x in c.n where x = 2)", 200),
        ("from c where exists (select value x from x in c.n where x = 3)", 412),
        ("from c where (select value count(1) from x in c.n) = 2", 200),
    ):
        body = {
            "condition": condition,
            "operations": [{"op": "set", "path": "/m", "value": 1}],
        }
        found = api.ask("PATCH", f"{DOCS}/1", body, pk("a"))
        assert found.status == status, (condition, found.body)


@pytest.mark.parametrize("depth", [100, 128, 200, 254, 255, 256, 300, 1000])
def test_a_deep_parameter_that_is_returned(api: Api, depth: int) -> None:
    api.item({"id": "1", "pk": "a"})
    for text in ("SELECT VALUE @p FROM c", "SELECT @p AS v FROM c", "SELECT VALUE [[@p]] FROM c"):
        parameters = '[{"name": "@p", "value": %s}]' % ("[" * depth + "1" + "]" * depth)
        body = b'{"query": %b, "parameters": %b}' % (json.dumps(text).encode(), parameters.encode())
        found = api.ask("POST", DOCS, body, QUERY | CROSS)
        assert found.status in (200, 400), found.body
        if found.status == 200:
            document(found)


@pytest.mark.parametrize(
    "token",
    ["0:-1#" + "9" * 4301, "9" * 5000 + ":-1#1", "0:" + "9" * 5000 + "#1", "0:" + "1" * 5000],
)
def test_a_session_token_with_a_very_long_number(api: Api, token: str) -> None:
    api.item({"id": "1", "pk": "a"})
    for target in (f"{DOCS}/1", DOCS):
        found = api.ask("GET", target, headers=pk("a") | {"x-ms-session-token": token})
        assert found.status == 400, found.body
