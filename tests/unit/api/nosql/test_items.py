"""Items on the wire: statuses, headers and bodies that clients of other languages rely on. Facts:
nosql-rest 0, 3.2, 6."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.nosql import Api, document, pk
from tests.support.nosql import api as made

from armillary.api.core.settings import GatewaySettings
from armillary.api.http.messages import Request
from armillary.partition.budgets.ledger import LocalLedger
from armillary.store.throughput.meter import Meter

DOCS = "/dbs/d/colls/c/docs"
ITEM = DOCS + "/1"
MINIMAL = {"prefer": "return=minimal"}


def test_the_statuses_of_a_life(api: Api) -> None:
    item = {"id": "1", "pk": "x"}
    upsert = {"x-ms-documentdb-is-upsert": "True"}
    add = [{"op": "add", "path": "/n", "value": 1}]
    life = [
        (api.ask("POST", DOCS, item, pk("x")), 201),
        (api.ask("GET", ITEM, None, pk("x")), 200),
        (api.ask("POST", DOCS, item, pk("x") | upsert), 200),
        (api.ask("POST", DOCS, item | {"id": "2"}, pk("x") | upsert), 201),
        (api.ask("PUT", ITEM, item, pk("x")), 200),
        (api.ask("PATCH", ITEM, {"operations": add}, pk("x")), 200),
        (api.ask("PATCH", ITEM, add, pk("x")), 200),
        (api.ask("DELETE", ITEM, None, pk("x")), 204),
        (api.ask("GET", ITEM, None, pk("x")), 404),
    ]
    assert [response.status for response, _ in life] == [status for _, status in life]
    for response, _ in life:
        assert float(response.headers["x-ms-request-charge"]) > 0
        assert response.headers["x-ms-documentdb-partitionkeyrangeid"] == "0"
        assert response.headers["x-ms-session-token"].startswith("0:-1#")


def test_an_answer_has_everything_a_client_keeps(api: Api) -> None:
    response = api.item({"id": "1", "pk": "x", "_etag": "mine", "_rid": "mine"})
    item = document(response)
    container = document(api.ask("GET", "/dbs/d/colls/c"))
    assert list(item) == ["id", "pk", "_rid", "_self", "_etag", "_attachments", "_ts"]
    assert item["_self"] == f"{container['_self']}docs/{item['_rid']}/"
    assert item["_etag"] == response.headers["etag"]
    assert item["_etag"][0] == item["_etag"][-1] == '"'
    assert response.headers["x-ms-alt-content-path"] == "dbs/d/colls/c"
    assert response.headers["x-ms-content-path"] == container["_rid"]
    assert item["_ts"] == api.clock.now_ms() // 1000


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_minimal_answers_have_no_body_but_all_headers(api: Api, method: str) -> None:
    if method != "POST":
        api.item({"id": "1", "pk": "x"})
    body: Any = {"id": "1", "pk": "x", "n": 1}
    if method == "PATCH":
        body = [{"op": "set", "path": "/n", "value": 1}]
    target = DOCS if method == "POST" else ITEM
    response = api.ask(method, target, body, pk("x") | MINIMAL)
    assert (response.status, response.body) == (201 if method == "POST" else 200, b"")
    assert response.headers["etag"]
    assert response.headers["x-ms-session-token"]
    assert document(api.ask("GET", ITEM, None, pk("x") | MINIMAL))["n"] == 1


def test_conditions(api: Api) -> None:
    etag = api.item({"id": "1", "pk": "x"}).headers["etag"]
    for condition in (etag, etag.strip('"'), "*"):
        seen = api.ask("GET", ITEM, None, pk("x") | {"if-none-match": condition})
        assert (seen.status, seen.body, seen.headers["etag"]) == (304, b"", etag)
    stale = pk("x") | {"if-match": '"other"'}
    for method in ("PUT", "DELETE"):
        assert api.ask(method, ITEM, {"id": "1", "pk": "x"}, stale).status == 412
    fresh = pk("x") | {"if-match": etag}
    assert api.ask("PUT", ITEM, {"id": "1", "pk": "x"}, fresh).status == 200
    assert api.ask("DELETE", ITEM, None, fresh).status == 412


def test_a_replace_may_rename(api: Api) -> None:
    api.item({"id": "1", "pk": "x"})
    assert document(api.ask("PUT", ITEM, {"id": "2", "pk": "x"}, pk("x")))["id"] == "2"
    assert api.ask("GET", ITEM, None, pk("x")).status == 404


@pytest.mark.parametrize(
    ("header", "item"),
    [
        ("[1]", {"pk": 1}),
        ("[1.0]", {"pk": 1}),
        ("[null]", {"pk": None}),
        ("[{}]", {}),
        ("[true]", {"pk": True}),
        ('["\\u00e4"]', {"pk": "ä"}),
        (None, {"pk": "x"}),
    ],
)
def test_keys_of_all_kinds(api: Api, header: str | None, item: dict[str, Any]) -> None:
    headers = {} if header is None else {"x-ms-documentdb-partitionkey": header}
    assert api.ask("POST", DOCS, {"id": "1", **item}, headers).status == 201
    if header is not None:
        assert api.ask("GET", ITEM, None, headers).status == 200


def test_every_item_is_found_by_its_self_link(api: Api) -> None:
    api.item({"id": "1", "pk": "x"})
    item = document(api.item({"id": "2", "pk": "x", "n": 7}))
    rid = item["_rid"].lower()
    by_rid = "/" + item["_self"]
    for target in (by_rid, by_rid.rstrip("/"), "/" + by_rid):
        found = api.ask("GET", target, None, pk("x"), signed_as=("docs", rid))
        assert document(found)["n"] == 7
    replaced = api.ask(
        "PUT", by_rid, {"id": "2", "pk": "x", "n": 8}, pk("x"), signed_as=("docs", rid)
    )
    assert document(replaced)["n"] == 8
    assert api.ask("DELETE", by_rid, None, pk("x"), signed_as=("docs", rid)).status == 204
    assert api.ask("GET", by_rid, None, pk("x"), signed_as=("docs", rid)).status == 404


def test_delete_by_key(api: Api) -> None:
    for n in range(5):
        api.item({"id": str(n), "pk": "x" if n else "y"})
    target = "/dbs/d/colls/c/operations/partitionkeydelete"
    assert api.ask("POST", target, None, pk("x")).status == 200
    assert document(api.ask("GET", DOCS))["_count"] == 1


def test_strong_reads_cost_double() -> None:
    with made(GatewaySettings(consistency="Strong")) as api:
        api.item({"id": "1", "pk": "x"})
        strong = api.ask("GET", ITEM, None, pk("x"))
        weak = api.ask("GET", ITEM, None, pk("x") | {"x-ms-consistency-level": "Eventual"})
        assert float(strong.headers["x-ms-request-charge"]) == 2.0
        assert float(weak.headers["x-ms-request-charge"]) == 1.0


# --- throttling -----------------------------------------------------------------------------------


@pytest.fixture
def metered() -> Iterator[Api]:
    with made() as api:
        meter = Meter(api.engine, LocalLedger("on"), enforce="on")
        api.account.meter = meter
        yield api
        meter.close()


def test_above_the_throughput_is_429_until_the_next_second(metered: Api) -> None:
    answers = [metered.item({"id": str(n), "pk": "x"}) for n in range(100)]
    refused = [one for one in answers if one.status == 429]
    assert len(refused) > 20
    assert {one.headers["x-ms-substatus"] for one in refused} == {"3200"}
    assert all(0 < int(one.headers["x-ms-retry-after-ms"]) <= 1000 for one in refused)
    assert "Request rate is large" in document(refused[0])["message"]
    assert document(refused[0])["code"] == "429"
    metered.clock.advance(1)
    assert metered.item({"id": "later", "pk": "x"}).status == 201


@pytest.mark.parametrize("what", ["list", "changes", "query"])
def test_feeds_and_queries_are_charged_too(metered: Api, what: str) -> None:
    item = {"pk": "x", "text": "x" * 100_000}
    for n in range(4):
        metered.item({"id": str(n), **item})
        metered.clock.advance(2)
    text = {"query": "SELECT * FROM c"}
    asks = {
        "list": ("GET", None, {}),
        "changes": ("GET", None, {"a-im": "Incremental Feed"}),
        "query": ("POST", text, {"x-ms-documentdb-isquery": "true", **pk("x")}),
    }
    method, body, headers = asks[what]
    statuses = [metered.ask(method, DOCS, body, headers).status for _ in range(60)]
    assert statuses[0] == 200
    assert 429 in statuses
    metered.clock.advance(5)
    assert metered.ask(method, DOCS, body, headers).status == 200


# --- pages and feeds ------------------------------------------------------------------------------


def feed(api: Api, **headers: str) -> Any:
    return api.ask("GET", DOCS, None, {"a-im": "Incremental Feed", **headers})


def test_the_change_feed_is_numbered(api: Api) -> None:
    assert feed(api).status == 304
    for n in range(4):
        api.item({"id": str(n), "pk": "x"})
    first = feed(api, **{"x-ms-max-item-count": "3"})
    assert [one["_lsn"] for one in document(first)["Documents"]] == [1, 2, 3]
    assert first.headers["etag"] == '"3"'
    second = feed(api, **{"if-none-match": first.headers["etag"]})
    assert [one["id"] for one in document(second)["Documents"]] == ["3"]
    third = feed(api, **{"if-none-match": second.headers["etag"]})
    assert (third.status, third.body, third.headers["etag"]) == (304, b"", '"4"')
    assert feed(api, **{"if-none-match": "*"}).headers["etag"] == '"4"'


def test_the_change_feed_from_a_time(api: Api) -> None:
    api.item({"id": "old", "pk": "x"})
    api.clock.advance(100)
    now = api.date()
    api.item({"id": "new", "pk": "x"})
    found = document(feed(api, **{"if-modified-since": now}))["Documents"]
    assert [one["id"] for one in found] == ["new"]


def test_a_batch_is_one_page_of_the_feed(api: Api) -> None:
    batch = {"x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true"}
    entries = [
        {"operationType": "Create", "resourceBody": {"id": str(n), "pk": "x"}} for n in range(3)
    ]
    response = api.ask("POST", DOCS, entries, batch | pk("x"))
    assert response.headers["x-ms-session-token"] == "0:-1#1"
    page = document(feed(api, **{"x-ms-max-item-count": "1"}))
    assert [one["_lsn"] for one in page["Documents"]] == [1, 1, 1]


def test_pages_of_all_items(api: Api) -> None:
    for n in range(7):
        api.item({"id": str(n), "pk": f"k{n}"})
    seen: list[str] = []
    headers = {"x-ms-max-item-count": "3"}
    for size in (3, 3, 1):
        page = api.ask("GET", DOCS, None, headers)
        assert page.headers["x-ms-item-count"] == str(size)
        seen += [one["id"] for one in document(page)["Documents"]]
        headers["x-ms-continuation"] = page.headers.get("x-ms-continuation", "")
    assert headers["x-ms-continuation"] == ""
    assert sorted(seen) == [str(n) for n in range(7)]


def test_ranges_are_304_to_who_has_them(api: Api) -> None:
    target = "/dbs/d/colls/c/pkranges"
    first = api.ask("GET", target, None, {"a-im": "Incremental Feed"})
    (one,) = document(first)["PartitionKeyRanges"]
    assert (one["id"], one["minInclusive"], one["maxExclusive"]) == ("0", "", "FF")
    again = api.ask("GET", target, None, {"if-none-match": first.headers["etag"]})
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", first.headers["etag"])


# --- the account ----------------------------------------------------------------------------------


def test_the_account_answers_with_the_address_that_was_used() -> None:
    settings = GatewaySettings(trust_forwarded=True)
    forwarded = {"x-forwarded-host": "db.example, inner", "x-forwarded-proto": "https"}
    for trusted, expected in ((settings, "https://db.example/"), (None, "http://localhost:8081/")):
        with made(trusted) as api:
            account = document(api.ask("GET", "/", None, forwarded))
            (place,) = account["writableLocations"]
            assert place["databaseAccountEndpoint"] == expected
            assert account["id"] != "localhost"
            assert json.loads(account["queryEngineConfiguration"])


def test_pages_of_strangers_are_told_nothing() -> None:
    asks = {"origin": "https://a.example", "access-control-request-headers": "x-ms-date"}
    with made() as api:
        assert api.send("OPTIONS", "/dbs", asks).status == 401
    with made(GatewaySettings(cors_origins=("https://a.example",))) as api:
        allowed = api.send("OPTIONS", "/dbs", asks)
        assert allowed.status == 200
        assert allowed.headers["Access-Control-Allow-Origin"] == "https://a.example"
        assert allowed.headers["Access-Control-Allow-Headers"] == "x-ms-date"
        other = api.send("OPTIONS", "/dbs", asks | {"origin": "https://b.example"})
        assert not any(name.startswith("Access-Control") for name in other.headers)
        seen = api.ask("GET", "/dbs", None, {"origin": "https://a.example"})
        assert seen.headers["Access-Control-Allow-Origin"] == "https://a.example"


def test_point_reads_are_quick_and_nothing_else_is(api: Api) -> None:
    def quick(method: str, target: str) -> bool:
        return api.service.is_quick(Request(method, target, {}))

    assert quick("GET", ITEM)
    assert quick("GET", ITEM + "/")
    assert not any(
        quick(method, target)
        for method, target in (("GET", DOCS), ("GET", "/dbs/d"), ("PUT", ITEM), ("DELETE", ITEM))
    )
