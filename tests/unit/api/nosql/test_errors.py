"""Bad requests, route by route: status, sub-status and the sentence. Without these, an SDK would
retry what can't succeed, or a stranger could make the server stumble. Facts: nosql-rest 9."""

import json
from typing import Any

import pytest
from tests.support.nosql import Api, document, pk

from armillary.api.nosql.routes import ROUTES, Route

DOCS = "/dbs/d/colls/c/docs"
ITEM = DOCS + "/1"
QUERY = {"x-ms-documentdb-isquery": "true"}
BATCH = {"x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true"}

CASES: list[tuple[str, str, Any, dict[str, str], int, str, str]] = [
    # method, path, body, headers, status, sub-status, part of the message
    ("GET", "/nowhere", None, {}, 400, "", "The request path /nowhere is invalid."),
    ("GET", "/dbs/d/nowhere", None, {}, 400, "", "is invalid"),
    ("GET", "/dbs/%ff", None, {}, 400, "", "is invalid"),
    ("PUT", "/dbs/d", {}, {}, 405, "", "The requested verb is not supported."),
    ("PATCH", "/dbs", {}, {}, 405, "", "verb"),
    ("POST", "/dbs", b"{", {}, 400, "", "not valid JSON"),
    ("POST", "/dbs", b"[]", {}, 400, "", "JSON object"),
    ("POST", "/dbs", {}, {}, 400, "", "'id; '"),
    ("POST", "/dbs", {"id": 1}, {}, 400, "", "string"),
    ("POST", "/dbs", {"id": "a/b"}, {}, 400, "", "invalid character '/'"),
    ("POST", "/dbs", {"id": "a "}, {}, 400, "", "can't end with space"),
    ("POST", "/dbs", {"id": "d"}, {}, 409, "", "already exists"),
    ("POST", "/dbs", {"id": "e"}, {"x-ms-offer-throughput": "x"}, 400, "", "x-ms-offer-throughput"),
    ("POST", "/dbs", {"id": "e"}, {"x-ms-offer-throughput": "450"}, 400, "", "increments of 100"),
    (
        "POST",
        "/dbs",
        {"id": "e"},
        {
            "x-ms-offer-throughput": "400",
            "x-ms-cosmos-offer-autopilot-settings": '{"maxThroughput":1000}',
        },
        400,
        "",
        "cannot both be specified",
    ),
    ("GET", "/dbs/x", None, {}, 404, "", "does not exist"),
    ("DELETE", "/dbs/x", None, {}, 404, "", "does not exist"),
    ("DELETE", "/dbs/d", None, {"if-match": '"x"'}, 412, "", "precondition"),
    ("GET", "/dbs/x/colls", None, {}, 404, "1003", "Owner"),
    ("GET", "/dbs/d/colls/x", None, {}, 404, "", "does not exist"),
    ("POST", "/dbs/d/colls", {"id": "k"}, {}, 400, "", "partition key definition is missing"),
    ("POST", "/dbs/x/colls", {"id": "k", "partitionKey": {"paths": ["/a"]}}, {}, 404, "1003", ""),
    ("POST", "/dbs/d/colls", {"id": "k", "partitionKey": {"paths": []}}, {}, 400, "", "paths"),
    ("PUT", "/dbs/d/colls/c", {"id": "other"}, {}, 400, "", "can't be changed"),
    ("GET", "/dbs/d/colls/x/pkranges", None, {}, 404, "1003", ""),
    ("GET", "/dbs/d/colls/x/docs", None, {}, 404, "1003", ""),
    ("GET", DOCS, None, {"x-ms-max-item-count": "0"}, 400, "", "The input PageSize 0 is invalid."),
    ("GET", DOCS, None, {"x-ms-max-item-count": "-2"}, 400, "", "PageSize"),
    ("GET", DOCS, None, {"x-ms-continuation": "abc"}, 400, "", "Invalid Continuation Token"),
    ("GET", DOCS, None, {"a-im": "Strange Feed"}, 400, "", "A-IM"),
    ("GET", DOCS, None, {"a-im": "Full-Fidelity Feed"}, 400, "", "can't start at the beginning"),
    ("GET", DOCS, None, {"a-im": "Incremental feed", "if-none-match": "x"}, 400, "", "Token"),
    ("GET", DOCS, None, {"a-im": "Incremental feed", "if-modified-since": "x"}, 400, "", "Since"),
    ("GET", DOCS, None, {"x-ms-documentdb-partitionkeyrangeid": "7"}, 410, "1002", "'7'"),
    ("GET", DOCS, None, {"x-ms-documentdb-partitionkeyrangeid": "x"}, 400, "", "invalid value 'x'"),
    ("GET", DOCS, None, {"x-ms-start-epk": "zz", "x-ms-end-epk": "FF"}, 400, "", ""),
    ("GET", DOCS, None, {"x-ms-start-epk": "22", "x-ms-end-epk": "11"}, 400, "", "backwards"),
    ("GET", DOCS, None, {"x-ms-session-token": "0:5#x"}, 400, "", "session token"),
    ("GET", DOCS, None, {"x-ms-session-token": "0:-1#99"}, 404, "1002", "read session"),
    ("GET", ITEM, None, {}, 400, "", "PartitionKey value must be supplied"),
    ("GET", ITEM, None, {"x-ms-documentdb-partitionkey": "x"}, 400, "", "Cannot deserialize"),
    ("GET", ITEM, None, {"x-ms-documentdb-partitionkey": "[[1]]"}, 400, "", "Unsupported"),
    ("GET", ITEM, None, pk("a", "b"), 400, "", "more components"),
    ("GET", ITEM, None, pk(), 400, "", "fewer components"),
    ("GET", ITEM, None, pk("x"), 404, "", "does not exist"),
    ("GET", ITEM, None, pk("x") | {"x-ms-session-token": "0:-1#99"}, 404, "1002", "read session"),
    ("GET", ITEM, None, pk("x") | {"x-ms-consistency-level": "Strong"}, 400, "", "not stronger"),
    ("GET", ITEM, None, pk("x") | {"x-ms-consistency-level": "Best"}, 400, "", "'Best'"),
    (
        "GET",
        ITEM,
        None,
        pk("x") | {"x-ms-cosmos-intended-collection-rid": "AAAA"},
        400,
        "1024",
        "",
    ),
    ("POST", DOCS, {"pk": "x"}, pk("x"), 400, "", "'id; '"),
    ("POST", DOCS, {"id": "1", "pk": "y"}, pk("x"), 400, "1001", "doesn't match"),
    ("POST", DOCS, {"id": "1", "pk": "x", "ttl": 0}, pk("x"), 400, "", "ttl"),
    ("POST", DOCS, b"nonsense", pk("x"), 400, "", "not valid JSON"),
    (
        "POST",
        DOCS,
        {"id": "1", "pk": "x"},
        pk("x") | {"x-ms-documentdb-pre-trigger-include": "t"},
        404,
        "",
        "no trigger 't'",
    ),
    ("PUT", ITEM, {"id": "1", "pk": "x"}, pk("x"), 404, "", ""),
    ("PATCH", ITEM, {}, pk("x"), 400, "", "operations"),
    ("PATCH", ITEM, {"operations": [1]}, pk("x"), 400, "", "JSON object"),
    (
        "PATCH",
        ITEM,
        {"operations": [{"op": "add", "path": "/a", "value": 1}], "condition": "where"},
        pk("x"),
        400,
        "",
        "SC1001",
    ),
    ("PATCH", ITEM, {"operations": []}, pk("x"), 400, "", "At least one operation"),
    ("DELETE", ITEM, None, pk("x"), 404, "", ""),
    ("POST", DOCS, {}, QUERY, 400, "", "string 'query'"),
    ("POST", DOCS, {"query": "SELECT * FROM c"}, QUERY, 400, "", "Cross partition query"),
    ("POST", DOCS, {"query": "SELECT", "parameters": []}, QUERY, 400, "", "SC1001"),
    ("POST", DOCS, {"query": "SELECT 1", "parameters": 1}, QUERY, 400, "", "list"),
    ("POST", DOCS, {"query": "SELECT 1", "parameters": [1]}, QUERY, 400, "", "'name'"),
    ("POST", DOCS, [], BATCH | pk("x"), 400, "", "no operations"),
    ("POST", DOCS, {}, BATCH | pk("x"), 400, "", "JSON array"),
    ("POST", DOCS, [1], BATCH | pk("x"), 400, "", "JSON object"),
    ("POST", DOCS, [{"operationType": "Fly"}], BATCH | pk("x"), 400, "", "'Fly'"),
    ("POST", DOCS, [{"operationType": "Read", "id": 1}], BATCH | pk("x"), 400, "", "'id'"),
    ("POST", DOCS, [{"operationType": "Read", "id": "1"}] * 101, BATCH | pk("x"), 400, "", "more"),
    ("POST", DOCS, [{"operationType": "Read", "id": "1"}], BATCH, 400, "", "must be supplied"),
    ("POST", DOCS, b"\x81nonsense", BATCH | pk("x"), 400, "", "HybridRow"),
    ("POST", "/dbs/d/colls/c/operations/partitionkeydelete", None, {}, 400, "", "supplied"),
    ("POST", "/dbs/d/colls/c/sprocs", {"id": "s"}, {}, 400, "", "'body; '"),
    ("POST", "/dbs/d/colls/c/sprocs/s", [], {}, 404, "", ""),
    ("POST", "/dbs/d/colls/c/triggers", {"id": "t", "body": "x"}, {}, 400, "", "triggerType"),
    ("POST", "/dbs/d/colls/x/udfs", {"id": "u", "body": "x"}, {}, 404, "1003", ""),
    ("GET", "/dbs/d/colls/c/conflicts/1", None, {}, 404, "", ""),
    ("GET", "/dbs/d/users/u", None, {}, 404, "", ""),
    ("POST", "/dbs/d/users/u/permissions", {"id": "p"}, {}, 404, "1003", ""),
    ("POST", "/dbs/d/clientencryptionkeys", {"id": "k"}, {}, 400, "", "encryptionAlgorithm"),
    ("GET", "/offers/AAAA", None, {}, 404, "", ""),
    ("PUT", "/offers/AAAA", {}, {}, 404, "", ""),
    ("POST", "/offers", {"query": "SELECT COUNT(1) FROM c"}, QUERY, 400, "", "for items only"),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "sub_status", "text"),
    CASES,
    ids=[f"{case[0]} {case[1]} {at}" for at, case in enumerate(CASES)],
)
def test_what_is_wrong_is_said(
    api: Api,
    method: str,
    path: str,
    body: Any,
    headers: dict[str, str],
    status: int,
    sub_status: str,
    text: str,
) -> None:
    response = api.ask(method, path, body, headers)
    found = document(response)
    assert (response.status, response.headers.get("x-ms-substatus", "")) == (status, sub_status), (
        found
    )
    assert text in found["message"]
    assert response.headers["Content-Type"] == "application/json"
    assert "ActivityId: " in found["message"]
    assert float(response.headers["x-ms-request-charge"]) >= 0


@pytest.mark.parametrize("route", ROUTES, ids=lambda one: f"{one.method} {one.name}")
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"id": null}', b"\x81", b"\xff\xfe"])
def test_no_body_makes_a_route_stumble(api: Api, route: Route, body: bytes) -> None:
    """500 would mean a bug of ours."""
    variants = {
        "query": QUERY,
        "plan": {"x-ms-cosmos-is-query-plan-request": "True"},
        "batch": BATCH,
        "changes": {"a-im": "Incremental Feed"},
    }
    target = "/" + route.pattern.replace("dbs/*", "dbs/d").replace("colls/*", "colls/c")
    target = target.replace("*", "x")
    for extra in ({}, pk("x")):
        response = api.ask(route.method, target, body, variants.get(route.variant, {}) | extra)
        assert response.status != 500, response.body


def test_errors_about_items_keep_the_session(api: Api) -> None:
    api.item({"id": "1", "pk": "x"})
    for response in (
        api.ask("GET", DOCS + "/2", None, pk("x")),
        api.item({"id": "1", "pk": "x"}),
        api.ask("PUT", ITEM, {"id": "1", "pk": "x"}, pk("x") | {"if-match": "no"}),
        api.ask("GET", ITEM, None, pk("x") | {"if-none-match": "*"}),
    ):
        assert response.status in (404, 409, 412, 304)
        if response.status != 409:  # no key header, so no range to speak of
            assert response.headers["x-ms-session-token"] == "0:-1#1"
            assert response.headers["x-ms-documentdb-partitionkeyrangeid"] == "0"
        assert response.headers["x-ms-alt-content-path"] == "dbs/d/colls/c"
        assert (response.body == b"") == (response.status == 304)


def test_a_bug_is_500_and_says_nothing_of_the_inside(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def stumble(name: str) -> None:
        raise RuntimeError("secret of the house")

    monkeypatch.setattr(api.account, "list_databases", stumble)
    response = api.ask("GET", "/dbs")
    assert response.status == 500
    assert document(response)["code"] == "InternalServerError"
    assert b"secret" not in response.body
    assert "a bug: GET /dbs" in caplog.text


def test_a_strange_activity_id_is_not_echoed(api: Api) -> None:
    for text in ("a\r\nSet-Cookie: x", "x" * 500):
        response = api.ask("GET", "/dbs", None, {"x-ms-activity-id": text})
        assert text not in json.dumps(response.headers)
    plain = api.ask("GET", "/dbs", None, {"x-ms-activity-id": "6c1e"})
    assert plain.headers["x-ms-activity-id"] == "6c1e"
