"""What requests besides queries of items may use. Without these the condition of a patch, or a
query of databases, could take as long as it likes, for a client that has left long ago.
"""

from __future__ import annotations

import json

import pytest
from tests.support.nosql import Api, document, pk

from armillary.api.control.service import Controls
from armillary.api.http.messages import Request
from armillary.budget import Budget

DOCS = "/dbs/d/colls/c/docs"
QUERY = {"x-ms-documentdb-isquery": "true", "content-type": "application/query+json"}
JOINS = "from a in c.n join b in c.n join d in c.n join e in c.n"
CONDITION = f"from c where array_length(array(select value 1 {JOINS})) > 0"
CHANGE = [{"op": "set", "path": "/m", "value": 1}]
OF_PARAMETER = JOINS.replace("c.n", "(SELECT VALUE @p)")
LONG = f"SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE 1 {OF_PARAMETER})) FROM root r"
BODY = {"query": LONG, "parameters": [{"name": "@p", "value": list(range(500))}]}


@pytest.fixture(autouse=True)
def by_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the time of a condition may be over before its steps are."""
    monkeypatch.setattr("armillary.query.run.bounds.CONDITION_SECONDS_MAX", 600.0)


def test_the_condition_of_a_patch_is_short(api: Api) -> None:
    api.item({"id": "1", "pk": "a", "n": list(range(300))})
    body = {"condition": CONDITION, "operations": CHANGE}
    found = api.ask("PATCH", f"{DOCS}/1", body, pk("a"))
    assert found.status == 400
    assert "more steps than one request may use" in document(found)["message"]
    assert "m" not in document(api.ask("GET", f"{DOCS}/1", headers=pk("a")))


def test_the_conditions_of_a_batch_share_their_bound(api: Api) -> None:
    """Each alone would fit."""
    api.item({"id": "1", "pk": "a", "n": list(range(30))})
    three = CONDITION.replace(" join e in c.n", "")
    body = {"condition": three, "operations": CHANGE}
    assert api.ask("PATCH", f"{DOCS}/1", body, pk("a")).status == 200
    batch = [{"operationType": "Patch", "id": "1", "resourceBody": body}] * 20
    flags = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
    found = api.ask("POST", DOCS, json.dumps(batch).encode(), pk("a") | flags)
    assert found.status == 207
    assert 400 in [one["statusCode"] for one in document(found)]


@pytest.mark.parametrize("target", ["/dbs", "/dbs/d/colls", "/offers"])
@pytest.mark.parametrize("left", [False, True])
def test_queries_of_metadata_share_the_budget_of_their_request(
    api: Api, target: str, left: bool
) -> None:
    budget = Budget(steps_max=10_000)
    if left:
        budget.cancel()
    body = json.dumps(BODY).encode()
    headers = api.signed("POST", target) | QUERY
    request = Request("POST", target, headers, body)
    request.budget = budget
    assert api.service.lane(request)
    found = api.port.handle(request)
    assert found.status == (408 if left else 400), found.body
    assert "syntax" not in document(found)["message"].lower()


def test_the_deletion_of_a_key_is_long_work_with_a_budget(api: Api) -> None:
    """A key may have millions of items."""
    for number in range(250):
        api.item({"id": f"d{number}", "pk": "long"})
    target = "/dbs/d/colls/c/operations/partitionkeydelete"
    request = Request("POST", target, api.signed("POST", target) | pk("long"), b"")
    assert api.service.lane(request) == "/dbs/d/colls/c"
    request.budget = Budget()
    request.budget.cancel()
    assert api.service.handle(request).status == 408
    request.budget = None
    assert api.service.handle(request).status == 200


def test_queries_of_the_portal_take_their_turn(api: Api) -> None:
    controls = Controls(api.gateway)
    asked = Request("POST", "/_armillary/dbs/d/colls/c/query", {}, b"{}")
    assert controls.lane(asked) == "/_armillary/dbs/d/colls/c/query"
    assert controls.lane(Request("GET", "/_armillary/dbs/d/colls/c/query", {}, b"")) is None
    controls.close()
