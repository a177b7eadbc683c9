"""MongoDB from outside: commands with damage in them, and frames that are none."""

from __future__ import annotations

import asyncio
import struct
from random import Random
from typing import Any, Final

from bson import BSON, Binary, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.errors import BSONError
from tests.support import fuzz_mutations as damage
from tests.support.attack.tally import Pace, Tally

from armillary.api.core.settings import EMULATOR_KEY

HEADER: Final = struct.Struct("<iiii")
OP_MSG, OP_QUERY, OP_COMPRESSED = 2013, 2004, 2012
ANSWER_SECONDS = 90.0
INTERNAL_ERROR = 1
GONE = (OSError, asyncio.IncompleteReadError)
PER_CONNECTION = 200
SPECIAL: Final[tuple[Any, ...]] = (
    *(Int64(2**62), Decimal128("1E+6144"), Decimal128("NaN"), MinKey(), MaxKey(), Timestamp(1, 1)),
    *(ObjectId("0" * 24), Binary(b"x", 4), Regex("(a+)+$", "i"), Regex("[", "z"), float("inf")),
)
ITEM: Final[dict[str, Any]] = {"_id": 1, "a": [1, {"b": 2}], "s": "fox", "n": 5}
COMMANDS: Final[tuple[dict[str, Any], ...]] = (
    {"find": "c", "filter": {"n": {"$gt": 3}, "a.b": 2}, "sort": {"n": -1}, "limit": 5},
    {"find": "c", "filter": {"$or": [{"s": {"$regex": "^f"}}, {"a": {"$elemMatch": {"b": 2}}}]}},
    {"find": "c", "filter": {"$expr": {"$gt": ["$n", {"$add": [1, 2]}]}}, "projection": {"a": 1}},
    {"find": "c", "filter": {"a": {"$all": [1], "$size": 2}, "n": {"$in": [1, 5], "$type": "int"}}},
    {"insert": "c", "documents": [ITEM]},
    {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a.0": 3}, "$inc": {"n": 1}}}]},
    {"update": "c", "updates": [{"q": {"n": 5}, "u": {"$push": {"a": {"$each": [1]}}}}]},
    {"update": "c", "updates": [{"q": {}, "u": [{"$set": {"x": "$n"}}], "multi": True}]},
    {"delete": "c", "deletes": [{"q": {"_id": 7}, "limit": 1}]},
    {"findAndModify": "c", "query": {"_id": 1}, "update": {"$unset": {"x": 1}}, "new": True},
    {
        "aggregate": "c",
        "pipeline": [
            {"$match": {"n": {"$gte": 1}}},
            {"$unwind": "$a"},
            {"$group": {"_id": "$s", "t": {"$sum": "$n"}}},
            {"$project": {"t": {"$concat": ["$_id", {"$toString": "$t"}]}}},
            {"$sort": {"t": 1}},
            {"$limit": 3},
        ],
        "cursor": {},
    },
    {"aggregate": "c", "pipeline": [{"$facet": {"x": [{"$count": "n"}]}}], "cursor": {}},
    {"count": "c", "query": {"n": 5}},
    {"distinct": "c", "key": "a", "query": {}},
    {"createIndexes": "c", "indexes": [{"key": {"n": 1}, "name": "n_1"}]},
    {"listIndexes": "c"},
    {"listCollections": 1},
    {"getMore": Int64(7), "collection": "c"},
    {"killCursors": "c", "cursors": [Int64(7)]},
    {"hello": 1},
    {"collStats": "c"},
    {"explain": {"find": "c", "filter": {"n": 1}}},
    {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": b"n,,n=localhost,r=abc"},
    {"saslContinue": 1, "conversationId": 1, "payload": b"c=biws,r=abc,p=AAAA"},
)
#: Without those that need a cursor or a conversation that is not there.
NEEDY: Final = {"getMore", "killCursors", "saslStart", "saslContinue"}
VALID: Final = tuple(one for one in COMMANDS if not one.keys() & NEEDY)


PING_ID: Final = 2**31 - 1


def message(command: dict[str, Any], number: int) -> bytes:
    body = b"\0\0\0\0\0" + BSON.encode(command)
    return HEADER.pack(HEADER.size + len(body), number, 0, OP_MSG) + body


PING: Final = message({"ping": 1, "$db": "admin"}, PING_ID)
"""Behind a damaged frame, so that one that is not answered need not be waited for."""


class Commands:
    def __init__(self, random: Random, *, valid: bool = False) -> None:
        self._random = random
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
        command: Any = random.choice(COMMANDS) | {"$db": "d_mongo"}
        for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
            command = self._changed(command)
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

    def _changed(self, whole: Any) -> Any:
        """A value put somewhere, also of kinds that JSON has not; names of commands stay first."""
        random = self._random
        if isinstance(whole, dict) and whole:
            name = random.choice(list(whole))
            if random.random() < 0.1:
                return whole | {damage.text(random): random.choice(SPECIAL)}
            return whole | {name: self._changed(whole[name])}
        if isinstance(whole, list) and whole:
            at = random.randrange(len(whole))
            return [*whole[:at], self._changed(whole[at]), *whole[at + 1 :]]
        if random.random() < 0.3:
            return random.choice(SPECIAL)
        if random.random() < 0.1:
            deep: Any = 1
            for _ in range(random.choice((5, 90, 180))):
                deep = {"$and": [deep]}
            return deep
        return damage.changed(random, whole)

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
    code = BSON(body[5:]).decode().get("code", 0) if opcode == OP_MSG else 0
    return to, int(code)
