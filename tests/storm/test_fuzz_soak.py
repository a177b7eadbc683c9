"""A hundred thousand requests and connections, in `make soak`. Without them what goes wrong once in
ten thousand requests, or leaks a little with each, would be found by somebody else.

The summary goes to bench/results/fuzz-<date>.txt. `ARMILLARY_FUZZ_SEED` repeats a run and
`ARMILLARY_FUZZ_SHARE` shortens it, as in 0.1; without a seed every run is another one.
"""

from __future__ import annotations

import gc
import os
import platform
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from tests.support.fuzz_frames import converse, stream
from tests.support.fuzz_requests import Fuzzer
from tests.support.server_process import ServerProcess, children_of
from tests.support.signed_http import SignedClient

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"
SHARE = float(os.environ.get("ARMILLARY_FUZZ_SHARE", "1"))
REQUESTS = int(90_000 * SHARE)
CONNECTIONS = int(10_000 * SHARE)
WARM = 0.3  # of a run: caches fill up to their bounds
GROWTH_MB_MAX = 48.0


def resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"process {pid} has no memory")


def server_mb(server: ServerProcess) -> float:
    """With its writer; the process that makes the certificate may end under our eyes."""
    total = resident_mb(server.process.pid)
    for child in children_of(server.process.pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            total += resident_mb(child)
    return total


def seed() -> int:
    return int(os.environ.get("ARMILLARY_FUZZ_SEED", time.time_ns() % 10**9))


def write_down(lines: list[str]) -> None:
    path = RESULTS / f"fuzz-{time.strftime('%Y-%m-%d')}.txt"
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n\n")


@pytest.mark.soak
def test_ninety_thousand_requests_find_no_mistake_and_leave_nothing() -> None:
    fuzzer = Fuzzer(seed())
    began = time.process_time()
    try:
        for _ in range(int(REQUESTS * WARM)):
            fuzzer.step()
        gc.collect()
        before = resident_mb(os.getpid())
        while fuzzer.tally.requests < REQUESTS:
            fuzzer.step()
        gc.collect()
        after = resident_mb(os.getpid())
    finally:
        fuzzer.close()
    head = f"requests in process, seed {fuzzer.seed}, Python {platform.python_version()}"
    cpu = f"{time.process_time() - began:.0f} s of CPU"
    memory = f"memory {before:.0f} MB after {WARM:.0%} of them, {after:.0f} MB at the end"
    write_down([head, *fuzzer.tally.lines(), f"{cpu}; {memory}"])
    assert after - before < GROWTH_MB_MAX, memory


@pytest.mark.soak
def test_ten_thousand_connections_stop_nothing_and_leave_nothing(tmp_path: Path) -> None:
    chosen = seed()
    server = ServerProcess(tmp_path / "data", real=True)
    try:
        server.wait_until_ready(120)
        client = SignedClient(server.port, timeout_s=120)
        assert client.ask("POST", "/dbs", {"id": "d"}).status == 201
        key = {"paths": ["/pk"], "kind": "Hash"}
        made = client.ask("POST", "/dbs/d/colls", {"id": "c", "partitionKey": key})
        assert made.status == 201
        client.close()
        random = Random(chosen)
        heard: Counter[int] = Counter()
        before = 0.0
        for number in range(CONNECTIONS):
            if number == int(CONNECTIONS * WARM):
                before = server_mb(server)
            heard += converse(server.port, random, stream(random))
            assert heard[500] == 0, f"seed {chosen}, connection {number}"
        after = server_mb(server)
        server.terminate()
        assert server.end() == (0, "", "")
    finally:
        server.close()
    statuses = ", ".join(f"{status}: {count}" for status, count in sorted(heard.items()))
    memory = f"memory {before:.0f} MB after {WARM:.0%} of them, {after:.0f} MB at the end"
    head = f"connections to a server process, seed {chosen}"
    write_down([head, f"{CONNECTIONS} connections; answers {statuses}", memory])
    assert after - before < GROWTH_MB_MAX, memory
