# ruff: noqa: E501 (scripts)
"""gremlinpython against `armillary serve`: a graph that splits while it is traversed, clients that
connect again, plain and TLS on one port, one graph by two protocols."""

from __future__ import annotations

import base64
import gc
import socket
import ssl
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import ClientError
from azure.cosmos import PartitionKey
from gremlin_python.driver.client import Client
from gremlin_python.driver.serializer import GraphSONSerializersV2d0
from tests.support.gremlin import endpoint, submit
from tests.support.gremlin_server import GremlinServer, gremlin_server
from websockets.sync.client import connect as ws_connect

from armillary.api.core.settings import EMULATOR_KEY
from armillary.limits import QUERY_THREADS_MAX

PEOPLE = 60


def connect(server: GremlinServer, *, secure: bool = False, graph: str = "g") -> Client:
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
        username=f"/dbs/d/colls/{graph}",
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


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_clients_connect_again_after_the_server_was_away(tmp_path: Path) -> None:
    """gremlinpython keeps a dead socket and says so; a new client finds everything."""
    clients: list[Client] = []
    port = "0"
    try:
        for round in (1, 2):
            with gremlin_server(tmp_path, options=("--gremlin-port", port)) as server:
                port = str(server.gremlin_port)
                for one in clients:
                    with pytest.raises((ClientError, ConnectionError, RuntimeError)):
                        submit(one, "g.inject(1)")
                clients.append(connect(server))
                submit(clients[-1], f"g.addV('p').property('id','{round}').property('pk','a')")
                assert submit(clients[-1], "g.V().count()") == [round]
    finally:
        for one in clients:
            one.close()
        clients.clear()
        gc.collect()  # gremlinpython leaves the dead socket open: its warning belongs here


def test_traversals_that_wait_for_their_clients_hold_up_no_others(server: GremlinServer) -> None:
    """More clients than there are threads for long work ask for much and do not read it. Point
    reads of the same graph and traversals of another one are answered all the same."""
    server.cosmos.get_database_client("d").create_container("other", PartitionKey("/pk"))
    text = "g.inject(x).repeat(union(identity(), identity())).times(12)"
    client, other = connect(server), connect(server, graph="other")
    try:
        with ExitStack() as stuck:
            for number in range(10):
                begun = number < QUERY_THREADS_MAX // 2
                stuck.enter_context(unread(server.gremlin_port, text, "y" * 20_000, begun))
            submit(client, "g.addV('p').property('id','lane').property('pk','lane')")
            assert submit(client, "g.V(['lane','lane']).id()") == ["lane"]
            assert submit(other, "g.V().out().count()") == [0]
        assert submit(client, "g.V().has('pk','lane').count()") == [1]
    finally:
        client.close()
        other.close()


@contextmanager
def unread(port: int, text: str, x: str, begun: bool) -> Iterator[None]:
    """A client that reads no more than the first of its results; `begun`: it has that one."""
    url = f"ws://localhost:{port}/gremlin"
    options: dict[str, Any] = {"compression": None, "max_size": None, "close_timeout": 0}
    with ws_connect(url, max_queue=1, **options) as made:
        id = str(uuid.uuid4())
        sasl = base64.b64encode(f"\0/dbs/d/colls/g\0{EMULATOR_KEY}".encode()).decode()
        for op, args in (
            ("eval", {"gremlin": text, "bindings": {"x": x}}),
            ("authentication", {"sasl": sasl}),
        ):
            body = {"requestId": id, "op": op, "processor": "", "args": args}
            made.send(orjson.dumps(body).decode())
            if op == "eval" or begun:
                assert b'"code":' in made.recv(decode=False)
        yield
        made.socket.shutdown(socket.SHUT_RDWR)


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
