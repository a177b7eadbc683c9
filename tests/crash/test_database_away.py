"""A server whose database is away, at its start and later: it says so at once, by `/ready` and to
requests, stays alive, and serves again when the database is back, without a restart."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.support.pg_cluster import free_port, servers
from tests.support.server_process import ServerProcess
from tests.support.signed_http import Reply, SignedClient
from tests.support.waiting import until

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL"),
]

OPTIONS = ("--table-port", "off", "--mongo-port", "off", "--gremlin-port", "off")
CONTAINER = "dbs/d/colls/c"


def _ask(port: int, method: str, path: str, body: object = None) -> Reply | None:
    """By a connection of its own; None: nothing listens yet."""
    try:
        client = SignedClient(port)
        try:
            return client.ask(method, path, body)
        finally:
            client.close()
    except ConnectionError:
        return None


def _says(port: int, path: str, status: int) -> bool:
    reply = _ask(port, "GET", path)
    return reply is not None and reply.status == status


def _create(port: int, name: str) -> int:
    client = SignedClient(port)
    try:
        return client.create(CONTAINER, {"id": name, "pk": name}).status
    finally:
        client.close()


def test_ready_follows_the_database_and_alive_does_not(tmp_path: Path) -> None:
    with servers() as make:
        database = make("a")
        database.stop()
        port = free_port()
        server = ServerProcess(
            tmp_path, port=port, real=True, options=("--engine", database.url, *OPTIONS)
        )
        try:
            until(lambda: _says(port, "/alive", 200))
            assert _says(port, "/ready", 503)
            refused = _ask(port, "POST", "/dbs", {"id": "d"})
            assert refused is not None
            assert refused.status == 503
            assert int(refused.headers["x-ms-retry-after-ms"]) > 0

            database.start()
            server.wait_until_ready()
            assert _says(port, "/ready", 200)
            for path, body in (
                ("/dbs", {"id": "d"}),
                ("/dbs/d/colls", {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}}),
            ):
                made = _ask(port, "POST", path, body)
                assert made is not None
                assert made.status == 201
            assert _create(port, "before") == 201

            database.kill()
            until(lambda: _says(port, "/ready", 503))
            assert _says(port, "/alive", 200)
            assert _create(port, "meanwhile") == 503
            metrics = _ask(port, "GET", "/_armillary/metrics")
            assert metrics is not None
            assert b"\nEngineReady 0\n" in metrics.body

            database.start()
            until(lambda: _says(port, "/ready", 200))
            assert _create(port, "after") == 201
            assert _create(port, "before") == 409
        finally:
            server.close()
