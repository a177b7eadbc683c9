"""What the public test suites of the SDKs expect, each by a test of our own."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from tests.support.nosql import Api, document, pk
from tests.support.nosql import api as opened

from armillary.api.core.settings import GatewaySettings
from armillary.api.nosql.metadata.account import document as account_document

DOCS = "/dbs/d/colls/c/docs"
BATCH = {"x-ms-cosmos-is-batch-request": "true"}
ATOMIC = BATCH | {"x-ms-cosmos-batch-atomic": "true"}
BULK = BATCH | {"x-ms-documentdb-partitionkeyrangeid": "0"}
MINIMAL = {"prefer": "return=minimal"}


def create(id: str) -> dict[str, Any]:
    body = {"id": id, "pk": "a"}
    return {"operationType": "Create", "partitionKey": '["a"]', "resourceBody": body}


@pytest.mark.parametrize("kind", [ATOMIC | pk("a"), BULK], ids=["batch", "bulk"])
def test_no_bodies_when_none_are_wanted(api: Api, kind: dict[str, str]) -> None:
    found = document(api.ask("POST", DOCS, [create("1")], kind | MINIMAL))
    assert found[0]["statusCode"] == 201
    assert "resourceBody" not in found[0]
    assert "resourceBody" in document(api.ask("POST", DOCS, [create("2")], kind))[0]


def test_a_bulk_stops_at_a_failure_when_told_to(api: Api) -> None:
    entries = [create("1"), create("1"), create("2")]
    stop = BULK | {"x-ms-cosmos-batch-continue-on-error": "false"}
    found = document(api.ask("POST", DOCS, entries, stop))
    assert [one["statusCode"] for one in found] == [201, 409, 424]
    assert api.ask("GET", f"{DOCS}/2", headers=pk("a")).status == 404
    found = document(api.ask("POST", DOCS, entries, BULK))
    assert [one["statusCode"] for one in found] == [409, 409, 201]


def test_a_copy_that_is_current_is_not_sent_again(api: Api) -> None:
    api.ask("POST", "/dbs/d/users", {"id": "ada"})
    key = {
        "id": "k",
        "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
        "wrappedDataEncryptionKey": "AA==",
        "keyWrapMetadata": {"type": "t", "name": "n", "value": "v"},
    }
    made = api.ask("POST", "/dbs/d/clientencryptionkeys", key)
    assert made.status == 201, made.body
    targets = ("/dbs/d", "/dbs/d/colls/c", "/dbs/d/users/ada", "/dbs/d/clientencryptionkeys/k")
    for target in targets:
        etag = api.ask("GET", target).headers["etag"]
        assert api.ask("GET", target, headers={"if-none-match": etag}).status == 304, target
        assert api.ask("GET", target, headers={"if-none-match": '"other"'}).status == 200


def test_a_delete_in_the_feed_of_all_versions_has_an_empty_current(api: Api) -> None:
    feed = {"a-im": "Full-Fidelity Feed"}
    body = {
        "id": "kept",
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "changeFeedPolicy": {"retentionDuration": 10},
    }
    assert api.ask("POST", "/dbs/d/colls", body).status == 201
    docs = "/dbs/d/colls/kept/docs"
    now = api.ask("GET", docs, headers=feed | {"if-none-match": "*"}).headers["etag"]
    assert api.ask("POST", docs, {"id": "1", "pk": "a"}, pk("a")).status == 201
    assert api.ask("DELETE", f"{docs}/1", headers=pk("a")).status == 204
    rows = document(api.ask("GET", docs, headers=feed | {"if-none-match": now}))["Documents"]
    assert rows[-1]["metadata"]["operationType"] == "delete"
    assert rows[-1]["current"] == {}


def test_all_versions_from_the_beginning_have_the_text_of_the_service(api: Api) -> None:
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
    policy = {"retentionDuration": 5}
    body = {"id": "v", "partitionKey": key, "changeFeedPolicy": policy}
    assert api.ask("POST", "/dbs/d/colls", body).status == 201
    found = api.ask("GET", "/dbs/d/colls/v/docs", headers={"a-im": "Full-Fidelity Feed"})
    assert found.status == 400
    text = "You must read the change feed from within the retention period."
    assert text in document(found)["message"]


def test_a_miss_in_a_range_without_writes_adds_nothing_to_a_session(api: Api) -> None:
    """The JavaScript SDK merges the token of a 404 into its session."""
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
    many = {"x-ms-offer-throughput": "25100"}
    assert api.ask("POST", "/dbs/d/colls", {"id": "s", "partitionKey": key}, many).status == 201
    docs = "/dbs/d/colls/s/docs"
    written = api.item({"id": "1", "pk": "k"}, docs).headers["x-ms-session-token"]
    tokens = set()
    for n in range(20):
        missed = api.ask("GET", f"{docs}/1", headers=pk(n))
        assert missed.status == 404
        tokens.add(missed.headers.get("x-ms-session-token"))
    assert tokens == {None, written}


def test_a_miss_in_the_only_range_has_its_token(api: Api) -> None:
    """The Rust SDK's response_metadata_on_missing_read."""
    missed = api.ask("GET", "/dbs/d/colls/c/docs/none", headers=pk("a"))
    assert (missed.status, missed.headers["lsn"]) == (404, "0")
    assert missed.headers["x-ms-session-token"] == "0:-1#0"


def test_a_hierarchical_key_with_a_missing_level_as_the_python_sdk_sends_it(api: Api) -> None:
    body = {
        "id": "h",
        "partitionKey": {"paths": ["/a", "/b", "/c"], "kind": "MultiHash", "version": 2},
    }
    api.account.create_container("d", body, physical_partitions=4)
    docs = "/dbs/d/colls/h/docs"
    for number in range(8):
        item = {"id": "1", "a": f"x{number}", "b": "y"}
        made = api.ask("POST", docs, item, pk(f"x{number}", "y", None))
        assert made.status == 201, made.body
        found = api.ask("GET", f"{docs}/1", headers=pk(f"x{number}", "y", {}))
        assert found.status == 200
        assert made.headers["x-ms-session-token"] == found.headers["x-ms-session-token"]
    wrong = api.ask("POST", docs, {"id": "2", "a": "x", "b": "y", "c": "z"}, pk("x", "y", None))
    assert wrong.status == 400


def test_a_question_mark_of_an_id_comes_as_it_is(api: Api) -> None:
    """So the JavaScript SDK sends it, and signs it."""
    assert api.item({"id": "a?b=c", "pk": "a"}).status == 201
    link = "dbs/d/colls/c/docs/a?b=c"
    found = api.ask("GET", f"/{link}", headers=pk("a"), signed_as=("docs", link))
    assert found.status == 200, found.body
    assert api.ask("DELETE", f"/{link}", headers=pk("a"), signed_as=("docs", link)).status == 204


#: (id, what the routing gateway answers to a read, a replace and a delete of it); compute: 200.
IDS = [
    ("This is a test", 200),
    (" Test", 200),
    ("Test ", 401),
    ("Test  ", 401),
    ("WithAllowedSpecial,=.:~+-@()^${}[]!_Chars", 200),
    ("EndsWithPercentEncodedWhitespace%20", 401),
    ("WithPercentEncodedSpecialChar%E9%B1%80", 401),
    ("With?QuestionMark", 200),
    ("With/Slash", 401),
    ("With\\Backslash", 401),
    ("With#PoundSign", 401),
    ("With\rCarriageReturn", 400),
    ("With\tTab", 400),
    ("With\nLineFeed", 400),
    ("WithUnicode鱀", 200),
]


@pytest.mark.parametrize(("id", "status"), IDS, ids=[repr(id) for id, _ in IDS])
def test_ids_as_each_gateway_of_the_service_reads_them(id: str, status: int) -> None:
    """The Go suite's TestItemIdEncodingRoutingGW and TestItemIdEncodingComputeGW."""
    target, link = f"{DOCS}/{quote(id, safe='')}", f"dbs/d/colls/c/docs/{id}"
    for is_routing, expected in ((True, status), (False, 200)):
        with opened(GatewaySettings(reads_ids_twice=is_routing)) as made:
            item = {"id": id, "pk": "a"}
            assert made.item(item).status == 201
            for method, good in (("GET", 200), ("PUT", 200), ("DELETE", 204)):
                body = item if method == "PUT" else None
                found = made.ask(method, target, body, pk("a"), signed_as=("docs", link))
                assert found.status == (good if expected == 200 else expected), (method, found)
                if expected == 400:  # from below the service: no JSON
                    assert found.body.startswith(b"<html>")


def test_a_bulk_body_has_the_limit_of_a_request(api: Api) -> None:
    body = {"id": "1", "pk": "a", "text": "x" * 1_500_000}
    entries = [
        {"operationType": "Create", "partitionKey": '["a"]', "resourceBody": body | {"id": str(n)}}
        for n in range(2)
    ]
    found = api.ask("POST", DOCS, entries, BULK)
    assert found.status == 413
    message = document(found)["message"]
    assert message.startswith('Message: {"Errors":["Request size is too large"]}\r\n')
    assert " bytes; 2,097,152 are allowed.\r\nActivityId" in message


def test_policies_that_the_service_takes_and_refuses(api: Api) -> None:
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
    text = {"defaultLanguage": "1033", "fullTextPaths": [{"path": "/t", "language": "1033"}]}
    made = api.ask("POST", "/dbs/d/colls", {"id": "t", "partitionKey": key, "fullTextPolicy": text})
    assert made.status == 201, made.body
    assert document(made)["fullTextPolicy"] == text
    box = {"xmin": 0, "ymin": 0, "xmax": 9, "ymax": 9}
    index = {"path": "/p/*", "types": ["Point"], "boundingBox": box}
    body = {"id": "g", "partitionKey": key, "indexingPolicy": {"spatialIndexes": [index]}}
    refused = api.ask("POST", "/dbs/d/colls", body)
    assert refused.status == 400
    assert "Geography" in document(refused)["message"]
    for paths, reason in (
        (["/id ds"], "Partition key paths must contain only valid characters and not contain a"),
        (["id", "/id2"], "The partition key component definition path 'id' could not be accepted"),
    ):
        kind = "Hash" if len(paths) == 1 else "MultiHash"
        bad = {"id": "p", "partitionKey": {"paths": paths, "kind": kind, "version": 2}}
        refused = api.ask("POST", "/dbs/d/colls", bad)
        assert (refused.status, reason in document(refused)["message"]) == (400, True)


def test_a_continuation_of_a_query_is_an_object_of_json(api: Api) -> None:
    """The JavaScript SDK parses it to tell it from a token of its own."""
    for n in range(5):
        api.item({"id": str(n), "pk": "a"})
    query = {"x-ms-documentdb-isquery": "True", "content-type": "application/query+json"}
    query |= pk("a") | {"x-ms-max-item-count": "2"}
    found, token = [], None
    while token != "":
        headers = query | ({} if token is None else {"x-ms-continuation": token})
        page = api.ask("POST", DOCS, {"query": "SELECT VALUE c.id FROM c"}, headers)
        found += document(page)["Documents"]
        token = page.headers.get("x-ms-continuation", "")
        assert token == "" or json.loads(token)["token"]
    assert found == [str(n) for n in range(5)]
    for bad in ("{}", "{", '{"token":1}'):
        again = api.ask("POST", DOCS, {"query": "SELECT 1"}, query | {"x-ms-continuation": bad})
        assert again.status == 400


def test_the_advertised_addresses_are_regions() -> None:
    addresses = ("http://localhost:8081/", "http://127.0.0.1:8081/")
    with opened(GatewaySettings(advertise=addresses)) as made:
        told = account_document(made.gateway, "http://other:1/")
    readable: Any = told["readableLocations"]
    assert [one["databaseAccountEndpoint"] for one in readable] == list(addresses)
    assert len({one["name"] for one in readable}) == 2
    assert told["writableLocations"] == readable[:1]
