"""The graph page without a browser: what the control answers, and the picture made of it."""

from __future__ import annotations

from xml.etree import ElementTree

import httpx
import pytest
from tests.support.gremlin_graphs import MODERN, evaluate

from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.gremlin.graph.store import StoreGraph
from armillary.api.http.messages import Request
from armillary.portal.widgets.graph_view import colours, crossing, graph_svg
from armillary.testing import Cosmos

VERTICES = [
    {"id": "a<", "label": "p", "key": "k", "partition": "0"},
    {"id": "b", "label": "p", "key": "k", "partition": "0"},
    {"id": "c", "label": "p", "key": "l", "partition": "1"},
]
EDGES = [
    {"id": "1", "label": "e", "from": {"key": "k", "id": "a<"}, "to": {"key": "k", "id": "b"}},
    {"id": "2", "label": "e", "from": {"key": "k", "id": "b"}, "to": {"key": "l", "id": "c"}},
    {"id": "3", "label": "e", "from": {"key": "k", "id": "b"}, "to": {"key": "x", "id": "?"}},
]


def test_the_picture_shows_partitions_and_what_crosses_them() -> None:
    across = crossing(VERTICES, EDGES)
    assert (across.edges, across.crossing, across.share) == (2, 1, 0.5)
    assert list(colours(VERTICES)) == ["0", "1"]
    drawing = ElementTree.fromstring(graph_svg(VERTICES, EDGES))
    assert len(drawing.findall("circle")) == 3
    dashed = [one.get("stroke-dasharray") for one in drawing.findall("path")]
    assert [one is not None for one in dashed] == [False, True]


@pytest.mark.parametrize(
    ("script", "vertices", "edges"),
    [("g.V()", 6, 6), ("g.E('8')", 2, 1), ("g.V('1').out().path()", 4, 4), ("g.V().count()", 0, 0)],
)
def test_the_control_gives_elements_and_where_they_lie(
    script: str, vertices: int, edges: int
) -> None:
    with Cosmos(containers={"g": {"partition_key": "/pk", "physical_partitions": 2}}) as cosmos:
        graph = StoreGraph(cosmos.account.store.container("test", "g"), "pk", cosmos.new_id)
        for text in MODERN:
            evaluate(graph, text)
        body = httpx.Request("POST", "http://x", json={"gremlin": script}).content
        headers = {"authorization": f"Bearer {EMULATOR_KEY}"}
        target = "/_armillary/dbs/test/colls/g/gremlin"
        assert cosmos.service is not None
        response = cosmos.service.handle(Request("POST", target, headers, body))
        found = httpx.Response(response.status, content=response.body).json()
        assert response.status == 200, found
        assert (len(found["vertices"]), len(found["edges"])) == (vertices, edges)
        assert {one["partition"] for one in found["vertices"]} <= {"0", "1"}
        wrong = httpx.Request("POST", "http://x", json={"gremlin": "g.V().fail()"}).content
        refused = cosmos.service.handle(Request("POST", target, headers, wrong))
        assert refused.status == 400
        assert b"Unable to find any method 'fail' @ line 1, column 7." in refused.body
