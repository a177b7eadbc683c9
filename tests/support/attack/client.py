"""One attacker, as a process: `client '{"protocol": "mongo", "port": 1, "count": 1000, …}'`. Prints
what it heard as JSON. `valid` sends requests with nothing wrong in them, for comparison."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from tests.support.attack import gremlin, mongo, nosql, table
from tests.support.attack.http import ask_many, send_frames
from tests.support.attack.tally import Again, Pace, Tally

RENEW_SECONDS = 20.0
SPOILED_SECONDS = 3.0
"""That most requests may ask for what one of them has deleted."""
CONNECTIONS = 6
LATE_SECONDS = 20.0

Attack = Callable[[dict[str, Any], Pace, Tally, Random], Coroutine[Any, Any, None]]


async def _nosql(asked: dict[str, Any], pace: Pace, tally: Tally, random: Random) -> None:
    world = nosql.RemoteWorld(asked["port"])
    await asyncio.to_thread(world.renew)
    kind = nosql.Valid if asked["valid"] else nosql.Damaged
    made = kind(world, random)
    again = Again(random, made.make, damages=not asked["valid"])

    async def renewing() -> None:
        since = 0.0
        while True:
            await asyncio.sleep(SPOILED_SECONDS)
            since += SPOILED_SECONDS
            if since >= RENEW_SECONDS or world.spoiled:
                await asyncio.to_thread(world.renew)
                since = 0.0

    keeper = asyncio.create_task(renewing())
    asking = (ask_many(asked["port"], pace, tally, again, world.keep) for _ in range(CONNECTIONS))
    await asyncio.gather(*asking)
    keeper.cancel()


async def _scripts(asked: dict[str, Any], pace: Pace, tally: Tally, random: Random) -> None:
    world = nosql.RemoteWorld(asked["port"])
    kind = nosql.ValidScripts if asked["valid"] else nosql.Scripts
    made = kind(world, random)
    await asyncio.gather(*(ask_many(asked["port"], pace, tally, made.make) for _ in range(2)))


async def _table(asked: dict[str, Any], pace: Pace, tally: Tally, random: Random) -> None:
    kind = table.Valid if asked["valid"] else table.Damaged
    made = kind(asked["port"], random)
    again = Again(random, made.make, damages=not asked["valid"])
    await asyncio.gather(*(ask_many(asked["port"], pace, tally, again) for _ in range(CONNECTIONS)))


async def _frames(asked: dict[str, Any], pace: Pace, tally: Tally, random: Random) -> None:
    if asked["valid"]:
        made = nosql.Valid(nosql.RemoteWorld(asked["port"]), random)
        asking = (ask_many(asked["port"], pace, tally, made.make) for _ in range(CONNECTIONS))
        await asyncio.gather(*asking)
        return
    await asyncio.gather(
        *(send_frames(asked["port"], pace, tally, random) for _ in range(CONNECTIONS))
    )


async def _mongo(asked: dict[str, Any], pace: Pace, tally: Tally, random: Random) -> None:
    commands = mongo.Commands(random, valid=asked["valid"])
    await asyncio.gather(
        *(mongo.run(asked["port"], pace, tally, commands, random) for _ in range(CONNECTIONS))
    )


async def _gremlin(asked: dict[str, Any], pace: Pace, tally: Tally, random: Random) -> None:
    messages = gremlin.Messages(random, valid=asked["valid"])
    await asyncio.gather(
        *(gremlin.run(asked["port"], pace, tally, messages, random) for _ in range(CONNECTIONS))
    )


ATTACKS: dict[str, Attack] = {
    "frames": _frames,
    "nosql": _nosql,
    "scripts": _scripts,
    "table": _table,
    "mongo": _mongo,
    "gremlin": _gremlin,
}


async def _attack(asked: dict[str, Any], pace: Pace, tally: Tally) -> None:
    """Answers that are still on their way long after the end are not waited for, and told."""
    try:
        async with asyncio.timeout(asked["seconds"] + LATE_SECONDS):
            await ATTACKS[asked["protocol"]](asked, pace, tally, Random(asked["seed"]))
    except TimeoutError:
        tally.note("late")


def main() -> None:
    asked = {"valid": False, "rate": None, "seed": 1} | json.loads(sys.argv[1])
    tally = Tally()
    pace = Pace(asked["rate"], asked["count"], asked["seconds"])
    asyncio.run(_attack(asked, pace, tally))
    print(json.dumps(tally.as_json() | {"cpu_s": time.process_time()}))


if __name__ == "__main__":
    main()
