"""Two hundred hostile scripts with the real bounds, and what another client notices of them.

    hostile    the scripts of tests/support/hostile_scripts.py, four at a time, until all have run
    harmless   a small script at the rate at which hostile ones ended
    reads      of another client, meanwhile: a process of its own, 200 a second

Printed: the p99 of those reads in both phases and their ratio (goal: at most 3), and the memory of
all processes of the server before and after, once it is idle. Hostile scripts use whole cores until
their bounds end them, so the ratio is that of a machine with no core left over.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import socket
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

from bench.report import Report
from bench.scripts import CONTAINER, KEYS, execute, prepare, request
from tests.support.hostile_scripts import hostile

from armillary.testing.process import start_server

ATTACKERS = 4
READS_PER_S = 200
GOAL = 3.0
MEMORY_GOAL = 1.2
IDLE_SECONDS_MAX = 60.0


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--scripts", type=int, default=200, help="How many of the hostile ones.")
    options.add_argument("--seconds", type=float, default=30.0, help="At least, of harmless ones.")
    options.add_argument("--save", action="store_true", help="Keep the results.")
    given = options.parse_args()
    report = Report("script_abuse")
    with tempfile.TemporaryDirectory() as folder, start_server(data=Path(folder)) as server:
        port = int(server.endpoint.rstrip("/").rpartition(":")[2])
        prepare(port)
        for number in range(20):  # both kinds of children are warm
            answer(port, execute("good0", f"k{number}"))
        quiet = Reader(port).during(lambda: time.sleep(given.seconds / 3))
        before = settled_mb()  # now this program has all of its own processes too
        outcomes: Counter[str] = Counter()
        texts = [text for _, text, _ in hostile()][: given.scripts]
        began = time.perf_counter()
        bad = Reader(port).during(lambda: attack(port, texts, outcomes))
        seconds = time.perf_counter() - began
        rate = len(texts) / seconds
        after = settled_mb()
        good = Reader(port).during(lambda: keep_rate(port, rate, max(given.seconds, seconds / 4)))
    for what, times in (("alone", quiet), ("harmless", good), ("hostile", bad)):
        facts = {"p50_ms": percentile(times, 50), "reads": len(times)}
        report.line(f"p99 of point reads, {what}", percentile(times, 99), unit="ms", **facts)
    ends = " ".join(f"{status}:{count}" for status, count in sorted(outcomes.items()))
    report.line("hostile scripts that ended", rate, seconds=seconds, statuses=ends)
    ratio = percentile(bad, 99) / percentile(good, 99)
    report.line("p99 beside hostile / beside harmless", ratio, unit="", goal=GOAL)
    report.line("memory of all processes before", before, unit="MB")
    report.line("memory of all processes after", after, unit="MB", goal=before * MEMORY_GOAL)


def attack(port: int, texts: list[str], outcomes: Counter[str]) -> None:
    def one(number: int) -> str:
        id = f"attack{number}"
        created = answer(
            port, request("POST", f"{CONTAINER}/sprocs", {"id": id, "body": texts[number]})
        )
        assert created == 201, created
        status = answer(port, execute(id, f"k{number % KEYS}"))
        answer(port, request("DELETE", f"{CONTAINER}/sprocs/{id}"))
        return str(status)

    with ThreadPoolExecutor(ATTACKERS) as threads:
        outcomes.update(threads.map(one, range(len(texts))))


def keep_rate(port: int, per_second: float, seconds: float) -> None:
    """Harmless scripts, evenly, by as many clients."""
    began = time.perf_counter()

    def one(number: int) -> None:
        at = number
        while (due := began + at / per_second) < began + seconds:
            time.sleep(max(0.0, due - time.perf_counter()))
            answer(port, execute("good0", f"k{at % KEYS}"))
            at += ATTACKERS

    with ThreadPoolExecutor(ATTACKERS) as threads:
        list(threads.map(one, range(ATTACKERS)))


def answer(port: int, one: bytes) -> int:
    with socket.create_connection(("127.0.0.1", port), 120) as client:
        client.sendall(one)
        return int(client.recv(65_536)[9:12])


class Reader:
    """Another client: reads on one connection at an even rate."""

    def __init__(self, port: int) -> None:
        self._port = port

    def during(self, work: object) -> list[float]:
        assert callable(work)
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=read_evenly, args=(self._port, theirs))
        process.start()
        ours.recv()
        try:
            work()
        finally:
            ours.send("stop")
            times: list[float] = ours.recv()
            process.join()
        return times


def read_evenly(port: int, link: Connection) -> None:
    reads = [request("GET", f"{CONTAINER}/docs/n", None, f"k{n}") for n in range(KEYS)]
    times: list[float] = []
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.send("ready")
        due, made = time.perf_counter(), time.monotonic()
        while not link.poll():
            if time.monotonic() - made > 300:  # signatures are good for some minutes
                reads = [request("GET", f"{CONTAINER}/docs/n", None, f"k{n}") for n in range(KEYS)]
                made = time.monotonic()
            due = max(due + 1 / READS_PER_S, time.perf_counter() - 1)
            time.sleep(max(0.0, due - time.perf_counter()))
            began = time.perf_counter()
            client.sendall(reads[len(times) % KEYS])
            assert client.recv(65_536)[9:12] == b"200"
            times.append((time.perf_counter() - began) * 1000)
    link.recv()
    link.send(times)


def percentile(times: list[float], share: int) -> float:
    return sorted(times)[min(len(times) - 1, len(times) * share // 100)]


def settled_mb() -> float:
    """The memory of this process's descendants, when it has stopped falling."""
    until = time.monotonic() + IDLE_SECONDS_MAX
    last = descendants_mb()
    while time.monotonic() < until:
        threading.Event().wait(2)
        now = descendants_mb()
        if abs(now - last) < 0.5:
            return now
        last = now
    return last


def descendants_mb() -> float:
    """Proportional, so that shared pages count once."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int(
                (entry / "stat").read_text().rpartition(")")[2].split()[1]
            )
        except OSError:
            continue
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    total = 0.0
    for pid in found - {os.getpid()}:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    return total


if __name__ == "__main__":
    main()
