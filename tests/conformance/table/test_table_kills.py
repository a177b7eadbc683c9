"""Transactions of the Table API when the server is killed: what was acknowledged is there, nothing
is there by half. By the official SDK, on one data folder."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from azure.core.exceptions import AzureError
from tests.support.table_server import TableServer
from tests.support.waiting import until

CLIENTS = 4
PER_BATCH = 3
BEFORE_KILL = 40  # acknowledged transactions
OPTIONS = ["--partition-bytes", "300KB"]
ENOUGH = {"x-ms-offer-throughput": "100000"}


def test_transactions_survive_kills_whole(tmp_path: Path) -> None:
    promised: set[str] = set()
    for kill in range(2):
        with TableServer(tmp_path, OPTIONS) as server:
            _check(server, promised)
            _write_until_killed(server, promised, f"k{kill}")
            server.process.close()
    with TableServer(tmp_path, OPTIONS) as server:
        seen = _check(server, promised)
    assert len(promised) >= 2 * BEFORE_KILL
    assert promised <= seen


def _write_until_killed(server: TableServer, promised: set[str], mark: str) -> None:
    lock, stop = threading.Lock(), threading.Event()
    begun = len(promised)

    def write(number: int) -> None:
        with server.client(retry_total=0) as service:
            table = service.get_table_client("kills")
            for step in range(10_000):
                name = f"{mark}-{number}-{step}"
                rows = [
                    {"PartitionKey": name, "RowKey": str(row), "text": "x" * 500, "of": name}
                    for row in range(PER_BATCH)
                ]
                try:
                    table.submit_transaction([("create", row) for row in rows])
                except (AzureError, OSError):
                    return
                with lock:
                    promised.add(name)
                if stop.is_set():
                    return

    with server.client() as service:
        service.create_table_if_not_exists("kills", headers=ENOUGH)
    with ThreadPoolExecutor(CLIENTS) as pool:
        done = [pool.submit(write, number) for number in range(CLIENTS)]
        try:
            until(lambda: len(promised) >= begun + BEFORE_KILL)
        finally:
            os.killpg(server.process.process.pid, signal.SIGKILL)
            stop.set()
        for one in done:
            one.result()


def _check(server: TableServer, promised: set[str]) -> set[str]:
    with server.client() as service:
        if not any(one.name == "kills" for one in service.list_tables()):
            assert not promised
            return set()
        found: dict[str, int] = {}
        for row in service.get_table_client("kills").list_entities(select=["of"]):
            found[row["of"]] = found.get(row["of"], 0) + 1
    assert set(found.values()) <= {PER_BATCH}, "a transaction is there by half"
    return set(found)
