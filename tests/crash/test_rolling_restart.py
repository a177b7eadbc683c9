"""Three servers on one database restart in turn behind a load balancer, while clients with the
official SDK go on: without announced leaving some of their requests would fail. Once by servers of
this version, once from servers of the version before, whose tables have another format.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg
import pytest
from azure.cosmos import CosmosClient, PartitionKey
from tests.support.balancer import Balancer
from tests.support.pg_cluster import free_port
from tests.support.postgres import fresh_url, server_url
from tests.support.server_process import ROOT, ServerProcess
from tests.support.waiting import until

import armillary
from armillary.api.core.settings import EMULATOR_KEY
from armillary.engine.postgres.schema import FORMAT
from armillary.operate.doctor import examine

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(sys.platform == "win32", reason="needs SIGTERM"),
]

OPTIONS = ("--table-port", "off", "--mongo-port", "off", "--gremlin-port", "off")
BEFORE = "c797d24~1"
"""The last commit of 0.1 whose tables have format 1."""


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
        while not self.stop.is_set():
            try:
                self._write_some()
            except Exception as error:  # noqa: BLE001 - that is what is counted
                self.errors.append(repr(error)[:300])
                self.done += 1

    def _write_some(self) -> None:
        """With a connection of their own, which may lead to another server than the last."""
        url = f"http://localhost:{self._port}"
        with CosmosClient(url, EMULATOR_KEY, enable_endpoint_discovery=False) as client:
            container = client.get_database_client("d").get_container_client("c")
            for _ in range(20):
                name = f"{self.number}-{self.done}"
                container.create_item({"id": name, "pk": name})
                container.read_item(name, name)
                self.done += 1


@contextmanager
def written(port: int) -> Iterator[list[Writer]]:
    """Clients at that port, until the end of the block."""
    writers = [Writer(number, port) for number in range(3)]
    for writer in writers:
        writer.start()
    try:
        yield writers
    finally:
        for writer in writers:
            writer.stop.set()
        for writer in writers:
            writer.join()


def _go_on(writers: list[Writer]) -> None:
    """Until each has written some more."""
    for writer, goal in [(writer, writer.done + 4) for writer in writers]:
        until(partial(writer.has_done, goal))


class Servers:
    """Three behind a balancer."""

    def __init__(self, start: Callable[[int, int], ServerProcess]) -> None:
        """`start(at, port)`"""
        self._ports = [free_port() for _ in range(3)]
        # The first by itself: it makes the tables, and of servers of 0.1 that make them at once all
        # but one end.
        self._servers = [start(0, self._ports[0])]
        self._servers[0].wait_until_ready()
        self._servers += [start(at, port) for at, port in enumerate(self._ports) if at]
        for server in self._servers[1:]:
            server.wait_until_ready()
        self._balancer = Balancer(self._ports)
        for port in self._ports:
            until(partial(self._balancer.is_ready, port))
        self.port = self._balancer.port

    def restart(
        self, at: int, start: Callable[[int, int], ServerProcess], *, withhold: bool
    ) -> None:
        """`withhold`: the balancer is told first: the server does not say that it leaves."""
        port = self._ports[at]
        if withhold:
            self._balancer.withhold(port)
            until(partial(self._balancer.is_unused, port))
        self._servers[at].terminate()
        assert self._servers[at].end()[0] == 0
        self._servers[at] = start(at, port)
        self._servers[at].wait_until_ready()
        self._balancer.release(port)
        until(partial(self._balancer.is_ready, port))

    def close(self) -> None:
        self._balancer.close()
        for server in self._servers:
            server.close()


def _starter(folder: Path, url: str) -> Callable[[int, int], ServerProcess]:
    def start(at: int, port: int) -> ServerProcess:
        return ServerProcess(
            folder / str(at),
            port=port,
            real=True,
            options=("--engine", url, *OPTIONS),
            environ={"ARMILLARY_SERVER_LEAVE_MS": "1500"},
        )

    return start


def _judge(url: str, writers: list[Writer]) -> None:
    assert [writer.errors for writer in writers] == [[], [], []]
    with armillary.open(url) as account:
        items = list(account.database("d").container("c").read_all_items())
    assert len(items) == sum(writer.done for writer in writers)
    assert [one.text for one in examine(url) if not one.well] == []


def test_no_client_notices_that_the_servers_restart(tmp_path: Path) -> None:
    url = fresh_url()
    with armillary.open(url) as account:
        account.create_database("d").create_container("c", "/pk", throughput=100_000)
    start = _starter(tmp_path, url)
    servers = Servers(start)
    try:
        with written(servers.port) as writers:
            for at in range(3):
                _go_on(writers)
                servers.restart(at, start, withhold=False)
            _go_on(writers)
    finally:
        servers.close()
    _judge(url, writers)


# --- from the version before ----------------------------------------------------------------------


def _version_before(folder: Path) -> Path:
    done = subprocess.run(
        ["git", "archive", BEFORE, "src"], cwd=ROOT, capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"needs the history of this project: {done.stderr.decode()[:100]}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def _format_of(url: str) -> int:
    schema = url.rpartition("schema=")[2]
    with psycopg.connect(server_url()) as connection:
        query = f"SELECT version FROM {schema}.armillary_format"
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return int(row[0])


def test_nor_that_they_come_from_the_version_before(tmp_path: Path) -> None:
    """Servers of both versions serve the same items meanwhile. 0.1 does not say that it leaves, so
    the balancer is told."""
    url = fresh_url()
    source = _version_before(tmp_path)

    def start_old(at: int, port: int) -> ServerProcess:
        return ServerProcess(
            tmp_path / str(at),
            port=port,
            real=True,
            options=("--engine", url),
            environ={"PYTHONPATH": str(source)},
        )

    servers = Servers(start_old)
    try:
        assert _format_of(url) == 1 < FORMAT
        address = f"http://localhost:{servers.port}"
        with CosmosClient(address, EMULATOR_KEY, enable_endpoint_discovery=False) as client:
            database = client.create_database("d")
            database.create_container("c", PartitionKey("/pk"), offer_throughput=100_000)
        with written(servers.port) as writers:
            for at in range(3):
                _go_on(writers)
                servers.restart(at, _starter(tmp_path, url), withhold=True)
                assert _format_of(url) == FORMAT
                _go_on(writers)
    finally:
        servers.close()
    _judge(url, writers)
