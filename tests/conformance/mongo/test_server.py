"""The whole server: two workers, TLS, and kill -9 under load. What a client began on one connection
goes on over any other."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from bson import Binary, Int64
from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError
from tests.support.mongo import message
from tests.support.pg_cluster import free_port
from tests.support.server_process import ServerProcess
from tests.support.waiting import until

from armillary.encoding.bson.values import decode

URI = re.compile(r"(mongodb://\S+)")


@contextmanager
def started(data: Path, *options: str) -> Iterator[tuple[ServerProcess, str]]:
    """A server, and the URI that its banner prints."""
    off = ["--table-port", "off", "--gremlin-port", "off", "--mongo-port", "0"]
    environ = {"ARMILLARY_THROUGHPUT_ENFORCE": "off"}
    server = ServerProcess(data, real=True, options=[*off, *options], environ=environ)
    try:
        server.wait_until_ready()
        (uri,) = [found[1] for line in server.lines if (found := URI.search(line))]
        yield server, uri
    finally:
        server.close()


class Raw:
    """A connection that sends commands as they are: drivers put their own session into each."""

    def __init__(self, uri: str) -> None:
        found = re.match(r"mongodb://([^:]+):([^@]+)@localhost:(\d+)/", uri)
        assert found is not None
        user, key, port = found[1], unquote(found[2]), int(found[3])
        self._socket = socket.create_connection(("127.0.0.1", port), 60)
        payload = f"\0{user}\0{key}".encode()
        self.run({"saslStart": 1, "mechanism": "PLAIN", "payload": payload}, "admin")

    def run(self, command: dict[str, Any], database: str = "shop") -> dict[str, Any]:
        self._socket.sendall(message({**command, "$db": database}))
        data = b""
        while len(data) < 4 or len(data) < int.from_bytes(data[:4], "little"):
            data += self._socket.recv(65_536)
        reply = decode(data[21:])
        assert reply["ok"] == 1, reply
        return reply

    def close(self) -> None:
        self._socket.close()


def plain(uri: str) -> str:
    """The same without TLS: one port speaks both."""
    return uri.replace("ssl=true&", "").partition("&tlsCAFile")[0]


def opened(uri: str) -> MongoClient[dict[str, Any]]:
    return MongoClient(uri, serverSelectionTimeoutMS=60_000)


def snapshot_over(raws: Sequence[Raw], items: Any) -> None:
    """A transaction over all of these connections reads what there was at its first statement."""
    items.insert_many([{"_id": f"s{n}", "s": n} for n in range(9)])
    transaction: dict[str, Any] = {
        "lsid": {"id": Binary(os.urandom(16), 4)},
        "txnNumber": Int64(1),
        "autocommit": False,
    }
    find = {"find": "items", "filter": {"s": {"$gte": 0}}, "sort": {"s": 1}, **transaction}
    before = raws[0].run({**find, "startTransaction": True})["cursor"]["firstBatch"]
    assert [one["s"] for one in before] == list(range(9))
    items.delete_one({"_id": "s1"})
    items.update_one({"_id": "s2"}, {"$set": {"s": -1}})
    items.replace_one({"_id": "s3"}, {"s": 30})
    items.insert_one({"_id": "s9", "s": 9})
    items.delete_many({"s": {"$gte": 7}})
    count = [{"$match": {"s": {"$gte": 0}}}, {"$count": "n"}]
    for raw in raws:
        assert raw.run(find)["cursor"]["firstBatch"] == before
        piped = raw.run({"aggregate": "items", "pipeline": count, "cursor": {}, **transaction})
        assert piped["cursor"]["firstBatch"] == [{"n": 9}]
        values = raw.run({"distinct": "items", "key": "s", **transaction})["values"]
        assert values == list(range(9))
        one = raw.run({"find": "items", "filter": {"_id": "s1"}, **transaction})["cursor"]
        assert one["firstBatch"] == [{"_id": "s1", "s": 1}]
    raws[-1].run({"commitTransaction": 1, **transaction}, "admin")
    assert sorted(items.distinct("s")) == [-1, 0, 4, 5, 6]


def test_cursors_and_transactions_go_on_over_any_connection(tmp_path: Path) -> None:
    with started(tmp_path / "data", "--workers", "2") as (_, uri):
        clients = [opened(uri) for _ in range(6)]
        try:
            first = clients[0].shop
            first.items.insert_many([{"_id": n} for n in range(60)])
            answer = first.command({"find": "items", "batchSize": 5})["cursor"]
            found = answer["firstBatch"]
            at = 0
            while answer["id"]:
                at += 1
                more = {"getMore": Int64(answer["id"]), "collection": "items", "batchSize": 5}
                answer = clients[at % 6].shop.command(more)["cursor"]
                found += answer["nextBatch"]
            assert [one["_id"] for one in found] == list(range(60))

            transaction: dict[str, Any] = {
                "lsid": {"id": Binary(os.urandom(16), 4)},
                "txnNumber": Int64(1),
                "autocommit": False,
            }
            raws = [Raw(uri) for _ in range(4)]
            for at, raw in enumerate(raws):
                insert = {"insert": "items", "documents": [{"_id": f"t{at}"}], **transaction}
                if at == 0:
                    insert["startTransaction"] = True
                raw.run(insert)
            assert clients[4].shop.items.count_documents({"_id": "t0"}) == 0
            for raw in raws[1:3]:  # a commit may be sent twice
                raw.run({"commitTransaction": 1, **transaction}, "admin")
            assert first.items.count_documents({}) == 64
            snapshot_over(raws, first.items)
            for raw in raws:
                raw.close()

            watching = {"aggregate": "items", "cursor": {}, "pipeline": [{"$changeStream": {}}]}
            stream = first.command(watching)["cursor"]
            first.items.insert_one({"_id": "w"})
            events: list[Any] = []
            for at in range(100):
                more = {"getMore": Int64(stream["id"]), "collection": "items", "maxTimeMS": 200}
                events += clients[at % 6].shop.command(more)["cursor"]["nextBatch"]
                if events:
                    break
            assert [one["documentKey"]["_id"] for one in events] == ["w"]
            kill = {"killCursors": "items", "cursors": [Int64(stream["id"])]}
            assert clients[3].shop.command(kill)["cursorsKilled"] == [stream["id"]]
            with pytest.raises(OperationFailure) as caught:
                clients[2].shop.command({"getMore": Int64(stream["id"]), "collection": "items"})
            assert caught.value.code == 43
        finally:
            for client in clients:
                client.close()


class Load:
    """One driver that inserts in bulk and pushes numbers into an array, over any number of kills.
    Its writes are retryable, so a number that arrives twice was applied twice."""

    def __init__(self, uri: str, place: int) -> None:
        self._uri = uri
        self._place = place
        self.acknowledged: set[int] = set()
        self.pushed: list[int] = []
        self.asked = 0
        self.failed = 0

    def run(self, ended: threading.Event) -> None:
        client: MongoClient[dict[str, Any]] = MongoClient(
            self._uri, serverSelectionTimeoutMS=60_000, socketTimeoutMS=60_000
        )
        with client:
            while not ended.is_set():
                number, self.asked = self.asked, self.asked + 1
                ids = [(number * 8 + self._place) * 10 + step for step in range(10)]
                try:
                    client.shop.load.insert_many([{"_id": one, "k": one % 3} for one in ids])
                    self.acknowledged.update(ids)
                    client.shop.pushes.update_one(
                        {"_id": self._place}, {"$push": {"seen": number}}, upsert=True
                    )
                    self.pushed.append(number)
                except PyMongoError:
                    self.failed += 1  # two kills in one write, or one that can't be repeated


def all_pushed(loads: Sequence[Load], before: Sequence[int], more: int) -> bool:
    """Whether each has pushed more than `more` since."""
    return all(len(one.pushed) > was + more for one, was in zip(loads, before, strict=True))


def test_kills_under_bulk_load_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    port = ["--mongo-port", str(free_port())]
    ended = threading.Event()
    with ExitStack() as stack:
        server, secure = stack.enter_context(started(tmp_path / "data", *port))
        with opened(plain(secure)) as client:
            client.admin.command({"shardCollection": "shop.load", "key": {"k": "hashed"}})
        loads = [Load(plain(secure), place) for place in range(8)]
        threads = [threading.Thread(target=one.run, args=(ended,)) for one in loads]
        stack.callback(ended.set)
        for thread in threads:
            thread.start()
        for _ in range(2):
            before = [len(one.pushed) for one in loads]
            until(partial(all_pushed, loads, before, 2))
            os.killpg(server.process.pid, signal.SIGKILL)
            server.close()
            server, _ = stack.enter_context(started(tmp_path / "data", *port))
        before = [len(one.pushed) for one in loads]
        until(partial(all_pushed, loads, before, 0))
        ended.set()
        for thread in threads:
            thread.join(100)
        with opened(plain(secure)) as client:
            stored = [one["_id"] for one in client.shop.load.find({})]
            pushes = {one["_id"]: one["seen"] for one in client.shop.pushes.find({})}
    assert len(stored) == len(set(stored))
    for place, one in enumerate(loads):
        assert one.acknowledged <= set(stored)
        assert set(one.pushed) <= set(pushes[place])
        assert len(pushes[place]) == len(set(pushes[place]))
