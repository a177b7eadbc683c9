"""Requests that are made to stall a server or to fill its memory, in every protocol, beside a
client that only reads: who is held up, and for how long?

    python -m bench.heavy_requests              all of them, one after the other, some minutes
    python -m bench.heavy_requests mongo sort   those whose name has one of these words
    python -m bench.heavy_requests --times 4    four of each at once

Prints for each: what it was answered, after how long, the longest and the 99th percentile of the
reads beside it, and the memory above what was held before. The reader is a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any

from bson import Int64
from tests.support.attack import gremlin, mongo, table
from tests.support.attack.http import read_answer
from tests.support.attack.run import Siege
from tests.support.nosql import signature

from armillary.api.core.settings import EMULATOR_KEY
from armillary.encoding.bson.values import decode

MB = 1 << 20
ANSWER_SECONDS = 100.0
LONG = 9_223_372_036_854_775_807


@dataclass(frozen=True)
class Heavy:
    name: str
    protocol: str
    make: Callable[[int], bytes]
    """Of a port."""


# --- MongoDB --------------------------------------------------------------------------------------


def command(document: dict[str, Any]) -> Callable[[int], bytes]:
    return lambda port: mongo.message({**document, "$db": "d_mongo"}, 7)


def pipeline(*stages: dict[str, Any], **more: Any) -> Callable[[int], bytes]:
    return command({"aggregate": "c", "pipeline": [*stages], "cursor": {}, **more})


def times(count: int, name: str = "i") -> tuple[dict[str, Any], dict[str, Any]]:
    return {"$set": {name: {"$range": [0, count]}}}, {"$unwind": f"${name}"}


def field(expression: Any) -> dict[str, Any]:
    return {"$project": {"x": expression}}


MANY = (*times(1000), *times(1000, "j"))
TEXT = "a" * MB
MONGO: dict[str, Callable[[], Callable[[int], bytes]]] = {
    "multiply many": lambda: pipeline(field({"$multiply": [Int64(LONG)] * 200_000})),
    "add many": lambda: pipeline(field({"$add": [Int64(LONG)] * 200_000})),
    "trim": lambda: pipeline(
        field({"$trim": {"input": "a" * 8 * MB, "chars": "b" * 7 * MB + "a"}})
    ),
    "upper": lambda: pipeline(field({"$strLenCP": {"$toUpper": "é" * 7 * MB}})),
    "pow": lambda: pipeline(field({"$pow": [Int64(LONG), Int64(LONG)]})),
    "sort": lambda: pipeline(*MANY, {"$project": {"j": 1}}, {"$sort": {"j": -1}}, {"$limit": 1}),
    "sort all": lambda: pipeline(
        *times(1000), *times(550, "j"), {"$project": {"_id": "$j"}}, {"$sort": {"_id": -1}},
        {"$count": "n"},
    ),
    "sort array": lambda: pipeline(
        field({"$size": {"$sortArray": {"input": {"$range": [1_000_000, 0, -1]}, "sortBy": 1}}})
    ),
    "set of arrays": lambda: pipeline(
        field({"$size": {"$setUnion": [{"$range": [0, 900_000]}, {"$range": [0, 900_000]}]}})
    ),
    "group": lambda: pipeline(
        *MANY, {"$group": {"_id": {"i": "$i", "j": "$j"}, "n": {"$sum": 1}}}, {"$count": "n"}
    ),
    "group first": lambda: pipeline(
        *times(3000),
        {"$group": {"_id": "$i", "x": {"$first": {"$concat": [TEXT, {"$toString": "$i"}]}}}},
        {"$count": "n"},
    ),
    "group max": lambda: pipeline(
        *times(3000),
        {"$group": {"_id": "$i", "x": {"$max": {"$concat": [TEXT, {"$toString": "$i"}]}}}},
        {"$count": "n"},
    ),
    "merge objects": lambda: pipeline(
        *MANY,
        {
            "$group": {
                "_id": None,
                "x": {
                    "$mergeObjects": {
                        "$arrayToObject": [
                            [
                                {
                                    "k": {
                                        "$concat": [
                                            "a", {"$toString": "$i"}, "-", {"$toString": "$j"},
                                        ]
                                    },
                                    "v": "$j",
                                }
                            ]
                        ]
                    }
                },
            }
        },
        {"$project": {"_id": 1}},
    ),
    "deviation": lambda: pipeline(
        *MANY, *times(20, "k"), {"$group": {"_id": None, "x": {"$stdDevPop": "$j"}}}
    ),
    "map of texts": lambda: pipeline(
        field(
            {"$size": {"$map": {"input": {"$range": [0, 5000]}, "in": {
                "$concat": [TEXT, {"$toString": "$$this"}]}}}}
        )
    ),
    "reduce": lambda: pipeline(
        field({"$strLenCP": {"$reduce": {"input": {"$range": [0, 60]}, "initialValue": "ab", "in": {
            "$concat": ["$$value", "$$value"]}}}})
    ),
    "zip": lambda: pipeline(
        field({"$size": {"$zip": {"inputs": [{"$range": [0, 900_000]}] * 40}}})
    ),
    "concat arrays": lambda: pipeline(
        field({"$size": {"$concatArrays": [{"$range": [0, 900_000]}] * 40}})
    ),
    "replace all": lambda: pipeline(
        field({"$strLenCP": {"$replaceAll": {
            "input": "a" * 4 * MB, "find": "a", "replacement": "b" * 4 * MB}}})
    ),
    "split": lambda: pipeline(field({"$size": {"$split": ["a," * 5 * MB, ","]}})),
    "regular expression": lambda: pipeline(
        *times(1000),
        {"$match": {"$expr": {"$regexMatch": {"input": "a" * 40 + "b", "regex": "^(a+)+$"}}}},
    ),
    "long regular expression": lambda: pipeline({"$match": {"s": {"$regex": "(a|b)?" * 500_000}}}),
    "many regular expressions": lambda: command(
        {"find": "c", "filter": {"$or": [
            {"s": {"$regex": f"(x{at}|b)?" * 3_000}} for at in range(400)]}}
    ),
    "recursive regular expression": lambda: pipeline(
        {"$match": {"$expr": {"$regexMatch": {"input": "(" * MB, "regex": "(\\((?1)*\\))"}}}}
    ),
    "or of many": lambda: command(
        {"find": "c", "filter": {"$or": [{"n": at, "a.b": {"$gt": at}} for at in range(300_000)]}}
    ),
    "in of many": lambda: command({"find": "c", "filter": {"n": {"$in": [*range(1_000_000)]}}}),
    "ids of many": lambda: command({"find": "c", "filter": {"_id": {"$in": [*range(1_000_000)]}}}),
    "insert many": lambda: command(
        {"insert": "x", "documents": [{"_id": at, "n": at} for at in range(100_000)]}
    ),
    "insert wide": lambda: command(
        {"insert": "x", "documents": [{f"f{at}": at for at in range(120_000)}]}
    ),
    "insert deep": lambda: command({"insert": "x", "documents": [nested(150, [1] * 100_000)]}),
    "set many": lambda: command(
        {"update": "c", "updates": [
            {"q": {"_id": 1}, "u": {"$set": {f"f{at}": at for at in range(100_000)}}}]}
    ),
    "updates of one": lambda: command(
        {"update": "c", "updates": [
            {"q": {"_id": 1}, "u": {"$inc": {"n": 1}}} for _ in range(20_000)]}
    ),
    "deletes of all": lambda: command(
        {"delete": "c", "deletes": [{"q": {"n": {"$gt": at}}, "limit": 0} for at in range(50_000)]}
    ),
    "lookup": lambda: pipeline(
        *times(1000), {"$lookup": {"from": "c", "as": "y", "pipeline": [*MANY, {"$count": "n"}]}}
    ),
    "facet": lambda: pipeline({"$facet": {f"f{at}": [*MANY, {"$count": "n"}] for at in range(40)}}),
    "unwind": lambda: pipeline(*MANY, *times(1000, "k"), {"$count": "n"}),
    "many stages": lambda: pipeline(*[{"$set": {f"f{at}": at}} for at in range(1000)] * 20),
    "add fields": lambda: pipeline({"$set": {f"f{at}": "$n" for at in range(300_000)}}),
    "switch": lambda: pipeline(
        field({"$switch": {"branches": [
            {"case": {"$eq": ["$n", at]}, "then": at} for at in range(200_000)], "default": 0}})
    ),
    "array filters": lambda: command(
        {"update": "c", "updates": [{
            "q": {"_id": 1}, "u": {"$set": {f"a.$[x{at}]": 1 for at in range(2000)}},
            "arrayFilters": [{f"x{at}": 1} for at in range(2000)]}]}
    ),
    "out": lambda: pipeline(*MANY, {"$project": {"_id": {"$concat": [
        {"$toString": "$i"}, "-", {"$toString": "$j"}]}}}, {"$out": "x"}),
    "distinct": lambda: command({"distinct": "wide", "key": "a"}),
    "indexes": lambda: command({"createIndexes": "c", "indexes": [
        {"key": {f"f{at}": 1}, "name": f"f{at}"} for at in range(100_000)]}),
    "sessions": lambda: command({"endSessions": [{"id": at} for at in range(500_000)]}),
    "kill cursors": lambda: command(
        {"killCursors": "c", "cursors": [Int64(at) for at in range(500_000)]}
    ),
}  # fmt: skip


def nested(depth: int, value: Any) -> Any:
    for _ in range(depth):
        value = {"a": value}
    return value


# --- NoSQL ----------------------------------------------------------------------------------------


def http(
    method: str, target: str, kind: str, link: str, body: Any, headers: dict[str, str]
) -> Callable[[int], bytes]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()

    def make(port: int) -> bytes:
        date = formatdate(usegmt=True)
        lines = {
            "host": f"localhost:{port}",
            "x-ms-date": date,
            "x-ms-version": "2020-07-15",
            "authorization": signature(EMULATOR_KEY, method, kind, link, date),
            **headers,
            "content-length": str(len(raw)),
        }
        head = f"{method} {target} HTTP/1.1\r\n"
        return (head + "".join(f"{k}: {v}\r\n" for k, v in lines.items()) + "\r\n").encode() + raw

    return make


KEY = {"x-ms-documentdb-partitionkey": '["a"]'}
DOCS = ("/dbs/s/colls/c/docs", "docs", "dbs/s/colls/c")


def query(text: str, **parameters: Any) -> Callable[[int], bytes]:
    named = [{"name": f"@{name}", "value": value} for name, value in parameters.items()]
    about = {"content-type": "application/query+json", "x-ms-documentdb-isquery": "true"}
    return http("POST", *DOCS, {"query": text, "parameters": named}, KEY | about)


def item(body: Any) -> Callable[[int], bytes]:
    return http("POST", *DOCS, body, KEY | {"x-ms-documentdb-is-upsert": "True"})


NUMBERS = [*range(30_000)]
EACH = "FROM c JOIN x IN (SELECT VALUE @p)"
NOSQL: dict[str, Callable[[], Callable[[int], bytes]]] = {
    "an item for the others": lambda: item({"id": "1", "pk": "a", "n": 1}),
    "join": lambda: query(f"SELECT VALUE COUNT(1) {EACH} WHERE ARRAY_CONTAINS(@p, x+1000000)",
                          p=NUMBERS),
    "large": lambda: query(
        "SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE CONCAT(@s, ToString(x)) "
        "FROM x IN (SELECT VALUE @p))) FROM c", s="s" * 1_200_000, p=[*range(1200)]),
    "order": lambda: query(
        f"SELECT VALUE x {EACH} JOIN y IN (SELECT VALUE @q) ORDER BY c.n",
        p=NUMBERS, q=[*range(9)]),
    "distinct": lambda: query(
        f"SELECT DISTINCT x, y {EACH} JOIN y IN (SELECT VALUE @q)", p=NUMBERS, q=[*range(99)]),
    "group": lambda: query(
        f"SELECT x, y, COUNT(1) AS n {EACH} JOIN y IN (SELECT VALUE @q) GROUP BY x, y",
        p=NUMBERS, q=[*range(99)]),
    "in": lambda: query(f"SELECT * FROM c WHERE c.n IN ({','.join(map(str, range(50_000)))})"),
    "or": lambda: query(
        f"SELECT * FROM c WHERE {' OR '.join(f'c.n = {at}' for at in range(9_000))}"),
    "nested": lambda: query(f"SELECT {'(' * 4000}1{')' * 4000} FROM c"),
    "replace": lambda: query(
        f"SELECT VALUE LENGTH(REPLACE(@s, 'a', @s)) {EACH}", s="a" * 2_000, p=NUMBERS),
    "regular expression": lambda: query(
        f"SELECT VALUE COUNT(1) {EACH} WHERE RegexMatch(CONCAT(@s, ToString(x)), '^(a+)+$')",
        s="a" * 30, p=NUMBERS),
    "sets": lambda: query(
        f"SELECT VALUE ARRAY_LENGTH(SetUnion(@p, ARRAY_CONCAT(@p, [x]))) {EACH}", p=NUMBERS),
    "wide item": lambda: item({"id": "wide", "pk": "a"} | {f"f{at}": at for at in range(80_000)}),
    "long array": lambda: item({"id": "long", "pk": "a", "a": [*range(250_000)]}),
    "deep item": lambda: item({"id": "deep", "pk": "a", "a": nested(120, [1] * 200_000)}),
    "not signed": lambda: http("POST", *DOCS, b"[" * 1_900_000, KEY | {"authorization": "x"}),
    "not JSON": lambda: item(b"[" * 1_900_000),
    "long number": lambda: item(b'{"id":"n","pk":"a","n":' + b"9" * 1_800_000 + b"}"),
    "procedure": lambda: http(
        "POST", "/dbs/s/colls/c/sprocs", "sprocs", "dbs/s/colls/c",
        {"id": "heavy", "body": "function () { const a = []; for (;;) a.push(new Array(1e5)); }"},
        {}),
    "run procedure": lambda: http(
        "POST", "/dbs/s/colls/c/sprocs/heavy", "sprocs", "dbs/s/colls/c/sprocs/heavy", [], KEY),
}  # fmt: skip


# --- Gremlin and Table ----------------------------------------------------------------------------


def script(text: str) -> Callable[[int], bytes]:
    return lambda port: gremlin.frame(gremlin.message(text, {}))


def entities(text: str) -> Callable[[int], bytes]:
    from urllib.parse import quote

    return lambda port: table.signed(port, "GET", f"/t()?$filter={quote(text, safe='')}", b"", {})


NINE = ".union(identity(),identity(),identity(),identity(),identity(),identity(),identity())"
GREMLIN: dict[str, Callable[[], Callable[[int], bytes]]] = {
    "inject": lambda: script(f"g.inject({','.join(['1'] * 200_000)}).fold()"),
    "inject text": lambda: script(f"g.inject('{'a' * 500_000}'){NINE * 6}.fold()"),
    "order": lambda: script(f"g.inject(1,2,3,4,5,6,7,8){NINE * 6}.order()"),
    "order paths": lambda: script(f"g.inject(1,2,3,4,5,6,7,8){NINE * 5}.as('a').path().order()"),
    "group": lambda: script(f"g.inject(1,2,3,4,5,6,7,8){NINE * 6}.group().by(identity())"),
    "dedup": lambda: script(f"g.inject(1,2,3,4,5,6,7,8){NINE * 6}.path().dedup().count()"),
    "repeat": lambda: script("g.inject(1).repeat(union(identity(),identity())).times(40).path()"),
    "repeat for ever": lambda: script("g.inject(1).repeat(identity()).until(constant(1).is(2))"),
    "count": lambda: script("g.inject(1).repeat(union(identity(),identity())).times(60).count()"),
    "many steps": lambda: script("g.V()" + ".out()" * 60_000),
    "deep steps": lambda: script("g.V()" + ".where(out()" * 60_000 + ")" * 60_000),
    "long text": lambda: script(f"g.inject('{'a' * 900_000}').count()"),
    "parentheses": lambda: script("g.inject(" + "[" * 400_000),
    "bulk": lambda: script("g.inject(1).repeat(union(identity(),identity())).times(30).fold()"),
}
TABLE: dict[str, Callable[[], Callable[[int], bytes]]] = {
    "or of many": lambda: entities(" or ".join(f"Number eq {at}" for at in range(300))),
    "parentheses": lambda: entities("(" * 1_000 + "Number eq 1" + ")" * 1_000),
    "not": lambda: entities("not " * 1_000 + "(Number eq 1)"),
    "long text": lambda: entities("Text eq '" + "a" * 6_000 + "'"),
}
PORTS = {"mongo": MONGO, "nosql": NOSQL, "gremlin": GREMLIN, "table": TABLE}


async def ask(heavy: Heavy, siege: Siege) -> str:
    port = siege.ports[heavy.protocol]
    data = heavy.make(port)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=64 * MB)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            if heavy.protocol == "mongo":
                writer.write(mongo.Commands(None).login())  # type: ignore[arg-type]
                await mongo._reply(reader)
                writer.write(data)
                length, _, _, _ = mongo.HEADER.unpack(await reader.readexactly(16))
                reply = decode((await reader.readexactly(length - 16))[5:])
                errors = reply.get("writeErrors", [])
                return f"code {reply.get('code', 0)}{f' {errors[0]}' if errors else ''}"[:70]
            if heavy.protocol == "gremlin":
                writer.write(gremlin.UPGRADE.format(port=port).encode())
                await reader.readuntil(b"\r\n\r\n")
                writer.write(gremlin.frame(gremlin.message("g.V().limit(1)", {})))
                await gremlin._answer(reader)
                writer.write(gremlin.login())
                await gremlin._answer(reader)
                writer.write(data)
                return "status {} {}".format(*await gremlin._answer(reader))
            writer.write(data)
            return str((await read_answer(reader)).status)
    except (OSError, asyncio.IncompleteReadError):
        return "closed"
    except TimeoutError:
        return "SILENT"
    finally:
        writer.close()


class Most:
    def __init__(self, siege: Siege) -> None:
        self._siege = siege
        self.mb = siege.memory_mb()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            self.mb = max(self.mb, self._siege.memory_mb())

    def stop(self) -> float:
        self._stop.set()
        self._thread.join()
        return self.mb


async def ask_all(heavy: Heavy, siege: Siege, count: int) -> list[str]:
    return await asyncio.gather(*(ask(heavy, siege) for _ in range(count)))


def run(siege: Siege, heavy: Heavy, count: int) -> str:
    before = siege.memory_mb()
    most = Most(siege)
    with siege.victim() as seen:
        began = time.monotonic()
        spent = siege.cpu_s()
        told = asyncio.run(ask_all(heavy, siege, count))
        seconds = time.monotonic() - began
        time.sleep(0.3)
    answers = ", ".join(sorted(set(told)))
    return (
        f"{heavy.protocol:8}{heavy.name:30}{answers:36} {seconds:6.1f} s "
        f"cpu {siege.cpu_s() - spent:5.1f} s, "
        f"reads p99 {seen['p99']:6.1f} max {seen['max']:7.0f} ms, "
        f"{most.stop() - before:+5.0f} MB{', WRONG READS' if seen['wrong'] else ''}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of protocols and names; all without any")
    parser.add_argument("--times", type=int, default=1)
    asked = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"python -m bench.heavy_requests {' '.join(sys.argv[1:])}, load {load:.1f} before")
    with tempfile.TemporaryDirectory() as folder:
        siege = Siege(Path(folder) / "data")
        try:
            with_login = mongo.Commands(None)  # type: ignore[arg-type]
            asyncio.run(prepare(siege.ports["mongo"], with_login))
            for protocol, table_ in PORTS.items():
                for name, make in table_.items():
                    full = f"{protocol} {name}"
                    if asked.words and not any(re.search(one, full) for one in asked.words):
                        continue
                    heavy = Heavy(name, protocol, make())
                    print(run(siege, heavy, asked.times), flush=True)
            for line in siege.story:
                print("log:", line)
        finally:
            siege.close()


async def prepare(port: int, commands: mongo.Commands) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(commands.login() + commands.seed())
    await mongo._answers(reader, 2)
    writer.close()


if __name__ == "__main__":
    main()
