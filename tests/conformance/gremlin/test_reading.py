"""gremlinpython reads a graph: what Microsoft's documents and samples ask, and the shapes of the
answers. Without these a program written for the service would meet other values here."""

from __future__ import annotations

from typing import Any

import pytest
from gremlin_python.driver.client import Client
from tests.support.gremlin import Endpoint, attributes, submit


def test_a_vertex_and_an_edge_have_the_service_s_shape(client: Client) -> None:
    (vertex,) = submit(client, "g.V('1')")
    assert vertex["properties"]["pk"] == [{"id": "1|pk", "value": "a"}]
    assert [one["value"] for one in vertex["properties"]["name"]] == ["marko"]
    assert {key: vertex[key] for key in ("id", "label", "type")} == {
        "id": "1",
        "label": "person",
        "type": "vertex",
    }
    assert submit(client, "g.E('8')") == [
        {
            "id": "8",
            "label": "knows",
            "type": "edge",
            "inVLabel": "person",
            "outVLabel": "person",
            "inV": "4",
            "outV": "1",
            "properties": {"weight": 1},
        }
    ]


CASES: list[tuple[str, list[Any]]] = [
    ("g.V().count()", [6]),
    ("g.V().has('name','marko').out('knows').values('name').order()", ["josh", "vadas"]),
    ("g.V().hasLabel('person').has('age',gt(30)).values('name').order()", ["josh", "peter"]),
    ("g.V().hasLabel('software').values('name').order().by(decr)", ["ripple", "lop"]),
    ("g.V(['a','1']).valueMap('age')", [{"age": [29]}]),
    ("g.V('1').valueMap(true,'name')", [{"id": "1", "label": "person", "name": ["marko"]}]),
    ("g.E('7').valueMap()", [{"weight": 0.5}]),
    ("g.V().group().by(label).by(count())", [{"person": 4, "software": 2}]),
    ("g.V('3').in('created').values('name').order()", ["josh", "marko", "peter"]),
    ("g.V('1').out().out().path().by('name').order().by(unfold().tail(1)).limit(1)",
     [{"labels": [[], [], []], "objects": ["marko", "josh", "lop"]}]),
    ("g.V('1').repeat(out()).until(hasLabel('software').has('name','ripple')).path().by('name')",
     [{"labels": [[], [], []], "objects": ["marko", "josh", "ripple"]}]),
    ("g.V().hasLabel('person').order().by('name').limit(1).project('n','made').by('name')"
     ".by(out('created').count())", [{"n": "josh", "made": 2}]),
    ("g.V('1').properties('age').key()", ["age"]),
    ("g.E('7').properties()", [{"key": "weight", "value": 0.5}]),
    ("g.V().values('age').mean()", [30.75]),
    ("g.V().fold().count(local)", [6]),
    ("g.V('1').as('a').out('created').in('created').as('b').where('a',neq('b')).values('name')"
     ".order()", ["josh", "peter"]),
    ("g.V().hasLabel('nothing')", []),
    ("g.V('1').bothE().otherV().values('name').order()", ["josh", "lop", "vadas"]),
    ("g.V().has('pk','a').values('name').order()", ["marko", "vadas"]),
    ("g.V().has('pk',within('a','c')).count()", [4]),
    ("g.V('1','3').has('pk',within('a','b')).values('name').order()", ["lop", "marko"]),
    ("g.V(['a','1'],['b','3']).values('name').order()", ["lop", "marko"]),
    ("g.V().has('age',within(29,35)).values('name').order()", ["marko", "peter"]),
    ("g.V().has('name',startingWith('m')).values('name')", ["marko"]),
    ("g.V().has(id,'1').label()", ["person"]),
    ("g.withStrategies(PartitionStrategy.build().partitionKey('pk').readPartitions('b').create())"
     ".V().values('name').order()", ["josh", "lop"]),
    ("g.withStrategies(ProjectionStrategy.build().IncludeSystemProperties('_ts').create())"
     ".V('1').values('_ts').count()", [1]),
    ("g.V('1').values('_ts').count()", [0]),
    ("g.V().group().by('label').by(values('age').sum()).toList()", [{"person": 123}]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text for text, _ in CASES])
def test_answers(client: Client, text: str, expected: list[Any]) -> None:
    assert submit(client, text) == expected


def test_bindings_stand_for_values_and_pairs(client: Client) -> None:
    assert submit(client, "g.V([pk, id]).values(what)", {"pk": "a", "id": "1", "what": "age"}) == [
        29
    ]
    assert submit(client, "g.V().has('age', within(some)).count()", {"some": [27, 29]}) == [2]
    assert submit(client, "g.V().has('age', lt(x)).count()", {"x": 28.5}) == [1]


def test_a_pair_of_key_and_id_is_one_point_read(client: Client) -> None:
    """By charge, and by the ranges that the profile shows."""
    for text in ("g.V(['a','1'])", "g.E(['a','7'])"):
        assert attributes(client, text)["x-ms-total-request-charge"] == 1.0
        (profile,) = submit(client, text + ".executionProfile()")
        (metric,) = profile["metrics"]
        (op,) = metric["storeOps"]
        assert (op["fanoutFactor"], op["count"]) == (1, 1)


def test_an_id_alone_asks_every_partition_and_in_does_too(client: Client) -> None:
    for text, fanout in (
        ("g.V('1')", 3),
        ("g.V(['b','3']).inE()", 3),
        ("g.V(['a','1']).outE()", 1),
    ):
        (profile,) = submit(client, text + ".executionProfile()")
        ops = profile["metrics"][-1]["storeOps"]
        assert sum(op["fanoutFactor"] for op in ops) == fanout, text


def test_hops_read_in_batches(client: Client) -> None:
    """Six vertices, one question for the edges of each range and one read of the other ends."""
    (profile,) = submit(client, "g.V().out().executionProfile()")
    assert [one["name"] for one in profile["metrics"]] == ["GetVertices", "GetNeighborVertices"]
    assert len(profile["metrics"][1]["storeOps"]) <= 6


def test_results_come_in_parts_of_64(served: Endpoint) -> None:
    client = served.client()
    results = client.submit("g.inject(" + ",".join(map(str, range(150))) + ")")
    sizes = []
    while (part := results.one()) is not None:
        sizes.append(len(part))
    assert sizes == [64, 64, 22]
    assert results.status_attributes["x-ms-status-code"] == 200


def test_charges_of_parts_add_up(client: Client) -> None:
    found = attributes(client, "g.V().out()")
    assert found["x-ms-total-request-charge"] >= found["x-ms-request-charge"] > 0
    assert found["x-ms-total-server-time-ms"] > 0
    assert found["x-ms-activity-id"]


def test_edges_lie_with_their_source_and_are_readable_as_items(served: Endpoint) -> None:
    assert {
        key: value
        for key, value in served.graph.read_item("8", "a").items()
        if key not in ("_rid", "_self", "_etag", "_attachments", "_ts")
    } == {
        "id": "8",
        "label": "knows",
        "weight": 1,
        "_isEdge": True,
        "_vertexId": "1",
        "_vertexLabel": "person",
        "_sink": "4",
        "_sinkLabel": "person",
        "_sinkPartition": "b",
        "pk": "a",
    }
    vertex = served.graph.read_item("1", "a")
    assert [one["_value"] for one in vertex["name"]] == ["marko"]
    rows = served.graph.query("SELECT VALUE COUNT(1) FROM c WHERE c._isEdge = true")
    assert list(rows) == [6]
