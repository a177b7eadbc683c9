"""What has to be refused, with the right status: each was accepted, silent or told wrongly."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from tests.support.nosql import Api, document, pk

DOCS = "/dbs/d/colls/c/docs"
BATCH = {"x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true"}


@pytest.mark.parametrize("path", ["/_ts", "/_rid", "/_etag/a", "/_self", "/id ds"])
def test_a_partition_key_that_no_item_can_have_when_it_is_placed(api: Api, path: str) -> None:
    body = {"id": "new", "partitionKey": {"paths": [path], "kind": "Hash", "version": 2}}
    assert api.ask("POST", "/dbs/d/colls", body).status == 400
    assert api.ask("GET", "/dbs/d/colls/new").status == 404


def test_a_partition_key_with_a_quoted_name_is_fine(api: Api) -> None:
    paths = ['/"first name"']
    body = {"id": "new", "partitionKey": {"paths": paths, "kind": "Hash", "version": 2}}
    assert api.ask("POST", "/dbs/d/colls", body).status == 201


@pytest.mark.parametrize("id", [".", ".."])
def test_ids_that_clients_take_out_of_a_path(api: Api, id: str) -> None:
    assert api.item({"id": id, "pk": "a"}).status == 400
    assert api.ask("POST", "/dbs", {"id": id}).status == 400


@pytest.mark.parametrize("id", ["a ", "a/b", "a\\b", "a#b", "a?b", "a%20", "a\tb", "a\rb", "a\nb"])
def test_an_id_with_any_character_is_one(api: Api, id: str) -> None:
    """Those of the Go SDK's TestItemIdEncodingComputeGW."""
    place = f"{DOCS}/{quote(id, safe='')}"
    link = ("docs", f"dbs/d/colls/c/docs/{id}")
    body = {"id": id, "pk": "a"}
    assert api.item(body).status == 201
    assert document(api.ask("GET", place, headers=pk("a"), signed_as=link))["id"] == id
    assert api.ask("PUT", place, body, pk("a"), signed_as=link).status == 200
    assert api.ask("DELETE", place, headers=pk("a"), signed_as=link).status == 204


def test_too_many_databases_and_containers(api: Api) -> None:
    api.account.resources_max = 3
    assert api.ask("POST", "/dbs", {"id": "d2"}).status == 201
    assert api.ask("POST", "/dbs", {"id": "d3"}).status == 403
    body: dict[str, Any] = {"id": "c", "partitionKey": {"paths": ["/pk"]}}
    assert api.ask("POST", "/dbs/d/colls", body | {"id": "e"}).status == 403
    assert api.ask("POST", "/dbs/d/colls", body).status == 409
    assert api.ask("POST", "/dbs", {"id": "d"}).status == 409


def test_a_batch_that_failed_reports_its_charge(api: Api) -> None:
    entries = [
        {"operationType": "Create", "resourceBody": {"id": "1", "pk": "a"}},
        {"operationType": "Read", "id": "none"},
        {"operationType": "Create", "resourceBody": {"id": "2", "pk": "a"}},
    ]
    found = api.ask("POST", DOCS, entries, BATCH | pk("a"))
    assert [one["statusCode"] for one in document(found)] == [424, 404, 424]
    charges = [one["requestCharge"] for one in document(found)]
    assert charges[1] > 0
    assert float(found.headers["x-ms-request-charge"]) == pytest.approx(sum(charges))


def test_a_number_in_place_of_the_maximum_of_autoscale(api: Api) -> None:
    """What the Python SDK sends for `replace_throughput(500)`: it changed nothing, and said 200."""
    body = {"id": "auto", "partitionKey": {"paths": ["/pk"]}}
    settings = {"x-ms-cosmos-offer-autopilot-settings": '{"maxThroughput": 4000}'}
    assert api.ask("POST", "/dbs/d/colls", body, settings).status == 201
    offers = document(api.ask("GET", "/offers"))["Offers"]
    offer = next(one for one in offers if "offerAutopilotSettings" in one["content"])
    target = f"/{offer['_self'].strip('/')}"
    assert api.ask("PUT", target, offer).status == 200
    wrong = offer | {"content": offer["content"] | {"offerThroughput": 600}}
    refused = api.ask("PUT", target, wrong)
    assert refused.status == 400, refused.body
    assert "autoscale" in document(refused)["message"]
    more = offer["content"] | {"offerAutopilotSettings": {"maxThroughput": 5000}}
    assert api.ask("PUT", target, offer | {"content": more}).status == 200
