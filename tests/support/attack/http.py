"""HTTP over one kept connection, several requests at once; and bytes that are no HTTP."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.support.attack.tally import Pace, Tally
from tests.support.fuzz_frames import pieces, stream

ANSWER_SECONDS = 90.0
DEPTH = 8
"""Requests sent at once."""
STATUS = re.compile(rb"^HTTP/1\.1 (\d{3}) ", re.MULTILINE)
GONE = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)


@dataclass(frozen=True, slots=True)
class Heard:
    status: int
    headers: dict[str, str]
    body: bytes


async def read_answer(reader: asyncio.StreamReader, *, head: bool = False) -> Heard:
    while True:
        block = await reader.readuntil(b"\r\n\r\n")
        first, *lines = block.decode("latin-1").split("\r\n")
        status = int(first.split(" ", 2)[1])
        if status >= 200:
            break
    pairs = (line.split(": ", 1) for line in lines if ": " in line)
    headers = {name.lower(): text for name, text in pairs}
    size = 0 if head else int(headers.get("content-length", 0))
    return Heard(status, headers, await reader.readexactly(size) if size else b"")


async def ask_many(
    port: int,
    pace: Pace,
    tally: Tally,
    make: Callable[[], bytes],
    heard: Callable[[Heard], None] = lambda one: None,
) -> None:
    """Until the pace says that all were sent. A connection that the server closes is opened again
    for the requests that it did not come to: what is counted was answered, or was the one at which
    the connection ended."""
    waiting: list[bytes] = []
    while waiting := waiting or [make() for _ in range(await pace.take(DEPTH))]:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        is_closing = False
        try:
            while waiting:
                writer.write(b"".join(waiting))
                while waiting:
                    head = waiting[0].startswith(b"HEAD ")
                    async with asyncio.timeout(ANSWER_SECONDS):
                        answer = await read_answer(reader, head=head)
                    one = waiting.pop(0)
                    tally.sent += 1
                    tally.note(str(answer.status), one, defect=answer.status == 500)
                    heard(answer)
                    is_closing = answer.headers.get("connection", "").lower() == "close"
                waiting = [make() for _ in range(await pace.take(DEPTH))]
        except TimeoutError:
            tally.sent += 1
            tally.note_silent(waiting.pop(0))
        except GONE:
            if not is_closing:
                tally.sent += 1
                tally.note("closed", waiting.pop(0))
        finally:
            writer.close()


async def send_frames(port: int, pace: Pace, tally: Tally, random: Random) -> None:
    """One connection after the other, each with something that is hardly HTTP."""
    while await pace.take():
        data = stream(random)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        try:
            for piece in pieces(random, data):
                writer.write(piece)
                await asyncio.sleep(0)
            tally.sent += 1
            if random.random() < 0.05:
                continue  # gone without a word
            writer.write_eof()
            async with asyncio.timeout(ANSWER_SECONDS):
                heard = await reader.read(-1)
            statuses = STATUS.findall(heard)
            tally.sent += max(0, len(statuses) - 1)
            for status in statuses:
                tally.note(status.decode(), data, defect=status == b"500")
        except TimeoutError:
            tally.note_silent(data)
        except GONE:
            tally.note("closed")
        finally:
            writer.close()
