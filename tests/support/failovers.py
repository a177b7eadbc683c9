"""Clients that write through several servers while servers are killed and databases fail over.

    clients ──▶ server 1 ─┐
            ──▶ server 2 ─┴─▶ primary ══synchronous══▶ standby
                               │ killed, or frozen        │ promoted, at once or late
                               └────── made anew as its standby ◀──┘

Each client creates items with names of its own and increments a counter of its own, and keeps what
was acknowledged apart from what was not. At the end everything acknowledged has to be there, once,
and each counter between what was acknowledged and what was tried.
"""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.pg_cluster import PgServer, address, free_port
from tests.support.server_process import ServerProcess
from tests.support.signed_http import SignedClient

import armillary
from armillary.operate.doctor import examine

CONTAINER = "dbs/d/colls/c"
KINDS = ("fast", "late", "hung")
UNCERTAIN = (408, 410, 429, 449, 500, 503)
CLIENT_SECONDS = 60.0


@dataclass
class Tally:
    acknowledged: int = 0
    uncertain: int = 0
    refused: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    internal: int = 0
    promotions: int = 0
    kills: int = 0
    moves: int = 0
    gap_s: float = 0.0
    gaps: list[tuple[str, float]] = field(default_factory=list)

    @property
    def well(self) -> bool:
        return not (self.lost or self.twice or self.wrong or self.refused)

    def __str__(self) -> str:
        by_kind = []
        for kind in dict.fromkeys(kind for kind, _ in self.gaps):
            found = sorted(gap for one, gap in self.gaps if one == kind)
            middle, longest = found[len(found) // 2], found[-1]
            by_kind.append(f"{kind}: {len(found)} times, gap {middle:.2f} s, longest {longest:.2f}")
        return "\n".join(
            (
                f"promotions {self.promotions}, kills of servers {self.kills}, "
                f"shard moves {self.moves}",
                f"acknowledged {self.acknowledged}, uncertain {self.uncertain}, "
                f"of them answered 500: {self.internal}",
                f"lost {len(self.lost)}, twice {len(self.twice)}, wrong {len(self.wrong)}, "
                f"refused {len(self.refused)}",
                f"longest time without an acknowledged write {self.gap_s:.2f} s",
                *by_kind,
                *map(str, (self.lost + self.twice + self.wrong + self.refused)[:10]),
            )
        )


class Client(threading.Thread):
    """Goes to the next server when one does not answer, as a load balancer would send it."""

    def __init__(self, number: int, ports: Sequence[int], note: Callable[[], None]) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self.number = number
        self.acknowledged: list[str] = []
        self.uncertain: list[str] = []
        self.refused: list[str] = []
        self.internal = 0
        self.counted, self.counted_at_most = 0, 0
        self.stop = threading.Event()
        self._ports = list(ports)
        self._at = number
        self._client: SignedClient | None = None
        self._note = note

    def run(self) -> None:
        count = 0
        while not self.stop.is_set():
            count += 1
            name = f"{self.number}-{count}"
            if count % 4:
                item = {"id": name, "pk": f"k{count % 23}", "n": count}
                done = self._try(partial(_create, item), 201)
                (self.acknowledged if done else self.uncertain).append(name)
            else:
                self.counted_at_most += 1
                self.counted += self._try(self._increment, 200)
        self._next()  # which closes the connection

    def _increment(self, client: SignedClient) -> Any:
        body = {"operations": [{"op": "incr", "path": "/n", "value": 1}]}
        name = f"counter-{self.number}"
        key = {"x-ms-documentdb-partitionkey": f'["{name}"]'}
        headers = key | {"content-type": "application/json_patch+json"}
        return client.ask("PATCH", f"/{CONTAINER}/docs/{name}", body, headers)

    def _try(self, ask: Callable[[SignedClient], Any], wanted: int) -> bool:
        try:
            if self._client is None:
                port = self._ports[self._at % len(self._ports)]
                self._client = SignedClient(port, timeout_s=CLIENT_SECONDS)
            reply = ask(self._client)
        except (OSError, http.client.HTTPException):
            self._next()
            time.sleep(0.02)
            return False
        if reply.status == wanted:
            self._note()
            return True
        self.internal += reply.status == 500
        if reply.status not in UNCERTAIN:
            self.refused.append(f"{reply.status} {reply.body[:200]!r}")
        self._next()
        time.sleep(0.02)
        return False

    def _next(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
        self._at += 1


def _create(item: dict[str, Any], client: SignedClient) -> Any:
    return client.create(CONTAINER, item)


class Drill:
    """Servers on a pair of databases, under load."""

    def __init__(
        self,
        folder: Path,
        databases: Sequence[PgServer],
        seed: int,
        *,
        url: str | None = None,
        servers: int = 2,
        clients: int = 5,
        make_client: Callable[..., Any] | None = None,
        environ: Callable[[int], dict[str, str]] = lambda at: {},
    ) -> None:
        """`url`: a database that is not ours to fail over. `make_client`: others than those that
        `finish` judges. `environ`: settings of a server."""
        self.tally = Tally()
        self._random = random.Random(seed)
        self._folder = folder
        self._environ = environ
        self._url = url or address(databases) + "&schema=drill"
        if databases:
            self.primary, self._spare = databases
            self.primary.copy_into(self._spare, synchronous=True)
        with armillary.open(self._url) as account:
            container = account.create_database("d").create_container(
                "c", "/pk", throughput=100_000, physical_partitions=4
            )
            for number in range(clients):
                name = f"counter-{number}"
                container.create_item({"id": name, "pk": name, "n": 0})
        self._ports = [free_port() for _ in range(servers)]
        self._servers = [self._start(at) for at in range(servers)]
        for server in self._servers:
            server.wait_until_ready()
        self._last = time.monotonic()
        self._count = 0
        self._worst = 0.0
        self._lock = threading.Lock()
        make = make_client or Client
        self._clients = [make(one, self._ports, self._note) for one in range(clients)]
        for client in self._clients:
            client.start()
        self.flow(50)

    def _start(self, at: int) -> ServerProcess:
        options = ["--engine", self._url, "--table-port", "off", "--mongo-port", "off"]
        options += ["--gremlin-port", "off"]
        return ServerProcess(
            self._folder / str(at),
            port=self._ports[at],
            real=True,
            options=options,
            environ=self._environ(at),
        )

    def _note(self) -> None:
        now = time.monotonic()
        with self._lock:
            self._worst = max(self._worst, now - self._last)
            self._last = now
            self._count += 1

    def flow(self, count: int = 20) -> None:
        """Until so many more writes were acknowledged."""
        goal = self._count + count
        deadline = time.monotonic() + 120
        while self._count < goal:
            assert time.monotonic() < deadline, "no write was acknowledged for long"
            time.sleep(0.005)

    def _event(self, kind: str, act: Callable[[], None], after: Callable[[], None]) -> None:
        with self._lock:
            self._worst = 0.0
        act()
        self.flow()
        after()
        self.flow()
        with self._lock:  # what comes after it belongs to it: a request may be stuck by then
            self.tally.gaps.append((kind, self._worst))
            self.tally.gap_s = max(self.tally.gap_s, self._worst)

    def promote(self, kind: str) -> None:
        old, new = self.primary, self._spare

        def act() -> None:
            if kind == "hung":
                old.freeze()
                time.sleep(0.3)
            else:
                old.kill()
            if kind == "late":
                time.sleep(self._random.uniform(0.5, 2.5))
            new.promote()
            new.configure(synchronous_standby_names="")

        def after() -> None:
            if kind == "hung":
                old.thaw()
                self.flow()
            old.kill()
            new.copy_into(old, synchronous=True)

        self._event(kind, act, after)
        self.primary, self._spare = new, old
        self.tally.promotions += 1

    def kill_server(self) -> None:
        at = self.tally.kills % len(self._servers)

        def act() -> None:
            time.sleep(self._random.uniform(0.0, 0.05))
            self._servers[at].process.kill()

        def after() -> None:
            self._servers[at].close()
            self._servers[at] = self._start(at)
            self._servers[at].wait_until_ready()

        self._event("kill", act, after)
        self.tally.kills += 1

    def halt(self) -> None:
        """No client asks any more, and no server answers."""
        for client in self._clients:
            client.stop.set()
        for client in self._clients:
            client.join()
        for server in self._servers:
            server.terminate()
            server.end()

    def finish(self) -> Tally:
        self.halt()
        tally = self.tally
        with armillary.open(self._url) as account:
            items = list(account.database("d").container("c").read_all_items())
        found = [item["id"] for item in items]
        names = set(found)
        tally.twice += [name for name, count in Counter(found).items() if count > 1]
        rids = [item["_rid"] for item in items]
        tally.twice += [f"rid of {len(rids) - len(set(rids))} items"] * (len(set(rids)) < len(rids))
        counters = {item["id"]: item["n"] for item in items if item["id"].startswith("counter")}
        for client in self._clients:
            tally.acknowledged += len(client.acknowledged) + client.counted
            tally.uncertain += len(client.uncertain) + client.counted_at_most - client.counted
            tally.internal += client.internal
            tally.refused += client.refused
            tally.lost += [name for name in client.acknowledged if name not in names]
            value = counters[f"counter-{client.number}"]
            if not client.counted <= value <= client.counted_at_most:
                text = f"counter {client.number} is {value}, {client.counted} were acknowledged"
                tally.wrong.append(text + f", {client.counted_at_most} tried")
        tally.wrong += [one.text for one in examine(self._url) if not one.well]
        return tally

    def close(self) -> None:
        for client in self._clients:
            client.stop.set()
        for server in self._servers:
            server.close()
