"""A closed loop of clients: each sends its next request when the last one is answered.

    connections × ──▶ request ──▶ answer (by Content-Length, or its last chunk) ──▶ next

The generator costs about as much as the bare server, and shares the machine with it; so only ratios
of one run mean something.
"""

import asyncio
import contextlib
import itertools
import re
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

from armillary.server.loops import new_loop

LENGTH = re.compile(rb"(?i)\r\ncontent-length: (\d+)")
CHUNKED = re.compile(rb"(?i)\r\ntransfer-encoding: chunked")
LAST_CHUNK = b"0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Load:
    answers_per_s: float
    p50_ms: float
    p99_ms: float
    failures: int

    def __str__(self) -> str:
        text = (
            f"{self.answers_per_s:>9,.0f}/s   p50 {self.p50_ms:.2f} ms   p99 {self.p99_ms:.2f} ms"
        )
        return text + (f"   {self.failures} failed" if self.failures else "")


class _Client(asyncio.Protocol):
    def __init__(self, requests: Iterator[bytes], times: list[float]) -> None:
        self._requests = requests
        self._times = times
        self._buffer = b""
        self._need = 0
        self.failures = 0
        self.done = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        if not self._need:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            if CHUNKED.search(self._buffer, 0, end):
                if not self._buffer.endswith(LAST_CHUNK):
                    return
                self._need = len(self._buffer)
            else:
                found = LENGTH.search(self._buffer, 0, end)
                self._need = end + 4 + (int(found[1]) if found else 0)
        if len(self._buffer) >= self._need:
            self._times.append(time.perf_counter() - self._sent)
            self.failures += self._buffer[9:10] != b"2"
            self._buffer, self._need = b"", 0
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        self.done.set()

    def _send(self) -> None:
        self._sent = time.perf_counter()
        request = next(self._requests, None)
        if request is None:
            self.done.set()
        else:
            self.transport.write(request)


def load(
    port: int,
    requests: Callable[[], Iterator[bytes]],
    *,
    connections: int,
    seconds: float,
    secure: bool = False,
) -> Load:
    """Ask the server on `port` for a while; each connection has its own iterator of requests."""
    return new_loop().run_until_complete(_load(port, requests, connections, seconds, secure))


def send_all(
    port: int, requests: Iterator[bytes], *, connections: int, seconds_max: float, secure: bool
) -> int:
    """Send them once, the connections taking turns; how many were answered well in that time."""
    return new_loop().run_until_complete(
        _send_all(port, requests, connections, seconds_max, secure)
    )


def _trusting() -> ssl.SSLContext:
    """For servers with certificates of their own making, on this machine."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _connect(
    port: int, make: Callable[[], _Client], connections: int, secure: bool
) -> list[_Client]:
    loop = asyncio.get_running_loop()
    context = _trusting() if secure else None
    return [
        (await loop.create_connection(make, "127.0.0.1", port, ssl=context))[1]
        for _ in range(connections)
    ]


async def _send_all(
    port: int, requests: Iterator[bytes], connections: int, seconds_max: float, secure: bool
) -> int:
    times: list[float] = []
    clients = await _connect(port, lambda: _Client(requests, times), connections, secure)
    ends = asyncio.gather(*(client.done.wait() for client in clients))
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(ends, seconds_max)
    for client in clients:
        client.transport.abort()
    return len(times) - sum(client.failures for client in clients)


async def _load(
    port: int,
    requests: Callable[[], Iterator[bytes]],
    connections: int,
    seconds: float,
    secure: bool,
) -> Load:
    times: list[float] = []
    clients = await _connect(port, lambda: _Client(requests(), times), connections, secure)
    await asyncio.sleep(seconds / 4)  # warm
    times.clear()
    begin = time.perf_counter()
    await asyncio.sleep(seconds)
    elapsed = time.perf_counter() - begin
    seen = sorted(times)
    for client in clients:
        client.transport.abort()
    return Load(
        len(seen) / elapsed,
        seen[len(seen) // 2] * 1000,
        seen[len(seen) * 99 // 100] * 1000,
        sum(client.failures for client in clients),
    )


def repeat(request: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: itertools.repeat(request)
