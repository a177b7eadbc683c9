"""Killing a whole server under load, again and again, on one folder.

    Rounds(folder, seed)
      round()   start ──▶ is what was acknowledged there? ──▶ 16 clients write ──SIGKILL──▶

Most clients are signed requests over one connection, so that the server has most of the machine;
some are the official SDK. They create single items and batches of three. An answer of success is a
promise; no answer leaves open whether it was done, but never by half.
"""

from __future__ import annotations

import http.client
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from azure.core.exceptions import AzureError
from azure.cosmos import CosmosClient
from tests.support.server_process import ServerProcess
from tests.support.signed_http import SignedClient

from armillary.api.core.settings import EMULATOR_KEY

CONTAINER = "dbs/kills/colls/c"
BATCH = 3
BATCH_EVERY = 4
CHECKERS = 4
# Small, so that ranges also split while they are killed.
OPTIONS = ("--partition-bytes", "300KB")
RU = 100_000
LOST = (OSError, http.client.HTTPException)

Item = dict[str, Any]
Group = list[Item]
"""What was sent at once: one item, or a batch."""


@dataclass
class Sent:
    """What one client did; only its own thread writes."""

    promised: list[Group] = field(default_factory=list)
    open: list[Group] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Tally:
    kills: int = 0
    promised: int = 0
    open_done: int = 0
    open_gone: int = 0

    def plus(self, other: Tally) -> Tally:
        return Tally(
            self.kills + other.kills,
            self.promised + other.promised,
            self.open_done + other.open_done,
            self.open_gone + other.open_gone,
        )

    def __str__(self) -> str:
        return (
            f"{self.kills} kills; {self.promised} items acknowledged, all there; of unanswered "
            f"writes {self.open_done} were done and {self.open_gone} were not, none by half"
        )


class Rounds:
    def __init__(self, folder: Path, seed: int, *, raw: int = 13, sdk: int = 3) -> None:
        self._folder = folder
        self._random = Random(seed)
        self._raw, self._sdk = raw, sdk
        self._pool = ThreadPoolExecutor(max(raw, CHECKERS))
        # Those of the SDK go on asking a dead server for seconds; the next round does not wait.
        self._sdk_pool = ThreadPoolExecutor(16 * sdk)
        self._sdk_working: list[tuple[Future[None], Sent]] = []
        self._round = 0
        self._promised: list[Group] = []
        self._open: list[Group] = []
        self._server = self._start()
        client = SignedClient(self._server.port)
        definition = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
        assert client.ask("POST", "/dbs", {"id": "kills"}).status == 201
        offer = {"x-ms-offer-throughput": str(RU)}
        assert client.ask("POST", "/dbs/kills/colls", definition, offer).status == 201
        client.close()

    def round(self) -> None:
        """Write, kill, start again, look for what was acknowledged in this round."""
        self._round += 1
        chance = Random(self._random.random())
        stop = threading.Event()
        done = [Sent() for _ in range(self._raw + self._sdk)]
        working: list[Future[None]] = []
        for at, sent in enumerate(done):
            is_raw = at < self._raw
            write, pool = (_write_raw, self._pool) if is_raw else (_write_sdk, self._sdk_pool)
            work = groups(self._round, at, chance.random(), stop)
            working.append(pool.submit(write, self._server.port, work, sent))
        begun = time.monotonic()
        while not all(one.promised for one in done):
            assert time.monotonic() < begun + 120, "some client gets no answer"
            time.sleep(0.001)
        time.sleep(chance.random() * 0.08)
        self._kill(only_server=chance.random() < 0.25)
        stop.set()
        for one in working[: self._raw]:
            one.result(120)
        self._sdk_working += zip(working[self._raw :], done[self._raw :], strict=True)
        for sent in done[: self._raw]:
            self._keep(sent)
        new = [group for one in done for group in list(one.promised)]
        self._server = self._start()
        self._check(new)

    def finish(self) -> Tally:
        """Every item of all rounds, through the official SDK."""
        for working, sent in self._sdk_working:
            working.result(120)
            self._keep(sent)
        found: dict[tuple[str, str], Item] = {}
        with CosmosClient(f"http://localhost:{self._server.port}", EMULATOR_KEY) as client:
            container = client.get_database_client("kills").get_container_client("c")
            for one in container.read_all_items(max_item_count=1_000):
                found[one["id"], one["pk"]] = bare(one)
            text = "SELECT VALUE COUNT(1) FROM c"
            counted: Any = container.query_items(text, enable_cross_partition_query=True)
            assert list(counted) == [len(found)]
        for group in self._promised:
            for item in group:
                assert found.pop((item["id"], item["pk"]), None) == item, f"lost: {item}"
        done = gone = 0
        for group in self._open:
            there = [found.pop((item["id"], item["pk"]), None) for item in group]
            assert there in (group, [None] * len(group)), f"half of a batch: {there}"
            done, gone = (done + 1, gone) if there == group else (done, gone + 1)
        assert not found, "nobody wrote these"
        return Tally(self._round, sum(map(len, self._promised)), done, gone)

    def close(self) -> None:
        self._server.close()
        self._pool.shutdown()
        self._sdk_pool.shutdown(cancel_futures=True)

    def _keep(self, sent: Sent) -> None:
        assert not sent.refused, sent.refused
        self._promised += sent.promised
        self._open += sent.open

    def _start(self) -> ServerProcess:
        server = ServerProcess(self._folder, real=True, options=OPTIONS)
        server.wait_until_ready()
        return server

    def _kill(self, *, only_server: bool) -> None:
        """All at once, as when power fails; or the server alone, whose writer then has to end."""
        if only_server:
            os.kill(self._server.process.pid, signal.SIGKILL)
        else:
            os.killpg(self._server.process.pid, signal.SIGKILL)
        self._server.process.wait(60)
        self._server.close()

    def _check(self, new: list[Group]) -> None:
        def check(part: list[Group]) -> None:
            client = SignedClient(self._server.port)
            for item in (one for group in part for one in group):
                reply = client.read(CONTAINER, item["id"], item["pk"])
                assert reply.status == 200, f"lost: {item}; {reply.status}"
                assert bare(reply.json()) == item
            client.close()

        try:
            list(self._pool.map(check, (new[at::CHECKERS] for at in range(CHECKERS))))
        except LOST as error:
            self._server.terminate()
            raise AssertionError(f"the new server hung up: {self._server.end()}") from error


def groups(round: int, client: int, seed: float, stop: threading.Event) -> Iterator[Group]:
    chance = Random(seed)
    for number in count():
        if stop.is_set():
            return
        key = f"key{chance.randrange(500)}"
        size = BATCH if number % BATCH_EVERY == 3 else 1
        yield [
            {
                "id": f"{round}-{client}-{number}-{at}",
                "pk": key,
                "text": chance.randbytes(chance.randrange(10, 400)).hex(),
                "number": chance.random(),
            }
            for at in range(size)
        ]


def bare(item: Item) -> Item:
    return {name: value for name, value in item.items() if name[0] != "_"}


def _write_raw(port: int, work: Iterator[Group], sent: Sent) -> None:
    client = SignedClient(port)
    try:
        for group in work:
            sent.open.append(group)
            if len(group) == 1:
                reply = client.create(CONTAINER, group[0])
                succeeded = reply.status == 201
            else:
                creates = [{"operationType": "Create", "resourceBody": item} for item in group]
                reply = client.batch(CONTAINER, group[0]["pk"], creates)
                succeeded = reply.status == 200
            if not succeeded:
                # While it dies: 503 and 408 are no promise. Anything else is no answer to this.
                if reply.status not in (408, 503):
                    sent.refused.append(f"{reply.status} {reply.body!r}")
                return
            sent.promised.append(sent.open.pop())
    except LOST:
        return
    finally:
        client.close()


def _write_sdk(port: int, work: Iterator[Group], sent: Sent) -> None:
    try:
        with CosmosClient(f"http://localhost:{port}", EMULATOR_KEY) as client:
            container = client.get_database_client("kills").get_container_client("c")
            for group in work:
                sent.open.append(group)
                if len(group) == 1:
                    container.create_item(group[0])
                else:
                    operations = [("create", (item,)) for item in group]
                    container.execute_item_batch(operations, group[0]["pk"])
                sent.promised.append(sent.open.pop())
    except AzureError:
        return
