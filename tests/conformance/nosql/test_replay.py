"""A replay against reality: one trace, sent with the official SDK to a real server with small
budgets, and replayed. Without this a replay could be a good story about another database.

The clock of the server is stopped except when the trace moves it, so that the outcome does not
depend on the machine; the SDK, its retries, the wire, the processes and the budgets are real.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError
from tests.support.controls import ControlClient
from tests.support.sdk_lanes import Lanes
from tests.support.server_process import ServerProcess

from armillary.advisor.data.sample import sample_of
from armillary.advisor.keys.candidates import parse_candidate
from armillary.advisor.replay.comparison import ReplayOptions, replay_candidates
from armillary.advisor.replay.result import Replayed
from armillary.advisor.workload.traces import parse_trace
from armillary.api.core.settings import EMULATOR_KEY
from armillary.partition.provisioning.partitions import PartitionLimits

PARTITION_RU = 500
THROUGHPUT = 1_200
SECONDS = 5
PER_SECOND = 170
STORED = 60
TENANTS = 12
CLOSE = 0.10


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    data = tmp_path_factory.mktemp("replay") / "data"
    environ = {"ARMILLARY_PARTITION_RU": str(PARTITION_RU)}
    process = ServerProcess(data, real=True, environ=environ)
    try:
        process.wait_until_ready()
        yield process
    finally:
        process.close()


def item(name: str, tenant: str, number: int) -> dict[str, Any]:
    return {"id": name, "tenant": tenant, "number": number, "note": "x" * (200 + number % 900)}


def size(body: dict[str, Any]) -> int:
    return len(json.dumps(body, separators=(",", ":")))


STORED_ITEMS = [item(f"s{n}", f"t{n % TENANTS}", n) for n in range(STORED)]


def trace_lines(start_ms: int, seed: int = 3) -> list[dict[str, Any]]:
    """Half of the writes go to one tenant; the rest of the traffic is spread."""
    random = Random(seed)
    lines: list[dict[str, Any]] = []
    for n in range(PER_SECOND * SECONDS):
        # Never on a whole second: that is where retries come, and who is first must be clear.
        # Few different moments, because moving the clock of a server is a request too.
        at = start_ms + random.randrange(SECONDS) * 1000 + random.randrange(1, 40) * 25
        kind = random.choices(["create", "read", "upsert", "query", "search"], [60, 20, 8, 6, 6])[0]
        stored = random.choice(STORED_ITEMS)
        if kind == "create":
            tenant = "t0" if random.random() < 0.5 else f"t{random.randrange(TENANTS)}"
            body = item(f"n{n}", tenant, random.randrange(2_000))
            lines.append({"ts": at, "op": "create", "bytes": size(body), **body})
        elif kind == "read":
            known = {"id": stored["id"], "tenant": stored["tenant"]}
            lines.append({"ts": at, "op": "read", "bytes": size(stored), **known})
        elif kind == "upsert":
            body = item(f"u{n}", f"t{random.randrange(TENANTS)}", n)
            lines.append({"ts": at, "op": "upsert", "bytes": size(body), **body})
        elif kind == "query":
            text = "SELECT * FROM c WHERE c.tenant = @t AND c.number = -1"
            given = {"@t": stored["tenant"]}
            lines.append({"ts": at, "op": "query", "text": text, "parameters": given, "results": 0})
        else:
            text = "SELECT * FROM c WHERE c.number = -1"
            lines.append({"ts": at, "op": "query", "text": text, "parameters": {}, "results": 0})
    return sorted(lines, key=lambda line: line["ts"])


def send(container: ContainerProxy, line: dict[str, Any], gave_up: Counter[str]) -> None:
    own = ("ts", "op", "bytes", "text", "parameters", "results")
    body = {name: value for name, value in line.items() if name not in own}
    try:
        match line["op"]:
            case "create":
                container.create_item(body)
            case "upsert":
                container.upsert_item(body)
            case "read":
                container.read_item(body["id"], body["tenant"])
            case _:
                given = [{"name": n, "value": v} for n, v in line["parameters"].items()]
                key = line["parameters"].get("@t")
                where = {"partition_key": key} if key else {"enable_cross_partition_query": True}
                list(container.query_items(line["text"], given, **where))
    except CosmosHttpResponseError as error:
        if error.status_code != 429:
            raise
        gave_up[line["op"]] += 1


def counted(control: ControlClient, database: str) -> tuple[dict[int, float], float]:
    """RU by partition, and 429s, as the server's own metrics have them."""
    text = control.ask("GET", "metrics").body.decode()
    used: dict[int, float] = {}
    refused = 0.0
    for line in text.splitlines():
        if f'DatabaseName="{database}"' not in line:
            continue
        found = re.search(r'PartitionKeyRangeId="(\d+)"', line)
        if line.startswith("TotalRequestUnits{") and found:
            used[int(found[1])] = used.get(int(found[1]), 0.0) + float(line.rpartition(" ")[2])
        elif line.startswith("TotalRequests{") and 'StatusCode="429"' in line:
            refused += float(line.rpartition(" ")[2])
    return used, refused


def replayed(lines: list[dict[str, Any]]) -> Replayed:
    trace = parse_trace(json.dumps(line).encode() for line in lines)
    assert not trace.skipped
    options = ReplayOptions(throughput=THROUGHPUT, limits=PartitionLimits(ru=PARTITION_RU))
    found = replay_candidates(
        [parse_candidate("/tenant")], trace.played(), sample_of(STORED_ITEMS), options
    )
    return found.replays[0]


def test_a_replay_says_what_the_sdk_meets_at_a_real_server(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = ControlClient(server.port)
    client = CosmosClient(f"http://127.0.0.1:{server.port}", EMULATOR_KEY)
    database = client.create_database("reality")
    key = PartitionKey("/tenant")
    container = database.create_container("items", key, offer_throughput=THROUGHPUT)
    for each in STORED_ITEMS:
        container.create_item(each)
    now_ms = clock(control, stopped=True)
    start_ms = now_ms // 1000 * 1000 + 60_000  # a minute later all budgets are full
    before, refused_before = counted(control, "reality")

    def move_to(when_ms: int) -> None:
        nonlocal now_ms
        if when_ms > now_ms:
            now_ms = clock(control, advance_ms=when_ms - now_ms)
        assert now_ms == when_ms

    lines = trace_lines(start_ms)
    gave_up: Counter[str] = Counter()
    lanes = Lanes(move_to)
    lanes.take_over(monkeypatch)
    work: list[tuple[int, Callable[[], None]]] = [
        (line["ts"], partial(send, container, line, gave_up)) for line in lines
    ]
    lanes.run(work)
    assert lanes.failures == []
    after, refused_after = counted(control, "reality")

    expected = replayed(lines)
    used = {part: after[part] - before.get(part, 0.0) for part in after}
    refused = refused_after - refused_before
    assert len(expected.partitions) == len(used) == 4
    for part in expected.partitions:
        assert used[part.id] == pytest.approx(part.consumed_ru, rel=CLOSE), part
    assert refused == pytest.approx(expected.throttled, rel=CLOSE)
    assert refused > 200, "the trace has to be too much for somebody"
    assert len(lanes.sleeps_ms) + sum(gave_up.values()) == refused, "each 429 is one of ours"
    assert sum(gave_up.values()) == pytest.approx(expected.failed, rel=CLOSE, abs=3)
    hottest = max(expected.partitions, key=lambda part: part.throttled)
    assert used[hottest.id] == max(used.values())


def clock(control: ControlClient, **change: Any) -> int:
    reply = control.ask("POST", "clock", change)
    assert reply.status == 200, reply.body
    now_ms: int = reply.json()["now_ms"]
    return now_ms
