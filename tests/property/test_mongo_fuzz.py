"""Commands of the MongoDB API that are nearly right: each is answered, with what it asks for or
with an error of the protocol. Without this a client finds the command that is answered as a mistake
of the server (code 1), or not at all. `ARMILLARY_FUZZ_SEED` and `ARMILLARY_FUZZ_COMMANDS` choose
others."""

from __future__ import annotations

import logging
import os
from collections import Counter
from random import Random

import pytest
from bson.errors import BSONError
from tests.support.mongo import Wire, make_service, message
from tests.support.mongo_damage import ITEM, VALID, Damaged

from armillary.api.mongo.commands.table import COMMANDS
from armillary.encoding.bson.values import decode
from armillary.errors import BadInput

SEED = int(os.environ.get("ARMILLARY_FUZZ_SEED", "7"))
COUNT = int(os.environ.get("ARMILLARY_FUZZ_COMMANDS", "4000"))
FRESH = 500
"""Commands that one account gets."""
INTERNAL_ERROR = 1


def test_every_command_is_answered_by_the_protocol(caplog: pytest.LogCaptureFixture) -> None:
    random = Random(SEED)
    damaged = Damaged(random)
    names: Counter[str] = Counter()
    codes: Counter[int] = Counter()
    wrong: list[str] = []
    wire = Wire()
    for number in range(COUNT):
        if number % FRESH == 0:
            wire = Wire(make_service(strict=random.random() < 0.2))
            wire.run({"insert": "c", "documents": [ITEM]}, "d_mongo")
        command = damaged.command()
        command = command if "maxTimeMS" in command else command | {"maxTimeMS": 200}
        try:
            sent = message(command)
        except (BadInput, BSONError, OverflowError, UnicodeError, TypeError, ValueError):
            continue
        names[next(iter(command))] += 1
        caplog.clear()
        with caplog.at_level(logging.ERROR):
            heard = wire.send(sent)
        assert heard, command
        reply = decode(heard[21:])
        codes[int(reply.get("code", 0))] += 1
        inner = [one["code"] for one in reply.get("writeErrors", ())]
        if caplog.records or INTERNAL_ERROR in (reply.get("code"), *inner):
            wrong.append(f"{command}: {reply}\n{caplog.text}")
    assert not wrong, "\n".join(wrong[:5])
    assert names.keys() >= {next(iter(one)) for one in VALID}
    assert names.keys() >= COMMANDS.keys() - {"dropDatabase"}
    assert codes[0] > COUNT / 5  # the damage does not end at the door


def test_what_it_begins_with_is_right() -> None:
    wire = Wire()
    wire.run({"insert": "c", "documents": [ITEM]}, "d_mongo")
    for command in VALID:
        assert wire.run(command, "d_mongo")["ok"] == 1.0, command
