"""A long mixed load on one server, with everything that can happen to it, and the account of it.

    writers     create, replace and delete items of their own; each knows what must be there
    readers     point reads and a query now and then, compared with what must be there
    follower    the change feed of the whole container, through the official SDK
    brief       items with a time to live of seconds, which have to go, and their space with them
    killer      SIGKILL of a worker, of the writer, or of everything, then a new start
    sampler     memory, size of the file, number of ranges

Partitions are small, so that they split all the time. A request without an answer leaves its item
open: both outcomes are right, and nobody touches it again.
"""

from __future__ import annotations

import http.client
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from azure.core.exceptions import AzureError
from azure.cosmos import CosmosClient
from tests.support.server_process import ServerProcess, children_of
from tests.support.signed_http import SignedClient

from armillary.api.core.settings import EMULATOR_KEY

KEPT, BRIEF = "dbs/hour/colls/kept", "dbs/hour/colls/brief"
#: One range is enough for the throughput, so that every further one comes from a split by size.
OPTIONS = ("--workers", "2", "--partition-bytes", "2MB", "--partition-ru", "200000")
RU = 100_000
KEYS = 400
LIVE_MAX = 3_000  # items of one writer; above, it deletes
TTL_SECONDS = 20
LOST = (OSError, http.client.HTTPException)


@dataclass
class Owned:
    """What one writer has written; only its own thread changes it."""

    keys: dict[str, str] = field(default_factory=dict)
    allowed: dict[str, tuple[int | None, ...]] = field(default_factory=dict)
    """Id → what may be found: the number in it, None for nothing. One value: certain."""
    live: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Sample:
    second: float
    memory_bytes: int
    own_bytes: int
    """Of that, what is not a page of a file: the map of the store comes and goes as it is read."""
    file_bytes: int
    ranges: int


class Hour:
    def __init__(self, folder: Path, seed: int, *, say: Callable[[str], None]) -> None:
        self.folder = folder
        self.say = say
        self.chance = Random(seed)
        self.counts: Counter[str] = Counter()
        self.samples: list[Sample] = []
        self.problems: list[str] = []
        self.owned = [Owned() for _ in range(3)]
        self.seen: dict[str, int] = {}
        self.stop = threading.Event()
        self.followed = threading.Event()
        self.begun = time.monotonic()
        self.server = ServerProcess(folder, real=True, options=OPTIONS)
        self.server.wait_until_ready()
        self.port = self.server.port
        client = SignedClient(self.port)
        key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
        offer = {"x-ms-offer-throughput": str(RU)}
        assert client.ask("POST", "/dbs", {"id": "hour"}).status == 201
        for name, more in (("kept", {}), ("brief", {"defaultTtl": TTL_SECONDS})):
            body = {"id": name, "partitionKey": key, **more}
            assert client.ask("POST", "/dbs/hour/colls", body, offer).status == 201
        client.close()

    # --- the whole ------------------------------------------------------------------------------

    def run(
        self,
        seconds: float,
        *,
        quiet_share: float = 0.25,
        enough: Callable[[], bool] = lambda: False,
    ) -> None:
        """Kills in the first part; none in the last, where memory is watched. `enough` ends it."""
        workers = [
            *(threading.Thread(target=self._write, args=(n,)) for n in range(len(self.owned))),
            *(threading.Thread(target=self._read, args=(n,)) for n in range(2)),
            threading.Thread(target=self._brief),
            threading.Thread(target=self._sample),
        ]
        follower = threading.Thread(target=self._follow)
        for one in (*workers, follower):
            one.start()
        try:
            end = self.begun + seconds
            quiet = end - seconds * quiet_share
            next_kill = self.begun + self.chance.uniform(8, 25)
            while (now := time.monotonic()) < end and not self.problems and not enough():
                time.sleep(0.1)
                if next_kill < now < quiet:
                    self._kill()
                    next_kill = time.monotonic() + self.chance.uniform(8, 25)
        finally:
            self.stop.set()
            for one in workers:
                one.join()
            self.followed.wait(120)
            follower.join()

    def close(self) -> None:
        self.server.close()

    # --- load -----------------------------------------------------------------------------------

    def _write(self, number: int) -> None:
        mine, chance = self.owned[number], Random(self.chance.random())
        client, count = SignedClient(self.port), 0
        while not self.stop.is_set():
            count += 1
            draw = chance.random()
            if mine.live and (draw < 0.25 or len(mine.live) > LIVE_MAX):
                at = chance.randrange(len(mine.live))
                mine.live[at], mine.live[-1] = mine.live[-1], mine.live[at]
                id = mine.live.pop()
                if len(mine.live) > LIVE_MAX or draw < 0.1:
                    outcome: int | None = None
                else:
                    outcome = count
            else:
                id, outcome = f"{number}-{count}", count
                mine.keys[id] = f"key{int(KEYS * chance.random() ** 2)}"
            client = self._change(client, mine, id, outcome)
        client.close()

    def _change(
        self, client: SignedClient, mine: Owned, id: str, outcome: int | None
    ) -> SignedClient:
        key, before = mine.keys[id], mine.allowed.get(id, (None,))
        item = {"id": id, "pk": key, "n": outcome, "text": "x" * 700}
        while True:
            try:
                if outcome is None:
                    target = f"/{KEPT}/docs/{id}"
                    reply = client.ask("DELETE", target, None, _key(key))
                elif before == (None,):
                    reply = client.create(KEPT, item)
                else:
                    reply = client.ask("PUT", f"/{KEPT}/docs/{id}", item, _key(key))
            except LOST:
                self.counts["writes without an answer"] += 1
                mine.allowed[id] = (*before, outcome)
                return self._again(client)
            if reply.status == 408:  # the writer was killed under it
                self.counts["writes without an answer"] += 1
                mine.allowed[id] = (*before, outcome)
                return client
            if reply.status in (429, 410, 449, 503):
                self.counts[f"writes answered {reply.status}"] += 1
                time.sleep(0.02)
                continue
            break
        self.counts["writes"] += 1
        if reply.status not in (200, 201, 204):
            self.problems.append(f"{id}: a write was answered {reply.status} {reply.body[:200]!r}")
        mine.allowed[id] = (outcome,)
        if outcome is not None:
            mine.live.append(id)
        return client

    def _read(self, number: int) -> None:
        chance, client = Random(self.chance.random()), SignedClient(self.port)
        while not self.stop.is_set():
            mine = chance.choice(self.owned)
            if not mine.live:
                time.sleep(0.05)
                continue
            try:
                id = mine.live[chance.randrange(len(mine.live))]
            except (IndexError, ValueError):
                continue  # its writer has just taken the last one
            before = mine.allowed.get(id)
            try:
                reply = client.read(KEPT, id, mine.keys[id])
            except LOST:
                client = self._again(client)
                continue
            self.counts["reads"] += 1
            unchanged = mine.allowed.get(id) == before and before is not None and len(before) == 1
            if unchanged and id in mine.live:
                found = reply.json().get("n") if reply.status == 200 else None
                if reply.status in (200, 404) and (found,) != before:
                    # Its writer may be in the middle of changing it: then it is not live.
                    time.sleep(0.5)
                    if mine.allowed.get(id) == before and id in mine.live:
                        self.problems.append(f"{id}: {before} was written, {found} was read")
        client.close()

    def _brief(self) -> None:
        client, count = SignedClient(self.port), 0
        while not self.stop.is_set():
            count += 1
            item = {"id": str(count), "pk": f"key{count % KEYS}", "text": "x" * 700}
            try:
                reply = client.create(BRIEF, item)
                self.counts[f"brief items {reply.status}"] += 1
            except LOST:
                client = self._again(client)
            time.sleep(0.01)
        client.close()

    def _follow(self) -> None:
        """Until the writers have ended and there is nothing new twice."""
        continuation: str | None = None
        empty = 0
        while empty < 3:
            try:
                with CosmosClient(f"http://127.0.0.1:{self.port}", EMULATOR_KEY) as client:
                    container = client.get_database_client("hour").get_container_client("kept")
                    while empty < 3:
                        more: dict[str, Any] = (
                            {"continuation": continuation}
                            if continuation
                            else {"start_time": "Beginning"}
                        )
                        told = 0
                        # By page: as a list it would go on for as long as there are writers.
                        for page in container.query_items_change_feed(**more).by_page():
                            told += self._told(list(page))
                            headers = container.client_connection.last_response_headers
                            continuation = headers["etag"]
                        empty = empty + 1 if self.stop.is_set() and not told else 0
                        time.sleep(0.2)
            except AzureError:
                self.counts["feed readers that began again"] += 1
                time.sleep(0.5)
        self.followed.set()

    def _told(self, found: list[dict[str, Any]]) -> int:
        for one in found:
            if self.seen.get(one["id"], -1) > one["n"]:
                self.problems.append(f"the feed went back for {one['id']}")
            self.seen[one["id"]] = one["n"]
        self.counts["feed entries"] += len(found)
        return len(found)

    def _again(self, client: SignedClient) -> SignedClient:
        client.close()
        time.sleep(0.1)
        return SignedClient(self.port)

    # --- what happens to it ---------------------------------------------------------------------

    def _kill(self) -> None:
        draw = self.chance.random()
        if draw < 0.75:
            victims = list(children_of(self.server.process.pid))
            if victims:
                self.counts["kills of one process"] += 1
                victim = self.chance.choice(victims)
                try:
                    os.kill(victim, signal.SIGKILL)
                except ProcessLookupError:
                    self.counts["kills of one process"] -= 1
            return
        if draw < 0.9:
            self.counts["kills of everything"] += 1
            os.killpg(self.server.process.pid, signal.SIGKILL)
        else:
            self.counts["orderly restarts"] += 1
            self.server.terminate()
        self.server.process.wait(60)
        self.server.close()
        self.server = ServerProcess(self.folder, real=True, port=self.port, options=OPTIONS)
        self.server.wait_until_ready(60)

    def _sample(self) -> None:
        while not self.stop.wait(15):
            self.samples.append(self.sample())

    def sample(self) -> Sample:
        processes = [self.server.process.pid, *children_of(self.server.process.pid)]
        memory = [_memory(one) for one in processes]
        size = (self.folder / "data.mdb").stat().st_blocks * 512
        whole, own = (sum(one[at] for one in memory) for at in (0, 1))
        return Sample(time.monotonic() - self.begun, whole, own, size, self._ranges())

    def _ranges(self) -> int:
        client = SignedClient(self.port)
        try:
            reply = client.ask("GET", f"/{KEPT}/pkranges")
            return len(reply.json()["PartitionKeyRanges"]) if reply.status == 200 else -1
        except LOST:
            return -1
        finally:
            client.close()

    # --- the account ----------------------------------------------------------------------------

    def check(self) -> None:
        """Everything that must be there is, nothing else is, and the feed has told it all."""
        with CosmosClient(f"http://127.0.0.1:{self.port}", EMULATOR_KEY) as client:
            container = client.get_database_client("hour").get_container_client("kept")
            found = {one["id"]: one["n"] for one in container.read_all_items(max_item_count=1_000)}
        for mine in self.owned:
            for id, allowed in mine.allowed.items():
                there = found.pop(id, None)
                if there not in allowed:
                    self.problems.append(f"{id}: {allowed} was written, {there} is there")
                if len(allowed) == 1 and there is not None and self.seen.get(id) != there:
                    self.problems.append(f"{id}: the feed told {self.seen.get(id)}, not {there}")
        if found:
            self.problems.append(f"nobody wrote {sorted(found)[:5]}")

    def brief_left(self) -> int:
        client = SignedClient(self.port)
        reply = client.ask("GET", f"/{BRIEF}/docs", None, {"x-ms-max-item-count": "1000"})
        client.close()
        return len(reply.json()["Documents"])


def _key(value: str) -> dict[str, str]:
    return {"x-ms-documentdb-partitionkey": f'["{value}"]'}


def _memory(pid: int) -> tuple[int, int]:
    """Its share of memory (PSS), and the part that is no file's; nothing when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    except OSError:
        return 0, 0
    found = {line.split()[0]: int(line.split()[1]) * 1024 for line in lines[1:]}
    return found["Pss:"], found.get("Pss_Anon:", found["Pss:"])
