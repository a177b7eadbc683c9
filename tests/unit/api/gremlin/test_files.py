# ruff: noqa: E501 (tables)
"""Graphs from files: what `armillary import --graph` puts into a container."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.gremlin_graphs import MODERN, evaluate
from typer.testing import CliRunner

import armillary
from armillary.account import Account
from armillary.api.gremlin.graph.file_writing import edges_file
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


@pytest.mark.parametrize("name", ["graph.json", "graph.json.gz", "graph.csv", "graph.csv.gz"])
def test_a_graph_goes_out_and_comes_back(tmp_path: Path, name: str) -> None:
    """Every element with its values; only the ids of property values are new."""
    first, second = (str(tmp_path / one) for one in ("first", "second"))
    for data in (first, second):
        with armillary.open(data) as account:
            account.create_database("d").create_container("g", "/pk", physical_partitions=2)
    scripts = [*MODERN, "g.V('1').property('half', 0.5).property('alive', true)"]
    if ".csv" not in name:
        scripts.append("g.V('1').property(list, 'name', 'Marko A.', 'since', 2001)")
    with armillary.open(first) as account:
        graph = StoreGraph(account.store.container("d", "g"), "pk", lambda: "x")
        for text in scripts:
            evaluate(graph, text)
        before = contents(account)
    run = CliRunner()
    file = tmp_path / name
    done = run.invoke(app, ["export", str(file), "--graph", "--data", first])
    assert done.exit_code == 0, done.output
    options = ["--graph", "--data", second, "--types", "pk=text"]
    for one in (file, edges_file(file)) if ".csv" in name else (file,):
        done = run.invoke(app, ["import", str(one), *options])
        assert done.exit_code == 0, done.output
    with armillary.open(second) as account:
        assert contents(account) == before
    assert not [*tmp_path.glob(".*"), *tmp_path.glob("*.part")]


def contents(account: Account) -> list[str]:
    graph = StoreGraph(account.store.container("d", "g"), "pk", lambda: "x")
    vertices = evaluate(graph, "g.V().project('i','l','p').by(id).by(label).by(valueMap())")
    meta = evaluate(graph, "g.V().properties().properties().value()")
    edges = evaluate(
        graph,
        "g.E().project('i','l','a','b','p').by(id).by(label).by(outV().id()).by(inV().id()).by(valueMap())",
    )
    return sorted(map(repr, [*vertices, *edges])) + sorted(map(repr, meta))


def test_what_a_table_has_no_place_for_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    data, file = str(tmp_path / "data"), tmp_path / "graph.csv"
    with armillary.open(data) as account:
        account.create_database("d").create_container("g", "/pk")
        graph = StoreGraph(account.store.container("d", "g"), "pk", lambda: "x")
        evaluate(graph, MODERN[0] + ".property(list, 'name', 'again')")
    done = CliRunner().invoke(app, ["export", str(file), "--graph", "--data", data])
    assert done.exit_code != 0
    assert "several values" in done.output
    assert not [one for one in (file, edges_file(file)) if one.exists()]
