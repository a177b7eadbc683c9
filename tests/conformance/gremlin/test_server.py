# ruff: noqa: E501 (scripts)
"""gremlinpython against `armillary serve`: a graph that splits while it is traversed, clients that
connect again, plain and TLS on one port, one graph by two protocols."""

from __future__ import annotations

import ssl
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from gremlin_python.driver.client import Client
from gremlin_python.driver.serializer import GraphSONSerializersV2d0
from tests.support.gremlin import endpoint, submit
from tests.support.gremlin_server import GremlinServer, gremlin_server

from armillary.api.core.settings import EMULATOR_KEY

PEOPLE = 60


def connect(server: GremlinServer, *, secure: bool = False) -> Client:
    scheme, options = "ws", {}
    if secure:
        scheme = "wss"
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        options = {"ssl_options": context}
    return Client(
        f"{scheme}://localhost:{server.gremlin_port}/gremlin",
        "g",
        username="/dbs/d/colls/g",
        password=EMULATOR_KEY,
        message_serializer=GraphSONSerializersV2d0(),
        pool_size=1,
        **options,
    )


@pytest.fixture(scope="module")
def server() -> Iterator[GremlinServer]:
    with tempfile.TemporaryDirectory() as folder, gremlin_server(Path(folder)) as made:
        yield made


def test_plain_and_tls_on_one_port_and_items_by_both_protocols(server: GremlinServer) -> None:
    container = server.cosmos.get_database_client("d").get_container_client("g")
    for secure in (False, True):
        client = connect(server, secure=secure)
        try:
            submit(client, "g.V().has('pk','two').drop()")
            submit(client, "g.addV('p').property('id','1').property('pk','two').property('n',5)")
            assert container.read_item("1", "two")["n"][0]["_value"] == 5
            container.upsert_item(
                {"id": "2", "label": "p", "pk": "two", "n": [{"id": "x", "_value": 7}]}
            )
            assert sorted(submit(client, "g.V().has('pk','two').values('n')")) == [5, 7]
        finally:
            client.close()


def test_a_client_connects_again_after_the_socket_is_gone(server: GremlinServer) -> None:
    first = connect(server)
    assert submit(first, "g.inject(1)") == [1]
    first.close()
    second = connect(server)
    try:
        assert submit(second, "g.inject(2)") == [2]
    finally:
        second.close()


def test_a_graph_that_splits_while_it_is_traversed() -> None:
    """Each traversal sees every vertex and edge exactly once, whatever moves meanwhile."""
    with endpoint() as made:
        client = made.client()
        for at in range(PEOPLE):
            submit(client, f"g.addV('p').property('id','v{at}').property('pk','k{at}')")
        for at in range(PEOPLE):
            submit(
                client,
                f"g.V(['k{at}','v{at}']).addE('next').to(g.V(['k{(at + 1) % PEOPLE}','v{(at + 1) % PEOPLE}']))",
            )
        ended = threading.Event()

        def split() -> None:
            for _ in range(3):
                for one in made.graph.partitions():
                    made.graph.split(one.id)
            ended.set()

        thread = threading.Thread(target=split)
        thread.start()
        rounds = 0
        while not ended.is_set() or rounds < 3:
            rounds += 1
            assert submit(client, "g.V().count()") == [PEOPLE]
            assert submit(client, "g.V().out().in().out().dedup().count()") == [PEOPLE]
            assert submit(client, "g.V(['k0','v0']).repeat(out()).times(3).id()") == ["v3"]
        thread.join()
        assert len(made.graph.partitions()) == 8
        assert sorted(
            submit(client, "g.V().both().groupCount().by(id).select(values).unfold().dedup()")
        ) == [2]
