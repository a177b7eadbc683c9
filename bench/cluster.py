"""The same load on a folder, on one and on two servers over one PostgreSQL, and on Citus.

    python bench/cluster.py [--seconds 10] [--clients 32] [--only '1 server']

Creates, point reads, and queries for ten items of 17 partitions (17 requests each, as SDKs make
them), each for some seconds by as many clients as asked for, over kept connections. It prints
operations a second and the CPU of all servers per operation; the database's own CPU is not in it.
PostgreSQL is that of
`ARMILLARY_TEST_POSTGRES_URL`, or one from PyPI that is started here; Citus only where
`ARMILLARY_TEST_CITUS_URL` names one. Compare lines of one run: the machine is the same.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

# In the place of this folder, whose `http.py` would hide the module of that name.
sys.path[0] = str(Path(__file__).resolve().parents[1])

import psutil  # type: ignore[import-untyped]  # noqa: E402
from tests.support.pg_cluster import free_port  # noqa: E402
from tests.support.postgres import CITUS_SERVER, fresh_url  # noqa: E402
from tests.support.server_process import ServerProcess  # noqa: E402
from tests.support.signed_http import SignedClient  # noqa: E402

import armillary  # noqa: E402

CONTAINER = "dbs/d/colls/c"
ITEMS = 2_000
PARTITIONS = 17
OFF = ("--table-port", "off", "--mongo-port", "off", "--gremlin-port", "off")
Ask = Callable[[SignedClient, int], int]


def create(client: SignedClient, number: int) -> int:
    item = {"id": f"n{number}", "pk": f"n{number}", "v": 200 + number % 200, "pad": "x" * 400}
    return client.create(CONTAINER, item).status


def read(client: SignedClient, number: int) -> int:
    name = str(number * 7919 % ITEMS)
    return client.read(CONTAINER, name, name).status


def query(client: SignedClient, number: int) -> int:
    """Ten items of all partitions, as an SDK asks for them: every range by its id."""
    text = "SELECT * FROM c WHERE c.v = @v"
    headers = {
        "content-type": "application/query+json",
        "x-ms-documentdb-isquery": "True",
        "x-ms-documentdb-query-enablecrosspartition": "True",
        "x-ms-max-item-count": "100",
    }
    body = {"query": text, "parameters": [{"name": "@v", "value": number % 200}]}
    found = 0
    for at in range(PARTITIONS):
        asked = headers | {"x-ms-documentdb-partitionkeyrangeid": str(at)}
        answer = client.ask("POST", f"/{CONTAINER}/docs", body, asked)
        if answer.status != 200:
            return answer.status
        found += int(answer.headers["x-ms-item-count"])
    assert found == ITEMS // 200, found
    return 200


WORK: dict[str, tuple[Ask, int]] = {
    "read": (read, 200),
    "create": (create, 201),
    "query": (query, 200),
}


def load(ports: list[int], ask: Ask, wanted: int, clients: int, seconds: float, base: int) -> int:
    done = [0] * clients
    end = time.monotonic() + seconds

    def run(at: int) -> None:
        client = SignedClient(ports[at % len(ports)])
        number = base + at * 1_000_000
        while time.monotonic() < end:
            number += 1
            status = ask(client, number)
            if status == wanted:
                done[at] += 1
            elif status not in (429, 503):
                raise AssertionError(f"status {status}")
        client.close()

    threads = [threading.Thread(target=run, args=(at,)) for at in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done)


def cpu_s(servers: list[ServerProcess]) -> float:
    total = 0.0
    for server in servers:
        parent = psutil.Process(server.process.pid)
        for one in [parent, *parent.children(recursive=True)]:
            times = one.cpu_times()
            total += times.user + times.system
    return total


def measure(name: str, address: str, count: int, given: argparse.Namespace, folder: Path) -> None:
    with armillary.open(address) as account:
        database = account.create_database("d")
        container = database.create_container(
            "c", "/pk", throughput=1_000_000, physical_partitions=PARTITIONS
        )
        rows = ({"id": str(n), "pk": str(n), "v": n % 200, "pad": "x" * 400} for n in range(ITEMS))
        for item in rows:
            container.create_item(item)
    servers = []
    for at in range(count):
        at_folder = address if "://" not in address else str(folder / f"{name}-{at}")
        options = OFF if "://" not in address else ("--engine", address, *OFF)
        servers.append(ServerProcess(Path(at_folder), port=free_port(), real=True, options=options))
    try:
        for server in servers:
            server.wait_until_ready()
        ports = [server.port for server in servers]
        for number, (kind, (ask, wanted)) in enumerate(WORK.items()):
            load(ports, ask, wanted, given.clients, 1.0, 10_000_000_000 * (number + 1))
            before, began = cpu_s(servers), time.monotonic()
            base = 100_000_000_000 * (number + 1)
            done = load(ports, ask, wanted, given.clients, given.seconds, base)
            took_s = time.monotonic() - began
            cpu_us = (cpu_s(servers) - before) / max(done, 1) * 1e6
            print(f"{name:<24} {kind:<8} {done / took_s:>10.0f}/s {cpu_us:>10.0f} µs", flush=True)
    finally:
        for server in servers:
            server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--only", default="", help="those whose name has this: '1 server'")
    given = parser.parse_args()
    print(
        f"{platform.system()} {platform.release()}, {os.cpu_count()} cores, "
        f"{given.clients} clients, {PARTITIONS} partitions"
    )
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        cases = [("lmdb", str(folder / "lmdb"), 1)]
        cases += [("postgres, 1 server", fresh_url(), 1), ("postgres, 2 servers", fresh_url(), 2)]
        if citus := os.environ.get(CITUS_SERVER):
            cases.append(("citus, 1 server", fresh_url(citus), 1))
        for name, address, count in cases:
            if given.only in name:
                measure(name, address, count, given, folder)


if __name__ == "__main__":
    main()
