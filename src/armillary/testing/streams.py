"""Real sockets for a stream protocol of an account in process: a small asyncio server in a thread,
on a free port of loopback. It keeps the rules of `api/core/streams.py` and has no limits."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from armillary.api.core.streams import (
    Answer,
    Begun,
    ClientGone,
    Hangup,
    Later,
    Peer,
    Quick,
    Send,
    StreamService,
    Unintelligible,
    Work,
)


@contextmanager
def serving(streams: StreamService) -> Iterator[int]:
    """The port of a server that runs until the end of the block."""
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    ports: list[int] = []
    ended = asyncio.Event()
    pool = ThreadPoolExecutor(8, "streams")

    async def main() -> None:
        server = await asyncio.start_server(
            lambda reader, writer: _client(streams, pool, reader, writer), "127.0.0.1", 0
        )
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()
        await ended.wait()
        server.close()
        tasks = [one for one in asyncio.all_tasks() if one is not asyncio.current_task()]
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()), daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(20)
        pool.shutdown()
        loop.close()


def _settled(event: Quick | Begun) -> Answer | Work:
    """What a server would do on its event loop; here a thread may wait for it."""
    if isinstance(event, Begun):
        event.future.exception()
        data = event.finish()
    else:
        data = event.run()
    return event.otherwise if data is None else Answer(data)


def run_to_end(work: Work, send: Send) -> None:
    """Also when it asks to be called again."""
    while True:
        try:
            work.run(send)
        except Later as later:
            time.sleep(later.seconds)
        else:
            return


async def _client(
    streams: StreamService,
    pool: ThreadPoolExecutor,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    loop = asyncio.get_running_loop()
    address = "{}:{}".format(*writer.get_extra_info("sockname"))
    session = streams.open(Peer(False, None, address))
    queue: asyncio.Queue[object] = asyncio.Queue()
    gone = threading.Event()

    def send(data: bytes) -> None:
        if gone.is_set():
            raise ClientGone
        loop.call_soon_threadsafe(writer.write, data)

    def run(work: Work) -> None:
        try:
            with suppress(ClientGone):
                run_to_end(work, send)
        except Unintelligible:
            loop.call_soon_threadsafe(writer.close)

    async def work() -> None:
        while True:
            event = await queue.get()
            if isinstance(event, Quick | Begun):
                event = await loop.run_in_executor(pool, _settled, event)
            if isinstance(event, Answer):
                writer.write(event.data)
            elif isinstance(event, Work):
                await loop.run_in_executor(pool, run, event)
            elif isinstance(event, Hangup):
                writer.write(event.data)
                writer.close()
                return

    worker = asyncio.create_task(work())
    try:
        while data := await reader.read(65536):
            for event in session.receive(data):
                queue.put_nowait(event)
    except ConnectionError:
        pass
    finally:
        gone.set()
        session.close()
        worker.cancel()
        with suppress(Exception):
            writer.close()
