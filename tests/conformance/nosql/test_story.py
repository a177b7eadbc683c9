"""One story, told by the official SDK against `armillary serve`, as it would go in the cloud:

    400 RU/s are too few: 429 with the right time to wait, and the SDK's own retries get through
    20,000 RU/s need more partitions: they split while all clients go on, and none notices
    one key takes it all: its partition is full, refuses and is named, while the others idle

A physical partition serves 2,500 RU/s here instead of 10,000, so there are eight.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from azure.core.pipeline.transport import RequestsTransport
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError
from tests.support.server_process import ServerProcess
from tests.support.signed_http import SignedClient
from tests.support.waiting import until

import armillary
from armillary.api.core.settings import EMULATOR_KEY
from armillary.partition.usage.consumption import PartitionHeat

CONTAINER = "dbs/story/colls/c"
PARTITION_RU = 2_500
WRITERS = 4
PROPERTIES = 100  # each is indexed; together about 45 RU a write
#: Of the one key: so many that few writes a second are too much, as a slow machine makes them.
PROPERTIES_HOT = 500


class CountingTransport(RequestsTransport):  # type: ignore[misc]
    """Sees what the SDK hides: each answer, also those it retries."""

    def __init__(self) -> None:
        super().__init__()
        self.statuses: Counter[int] = Counter()

    def send(self, request: Any, **options: Any) -> Any:
        response = super().send(request, **options)
        self.statuses[response.status_code] += 1
        return response


@dataclass
class Program:
    """One client with some threads' worth of work; what failed and what was acknowledged."""

    address: str
    properties: int = PROPERTIES
    transport: CountingTransport = field(default_factory=CountingTransport)
    written: list[tuple[str, str]] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)

    def write(self, key_of: Callable[[int], str], first: int, stop: threading.Event) -> None:
        try:
            with CosmosClient(self.address, EMULATOR_KEY, transport=self.transport) as client:
                container = client.get_database_client("story").get_container_client("c")
                for number in count(first):
                    if stop.is_set():
                        return
                    container.create_item(costly(str(number), key_of(number), self.properties))
                    self.written.append((str(number), key_of(number)))
        except (CosmosHttpResponseError, OSError) as error:
            self.failures.append(error)


def costly(id: str, key: str, properties: int = PROPERTIES) -> dict[str, Any]:
    return {"id": id, "pk": key} | {f"p{n}": n for n in range(properties)}


class Crowd:
    """Programs that write until told to stop."""

    def __init__(
        self,
        address: str,
        key_of: Callable[[int], str],
        first: int,
        properties: int = PROPERTIES,
    ) -> None:
        self.programs = [Program(address, properties) for _ in range(WRITERS)]
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=one.write, args=(key_of, first + 100_000 * at, self._stop))
            for at, one in enumerate(self.programs)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def check(self) -> None:
        assert [error for one in self.programs for error in one.failures] == []

    @property
    def written(self) -> list[tuple[str, str]]:
        return [one for program in self.programs for one in program.written]

    @property
    def throttled(self) -> int:
        return sum(one.transport.statuses[429] for one in self.programs)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(
        tmp_path / "data", real=True, options=["--partition-ru", str(PARTITION_RU)]
    )
    try:
        server.wait_until_ready()
        yield server
        server.terminate()
        code, _, errors = server.end()
        assert (code, errors) == (0, "")
    finally:
        server.close()


@pytest.fixture
def crowds() -> Iterator[list[Crowd]]:
    made: list[Crowd] = []
    yield made
    for crowd in made:
        crowd.stop()


def test_a_container_grows_up(server: ServerProcess, tmp_path: Path, crowds: list[Crowd]) -> None:
    address = f"http://localhost:{server.port}"
    with CosmosClient(address, EMULATOR_KEY) as client:
        grow_up(server, tmp_path / "data", crowds, client)


def grow_up(server: ServerProcess, folder: Path, crowds: list[Crowd], client: CosmosClient) -> None:
    address = f"http://localhost:{server.port}"
    database = client.create_database("story")
    container = database.create_container("c", PartitionKey("/pk"), offer_throughput=400)
    assert len(list(container.read_feed_ranges())) == 1

    the_time_to_wait_is_right(server.port)

    # Four programs want about ten times what there is; their SDK waits for them.
    crowd = Crowd(address, lambda number: f"key{number}", first=100_000)
    crowds.append(crowd)
    until(lambda: all(len(one.written) >= 3 for one in crowd.programs) and crowd.throttled)
    crowd.check()
    slow = len(crowd.written)

    # Enough for all. The ranges split under the load of the same programs.
    container.replace_throughput(20_000)
    until(lambda: len(list(container.read_feed_ranges(force_refresh=True))) == 8)
    until(lambda: container.get_throughput().offer_throughput == 20_000)
    grown = len(crowd.written)
    until(lambda: len(crowd.written) >= grown + 40)
    crowd.stop()
    crowd.check()
    assert len(crowd.written) > slow + 40
    everything(container, crowd)

    # One key. Its partition gets an eighth of the throughput, and the others nothing to do.
    hot = Crowd(address, lambda number: "hot", first=900_000, properties=PROPERTIES_HOT)
    crowds.append(hot)
    with armillary.open(
        folder, enforce="report", housekeeping=False, partition_ru=PARTITION_RU
    ) as account:
        heat = account.database("story").container("c").heat
        assert len(heat()) == 8
        # The heaviest keys of another process are as of five seconds ago.
        until(lambda: one_key_takes_it_all(heat()))
    hot.stop()
    hot.check()
    everything(container, hot)


def one_key_takes_it_all(found: dict[str, PartitionHeat]) -> bool:
    hottest = max(found.values(), key=lambda one: one.ru_last_s)
    return (
        hottest.ru_last_s > 0.9 * PARTITION_RU
        and hottest.normalised >= 90
        and hottest.throttled_last_min > 0
        and hottest.top_keys[:1] != ()
        and hottest.top_keys[0].key == '["hot"]'
        and hottest.top_keys[0].share > 0.5
        and all(one.ru_last_s == 0 for one in found.values() if one is not hottest)
    )


def the_time_to_wait_is_right(port: int) -> None:
    """Asked again at once it is refused again; asked again after that time it is let in."""
    client = SignedClient(port)
    seen = 0
    for number in range(2_000):
        item = costly(f"hasty{number}", f"key{number}")
        asked = time.monotonic()
        reply = client.create(CONTAINER, item)
        if reply.status == 201:
            continue
        assert (reply.status, reply.headers["x-ms-substatus"]) == (429, "3200")
        wait_ms = int(reply.headers["x-ms-retry-after-ms"])
        assert 0 < wait_ms <= 2_000
        again = client.create(CONTAINER, item).status
        if (time.monotonic() - asked) * 1000 < wait_ms:
            assert again == 429
            seen += 1
        elif again == 201:  # by then the time was over: on a slow machine, or at a short wait
            continue
        time.sleep(wait_ms / 1000)
        assert client.create(CONTAINER, item).status == 201
        if seen == 2:
            break
    client.close()
    assert seen == 2


def everything(container: ContainerProxy, crowd: Crowd) -> None:
    """All that was acknowledged is there, whichever range has it now."""
    found = {(one["id"], one["pk"]) for one in container.read_all_items()}
    assert set(crowd.written) <= found
    text = "SELECT VALUE COUNT(1) FROM c"
    counted: Any = container.query_items(text, enable_cross_partition_query=True)
    assert list(counted) == [len(found)]
