"""Gremlin from outside: scripts with damage in them, and messages and frames that are none."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import struct
import uuid
from random import Random
from typing import Any, Final

from tests.support import fuzz_mutations as damage
from tests.support.attack.tally import Pace, Tally
from tests.support.gremlin_damage import SCRIPTS, Damaged

from armillary.api.core.settings import EMULATOR_KEY

MIME: Final = b"application/vnd.gremlin-v2.0+json"
ANSWER_SECONDS = 90.0
GONE = (OSError, asyncio.IncompleteReadError)
PER_CONNECTION = 200
UPGRADE: Final = (
    "GET /gremlin HTTP/1.1\r\nHost: localhost:{port}\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Version: 13\r\n\r\n"
)
SLOW: Final = "g.V().repeat(both()).until(has('age', 7)).limit(1)"
"""Runs into its bound on memory, a second or two later: so much can't be sent of it."""
SLOW_SHARE: Final = 0.005
CLEAN: Final = "g.V().drop()"
"""At each login: edges from a vertex to itself would make every traversal that follows a long
one."""


class Messages:
    def __init__(self, random: Random, *, valid: bool = False) -> None:
        self._random = random
        self._damaged = Damaged(random)
        self.valid = valid

    def make(self) -> tuple[bytes, bool]:
        """A frame, and whether it is whole."""
        random = self._random
        if self.valid:
            return frame(message(self._script(), {"ids": ["x1"]})), True
        slow = random.random() < SLOW_SHARE
        data = message(SLOW if slow else self._damaged.script(), self._damaged.bindings())
        chance = random.random()
        if chance < 0.1:
            data = damage.cut(random, data)
        elif chance < 0.12:
            return damage.cut(random, frame(data)), False
        return frame(data), True

    def _script(self) -> str:
        return SLOW if self._random.random() < SLOW_SHARE else self._random.choice(SCRIPTS)


def message(script: str, bindings: dict[str, Any]) -> bytes:
    args = {"gremlin": script, "language": "gremlin-groovy", "bindings": bindings}
    return request("eval", args)


def login(user: str = "/dbs/g/colls/g") -> bytes:
    sasl = base64.b64encode(f"\0{user}\0{EMULATOR_KEY}".encode()).decode()
    return frame(request("authentication", {"sasl": sasl, "saslMechanism": "PLAIN"}))


def request(op: str, args: dict[str, Any]) -> bytes:
    about = {"requestId": {"@type": "g:UUID", "@value": str(uuid.uuid4())}, "op": op}
    body = json.dumps(about | {"processor": "", "args": args}).encode()
    return bytes([len(MIME)]) + MIME + body


def frame(data: bytes, opcode: int = 2) -> bytes:
    mask = os.urandom(4)
    size = len(data)
    if size < 126:
        head = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, size)
    repeated = (mask * (size // 4 + 1))[:size]
    masked = int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")
    return head + mask + masked.to_bytes(size, "big")


async def run(port: int, pace: Pace, tally: Tally, messages: Messages, random: Random) -> None:
    while await pace.take():
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        try:
            writer.write(UPGRADE.format(port=port).encode())
            async with asyncio.timeout(ANSWER_SECONDS):
                await reader.readuntil(b"\r\n\r\n")
            logs_in = messages.valid or random.random() < 0.9
            if logs_in:
                writer.write(frame(message("g.V().limit(1)", {})))
                await _answer(reader)  # 407
                writer.write(login())
                await _answer(reader)
                writer.write(frame(message(CLEAN, {})))
                await _answer(reader)
            # Whoever has not logged in hears so once; what he asks after that is held.
            for _ in range(PER_CONNECTION if logs_in else 1):
                sent, is_whole = messages.make()
                writer.write(sent)
                if not is_whole:
                    writer.write_eof()  # both could wait for the rest
                tally.sent += 1
                code, inner = await _answer(reader)
                tally.note(f"status {code} {inner}".rstrip(), sent, defect=inner == "500")
                if not await pace.take():
                    return
                if not is_whole:
                    break
        except TimeoutError:
            tally.note_silent(sent)
        except GONE:
            tally.note("closed")
        finally:
            writer.close()


async def _answer(reader: asyncio.StreamReader) -> tuple[int, str]:
    """The code of the last message of an answer. The service answers most failures with 500 and
    says in an attribute which it was."""
    while True:
        async with asyncio.timeout(ANSWER_SECONDS):
            first, second = await reader.readexactly(2)
        size = second & 0x7F
        if size >= 126:
            raw = await reader.readexactly(2 if size == 126 else 8)
            size = int.from_bytes(raw, "big")
        async with asyncio.timeout(ANSWER_SECONDS):
            data = await reader.readexactly(size)
        opcode = first & 0x0F
        if opcode == 8:
            raise ConnectionError("closed")
        if opcode not in (1, 2):
            continue
        status = json.loads(data)["status"]
        if status["code"] != 206:
            about = status.get("attributes") or {}
            return int(status["code"]), str(about.get("x-ms-status-code", ""))
