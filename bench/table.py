"""The Table API beside Azurite, the only other local server of that protocol, in one run.

    upsert    PUT of an entity of 1 KB and 8 properties over 4,000 keys: durable and indexed here;
              Azurite keeps tables in memory and writes its file from time to time
    read      GET by PartitionKey and RowKey over the same keys
    sync      bare fdatasync of one page: a lone durable upsert waits for one, and for
              one write of a page through O_DSYNC
    alone     one client that waits for each upsert: by the clock, by processor time, and how often
              threads of the server fell asleep for it: each of them had to be woken
    idle      memory of the server's processes with the Table port open and closed

Both over one and 32 connections, with requests that were signed with SharedKey before and are
checked by both, sent by wrk (`bench/http_drive.py`), with the processor time of all processes of
each server per answer. `--seconds N`, `--no-npm`.
Azurite is installed by npm into a temporary folder, or taken from ARMILLARY_AZURITE.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from pathlib import Path
from statistics import median

from bench.http_drive import drive, generator
from bench.http_load import send_all
from bench.http_servers import Running, family
from bench.report import Report

from armillary.api.core.settings import EMULATOR_KEY

AZURITE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
KEYS = 4_000
ALONE = 200
TABLE = "bench"


class Server:
    def __init__(self, name: str, port: int, pid: int, account: str, key: str, prefix: str) -> None:
        self.name, self.port, self.running = name, port, Running(name, port, pid)
        self._account, self._key, self._prefix = account, base64.b64decode(key), prefix

    def request(self, method: str, path: str, body: bytes = b"", more: str = "") -> bytes:
        path = self._prefix + path
        date = formatdate(usegmt=True)
        kind = "application/json" if body else ""
        resource = f"/{self._account}{path}"
        text = f"{method}\n\n{kind}\n{date}\n{resource}"
        digest = hmac.new(self._key, text.encode(), hashlib.sha256).digest()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost:{self.port}\r\nx-ms-date: {date}\r\n"
            "x-ms-version: 2019-02-02\r\nDataServiceVersion: 3.0\r\n"
            "Accept: application/json;odata=minimalmetadata\r\n"
            f"Authorization: SharedKey {self._account}:{base64.b64encode(digest).decode()}\r\n"
            + (f"Content-Type: {kind}\r\n" if kind else "")
            + f"Content-Length: {len(body)}\r\n{more}\r\n"
        )
        return head.encode() + body


def entity(number: int) -> bytes:
    text = "x" * 110
    rest = "".join(f',"text{at}":"{text}{number * at}"' for at in range(6))
    return f'{{"count":{number},"ratio":{number / 7}{rest}}}'.encode()


def path_of(number: int) -> str:
    return f"/{TABLE}(PartitionKey='p{number % 500}',RowKey='{number}')"


# --- servers --------------------------------------------------------------------------------------


@contextmanager
def process(command: list[str], ready: bytes) -> Iterator[tuple[subprocess.Popen[bytes], bytes]]:
    environ = {k: v for k, v in os.environ.items() if not k.startswith("ARMILLARY_")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ) as child:
        try:
            assert child.stdout is not None
            said = b""
            for line in child.stdout:
                said += line
                if ready in line:
                    break
            yield child, said
        finally:
            child.terminate()


def serve(data: Path, port: str) -> list[str]:
    own = [sys.executable, "-m", "armillary", "serve", "--port", "0", "--data", str(data)]
    return [*own, "--table-port", port, "--mongo-port", "off", "--gremlin-port", "off"]


@contextmanager
def ours(data: Path) -> Iterator[Server]:
    command = [*serve(data, "0"), "--partition-ru", "1000000000"]
    with process(command, b"ready ") as (child, said):
        found = re.search(rb"TableEndpoint=http://localhost:(\d+)", said)
        assert found is not None
        yield Server("Armillary", int(found[1]), child.pid, "localhost", EMULATOR_KEY, "")


@contextmanager
def azurite(folder: Path, data: Path) -> Iterator[Server]:
    command = ["node", str(folder / "node_modules/azurite/dist/src/table/main.js")]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command += ["--location", str(data), "--tablePort", str(port), "--skipApiVersionCheck"]
    command += ["--disableTelemetry", "--silent"]
    with process(command, b"successfully started") as (child, _):
        name = "devstoreaccount1"
        yield Server("Azurite", port, child.pid, name, AZURITE_KEY, f"/{name}")


def sleeps(pid: int) -> dict[str, int]:
    """How often each thread of a process and its children has gone to sleep by itself."""
    found: dict[str, int] = {}
    for one in family(pid):
        for task in Path(f"/proc/{one}/task").iterdir():
            with suppress(OSError):  # it has ended
                text = (task / "status").read_text("ascii", "replace")
                found[task.name] = int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return found


def alone(report: Report, server: Server, writes: list[bytes]) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 60) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        times: list[float] = []

        def send(requests: list[bytes]) -> None:
            for one in requests:
                began = time.perf_counter()
                client.sendall(one)
                assert client.recv(65_536)[9:12] == b"204"
                times.append(time.perf_counter() - began)

        send(writes[:ALONE])
        times.clear()
        before, cpu_s = sleeps(server.running.pid), server.running.cpu_s()
        send(writes[ALONE : 2 * ALONE])
        after = sleeps(server.running.pid)
        cpu_us = (server.running.cpu_s() - cpu_s) / ALONE * 1e6
    fell = [(count - before.get(task, 0)) / ALONE for task, count in after.items()]
    report.line(
        f"{server.name}: upsert, alone",
        median(times) * 1e6,
        unit="us",
        cpu_us=cpu_us,
        sleeps=sum(fell),
        threads=sum(each > 0.5 for each in fell),
    )


def sync_rate(folder: Path) -> float:
    """Bare `fdatasync` of one page, per second."""
    with (folder / "sync").open("wb", buffering=0) as file:
        file.write(bytes(64 * 4096))
        os.fsync(file.fileno())
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < 1.0:
            os.pwrite(file.fileno(), bytes(4096), count % 64 * 4096)
            os.fdatasync(file.fileno())
            count += 1
        return count / (time.perf_counter() - began)


def memory_mb(pid: int) -> float:
    """Private memory of a process and its children."""
    total = 0
    for one in family(pid):
        for line in Path(f"/proc/{one}/smaps_rollup").read_text("ascii").splitlines():
            if line.startswith(("Private_Clean", "Private_Dirty")):
                total += int(line.split()[1])
    return total / 1024


def install(folder: Path) -> Path | None:
    given = os.environ.get("ARMILLARY_AZURITE")
    if given:
        return Path(given)
    npm = shutil.which("npm")
    if npm is None or "--no-npm" in sys.argv:
        return None
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), "azurite"]
    done = subprocess.run(command, capture_output=True, check=False)
    return folder if done.returncode == 0 else None


# --- the run --------------------------------------------------------------------------------------


def rates(report: Report, server: Server, folder: Path, seconds: int) -> dict[str, float]:
    create = server.request(
        "POST",
        "/Tables",
        f'{{"TableName":"{TABLE}"}}'.encode(),
        "x-ms-offer-throughput: 1000000\r\n",
    )
    writes = [server.request("PUT", path_of(n), entity(n)) for n in range(KEYS)]
    reads = [server.request("GET", path_of(n)) for n in range(KEYS)]
    for requests in ([create], writes):
        sent = send_all(server.port, iter(requests), connections=8, seconds_max=120, secure=False)
        assert sent == len(requests), "some answers were errors"
    found: dict[str, float] = {}
    for what, requests in (("read", reads), ("upsert", writes)):
        for connections in (1, 32):
            seen = drive(server.running, requests, folder, seconds, connections)
            assert not seen.failures, "some answers were errors"
            name = f"{what}, {connections} connections"
            report.line(
                f"{server.name}: {name}",
                seen.rate,
                p50_ms=seen.p50_ms,
                p99_ms=seen.p99_ms,
                cpu_us=seen.cpu_us,
            )
            found[name], found[f"{name}, processor time"] = seen.rate, seen.per_cpu_s
    alone(report, server, writes)
    return found


def idle(report: Report, place: Path) -> None:
    seen = []
    for port in ("off", "0"):
        with process(serve(place / f"idle-{port}", port), b"ready ") as (child, _):
            time.sleep(3)
            seen.append(memory_mb(child.pid))
    report.line("idle, Table port closed", seen[0], unit="MB")
    report.line("idle, Table port open", seen[1], unit="MB", more_mb=seen[1] - seen[0])


def main() -> None:
    seconds = int(sys.argv[sys.argv.index("--seconds") + 1]) if "--seconds" in sys.argv else 5
    report = Report("table")
    report.note(f"load by {generator()}")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        report.line("bare fdatasync of one page", sync_rate(place))
        idle(report, place)
        with ours(place / "data") as server:
            mine = rates(report, server, place, seconds)
        found = install(place / "npm")
        if found is None:
            report.note("without Azurite: npm is not here, or could not install it")
            return
        (place / "azurite").mkdir()
        with azurite(found, place / "azurite") as server:
            other = rates(report, server, place, seconds)
        for name, rate in mine.items():
            report.line(f"ratio: {name}", rate / other[name], unit="x")


if __name__ == "__main__":
    main()
