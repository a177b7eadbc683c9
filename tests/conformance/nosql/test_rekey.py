"""A keyless container moves to one that grows, under load and through kills, by the command line
and the official SDK. Without this a migration would lose what is written while it runs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import AzureError
from azure.cosmos import CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError
from azure.cosmos.partition_key import NonePartitionKeyValue
from tests.support.waiting import until

import armillary
from armillary.testing.process import Server, start_server

ITEMS = 600
RUN = [sys.executable, "-m", "armillary", "rekey", "old", "new", "--key", "/city", "--cut-over"]


class Writer(threading.Thread):
    """Upserts and deletes until the container refuses or the server is gone."""

    def __init__(self, server: Server, first: int) -> None:
        super().__init__()
        client = CosmosClient(server.endpoint, server.key, retry_total=0, timeout=30)
        self._container = client.get_database_client("shop").get_container_client("old")
        self._first = first
        self.known: dict[str, int | None] = {}
        """By id: what was acknowledged last; None: deleted."""
        self.unsure: set[str] = set()
        self.closed = False

    def run(self) -> None:
        for number in range(100_000):
            id = f"w{self._first}-{number % 50}"
            try:
                if number % 7 == 6 and self.known.get(id) is not None:
                    self._container.delete_item(id, NonePartitionKeyValue)
                    self.known[id] = None
                else:
                    self._container.upsert_item({"id": id, "city": f"c{number % 11}", "n": number})
                    self.known[id] = number
            except CosmosHttpResponseError as error:
                if error.status_code != 403 or "closed for writing" not in str(error):
                    raise
                self.closed = True
                return
            except AzureError:  # killed under our feet
                self.unsure.add(id)
                return


def write(server: Server, *, first: int) -> list[Writer]:
    writers = [Writer(server, first + one) for one in range(2)]
    for one in writers:
        one.start()
    # Closed at once: the kill came after the old container was closed, before all writers met it.
    until(lambda: all(len(one.known) > 5 or one.closed for one in writers))
    return writers


def items(server: Server, container: str) -> dict[str, Any]:
    client = CosmosClient(server.endpoint, server.key)
    found = client.get_database_client("shop").get_container_client(container).read_all_items()
    return {one["id"]: one["n"] for one in found}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    with armillary.open(path) as account:
        old = account.create_database("shop").create_container("old", None)
        old.bulk(("create", ({"id": str(n), "city": f"c{n % 11}", "n": n},)) for n in range(ITEMS))
    return path


def test_keyless_to_keyed_under_load_and_through_a_kill(folder: Path) -> None:
    server = start_server(data=folder)
    writers = write(server, first=0)
    moving = subprocess.Popen([*RUN, "--data", server.endpoint], stdout=subprocess.DEVNULL)

    def begun() -> bool:
        try:
            return len(items(server, "new")) > 50
        except CosmosHttpResponseError:
            return False

    until(begun)
    for process in (server.process, moving):
        process.send_signal(signal.SIGKILL)
        process.wait()
    server.stop()
    for one in writers:
        one.join()
    if all(one.closed for one in writers):
        pytest.skip("the migration ended before it could be killed")

    with start_server(data=folder) as server:
        writers += write(server, first=10)
        done = subprocess.run(
            [*RUN, "--json", "--data", server.endpoint],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        for one in writers:
            one.join()
        report = json.loads(done.stdout)
        assert (done.returncode, report["verified"], report["closed"]) == (0, True, True), report
        assert report["different"] == 0
        assert report["logical_partitions"] == 11
        assert all(one.closed for one in writers[2:])
        found = items(server, "new")
        assert found == items(server, "old")
        for one in writers:
            sure = {id: n for id, n in one.known.items() if id not in one.unsure}
            assert {id: found.get(id) for id in sure} == sure, "an acknowledged write is lost"
        assert len([id for id in found if id.isdigit()]) == ITEMS


def test_the_command_says_what_it_did_and_warns(folder: Path) -> None:
    run = [*RUN[:-3], "--key", "/nowhere", "--data", str(folder)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert "new has 600 of 600 items (verified)." in done.stdout
    assert "Warning: no item has the new key." in done.stdout
    assert "Warning: none of the first 100 items has /nowhere." in done.stderr
