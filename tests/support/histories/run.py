"""Clients that record a history on a server with two workers, while ranges are split and merged and
processes are killed.

    Run(folder, seed, operations=…, kills=…)
      clients   reads, upserts, creates, deletes, replaces under an etag; few keys at a time, so
                that they meet; a connection is given up after a while, so that both workers serve
      mover     a split while there are few ranges, else a merge, one after the other
      killer    a worker, the writer, or everything with a new start, evenly spread

Keys come one after the other through a moving window: each has many operations while it is in it,
and none later, so that the history of a key stays short enough to be judged.
"""

from __future__ import annotations

import http.client
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random

from tests.support.controls import ControlClient
from tests.support.histories.record import (
    CREATE,
    DELETE,
    READ,
    SWAP,
    WRITE,
    Call,
    Operation,
    Recorder,
)
from tests.support.nosql import pk
from tests.support.server_process import ServerProcess, children_of
from tests.support.signed_http import Reply, SignedClient

DATABASE, NAME = "histories", "c"
CONTAINER = f"dbs/{DATABASE}/colls/{NAME}"
OTHERS = ("--mongo-port", "off", "--table-port", "off", "--gremlin-port", "off")
OPTIONS = ("--workers", "2", "--partition-ru", "1000000", *OTHERS)
RU = 1_000_000
CLIENTS = 10
WINDOW = 6
"""Keys in use at a time."""
PER_KEY = 60
"""Operations after which the window moves on by a key."""
RANGES_MAX = 6
MOVE_SECONDS = 600.0
"""One whose runner was killed goes on when another process has looked, late on a busy machine."""
CONNECTION_OPERATIONS = 150
LOST = (OSError, http.client.HTTPException)
UNKNOWN = (408, 410, 429, 449, 503)
UNKNOWN_PAUSE_SECONDS = 0.05
"""So that a kill leaves a few operations of a key open, and not dozens."""
KIND_SHARES = ((READ, 45), (WRITE, 20), (SWAP, 15), (CREATE, 10), (DELETE, 10))
KINDS = [kind for kind, share in KIND_SHARES for _ in range(share)]
ETAG, ITEM_LSN = "etag", "x-ms-item-lsn"


class Run:
    def __init__(self, folder: Path, seed: int, *, operations: int, kills: int) -> None:
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.recorder = Recorder()
        self._folder = folder
        self._chance = Random(seed)
        self._operations = operations
        self._kills = kills
        self._lock = threading.Lock()
        self._begun = 0
        self._stop = threading.Event()
        self._server = ServerProcess(folder, real=True, options=OPTIONS)
        self._server.wait_until_ready()
        self._port = self._server.port
        client = SignedClient(self._port)
        definition = {"id": NAME, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
        assert client.ask("POST", "/dbs", {"id": DATABASE}).status == 201
        offer = {"x-ms-offer-throughput": str(RU)}
        assert client.ask("POST", f"/dbs/{DATABASE}/colls", definition, offer).status == 201
        for number in range(200):  # so that there is something to cut
            assert client.create(CONTAINER, {"id": "x", "pk": f"x{number}"}).status == 201
        client.close()

    def run(self) -> list[Operation]:
        clients = [
            threading.Thread(target=self._client, args=(at, self._chance.random()))
            for at in range(CLIENTS)
        ]
        mover = threading.Thread(target=self._move)
        for thread in (*clients, mover):
            thread.start()
        for number in range(self._kills):
            due = (number + 1) * self._operations // (self._kills + 1)
            while len(self.recorder) < due and any(one.is_alive() for one in clients):
                time.sleep(0.005)
            self._kill()
        for thread in clients:
            thread.join()
        self._stop.set()
        mover.join()
        return self.recorder.history()

    def close(self) -> None:
        self._stop.set()
        self._server.close()

    # --- clients --------------------------------------------------------------------------------

    def _client(self, at: int, seed: float) -> None:
        chance = Random(seed)
        session = f"client {at}"
        client = SignedClient(self._port)
        etags: dict[str, tuple[str, str]] = {}
        """Key → value and etag that this client has seen last."""
        asked = 0
        while (number := self._next()) is not None:
            key = f"k{number // PER_KEY + chance.randrange(WINDOW)}"
            kind = chance.choice(KINDS)
            expected, etag = etags.get(key, (None, ""))
            if kind == SWAP and expected is None:
                kind = READ
            value = None if kind in (READ, DELETE) else f"v{number}"
            swapped = expected if kind == SWAP else None
            call = self.recorder.invoke(session, key, kind, value, swapped)
            try:
                reply = _ask(client, kind, key, value, etag)
            except LOST as error:
                if isinstance(error, ConnectionRefusedError):  # nothing was sent
                    call.forget()
                    time.sleep(0.05)
                else:
                    call.unknown()
                    self._count("requests without an answer")
                client.close()
                client = SignedClient(self._port)
                continue
            self._answered(call, kind, reply)
            if reply.status in UNKNOWN:
                time.sleep(UNKNOWN_PAUSE_SECONDS)
            if kind != DELETE and reply.status in (200, 201):
                etags[key] = (reply.json()["v"], reply.headers[ETAG])
            asked += 1
            if asked % CONNECTION_OPERATIONS == 0:
                client.close()
                client = SignedClient(self._port)
        client.close()

    def _next(self) -> int | None:
        with self._lock:
            if len(self.recorder) >= self._operations or self.problems:
                return None
            self._begun += 1
            return self._begun

    def _answered(self, call: Call, kind: str, reply: Reply) -> None:
        status = reply.status
        if status in (200, 201, 204):
            value = reply.json()["v"] if kind == READ else None
            version = reply.headers.get(ITEM_LSN) if kind != READ else None
            call.returned(value, version=int(version) if version else None)
        elif kind == READ and status == 404:
            call.returned(None)
        elif (kind, status) in ((CREATE, 409), (DELETE, 404), (SWAP, 412), (SWAP, 404)):
            call.refused()
        elif status in UNKNOWN:
            call.unknown()
            self._count(f"answers of {status}")
        else:
            self.problems.append(f"{kind}: {status} {reply.body[:200]!r}")

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    # --- what happens to them -------------------------------------------------------------------

    def _move(self) -> None:
        chance = Random(self._chance.random())
        while not self._stop.is_set():
            controls = ControlClient(self._port)
            try:
                found = controls.ask("GET", f"{CONTAINER}/partitions").json()
                ids = [one["id"] for one in found["partitions"]]
                if len(ids) < RANGES_MAX:
                    kind, body = "split", {"id": chance.choice(ids)}
                else:
                    at = chance.randrange(len(ids) - 1)
                    kind, body = "merge", {"ids": ids[at : at + 2]}
                begun = controls.ask("POST", f"{CONTAINER}/{kind}", body)
                if begun.status != 202:
                    self._stop.wait(0.05)
                    continue
                ended = controls.ended(begun.json()["operation"], MOVE_SECONDS)
                self._count(f"{kind}s" if ended["status"] == "succeeded" else f"{kind}s failed")
            except (*LOST, KeyError, ValueError):
                self._stop.wait(0.05)

    def _kill(self) -> None:
        draw = self._chance.random()
        if draw < 0.7:
            victims = list(children_of(self._server.process.pid))
            if victims:
                try:
                    os.kill(self._chance.choice(victims), signal.SIGKILL)
                except ProcessLookupError:
                    return
                self._count("kills of one process")
            return
        os.killpg(self._server.process.pid, signal.SIGKILL)
        self._server.process.wait(60)
        self._server.close()
        self._count("kills of everything")
        self._server = ServerProcess(self._folder, real=True, port=self._port, options=OPTIONS)
        self._server.wait_until_ready()


def _ask(client: SignedClient, kind: str, key: str, value: str | None, etag: str) -> Reply:
    body = {"id": "i", "pk": key, "v": value}
    path = f"/{CONTAINER}/docs"
    if kind == READ:
        return client.read(CONTAINER, "i", key)
    if kind == DELETE:
        return client.ask("DELETE", f"{path}/i", None, pk(key))
    if kind == SWAP:
        return client.ask("PUT", f"{path}/i", body, pk(key) | {"if-match": etag})
    upsert = {"x-ms-documentdb-is-upsert": "True"} if kind == WRITE else {}
    return client.ask("POST", path, body, pk(key) | upsert)
