"""A disk that the data itself has filled, with the official SDK. Without these the only way back
from a full disk would be a larger one: deletes refused like every write, and what they free not
counted.

The disk is the fault shim's: `data.mdb` and the copy of `compact` may have so many bytes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError
from tests.support.fault_shim import build_fault_shim
from tests.support.server_process import ROOT, ServerProcess, environment
from tests.support.waiting import until

from armillary.api.core.settings import EMULATOR_KEY
from armillary.limits import MB, RESERVE_BYTES

DISK_BYTES = RESERVE_BYTES + 24 * MB
TEXT = "x" * 400_000
OPTIONS = ("--mongo-port", "off", "--table-port", "off", "--gremlin-port", "off")


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fault_shim(tmp_path_factory.mktemp("shim"))


class Disk:
    """A server on a small disk, started again as often as a test likes."""

    def __init__(self, shim: Path, data: Path, workers: int) -> None:
        self.data = data
        self.environ = {
            "LD_PRELOAD": str(shim),
            "FAULT_DISK": str(data),
            "FAULT_DISK_BYTES": str(DISK_BYTES),
            "ARMILLARY_THROUGHPUT_ENFORCE": "off",
        }
        self._options = [*OPTIONS, "--workers", str(workers)]
        self.start()

    def start(self) -> None:
        self.server = ServerProcess(
            self.data, real=True, options=self._options, environ=self.environ
        )
        self.server.wait_until_ready()
        self._client = CosmosClient(f"http://127.0.0.1:{self.server.port}", EMULATOR_KEY)
        database = self._client.create_database_if_not_exists("d")
        self.container: ContainerProxy = database.create_container_if_not_exists(
            "c", PartitionKey("/pk")
        )

    def stop(self) -> None:
        self.server.terminate()
        assert self.server.end()[0] == 0

    def create(self, number: int) -> dict[str, Any]:
        item = {"id": str(number), "pk": f"k{number % 7}", "n": number, "text": TEXT}
        return dict(self.container.create_item(item))

    def delete(self, number: int) -> None:
        self.container.delete_item(str(number), f"k{number % 7}")

    def fill(self, start: int) -> int:
        """Until the disk is full; the first that did not fit."""
        number = start
        with pytest.raises(CosmosHttpResponseError, match="bytes left") as caught:
            for number in range(start, start + 1_000):
                self.create(number)
        assert caught.value.status_code == 403
        return number

    def ids(self) -> set[int]:
        asked: Any = self.container.query_items(
            "SELECT VALUE c.n FROM c", enable_cross_partition_query=True
        )
        return {int(one) for one in asked}


@pytest.fixture(params=[1, 2], ids=["one worker", "two workers"])
def disk(request: pytest.FixtureRequest, shim: Path, tmp_path: Path) -> Iterator[Disk]:
    made = Disk(shim, tmp_path / "data", request.param)
    try:
        yield made
    finally:
        made.server.close()


def can_create(disk: Disk, number: int) -> bool:
    try:
        disk.create(number)
    except CosmosHttpResponseError as error:
        if error.status_code != 403:
            raise
        return False
    return True


def test_a_disk_filled_by_data_recovers_by_deletes(disk: Disk) -> None:
    end = disk.fill(0)
    assert end > 20
    assert disk.ids() == set(range(end))
    # What takes room is still refused; what gives it back is not, one by one and in a batch.
    with pytest.raises(CosmosHttpResponseError, match="bytes left"):
        disk.container.upsert_item({"id": "0", "pk": "k0", "n": 0})
    gone = {number for number in range(end) if number % 2}
    same_key = sorted(number for number in gone if number % 7 == 1)
    deletes = [("delete", (str(number),)) for number in same_key]
    disk.container.execute_item_batch(deletes, "k1")
    for number in gone - set(same_key):
        disk.delete(number)
    left = set(range(end)) - gone
    assert disk.ids() == left
    # Writes come back by themselves, and fit into what was freed: the file does not grow.
    size = (disk.data / "data.mdb").stat().st_size
    until(lambda: can_create(disk, 10_000))
    again = disk.fill(10_001)
    assert again - 10_000 >= len(gone) // 2
    assert (disk.data / "data.mdb").stat().st_size <= size + RESERVE_BYTES // 2
    assert disk.ids() == left | set(range(10_000, again))


def test_compact_works_when_the_disk_is_full(disk: Disk) -> None:
    end = disk.fill(0)
    disk.stop()
    disk.start()  # a start needs no room either
    for number in range(end - 5):
        disk.delete(number)
    disk.stop()
    before = (disk.data / "data.mdb").stat().st_size
    done = subprocess.run(
        [sys.executable, "-m", "armillary", "compact", "--data", str(disk.data)],
        cwd=ROOT,
        env=environment() | disk.environ,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (disk.data / "data.mdb").stat().st_size < before - 5 * MB
    disk.start()
    assert disk.ids() == set(range(end - 5, end))
    disk.create(50_000)
