"""A synthetic key that is given through the controls. Without these tests the server could compute
keys for items that have others, or not compute them at all."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.nosql import Api, document, pk

SPEC = "/_armillary/dbs/d/colls/c/key-spec"
DOCS = "/dbs/d/colls/c/docs"
DATED = {"version": 1, "path": "/pk", "parts": ["/device", "/year"]}


def test_the_server_computes_the_key_that_the_client_leaves_to_it(api: Api) -> None:
    assert document(api.ask("GET", SPEC)) == {"spec": None}
    put = api.ask("PUT", SPEC, DATED)
    assert put.status == 200, put.body
    assert document(api.ask("GET", SPEC)) == document(put)
    for id, headers in (("1", {}), ("2", pk({}))):
        item = {"id": id, "device": "abc-123", "year": 2018}
        made = api.ask("POST", DOCS, item, headers)
        assert made.status == 201, made.body
        key = document(made)["pk"]
        assert api.ask("GET", f"{DOCS}/{id}", headers=pk(key)).status == 200
        replaced = api.ask("PUT", f"{DOCS}/{id}", item | {"n": 1}, headers)
        assert replaced.status == 200, replaced.body
    assert document(made)["pk"].startswith("abc")


def test_other_settings_keep_it(api: Api) -> None:
    assert api.ask("PUT", SPEC, DATED).status == 200
    definition = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    assert api.ask("PUT", "/dbs/d/colls/c", definition | {"defaultTtl": 60}).status == 200
    assert document(api.ask("GET", SPEC))["spec"]["parts"] == ["/device", "/year"]


def test_null_takes_it_away_while_the_container_is_empty(api: Api) -> None:
    assert api.ask("PUT", SPEC, DATED).status == 200
    assert document(api.ask("PUT", SPEC, b"null")) == {"spec": None}


def test_a_container_with_items_keeps_its_key(api: Api) -> None:
    assert api.ask("POST", DOCS, {"id": "1", "pk": "a"}, pk("a")).status == 201
    assert api.ask("PUT", SPEC, DATED).status == 400
    assert document(api.ask("GET", SPEC)) == {"spec": None}


@pytest.mark.parametrize(
    "wrong", [[], "x", {}, {**DATED, "path": "/other"}, {**DATED, "version": 9}]
)
def test_wrong_definitions_are_refused(api: Api, wrong: Any) -> None:
    assert api.ask("PUT", SPEC, wrong).status == 400
    assert document(api.ask("GET", SPEC)) == {"spec": None}


def test_reset_leaves_an_empty_account(api: Api) -> None:
    assert api.ask("PUT", "/_armillary/faults", [{"effect": "503"}]).status == 200
    assert api.ask("POST", "/_armillary/clock", {"advance_ms": 1000}).status == 200
    assert document(api.ask("POST", "/_armillary/reset")) == {"databases": 1}
    assert document(api.ask("GET", "/dbs"))["_count"] == 0
    assert document(api.ask("GET", "/_armillary/faults")) == []
    assert document(api.ask("GET", "/_armillary/clock"))["ahead_ms"] == 0
    assert api.ask("POST", "/dbs", {"id": "d"}).status == 201
    assert api.ask("POST", DOCS, {"id": "1", "pk": "a"}, pk("a")).status == 404


def test_a_bulk_says_how_far_every_range_is_that_it_wrote_to(api: Api) -> None:
    """The client names the range of the key it sees, `[{}]`; the items belong to others."""
    body = {
        "id": "many",
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "syntheticKey": DATED,
    }
    api.account.create_container("d", body, physical_partitions=8)
    entries = [
        {
            "operationType": "Create",
            "partitionKey": "[{}]",
            "resourceBody": {"id": str(n), "device": f"d{n}", "year": 2018},
        }
        for n in range(6)
    ]
    bulk = {"x-ms-cosmos-is-batch-request": "true", "x-ms-documentdb-partitionkeyrangeid": "0"}
    made = api.ask("POST", "/dbs/d/colls/many/docs", entries, bulk)
    assert made.status == 200, made.body
    keys = [one["resourceBody"]["pk"] for one in document(made)]
    ranges = {
        api.ask("GET", f"/dbs/d/colls/many/docs/{n}", headers=pk(key)).headers[
            "x-ms-documentdb-partitionkeyrangeid"
        ]
        for n, key in enumerate(keys)
    }
    parts = made.headers["x-ms-session-token"].split(",")
    assert {one.partition(":")[0] for one in parts} == ranges
    token = {"x-ms-session-token": made.headers["x-ms-session-token"]}
    assert api.ask("GET", "/dbs/d/colls/many/docs", headers=token).status == 200
