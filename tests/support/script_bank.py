"""A bank in one logical partition: transfers by a procedure, while servers and script processes are
killed. The sum never changes, and every acknowledged transfer is there once."""

from __future__ import annotations

import http.client
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from tests.support.nosql import pk
from tests.support.server_process import ServerProcess, children_of
from tests.support.signed_http import SignedClient
from tests.support.waiting import until

ACCOUNTS = 20
START = 1_000
CONTAINER = "/dbs/bank/colls/accounts"
KEY = "branch"
#: Also a receipt, named by the caller: sent again, a transfer is done once.
TRANSFER = """function (source, target, amount, receipt) {
  const link = __.getAltLink() + '/docs/';
  __.readDocument(link + source, (e, a) => {
    if (e) throw e;
    __.readDocument(link + target, (e, b) => {
      if (e) throw e;
      __.createDocument(__.getSelfLink(), {id: receipt, pk: a.pk, source, target, amount}, (e) => {
        if (e) throw e;
        a.balance -= amount;
        b.balance += amount;
        __.replaceDocument(a._self, a, {etag: a._etag}, (e) => { if (e) throw e; });
        __.replaceDocument(b._self, b, {etag: b._etag}, (e) => { if (e) throw e; });
        __.response.setBody(receipt);
      });
    });
  });
}"""
LOST = (OSError, http.client.HTTPException)
AGAIN = frozenset({408, 410, 429, 449, 500, 503})


@dataclass
class Bank:
    """Some servers over one store. `start` makes one."""

    start: Callable[[int], ServerProcess]
    servers: int
    seed: int
    servings: list[ServerProcess] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    kills: int = 0
    child_kills: int = 0
    again: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.servings = [self.start(number) for number in range(self.servers)]
        client = self.client(0)
        assert client.ask("POST", "/dbs", {"id": "bank"}).status in (201, 409)
        definition = {"id": "accounts", "partitionKey": {"paths": ["/pk"], "version": 2}}
        assert client.ask("POST", "/dbs/bank/colls", definition).status == 201
        script = {"id": "transfer", "body": TRANSFER}
        assert client.ask("POST", f"{CONTAINER}/sprocs", script).status == 201
        for number in range(ACCOUNTS):
            item = {"id": f"a{number}", "pk": KEY, "balance": START}
            assert client.create(CONTAINER.strip("/"), item).status == 201
        # Others, so that the range has somewhere to be split: larger than what transfers add, or
        # the second split leaves the accounts alone in a range, which can't be split any more.
        for number in range(40):
            item = {"id": str(number), "pk": f"other{number}", "text": "x" * 1_000}
            assert client.create(CONTAINER.strip("/"), item).status == 201
        client.close()

    def client(self, number: int) -> SignedClient:
        return SignedClient(self.servings[number % self.servers].port)

    def run(self, transfers: int, clients: int, kills: int) -> None:
        numbers: Iterator[int] = count()
        done = threading.Event()
        threads = [
            threading.Thread(target=self._transfer, args=(each, numbers, transfers))
            for each in range(clients)
        ]
        killer = threading.Thread(target=self._kill, args=(transfers, kills, done))
        for thread in (*threads, killer):
            thread.start()
        for thread in threads:
            thread.join()
        done.set()
        killer.join()

    def _transfer(self, who: int, numbers: Iterator[int], transfers: int) -> None:
        chance = random.Random(self.seed * 1000 + who)
        client: SignedClient | None = None
        while True:
            with self._lock:
                number = next(numbers)
            if number >= transfers:
                if client is not None:
                    client.close()
                return
            source, target = chance.sample(range(ACCOUNTS), 2)
            given = [f"a{source}", f"a{target}", chance.randint(1, 50), f"receipt{number}"]
            for _ in range(1_000):
                try:
                    client = client or self.client(who)
                    reply = client.ask("POST", f"{CONTAINER}/sprocs/transfer", given, pk(KEY))
                except LOST:
                    if client is not None:
                        client.close()
                    client = None
                    self.again += 1
                    threading.Event().wait(0.05)
                    continue
                # 409 of the receipt: the answer to an earlier attempt was lost.
                if reply.status == 200 or reply.headers.get("x-ms-substatus") == "409":
                    with self._lock:
                        self.acknowledged.append(str(given[3]))
                    break
                gone = reply.status == 400 and b"memory" in reply.body  # its process was killed
                assert reply.status in AGAIN or gone, (reply.status, reply.body)
                self.again += 1
            else:
                raise AssertionError("a transfer never came through")

    def _kill(self, transfers: int, kills: int, done: threading.Event) -> None:
        chance = random.Random(self.seed)
        for number in range(kills):
            wanted = (number + 1) * transfers // (kills + 1)
            until(partial(self._has, wanted, done))
            which = chance.randrange(self.servers)
            server = self.servings[which]
            if number % 2 == 0 and (pids := script_children(server.process.pid)):
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
                self.child_kills += 1
                continue
            os.killpg(server.process.pid, signal.SIGKILL)
            server.process.wait(60)
            server.close()
            self.servings[which] = self.start(which)
            self.kills += 1

    def _has(self, wanted: int, done: threading.Event) -> bool:
        return len(self.acknowledged) >= wanted or done.is_set()

    def check(self, transfers: int) -> None:
        client = self.client(0)
        headers = pk(KEY) | {"x-ms-max-item-count": "1000"}
        items: dict[str, Any] = {}
        continuation = ""
        while True:
            more = {"x-ms-continuation": continuation} if continuation else {}
            reply = client.ask("GET", f"{CONTAINER}/docs", None, headers | more)
            assert reply.status == 200, reply
            items |= {one["id"]: one for one in reply.json()["Documents"]}
            continuation = reply.headers.get("x-ms-continuation", "")
            if not continuation:
                break
        client.close()
        receipts = {id: one for id, one in items.items() if id.startswith("receipt")}
        balances = {f"a{number}": items[f"a{number}"]["balance"] for number in range(ACCOUNTS)}
        assert sum(balances.values()) == ACCOUNTS * START
        assert len(self.acknowledged) == transfers
        assert set(receipts) == set(self.acknowledged), "acknowledged is there, once"
        expected = dict.fromkeys(balances, START)
        for one in receipts.values():
            expected[one["source"]] -= one["amount"]
            expected[one["target"]] += one["amount"]
        assert balances == expected

    def close(self) -> None:
        for server in self.servings:
            server.close()


def script_children(pid: int) -> list[int]:
    """Of a server and its workers."""
    found: list[int] = []
    for child, command in children_of(pid).items():
        if "scripts/children/child.py" in command:
            found.append(child)
        else:
            found += script_children(child)
    return found


def lmdb_bank(folder: Path, seed: int) -> Bank:
    options = ["--workers", "2"]
    environ = {"ARMILLARY_THROUGHPUT_ENFORCE": "off"}

    def start(_: int) -> ServerProcess:
        server = ServerProcess(folder, real=True, options=options, environ=environ)
        server.wait_until_ready()
        return server

    return Bank(start, 1, seed)


def postgres_bank(folder: Path, url: str, seed: int) -> Bank:
    environ = {"ARMILLARY_THROUGHPUT_ENFORCE": "off"}

    def start(number: int) -> ServerProcess:
        own = folder / str(number)
        options = ["--engine", url]
        server = ServerProcess(own, real=True, options=options, environ=environ)
        server.wait_until_ready()
        return server

    return Bank(start, 2, seed)
