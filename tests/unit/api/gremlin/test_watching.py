"""Graphs beside the protocol: how they are made, and what faults, the request log and the metrics
know of them. Without these tests a graph would be a stranger to the tools of every other API."""

from __future__ import annotations

import logging
from typing import Any

import orjson
import pytest
from tests.support.gremlin import attributes, endpoint, failure, submit
from tests.support.nosql import api as made
from tests.support.waiting import until

from armillary.api.control.metrics import exposition, samples
from armillary.api.core.settings import EMULATOR_KEY, GatewaySettings
from armillary.api.http.messages import Request
from armillary.store.catalog.controls import FaultRecord
from armillary.store.catalog.tables import api_of
from armillary.testing import Cosmos

ADD = "g.addV('p').property('id','1').property('pk','a')"


@pytest.mark.parametrize(
    ("key", "api", "status"),
    [("/pk", "gremlin", 201), ("/id", "gremlin", 400), ("/label", "gremlin", 400),
     ("/a/b", "gremlin", 400), ("/id", "nosql", 201), ("/pk", "cassandra", 400)],
)  # fmt: skip
def test_a_graph_made_by_the_nosql_api_has_its_key_checked(key: str, api: str, status: int) -> None:
    with made() as nosql:
        body = {"id": "g", "partitionKey": {"paths": [key], "kind": "Hash", "version": 2}}
        found = nosql.ask("POST", "/dbs/d/colls", body, {"x-armillary-api": api})
        assert found.status == status, found.body
        if status == 201:
            assert api_of(nosql.account.read_container("d", "g")) == api
        elif api == "gremlin":
            assert b"graph" in found.body


def test_faults_strike_by_the_kind_of_traversal() -> None:
    with endpoint() as one:
        client = one.client()
        submit(client, ADD)
        one.gateway.shared.set_faults([FaultRecord("429", "create", value=250, times=1)])
        assert submit(client, "g.V().count()") == [1]
        found = failure(client, "g.addV('p').property('pk','a')").status_attributes
        assert (found["x-ms-status-code"], found["x-ms-retry-after-ms"]) == (
            429,
            "00:00:00.2500000",
        )
        one.gateway.shared.set_faults([FaultRecord("503", "query", container="d/g", times=1)])
        assert failure(client, "g.V()").status_attributes["x-ms-status-code"] == 503
        assert submit(client, "g.V().count()") == [1]


def logged_facts(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(one)["facts"] for one in caplog.records if "facts" in vars(one)]


def test_the_request_log_has_a_line_for_each(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "armillary.requests")
    with endpoint(keys=GatewaySettings(logs_requests=True)) as one:
        client = one.client()
        submit(client, ADD)
        failure(client, "g.V().fail()")
        # A line is written once its answer is on the way: the client may be ahead of it.
        facts = until(lambda: logged if len(logged := logged_facts(caplog)) >= 2 else None)
    assert facts is not None
    assert [(one["Method"], one["Path"], one["StatusCode"]) for one in facts] == [
        ("eval", "d/g", 200),
        ("eval", "d/g", 400),
    ]
    assert facts[0]["RequestCharge"] > 0
    assert facts[0]["Script"] == ADD


def test_metrics_count_what_traversals_consume() -> None:
    with endpoint(enforce="report") as one:
        client = one.client()
        charged = attributes(client, ADD)["x-ms-total-request-charge"]
        charged += attributes(client, "g.V(['a','1'])")["x-ms-total-request-charge"]
        text = exposition(samples(one.gateway))
    counted = [line for line in text.splitlines() if line.startswith("TotalRequestUnits{")]
    assert any(
        'CollectionName="g"' in line and float(line.split()[-1]) == pytest.approx(charged, abs=0.1)
        for line in counted
    ), (charged, counted)


def test_the_route_of_the_graph_page_is_described() -> None:
    with Cosmos(containers={"g": "/pk"}) as cosmos:
        assert cosmos.service is not None
        headers = {"authorization": f"Bearer {EMULATOR_KEY}"}
        found = cosmos.service.handle(Request("GET", "/_armillary/openapi.json", headers, b""))
        paths = orjson.loads(found.body)["paths"]
        assert "post" in paths["/_armillary/dbs/{db}/colls/{coll}/gremlin"]
