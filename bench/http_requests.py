"""The requests of bench/http.py, whole and signed before the clock runs: wrk only sends them.

A signature covers method, path and date, so every item read has one of its own, and dates are
those of the last seconds, as of clients that sign each request anew. The server checks each.
"""

import base64
import hashlib
import hmac
import json
import random
import time
import uuid
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any
from urllib.parse import quote

from armillary.api.core.settings import EMULATOR_KEY

DATABASE, CONTAINER = "bench", "items"
COLLECTION = f"dbs/{DATABASE}/colls/{CONTAINER}"
KEYS = 1_000
GROUP_ITEMS = 10
"""A query by group returns so many."""
READS = 8_192
DATES = 20
MIXED_WRITES = 10  # one request in so many is an upsert
#: In the id of each create: the driver counts it up when the requests are sent once more, so that
#: no id is sent twice however fast a server is (bench/http_wrk.lua, `in_turns`).
FIRST_TURN = "-turn-000"
SECRET = base64.b64decode(EMULATOR_KEY)


def item(id: str, number: int, chance: random.Random) -> dict[str, Any]:
    """1 KB, 13 properties, random values: index entries fall everywhere."""
    made: dict[str, Any] = {
        "id": id,
        "pk": f"key-{number % KEYS}",
        "group": f"group-{number // GROUP_ITEMS:07}",
    }
    for leaf in range(5):
        made[f"text{leaf}"] = base64.b64encode(chance.randbytes(120)).decode()
        made[f"number{leaf}"] = chance.random()
    return made


def items(count: int) -> Iterator[dict[str, Any]]:
    chance = random.Random(1)
    return (item(name_of(number), number, chance) for number in range(count))


def name_of(number: int) -> str:
    return f"item-{number:07}"


def reads(port: int, count: int) -> list[bytes]:
    chance = random.Random(2)
    numbers = chance.sample(range(count), min(READS, count))
    return [_read(port, number, turn) for turn, number in enumerate(numbers)]


def creates(port: int, count: int, run: int) -> list[bytes]:
    """`run`: ids of other runs are others."""
    chance = random.Random(1_000 + run)
    return [
        _write(port, item(f"new-{run}-{n}{FIRST_TURN}", chance.randrange(1_000_000), chance), n)
        for n in range(count)
    ]


def queries(port: int, count: int) -> list[bytes]:
    """Ten items of all, by an indexed property that is not the key."""
    chance = random.Random(3)
    extra = {
        "x-ms-documentdb-isquery": "True",
        "x-ms-documentdb-query-enablecrosspartition": "True",
        "Content-Type": "application/query+json",
    }
    return [
        _post(
            port,
            {
                "query": "SELECT * FROM c WHERE c['group'] = @group",
                "parameters": [{"name": "@group", "value": f"group-{group:07}"}],
            },
            extra,
            turn,
        )
        for turn, group in enumerate(chance.choices(range(count // GROUP_ITEMS), k=2_000))
    ]


def upserts(port: int, count: int, run: int) -> list[bytes]:
    """Items that exist, with other values in all but three properties, and others in each run."""
    chance = random.Random(5_000 + run)
    upsert = {"x-ms-documentdb-is-upsert": "True"}
    numbers = [chance.randrange(count) for _ in range(READS)]
    return [
        _write(port, item(name_of(number), number, chance), turn, upsert)
        for turn, number in enumerate(numbers)
    ]


def patches(port: int, count: int, run: int) -> list[bytes]:
    """One property of items that exist, another value in each run."""
    chance = random.Random(6_000 + run)
    found = []
    for turn in range(READS):
        number = chance.randrange(count)
        path = f"{COLLECTION}/docs/{name_of(number)}"
        extra = {
            "x-ms-documentdb-partitionkey": f'["key-{number % KEYS}"]',
            "Content-Type": "application/json_patch+json",
        }
        value = {"op": "set", "path": "/number1", "value": chance.random()}
        body = {"operations": [value]}
        found.append(_request("PATCH", path, ("docs", path), port, extra, body, turn))
    return found


def mixed(port: int, count: int, run: int) -> list[bytes]:
    """Nine reads, one upsert of an item that exists."""
    chance = random.Random(4_000 + run)
    upsert = {"x-ms-documentdb-is-upsert": "True"}
    found = reads(port, count)
    for at in range(0, len(found), MIXED_WRITES):
        number = chance.randrange(count)
        found[at] = _write(port, item(name_of(number), number, chance), at, upsert)
    return found


def database(port: int) -> bytes:
    return _request("POST", "dbs", ("dbs", ""), port, {}, {"id": DATABASE}, 0)


def container(port: int) -> bytes:
    body = {"id": CONTAINER, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    parent = f"dbs/{DATABASE}"
    return _request("POST", f"{parent}/colls", ("colls", parent), port, {}, body, 0)


def plain_creates(port: int, count: int) -> Iterator[bytes]:
    """The items themselves, one by one, for a server that can't be filled in another way."""
    return (_write(port, one, n) for n, one in enumerate(items(count)))


def create(port: int, body: dict[str, Any], turn: int) -> bytes:
    return _write(port, body, turn)


def query_of_range(port: int, text: str) -> bytes:
    """A query as a client that merges by itself asks the first physical partition."""
    extra = {
        "x-ms-documentdb-isquery": "True",
        "x-ms-documentdb-query-enablecrosspartition": "True",
        "x-ms-documentdb-partitionkeyrangeid": "0",
        "x-ms-max-item-count": "-1",
        "Content-Type": "application/query+json",
    }
    return _post(port, {"query": text, "parameters": []}, extra, 0)


def _read(port: int, number: int, turn: int) -> bytes:
    path = f"{COLLECTION}/docs/{name_of(number)}"
    key = {"x-ms-documentdb-partitionkey": f'["key-{number % KEYS}"]'}
    return _request("GET", path, ("docs", path), port, key, None, turn)


def _write(
    port: int, body: dict[str, Any], turn: int, extra: dict[str, str] | None = None
) -> bytes:
    key = {"x-ms-documentdb-partitionkey": json.dumps([body["pk"]])}
    return _post(port, body, key | (extra or {}), turn)


def _post(port: int, body: dict[str, Any], extra: dict[str, str], turn: int) -> bytes:
    return _request("POST", f"{COLLECTION}/docs", ("docs", COLLECTION), port, extra, body, turn)


def _request(
    method: str,
    path: str,
    signed: tuple[str, str],
    port: int,
    extra: dict[str, str],
    body: dict[str, Any] | None,
    turn: int,
) -> bytes:
    date = formatdate(time.time() - turn % DATES, usegmt=True)
    payload = f"{method}\n{signed[0]}\n".lower() + f"{signed[1]}\n{date.lower()}\n\n"
    digest = hmac.digest(SECRET, payload.encode(), hashlib.sha256)
    token = f"type=master&ver=1.0&sig={base64.b64encode(digest).decode()}"
    # What the Python SDK sends.
    headers = {
        "Host": f"localhost:{port}",
        "Cache-Control": "no-cache",
        "x-ms-version": "2020-07-15",
        "User-Agent": "azsdk-python-cosmos/4.9.0 Python/3.11",
        "x-ms-date": date,
        "authorization": quote(token, safe=""),
        "x-ms-activity-id": str(uuid.UUID(int=random.getrandbits(128))),
        "x-ms-consistency-level": "Session",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
    }
    text = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
    if body is not None:
        headers["Content-Length"] = str(len(text))
        extra = {"Content-Type": "application/json"} | extra
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers | extra).items())
    return f"{method} /{path} HTTP/1.1\r\n{lines}\r\n".encode() + text
