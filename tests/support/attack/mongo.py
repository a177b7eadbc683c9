"""MongoDB from outside: commands with damage in them, and frames that are none."""

from __future__ import annotations

import asyncio
import struct
from random import Random
from typing import Any, Final

from bson import BSON
from bson.errors import BSONError
from tests.support import fuzz_mutations as damage
from tests.support.attack.tally import Pace, Tally
from tests.support.mongo_damage import ITEM, VALID, Damaged

from armillary.api.core.settings import EMULATOR_KEY
from armillary.encoding.bson.values import decode

HEADER: Final = struct.Struct("<iiii")
OP_MSG, OP_QUERY, OP_COMPRESSED = 2013, 2004, 2012
ANSWER_SECONDS = 90.0
INTERNAL_ERROR = 1
GONE = (OSError, asyncio.IncompleteReadError)
PER_CONNECTION = 200
PING_ID: Final = 2**31 - 1


def message(command: dict[str, Any], number: int) -> bytes:
    body = b"\0\0\0\0\0" + BSON.encode(command)
    return HEADER.pack(HEADER.size + len(body), number, 0, OP_MSG) + body


PING: Final = message({"ping": 1, "$db": "admin"}, PING_ID)
"""Behind a damaged frame, so that one that is not answered need not be waited for."""


class Commands:
    def __init__(self, random: Random, *, valid: bool = False) -> None:
        self._random = random
        self._damaged = Damaged(random)
        self.valid = valid
        self._number = 0

    def login(self) -> bytes:
        payload = f"\0localhost\0{EMULATOR_KEY}".encode()
        return self.message(
            {"saslStart": 1, "mechanism": "PLAIN", "payload": payload, "$db": "$external"}
        )

    def seed(self) -> bytes:
        change = {"q": {"_id": 1}, "u": ITEM, "upsert": True}
        return self.message({"update": "c", "updates": [change], "$db": "d_mongo"})

    def make(self) -> tuple[bytes, bool]:
        """A frame, and whether it is whole."""
        random = self._random
        if self.valid:
            return self.message(random.choice(VALID) | {"$db": "d_mongo"}), True
        command = self._damaged.command()
        try:
            data = self.message(command)
        except (BSONError, OverflowError, UnicodeError, TypeError, ValueError):
            data = self.message({"ping": 1, "$db": "d"})
        if random.random() < 0.15:
            return self._cut(data), False
        return data, True

    def message(self, command: dict[str, Any]) -> bytes:
        self._number += 1
        return message(command, self._number)

    def _cut(self, data: bytes) -> bytes:
        """Damage behind a head whose length fits, or in the head."""
        random = self._random
        if random.random() < 0.8:
            body = damage.cut(random, data[HEADER.size :])
            opcode = random.choice((OP_MSG, OP_MSG, OP_QUERY, OP_COMPRESSED, 1, 2002))
            return HEADER.pack(HEADER.size + len(body), 1, 0, opcode) + body
        return damage.cut(random, data)


async def run(port: int, pace: Pace, tally: Tally, commands: Commands, random: Random) -> None:
    while await pace.take():
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        try:
            if commands.valid or random.random() < 0.9:  # the others never log in
                writer.write(commands.login() + commands.seed())
                await _answers(reader, 2)
            for _ in range(PER_CONNECTION):
                sent, is_whole = commands.make()
                writer.write(sent if is_whole else sent + PING)
                if _length(sent) != len(sent):
                    writer.write_eof()  # both would wait for the rest
                tally.sent += 1
                code = await (_answers(reader) if is_whole else _answers_until_ping(reader))
                tally.note(f"code {code}", sent, defect=code == INTERNAL_ERROR)
                if not await pace.take():
                    return
                if _length(sent) != len(sent):
                    break
        except TimeoutError:
            tally.note_silent(sent)
        except GONE:
            tally.note("closed")
        finally:
            writer.close()


def _length(frame: bytes) -> int:
    return int.from_bytes(frame[:4], "little", signed=True)


async def _answers(reader: asyncio.StreamReader, count: int = 1) -> int:
    """The code of the last."""
    async with asyncio.timeout(ANSWER_SECONDS):
        for _ in range(count):
            _, code = await _reply(reader)
    return code


async def _answers_until_ping(reader: asyncio.StreamReader) -> int:
    """The code of what was answered before the ping, if anything was."""
    code = 0
    async with asyncio.timeout(ANSWER_SECONDS):
        while True:
            to, found = await _reply(reader)
            if to == PING_ID:
                return code
            code = code or found


async def _reply(reader: asyncio.StreamReader) -> tuple[int, int]:
    """What it answers, and its code."""
    length, _, to, opcode = HEADER.unpack(await reader.readexactly(HEADER.size))
    body = await reader.readexactly(length - HEADER.size)
    if opcode != OP_MSG:
        return to, 0
    reply = decode(body[5:])
    errors = [one["code"] for one in reply.get("writeErrors", ())]
    return to, INTERNAL_ERROR if INTERNAL_ERROR in errors else int(reply.get("code", 0))
