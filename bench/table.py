"""The Table API beside Azurite, the only other local server of that protocol, in one run.

    upsert    PUT of an entity of 1 KB and 8 properties over 4,000 keys: durable and indexed here;
              Azurite keeps tables in memory and writes its file from time to time
    read      GET by PartitionKey and RowKey over the same keys
    idle      memory of the server's processes with the Table port open and closed

Both over one and 32 connections, signed with SharedKey, checked by both. `--seconds N`, `--no-npm`.
Azurite is installed by npm into a temporary folder, or taken from ARMILLARY_AZURITE.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import itertools
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import cast

from bench.http_servers import family
from bench.report import Report

from armillary.api.core.settings import EMULATOR_KEY
from armillary.server.loops import new_loop

AZURITE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
KEYS = 4_000
TABLE = "bench"
HOST = "127.0.0.1"
LENGTH = re.compile(rb"(?i)\r\ncontent-length: (\d+)")
CHUNKED = re.compile(rb"(?i)\r\ntransfer-encoding: chunked")


class Server:
    def __init__(self, name: str, port: int, pid: int, account: str, key: str, prefix: str) -> None:
        self.name, self.port, self.pid = name, port, pid
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


# --- load -----------------------------------------------------------------------------------------


class Client(asyncio.Protocol):
    """Sends its next request when the last one is answered; reads bodies of both kinds."""

    def __init__(self, requests: Iterator[bytes], times: list[float]) -> None:
        self._requests, self._times = requests, times
        self._buffer = b""
        self.failures = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        if CHUNKED.search(self._buffer, 0, end):
            if not self._buffer.endswith(b"0\r\n\r\n"):
                return
        else:
            found = LENGTH.search(self._buffer, 0, end)
            if len(self._buffer) < end + 4 + (int(found[1]) if found else 0):
                return
        self._times.append(time.perf_counter() - self._sent)
        self.failures += self._buffer[9:10] != b"2"
        self._buffer = b""
        self._send()

    def _send(self) -> None:
        self._sent = time.perf_counter()
        self.transport.write(next(self._requests))


def measure(
    server: Server, requests: list[bytes], connections: int, seconds: float
) -> tuple[float, float, float]:
    """(answers per second, p50 and p99 in ms)."""

    async def run() -> tuple[float, float, float]:
        loop, times, clients = asyncio.get_running_loop(), list[float](), []
        for at in range(connections):
            turn = itertools.cycle(requests[at * 97 % KEYS :] + requests[: at * 97 % KEYS])
            made = await loop.create_connection(partial(Client, turn, times), HOST, server.port)
            clients.append(made[1])
        await asyncio.sleep(seconds / 4)
        times.clear()
        began = time.perf_counter()
        await asyncio.sleep(seconds)
        spent, found = time.perf_counter() - began, sorted(times)
        for client in clients:
            client.transport.abort()
        assert not sum(client.failures for client in clients), "some answers were errors"
        at50, at99 = (found[int(len(found) * part)] * 1000 for part in (0.5, 0.99))
        return len(found) / spent, at50, at99

    loop = new_loop()
    try:
        return loop.run_until_complete(run())
    finally:
        loop.close()


def send_once(server: Server, requests: list[bytes]) -> None:
    async def run() -> None:
        reader, writer = await asyncio.open_connection(HOST, server.port)
        for request in requests:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            if CHUNKED.search(head):
                await reader.readuntil(b"0\r\n\r\n")
            elif found := LENGTH.search(head):
                await reader.readexactly(int(found[1]))
            assert head[9:10] == b"2", head
        writer.close()

    asyncio.run(run())


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


def rates(report: Report, server: Server, seconds: float) -> dict[str, float]:
    create = server.request(
        "POST",
        "/Tables",
        f'{{"TableName":"{TABLE}"}}'.encode(),
        "x-ms-offer-throughput: 1000000\r\n",
    )
    send_once(server, [create])
    writes = [server.request("PUT", path_of(n), entity(n)) for n in range(KEYS)]
    reads = [server.request("GET", path_of(n)) for n in range(KEYS)]
    send_once(server, writes)
    found: dict[str, float] = {}
    for what, requests in (("read", reads), ("upsert", writes)):
        for connections in (1, 32):
            rate, p50, p99 = measure(server, requests, connections, seconds)
            name = f"{what}, {connections} connections"
            report.line(f"{server.name}: {name}", rate, p50_ms=p50, p99_ms=p99)
            found[name] = rate
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
    seconds = float(sys.argv[sys.argv.index("--seconds") + 1]) if "--seconds" in sys.argv else 5.0
    report = Report("table")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        idle(report, place)
        with ours(place / "data") as server:
            mine = rates(report, server, seconds)
        found = install(place / "npm")
        if found is None:
            report.note("without Azurite: npm is not here, or could not install it")
            return
        (place / "azurite").mkdir()
        with azurite(found, place / "azurite") as server:
            other = rates(report, server, seconds)
        for name, rate in mine.items():
            report.line(f"ratio: {name}", rate / other[name], unit="x")


if __name__ == "__main__":
    main()
