# ruff: noqa: E501 (tables)
"""Graphs from files: what `armillary import --graph` puts into a container."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.gremlin_graphs import evaluate
from typer.testing import CliRunner

import armillary
from armillary.api.gremlin.graph.files import GraphFile
from armillary.api.gremlin.graph.store import StoreGraph
from armillary.cli import app
from armillary.errors import BadInput

PEOPLE = "~id,~label,country,name,age\n1,person,NO,Ada,36\n2,person,SE,Bo,\n3,person,,Nobody,1\n"
KNOWS = "~id,~label,~from,~to,since\ne1,knows,1,2,2017\ne2,knows,1,9,2018\n"
GRAPHSON = (
    {"id": {"@type": "g:Int32", "@value": 1}, "label": "person",
     "properties": {"country": [{"id": 0, "value": "NO"}], "name": [{"id": 1, "value": "Ada", "properties": {"by": "me"}}]},
     "outE": {"knows": [{"id": 7, "inV": 2, "properties": {"weight": {"@type": "g:Double", "@value": 0.5}}}]}},
    {"id": 2, "label": "city", "properties": {"country": [{"id": 3, "value": "SE"}]}},
)  # fmt: skip


def test_csv_into_a_graph_that_is_then_traversed(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "knows.csv").write_text(KNOWS)
    data = str(tmp_path / "data")
    with armillary.open(data) as account:
        account.create_database("d").create_container("g", "/country")
    run = CliRunner()
    first = run.invoke(app, ["import", str(tmp_path / "people.csv"), "--graph", "--data", data])
    assert first.exit_code == 3
    assert "item 3: The vertex 3 has no 'country', the partition key." in first.output
    options = ["--graph", "--vertices", str(tmp_path / "people.csv"), "--data", data]
    second = run.invoke(app, ["import", str(tmp_path / "knows.csv"), *options])
    assert "Nothing says in which partition the vertex 9 is" in second.output
    with armillary.open(data) as account:
        graph = StoreGraph(account.store.container("d", "g"), "country", lambda: "x")
        assert evaluate(
            graph, "g.V(['NO','1']).outE('knows').has('since', 2017).inV().values('name')"
        ) == ["Bo"]
        assert evaluate(graph, "g.V('1').values('age')") == [36]
        assert evaluate(graph, "g.E(['NO','e1']).outV().label()") == ["person"]


def test_graphson_lines_know_the_ends_of_their_edges(tmp_path: Path) -> None:
    source = tmp_path / "graph.json"
    source.write_text("\n".join([*map(json.dumps, GRAPHSON), '{"no": "id"}']))
    vertex, edge, city, wrong = GraphFile("country").documents(source)
    assert not isinstance(vertex, BadInput)
    assert vertex["name"][0]["_meta"] == {"by": "me"}
    assert edge == {
        "id": "7", "label": "knows", "weight": 0.5, "_isEdge": True, "_vertexId": "1", "_vertexLabel": "person",
        "_sink": "2", "_sinkLabel": "city", "_sinkPartition": "SE", "country": "NO",
    }  # fmt: skip
    assert not isinstance(city, BadInput)
    assert city["country"] == "SE"
    assert isinstance(wrong, BadInput)
