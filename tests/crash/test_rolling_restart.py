"""Three servers on one database restart in turn behind a load balancer, while clients with the
official SDK go on: without announced leaving some of their requests would fail."""

from __future__ import annotations

import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from azure.cosmos import CosmosClient
from tests.support.balancer import Balancer
from tests.support.pg_cluster import free_port
from tests.support.postgres import fresh_url
from tests.support.server_process import ServerProcess
from tests.support.waiting import until

import armillary
from armillary.api.core.settings import EMULATOR_KEY

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(sys.platform == "win32", reason="needs SIGTERM"),
]

OPTIONS = ("--table-port", "off", "--mongo-port", "off", "--gremlin-port", "off")


class Writer(threading.Thread):
    """No retries of its own: an error of the SDK is an error."""

    def __init__(self, number: int, port: int) -> None:
        super().__init__(daemon=True)
        self.number, self._port = number, port
        self.done, self.errors = 0, list[str]()
        self.stop = threading.Event()

    def has_done(self, goal: int) -> bool:
        return self.done >= goal

    def run(self) -> None:
        url = f"http://localhost:{self._port}"
        with CosmosClient(url, EMULATOR_KEY, enable_endpoint_discovery=False) as client:
            container = client.get_database_client("d").get_container_client("c")
            while not self.stop.is_set():
                name = f"{self.number}-{self.done}"
                try:
                    container.create_item({"id": name, "pk": name})
                    container.read_item(name, name)
                except Exception as error:  # noqa: BLE001 - that is what is counted
                    self.errors.append(repr(error)[:300])
                self.done += 1


def _go_on(writers: list[Writer]) -> None:
    """Until each has written some more."""
    for writer, goal in [(writer, writer.done + 4) for writer in writers]:
        until(partial(writer.has_done, goal))


def test_no_client_notices_that_the_servers_restart(tmp_path: Path) -> None:
    url = fresh_url()
    with armillary.open(url) as account:
        account.create_database("d").create_container("c", "/pk", throughput=100_000)
    ports = [free_port() for _ in range(3)]

    def start(at: int) -> ServerProcess:
        return ServerProcess(
            tmp_path / str(at),
            port=ports[at],
            real=True,
            options=("--engine", url, *OPTIONS),
            environ={"ARMILLARY_SERVER_LEAVE_MS": "1500"},
        )

    servers = [start(at) for at in range(3)]
    balancer = None
    writers: list[Writer] = []
    try:
        for server in servers:
            server.wait_until_ready()
        balancer = Balancer(ports)
        for port in ports:
            until(partial(balancer.is_ready, port))
        writers = [Writer(number, balancer.port) for number in range(3)]
        for writer in writers:
            writer.start()
        for at in range(3):
            _go_on(writers)
            servers[at].terminate()
            assert servers[at].end()[0] == 0
            servers[at] = start(at)
            servers[at].wait_until_ready()
            until(partial(balancer.is_ready, ports[at]))
        for writer in writers:
            writer.stop.set()
        for writer in writers:
            writer.join()
        assert [writer.errors for writer in writers] == [[], [], []]
        with armillary.open(url) as account:
            items = list(account.database("d").container("c").read_all_items())
        assert len(items) == sum(writer.done for writer in writers)
    finally:
        for writer in writers:
            writer.stop.set()
        if balancer is not None:
            balancer.close()
        for server in servers:
            server.close()
