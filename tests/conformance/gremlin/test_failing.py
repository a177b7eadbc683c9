# ruff: noqa: E501 (tables of scripts)
"""What gremlinpython hears when something is wrong: codes and texts of the service."""

from __future__ import annotations

import pytest
from gremlin_python.driver.client import Client
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.driver.serializer import (
    GraphBinarySerializersV1,
    GraphSONSerializersV3d0,
)
from tests.support.gremlin import Endpoint, endpoint, failure, submit
from tests.support.gremlin_graphs import MODERN

from armillary.api.core.settings import EMULATOR_KEY, GatewaySettings
from armillary.config import GremlinSettings

OTHER_KEY = "b3RoZXIga2V5IG9mIHRoaXMgYWNjb3VudCBmb3IgdGVzdHM="
READ_KEY = "cmVhZC1vbmx5IGtleSBvZiB0aGlzIGFjY291bnQgZm9yIHRlc3Rz"

#: Script → status, x-ms-status-code, text.
CASES = [
    ("g.V().fail()", 597, 400, "Unable to find any method 'fail' @ line 1, column 7."),
    ("g.withSideEffect('a',1).V()", 597, 400, "Unable to find any method 'withSideEffect' @ line 1, column 3."),
    ("g.V().skip(1)", 597, 400, "Unable to find any method 'skip' @ line 1, column 7."),
    ("g.V().elementMap()", 597, 400, "Unable to find any method 'elementMap'"),
    ("g.V().match(__.as('a').out())", 597, 400, "Unable to find any method 'match'"),
    ("g.V().aggregate(local,'x')", 597, 400, "Unable to bind to method 'aggregate', with arguments of type: (Scope,String) @ line 1, column 7."),
    ("g.V().choose(label()).option(none, out())", 597, 400, "Unable to resolve symbol 'none' in the current context. @ line 1, column 30."),
    ("g.V(x)", 597, 400, "Unable to resolve symbol 'x' in the current context. @ line 1, column 5."),
    ("g.withStrategies(SubgraphStrategy.build().create()).V()", 597, 400, "Unable to resolve symbol 'SubgraphStrategy'"),
    ("g.V('u').repeat(out()", 597, 400, "Script compile error: Unexpected token: '<EOF>'; in input: 'g.V('u').repeat(out()'."),
    ("g.V()\n.out(", 597, 400, "@ line 2, column 6."),
    ("g.V().map{it.get()}", 597, 400, "Gremlin query syntax error: Unsupported groovy language rule: 'closure' text: '{it.get()}'"),
    ("g.V().constant(null)", 597, 400, "Valid supported values for Constant() are: list, array, number, string or boolean."),
    ("g.addV('p').property('id','n')", 597, 1002, "Gremlin Query Execution Error: Cannot add a vertex where the partition key property has value 'null'."),
    ("g.V('1').properties().values()", 597, 1002, "All Values: Cross Apply: The input of values() cannot be a meta or edge property."),
    ("g.V('1').property('x', out())", 597, 1002, "Cannot create ValueField on non-primitive type GraphTraversal."),
    ("g.inject(1).until(has('age', 7)).sum()", 597, 400, "The repeat()-traversal was not defined."),
    ("g.inject(1).times(3).sum()", 597, 400, "The repeat()-traversal was not defined."),
    ("g.addE('e')", 597, 400, "AddE should follow by a Vertex"),
    ("g.V('1').property('pk','z')", 597, 1002, "Cannot update the partition key property 'pk'"),
    ("g.V('1').property('_isEdge',true)", 597, 1002, "The property name '_isEdge' is reserved."),
    ("g.V().repeat(both())", 500, 429, "repeat() may go round 32 times."),
    ("g.V().range(3,1)", 597, 400, "Not a legal range: [3, 1]"),
    ("g.V().order().by('age')", 597, 1002, "The property does not exist as the key has no associated value"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "status", "ms_status", "message"), CASES, ids=[one[0] for one in CASES]
)
def test_scripts(client: Client, text: str, status: int, ms_status: int, message: str) -> None:
    error = failure(client, text)
    assert message in error.status_message
    assert (error.status_code, error.status_attributes["x-ms-status-code"]) == (status, ms_status)


def test_the_layout_of_an_error_is_the_service_s(client: Client) -> None:
    lines = failure(client, "g.V().fail()").status_message.splitlines()
    names = [line.split(" : ")[0].strip() for line in lines if " : " in line]
    assert names == [
        "ActivityId", "ExceptionType", "ExceptionMessage", "GremlinRequestId", "Context", "Scope",
        "GraphInterOpStatusCode", "HResult",
    ]  # fmt: skip


def test_a_failure_leaves_what_was_written_before(empty: Endpoint) -> None:
    client = empty.client()
    submit(client, "g.addV('p').property('id','1').property('pk','a')")
    text = "g.inject(1).union(addV('p').property('id','2').property('pk','a'), addV('p').property('id','1').property('pk','a'))"
    assert failure(client, text).status_attributes["x-ms-status-code"] == 409
    assert submit(client, "g.V().count()") == [2]


def test_who_may(empty: Endpoint) -> None:
    keys = GatewaySettings(keys=(EMULATOR_KEY, OTHER_KEY), read_only_keys=(READ_KEY,))
    with endpoint(keys=keys) as made:
        assert submit(made.client(key=OTHER_KEY), MODERN[0])
        reader = made.client(key=READ_KEY)
        assert submit(reader, "g.V().count()") == [1]
        error = failure(reader, "g.V().drop()")
        assert (error.status_code, error.status_attributes["x-ms-status-code"]) == (500, 403)
        error = failure(made.client(key="wrong"), "g.V()")
        assert (error.status_code, error.status_message) == (
            401,
            "Unauthorized: Invalid credentials provided",
        )
        error = failure(made.client(user="/dbs/d/colls/none"), "g.V()")
        assert error.status_attributes["x-ms-status-code"] == 404
        assert "Owner resource does not exist" in error.status_message
        assert failure(made.client(user="d/g"), "g.V()").status_code == 401


def test_serializers_that_the_service_refuses(served: Endpoint) -> None:
    error = failure(served.client(message_serializer=GraphBinarySerializersV1()), "g.V()")
    assert error.status_code == 498
    assert "GraphSONSerializersV2d0()" in error.status_message
    error = failure(served.client(message_serializer=GraphSONSerializersV3d0()), "g.V()")
    assert error.status_code == 498
    assert "Gremlin Malformed Request: GraphSON v3 IO is not supported." in error.status_message


def test_a_lenient_server_serves_them() -> None:
    with endpoint(GremlinSettings(strict=False)) as made:
        for text in MODERN:
            submit(made.client() if not made.clients else made.clients[0], text)
        for serializer in (GraphBinarySerializersV1(), GraphSONSerializersV3d0()):
            client = made.client(message_serializer=serializer)
            assert submit(client, "g.V().has('age', gt(x)).values('name').order()", {"x": 30}) == [
                "josh",
                "peter",
            ]
            (vertex,) = submit(client, "g.V(['a','1'])")
            assert vertex["properties"]["age"][0]["value"] == 29
            assert submit(client, "g.V('1').elementMap('name')") == [
                {"id": "1", "label": "person", "name": "marko"}
            ]
            assert submit(client, "g.V().order().by(id).skip(5).id()") == ["6"]


def test_throttling_arrives_as_clients_read_it() -> None:
    """400 RU/s of one physical partition; a stopped clock never gives more."""
    with endpoint(enforce="on", container={"throughput": 400}) as made:
        client = made.client()
        error = None
        for number in range(400):
            try:
                submit(client, f"g.addV('p').property('id','{number}').property('pk','a')")
            except GremlinServerError as caught:
                error = caught
                break
        assert error is not None
        assert error.status_code == 500
        found = error.status_attributes
        assert (found["x-ms-status-code"], found["x-ms-substatus-code"]) == (429, 3200)
        hours, minutes, seconds = found["x-ms-retry-after-ms"].split(":")
        assert (hours, minutes) == ("00", "00")
        assert 0 < float(seconds) <= 2


def test_memory_and_time_are_bounded() -> None:
    with endpoint(GremlinSettings(memory=20_000)) as made:
        client = made.client()
        text = "g.inject(" + ",".join(["1"] * 200) + ").fold()"
        error = failure(client, text)
        assert (error.status_code, error.status_attributes["x-ms-status-code"]) == (500, 1003)
        assert "Query exceeded memory limit. Bytes Consumed:" in error.status_message
    with endpoint(GremlinSettings(seconds=1)) as made:
        client = made.client()
        many = ",".join(["1"] * 60)
        text = (
            f"g.inject({many})"
            + f".flatMap(union({','.join(['constant(1)'] * 40)}))" * 4
            + ".count()"
        )
        error = failure(client, text)
        assert (error.status_code, error.status_attributes["x-ms-status-code"]) == (598, 1009)


def test_a_connection_serves_on_after_errors_and_a_new_one_after_close(served: Endpoint) -> None:
    client = served.client()
    failure(client, "g.V().fail()")
    assert submit(client, "g.V().count()") == [6]
    client.close()
    assert submit(served.client(), "g.V().count()") == [6]
