"""gremlinpython writes a graph."""

from __future__ import annotations

import pytest
from tests.support.gremlin import Endpoint, endpoint, failure, submit

CREATE = "g.addV('city').property('id', name).property('pk', country).property('people', n)"
GET_OR_CREATE = (
    "g.V(['p','x']).fold().coalesce(unfold(), addV('l').property('id','x').property('pk','p'))"
)


def test_the_minimal_script_of_the_reference(empty: Endpoint) -> None:
    client = empty.client()
    assert submit(client, "g.V().drop()") == []
    for name, country, n in (
        ("Seattle", "USA", 737015),
        ("Portland", "USA", 652503.5),
        ("Oslo", "NO", True),
    ):
        (made,) = submit(client, CREATE, {"name": name, "country": country, "n": n})
        assert made["properties"]["people"][0]["value"] == n
    (edge,) = submit(
        client,
        "g.V([pk,a]).addE('road').to(g.V([pk,b])).property('id','I5').property('miles', 174)",
        {"pk": "USA", "a": "Seattle", "b": "Portland"},
    )
    assert (edge["outV"], edge["inV"]) == ("Seattle", "Portland")
    assert submit(client, "g.E(['USA','I5']).values('miles')") == [174]
    assert submit(client, "g.V(['USA','Seattle']).outE('road').inV().id()") == ["Portland"]
    for _ in range(2):
        (found,) = submit(client, GET_OR_CREATE)
        assert found["id"] == "x"
    assert submit(client, "g.V().count()") == [4]


def test_properties_are_set_added_and_dropped(empty: Endpoint) -> None:
    client = empty.client()
    submit(
        client,
        "g.addV('p').property('id','1').property('pk','a').property('tag','x').property('n',1)",
    )
    submit(client, "g.V('1').property(list,'tag','y').property('n',2)")
    assert submit(client, "g.V('1').values('tag').order()") == ["x", "y"]
    assert submit(client, "g.V('1').values('n')") == [2]
    submit(client, "g.V('1').properties('tag').hasValue('x').drop()")
    assert submit(client, "g.V('1').values('tag')") == ["y"]
    submit(client, "g.V('1').property('name','Bo','lang','no','by','me')")
    assert submit(client, "g.V('1').properties('name').properties('lang')") == [
        {"key": "lang", "value": "no"}
    ]
    submit(client, "g.V('1').properties('name').properties('lang').drop()")
    (name,) = submit(client, "g.V('1').properties('name')")
    assert name["properties"] == {"by": "me"}
    submit(client, "g.V('1').properties().hasKey('n').drop()")
    assert submit(client, "g.V('1').has('n')") == []


def test_dropping_a_vertex_drops_its_edges_in_every_partition(empty: Endpoint) -> None:
    client = empty.client()
    for id, pk in (("1", "a"), ("2", "b"), ("3", "c")):
        submit(client, f"g.addV('p').property('id','{id}').property('pk','{pk}')")
    for a, b in (("1", "2"), ("2", "1"), ("3", "1"), ("3", "2")):
        submit(client, f"g.V('{a}').addE('e').to(g.V('{b}'))")
    assert submit(client, "g.V('1').drop()") == []
    assert submit(client, "g.E().count()") == [1]
    submit(client, "g.E().drop()")
    assert submit(client, "g.E().count()") == [0]
    assert submit(client, "g.V().id().order()") == ["2", "3"]


def test_the_same_id_in_two_partitions_is_two_vertices(empty: Endpoint) -> None:
    client = empty.client()
    for pk in ("a", "b"):
        submit(client, f"g.addV('p').property('id','1').property('pk','{pk}')")
    error = failure(client, "g.addV('p').property('id','1').property('pk','a')")
    assert (error.status_code, error.status_attributes["x-ms-status-code"]) == (500, 409)
    assert "Conflicting request to resource has been attempted." in error.status_message
    assert submit(client, "g.V('1').count()") == [2]
    submit(client, "g.V(['a','1']).addE('e').to(g.V(['b','1']))")
    assert submit(client, "g.V(['a','1']).out().values('pk')") == ["b"]
    assert submit(client, "g.V(['b','1']).out().count()") == [0]
    assert submit(client, "g.V(['b','1']).in().values('pk')") == ["a"]


def test_an_etag_that_is_compared_guards_the_write(empty: Endpoint) -> None:
    client = empty.client()
    submit(client, "g.addV('p').property('id','1').property('pk','a').property('n',1)")
    seen = "g.withStrategies(ProjectionStrategy.build().IncludeSystemProperties('_etag').create())"
    (etag,) = submit(client, f"{seen}.V('1').values('_etag')")
    change = f"{seen}.V('1').has('_etag', e).property('n', 2)"
    assert len(submit(client, change, {"e": etag})) == 1
    assert submit(client, change, {"e": etag}) == []
    assert submit(client, "g.V('1').values('n')") == [2]


def test_two_traversals_that_change_one_vertex_lose_nothing(empty: Endpoint) -> None:
    one, other = empty.client(), empty.client()
    submit(one, "g.addV('p').property('id','1').property('pk','a')")
    waiting = [
        client.submit_async(f"g.V(['a','1']).property(list,'n',{n})").result(30)
        for n in range(20)
        for client in (one if n % 2 else other,)
    ]
    for results in waiting:
        results.all().result(30)
    assert sorted(submit(one, "g.V('1').values('n')")) == list(range(20))


def test_ttl_is_the_item_s(empty: Endpoint) -> None:
    with endpoint(container={"default_ttl": -1}) as made:
        client = made.client()
        submit(client, "g.addV('p').property('id','1').property('pk','a').property('ttl', 100)")
        assert made.graph.read_item("1", "a")["ttl"] == 100
        assert submit(client, "g.V('1').values('ttl')") == [100]


@pytest.mark.parametrize("key", ["/id", "/label"])
def test_a_graph_can_not_have_id_or_label_as_key(empty: Endpoint, key: str) -> None:
    empty.database.create_container("bad", key)
    error = failure(empty.client(user="/dbs/d/colls/bad"), "g.V()")
    assert error.status_attributes["x-ms-status-code"] == 400
    assert f"can't be {key}" in error.status_message


def test_a_partition_strategy_says_where_new_vertices_go(empty: Endpoint) -> None:
    client = empty.client()
    strategy = "PartitionStrategy.build().partitionKey('pk').writePartition('w').create()"
    here = f"g.withStrategies({strategy})"
    submit(client, here + ".addV('p').property('id','1')")
    submit(client, here + ".addV('p').property('id','2').property('pk','own')")
    assert submit(client, "g.V(['w','1'],['own','2']).id().order()") == ["1", "2"]
