"""Containers on the wire: ranges that are asked for again and again, sizes, conflicts, offers."""

import time
from typing import Any

import pytest
from tests.support.nosql import Api, document
from tests.support.nosql import api as made

from armillary.store.moves.runner import begin_split

CONTAINER = "/dbs/d/colls/c"
RANGES = CONTAINER + "/pkranges"
INCREMENTAL = {"a-im": "Incremental Feed", "x-ms-max-item-count": "-1"}


def ids(answer: Any) -> list[str]:
    return [one["id"] for one in document(answer)["PartitionKeyRanges"]]


@pytest.mark.parametrize("spelled", ["Incremental Feed", "Incremental feed", "incremental feed"])
def test_ranges_are_304_until_they_change(api: Api, spelled: str) -> None:
    """.NET, Java, Python and Go ask until they hear 304, with an etag: they would never end."""
    for n in range(4):
        api.item({"id": str(n), "pk": f"k{n}"})
    first = api.ask("GET", RANGES, None, INCREMENTAL | {"a-im": spelled})
    assert ids(first) == ["0"]
    again = INCREMENTAL | {"if-none-match": first.headers["etag"]}
    same = api.ask("GET", RANGES, None, again)
    assert (same.status, same.body, same.headers["etag"]) == (304, b"", first.headers["etag"])
    begin_split(api.service.gateway.container("d", "c"), 0).run()
    changed = api.ask("GET", RANGES, None, again)
    assert ids(changed) == ["1", "2"]
    assert [one["parents"] for one in document(changed)["PartitionKeyRanges"]] == [["0"], ["0"]]
    assert changed.headers["etag"] != first.headers["etag"]


def test_ranges_by_rid_and_by_self_link(api: Api) -> None:
    """.NET and Java build the address out of rids."""
    link = document(api.ask("GET", CONTAINER))["_self"]
    rid = link.strip("/").rpartition("/")[2]
    answer = api.ask("GET", f"/{link}pkranges", signed_as=("pkranges", rid.lower()))
    assert ids(answer) == ["0"]


def test_statistics_of_each_physical_partition() -> None:
    with made(partitions=2) as api:
        for n in range(30):
            api.item({"id": str(n), "pk": f"k{n % 10}", "text": "x" * 2_000})
        asked = {"x-ms-documentdb-populatepartitionstatistics": "True"}
        assert "statistics" not in document(api.ask("GET", CONTAINER))
        parts = document(api.ask("GET", CONTAINER, None, asked))["statistics"]
        assert [one["id"] for one in parts] == ["0", "1"]
        assert sum(one["documentCount"] for one in parts) == 30
        assert sum(one["sizeInKB"] for one in parts) >= 60
        keys = [key for one in parts for key in one["partitionKeys"]]
        assert all(key["partitionKey"][0].startswith("k") for key in keys)
        assert all(key["sizeInKB"] >= 6 for key in keys)


def test_quota_and_usage(api: Api) -> None:
    for n in range(5):
        api.item({"id": str(n), "pk": "x", "text": "x" * 4_000})
    body = {"id": "p", "body": "function () {}"}
    assert api.ask("POST", CONTAINER + "/sprocs", body).status == 201
    headers = api.ask("GET", CONTAINER, None, {"x-ms-documentdb-populatequotainfo": "True"}).headers
    usage = dict(one.split("=") for one in headers["x-ms-resource-usage"].rstrip(";").split(";"))
    assert usage["documentsCount"] == "5"
    assert usage["storedProcedures"] == "1"
    assert int(usage["documentsSize"]) >= 20
    room_kb = api.account.limits.bytes // 1024  # `partition.bytes`, whatever it is set to
    assert f"collectionSize={room_kb};" in headers["x-ms-resource-quota"]
    assert "x-ms-resource-usage" not in api.ask("GET", CONTAINER).headers


def test_there_are_no_conflicts(api: Api) -> None:
    assert document(api.ask("GET", CONTAINER + "/conflicts"))["Conflicts"] == []
    asked = {
        "x-ms-documentdb-isquery": "True",
        "x-ms-documentdb-query-enablecrosspartition": "True",
    }
    query = api.ask("POST", CONTAINER + "/conflicts", {"query": "SELECT * FROM c"}, asked)
    assert document(query)["Conflicts"] == []
    for method in ("GET", "DELETE"):
        assert api.ask(method, CONTAINER + "/conflicts/x").status == 404


def test_an_offer_says_what_it_may_be_and_whether_it_is_pending(api: Api) -> None:
    [offer] = document(api.ask("GET", "/offers"))["Offers"]
    read = api.ask("GET", f"/offers/{offer['_rid']}")
    assert read.headers["x-ms-cosmos-min-throughput"] == "400"
    assert read.headers["x-ms-offer-replace-pending"] == "false"
    offer["content"]["offerThroughput"] = 20_000
    put = api.ask("PUT", f"/offers/{offer['_rid']}", offer)
    assert put.headers["x-ms-offer-replace-pending"] == "true"
    assert document(put)["content"]["isOfferReplacePending"] is True


def test_headers_that_change_nothing_here_are_taken(api: Api) -> None:
    """SDKs send them; refusing one would refuse the item."""
    taken = {
        "x-ms-indexing-directive": "Exclude",
        "x-ms-cosmos-priority-level": "Low",
        "x-ms-cosmos-throughput-bucket": "1",
        "x-ms-dedicatedgateway-max-age": "5000",
    }
    item = {"id": "1", "pk": "x"}
    assert api.ask("POST", CONTAINER + "/docs", item, taken).status == 201


def progress(api: Api) -> int:
    asked = {"x-ms-documentdb-populatequotainfo": "True"}
    headers = api.ask("GET", CONTAINER, None, asked).headers
    return int(headers["x-ms-documentdb-collection-index-transformation-progress"])


def test_a_new_policy_is_built_in_the_background(api: Api) -> None:
    """The replace does not wait for it, its progress can be watched, and queries are right all the
    time. Here another process has the lease at first, so nothing is built before we say so.
    """
    for n in range(10):
        api.item({"id": str(n), "pk": f"k{n % 3}", "a": n % 2})
    assert progress(api) == 100
    body = {
        "id": "c",
        "partitionKey": document(api.ask("GET", CONTAINER))["partitionKey"],
        "indexingPolicy": {"includedPaths": [{"path": "/a/?"}], "excludedPaths": [{"path": "/*"}]},
    }
    named = "x-ms-documentdb-collection-index-transformation-progress"

    def ones() -> int:
        asked = {
            "x-ms-documentdb-isquery": "True",
            "x-ms-documentdb-query-enablecrosspartition": "True",
            "x-ms-documentdb-partitionkeyrangeid": "0",
        }
        query = {"query": "SELECT VALUE c.id FROM c WHERE c.a = 1"}
        return len(document(api.ask("POST", CONTAINER + "/docs", query, asked))["Documents"])

    with api.service.gateway.account.round() as other:
        assert other.may("index")
        replaced = api.ask("PUT", CONTAINER, body)
        assert (replaced.status, replaced.headers[named]) == (200, "0")
        assert (progress(api), ones()) == (0, 5)
        api.item({"id": "10", "pk": "k0", "a": 1})
        assert 0 < progress(api) < 100
        assert ones() == 6
    api.ask("PUT", CONTAINER, body)
    deadline = time.monotonic() + 60
    while progress(api) < 100:
        assert ones() == 6
        assert time.monotonic() < deadline
    assert ones() == 6
