"""Fixed containers, as clients of 2018 knew them: one partition, a key is optional, and requests
name none."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.nosql import Api, document, pk

from armillary.clock import new_random
from armillary.partition.provisioning.partitions import PartitionLimits
from armillary.store.catalog.accounts import AccountStore

OLD = {"x-ms-version": "2018-06-18"}
COLLS = "/dbs/d/colls"
DOCS = "/dbs/d/colls/old/docs"
QUERY = OLD | {"x-ms-documentdb-isquery": "true", "content-type": "application/query+json"}
KEY = {"paths": ["/pk"], "kind": "Hash", "version": 2}


@pytest.fixture
def old(api: Api) -> Api:
    assert api.ask("POST", COLLS, {"id": "old"}, OLD).status == 201
    for n in range(3):
        assert api.ask("POST", DOCS, {"id": str(n), "n": n}, OLD).status == 201
    return api


def rows(api: Api, text: str, headers: dict[str, str] = QUERY) -> Any:
    answer = api.ask("POST", DOCS, {"query": text, "parameters": []}, headers)
    assert answer.status == 200, answer.body
    return document(answer)["Documents"]


def test_a_client_of_2018_reads_and_writes_without_a_key(old: Api) -> None:
    found = document(old.ask("GET", f"{DOCS}/1", None, OLD))
    assert found["n"] == 1
    assert old.ask("PUT", f"{DOCS}/1", {"id": "1", "n": 10}, OLD).status == 200
    assert document(old.ask("GET", f"{DOCS}/1", None, OLD))["n"] == 10
    assert (
        old.ask(
            "POST", DOCS, {"id": "1", "n": 11}, OLD | {"x-ms-documentdb-is-upsert": "True"}
        ).status
        == 200
    )
    assert old.ask("DELETE", f"{DOCS}/1", None, OLD).status == 204
    assert old.ask("GET", f"{DOCS}/1", None, OLD).status == 404
    assert [one["id"] for one in document(old.ask("GET", DOCS, None, OLD))["Documents"]] == [
        "0",
        "2",
    ]


def test_a_client_of_2018_asks_queries_without_a_key(old: Api) -> None:
    assert [one["id"] for one in rows(old, "SELECT * FROM c WHERE c.n > 0")] == ["1", "2"]
    assert [one["n"] for one in rows(old, "SELECT * FROM c ORDER BY c.n DESC")] == [2, 1, 0]
    assert rows(old, "SELECT VALUE SUM(c.n) FROM c") == [3]


def test_batches_and_procedures_of_2018_need_no_key(old: Api) -> None:
    flags = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
    entries = [{"operationType": "Create", "resourceBody": {"id": "b"}}]
    assert old.ask("POST", DOCS, entries, OLD | flags).status == 200
    assert old.ask("GET", f"{DOCS}/b", None, OLD).status == 200


def test_the_key_of_a_container_that_has_one_is_still_required(api: Api) -> None:
    target = "/dbs/d/colls/c/docs"
    assert api.ask("POST", target, {"id": "1", "pk": "a"}, pk("a")).status == 201
    answer = api.ask("GET", f"{target}/1", None, OLD)
    assert answer.status == 400
    assert b"PartitionKey value must be supplied" in answer.body


@pytest.mark.parametrize(("ru", "ranges"), [(400, 1), (900, 1), (1_000, 1), (20_000, 4)], ids=str)
def test_a_fixed_container_is_asked_for_by_a_header(api: Api, ru: int, ranges: int) -> None:
    headers = {"x-armillary-kind": "fixed", "x-ms-offer-throughput": str(ru)}
    assert api.ask("POST", COLLS, {"id": "f", "partitionKey": KEY}, headers).status == 201
    kind = document(api.ask("GET", f"{COLLS}/f", None)).get("kind", "")
    assert kind == "", "the documents of containers are those of the service"
    store = api.gateway.container("d", "f")
    assert store.state.is_fixed == (ru < 1_000)
    assert len(store.state.table.ranges) == ranges


def test_a_current_client_makes_one_without_a_key_by_the_header(api: Api) -> None:
    headers = {"x-armillary-kind": "fixed"}
    made = api.ask("POST", COLLS, {"id": "f"}, headers)
    assert made.status == 201
    assert document(made)["partitionKey"] == {
        "paths": ["/_partitionKey"],
        "kind": "Hash",
        "systemKey": True,
    }
    assert api.ask("POST", COLLS, {"id": "g"}, {"x-armillary-kind": "round"}).status == 400
    assert api.ask("POST", COLLS, {"id": "g"}, {"x-armillary-kind": "unlimited"}).status == 400


def test_a_full_fixed_container_says_that_it_is_full(api: Api) -> None:
    """Also one without a key: nobody gave one that could be full."""
    api.account = AccountStore(
        api.engine, random=new_random(1), limits=PartitionLimits(logical_bytes=50_000)
    )
    api.open()
    assert api.ask("POST", COLLS, {"id": "old"}, OLD).status == 201
    answers = [api.ask("POST", DOCS, {"id": str(n), "text": "x" * 500}, OLD) for n in range(120)]
    refused = next(one for one in answers if one.status != 201)
    assert (refused.status, refused.headers.get("x-ms-substatus")) in ((403, None), (403, "0"))
    assert "maximum size of 50 KB" in document(refused)["message"]
    assert "fixed" in document(refused)["message"]
    assert api.ask("DELETE", f"{DOCS}/0", None, OLD).status == 204
