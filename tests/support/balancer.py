"""A load balancer as small as can be: sends each new connection to a server that says it is ready,
and passes bytes on. It breaks nothing by itself: what a client loses, a server has cut."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Sequence

PROBE_SECONDS = 0.05


class Balancer:
    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = list(ports)
        self._ready: set[int] = set()
        self._withheld: set[int] = set()
        self._passed: Counter[int] = Counter()
        self._turn = 0
        self.port = 0
        self._started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="balancer", daemon=True)
        self._thread.start()
        assert self._started.wait(60)

    def is_ready(self, port: int) -> bool:
        return port in self._ready

    def withhold(self, port: int) -> None:
        """No new connection goes there, whatever the server says, until `release`."""
        self._withheld.add(port)

    def release(self, port: int) -> None:
        self._withheld.discard(port)

    def is_unused(self, port: int) -> bool:
        """No connection leads there now."""
        return not self._passed[port]

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        probes = asyncio.create_task(self._probe())
        self._started.set()
        await self._stop.wait()
        probes.cancel()
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _probe(self) -> None:
        while True:
            for port in self._ports:
                (self._ready.add if await _says_ready(port) else self._ready.discard)(port)
            await asyncio.sleep(PROBE_SECONDS)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        streams = [writer]
        port = 0
        try:
            while not (ports := sorted(self._ready - self._withheld)):
                await asyncio.sleep(PROBE_SECONDS)
            self._turn += 1
            port = ports[self._turn % len(ports)]
            self._passed[port] += 1
            there, back = await asyncio.open_connection("127.0.0.1", port)
            streams.append(back)
            # When one side has ended, both have: no client of HTTP closes half a connection.
            copies = (
                asyncio.create_task(_copy(reader, back)),
                asyncio.create_task(_copy(there, writer)),
            )
            await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
            for copy in copies:
                copy.cancel()
            await asyncio.gather(*copies, return_exceptions=True)
        except OSError:
            pass
        finally:
            self._passed[port] -= 1
            for stream in streams:
                stream.close()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        target.write(data)
        await target.drain()


async def _says_ready(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    try:
        writer.write(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return b" 200 " in await reader.readline()
    except OSError:
        return False
    finally:
        writer.close()
