"""A storm: writers, readers, pages and a feed on one container that splits all the time.

    writers   create, replace and delete items of their own keys, remember what was acknowledged
    readers   point reads of acknowledged items
    pages     whole scans; what was there before the scan and is not deleted is seen exactly once
    feed      follows the change feed; in order per key, in the end every item as it is
    layout    ranges tile at every look

Every finding is a line in `wrong`; the end compares everything with everything. The writers' stops
are measured: the longest time from one acknowledgement of a writer to the next.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

from armillary.account import Account
from armillary.container import Container
from armillary.errors import DbError, NotFound
from armillary.store.upkeep.recount import problems

DATABASE, ITEMS = "storm", "items"
KEYS_PER_WRITER = 60
RECENT = 200


@dataclass(frozen=True, slots=True)
class Size:
    data_bytes: int
    item_bytes: int = 900
    writers: int = 4
    readers: int = 4
    pagers: int = 1
    merges: bool = True
    seconds_max: float = 240.0
    ranges_min: int = 1
    merges_min: int = 0
    """Writers go on until so many ranges were seen and so many merges made, however slow the ones
    that split and merge are beside them."""
    retention_minutes: int | None = None


@dataclass(slots=True)
class Findings:
    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    longest_stop_ms: float = 0.0
    windows_missed: int = 0
    """Windows of 100 ms in which no writer at all was acknowledged."""

    def lines(self) -> list[str]:
        counted = ", ".join(f"{count:,} {what}" for what, count in sorted(self.counts.items()))
        stops = f"longest stop of a writer {self.longest_stop_ms:.0f} ms, "
        return [
            counted,
            stops + f"100 ms windows without a write {self.windows_missed}",
            *self.wrong,
        ]


class Storm:
    def __init__(self, account: Account, size: Size, seed: int) -> None:
        self.account = account
        self.size = size
        self.seed = seed
        self.found = Findings()
        self.states: list[dict[tuple[str, str], int]] = [{} for _ in range(size.writers)]
        """What each writer has acknowledged: (key, id) → number of the write."""
        self.recent: list[deque[tuple[str, str]]] = [
            deque(maxlen=RECENT) for _ in range(size.writers)
        ]
        """Of them the last ones, for readers to choose from."""
        self._written = 0
        self._ranges_most = 0
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._acks: list[float] = []
        database = account.create_database_if_not_exists(DATABASE)
        options: dict[str, Any] = {}
        if size.retention_minutes:
            options["change_feed_retention_minutes"] = size.retention_minutes
        database.create_container(ITEMS, "/pk", **options)

    def container(self) -> Container:
        """A view of its own, as another client would have."""
        return self.account.database(DATABASE).container(ITEMS)

    def run(self) -> Findings:
        feed = _Thread(self._follow_feed, self, "feed")
        others = [_Thread(self._read, self, f"reader {n}") for n in range(self.size.readers)]
        others += [_Thread(self._page, self, f"pager {n}") for n in range(self.size.pagers)]
        others.append(_Thread(self._watch_layout, self, "layout"))
        writers = [_Thread(self._write, self, str(n)) for n in range(self.size.writers)]
        for thread in (feed, *others, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        self._end.set()
        for thread in (feed, *others):
            thread.join()
        self._measure_windows()
        assert self.account._housekeeper is not None
        self.account._housekeeper.close()  # nothing moves any more while we judge
        self.account._housekeeper = None
        self._judge()
        return self.found

    def wrong(self, line: str) -> None:
        with self._lock:
            if len(self.found.wrong) < 20:
                self.found.wrong.append(line)

    def count(self, what: str, by: int = 1) -> None:
        with self._lock:
            self.found.counts[what] += by

    # --- the actors -----------------------------------------------------------------------------

    def _write(self, name: str) -> None:
        number = int(name)
        random = Random(f"{self.seed} {name}")
        container, state = self.container(), self.states[number]
        last = start = time.perf_counter()
        turn = 0
        while self._written < self.size.data_bytes or not self._has_moved():
            if time.perf_counter() - start > self.size.seconds_max:
                self.wrong("the storm took too long")
                break
            turn += 1
            self._write_one(container, state, random, name, turn)
            now = time.perf_counter()
            with self._lock:
                self.found.longest_stop_ms = max(self.found.longest_stop_ms, (now - last) * 1000)
                self._acks.append(now)
            last = now

    def _has_moved(self) -> bool:
        merges = self.found.counts["merges"]
        return self._ranges_most >= self.size.ranges_min and merges >= self.size.merges_min

    def _write_one(
        self, container: Container, state: dict[Any, int], random: Random, name: str, turn: int
    ) -> None:
        key = f"{name}-{random.randrange(KEYS_PER_WRITER)}"
        dice = random.random()
        if state and dice < 0.15:
            slot = random.choice(list(state)) if len(state) < 500 else next(iter(state))
            if dice < 0.05:
                # Unlisted before the call: a reader may no longer expect it.
                del state[slot]
                container.delete_item(slot[1], slot[0])
                self.count("deletes")
                return
            key, id = slot
        else:
            id = str(turn)
        body = {"id": id, "pk": key, "v": turn, "text": "x" * self.size.item_bytes}
        container.upsert_item(body)
        state[key, id] = turn
        self.recent[int(name)].append((key, id))
        self._written += self.size.item_bytes
        self.count("writes")

    def _read(self, name: str) -> None:
        random = Random(f"{self.seed} {name}")
        container = self.container()
        while not self._end.is_set():
            number = random.randrange(self.size.writers)
            state, recent = self.states[number], list(self.recent[number])
            slot = random.choice(recent) if recent else ("", "")
            value = state.get(slot)
            if value is None:  # nothing yet, or deleted since
                time.sleep(0.002)
                continue
            key, id = slot
            try:
                found = container.read_item(id, key)["v"]
            except NotFound:
                found = None
            self.count("reads")
            # A writer unlists what it is about to delete, and writes no older version.
            lost = found is None and (key, id) in state
            if lost or (isinstance(found, int) and found < value):
                self.wrong(f"{key} {id}: read {found}, acknowledged {value}")
            time.sleep(0.002)

    def _page(self, name: str) -> None:
        container = self.container()
        while not self._end.is_set():
            before = [dict(state) for state in self.states]
            seen = Counter(
                (str(item["pk"]), str(item["id"])) for item in container.read_all_items()
            )
            self.count("scans")
            twice = [slot for slot, count in seen.items() if count > 1]
            if twice:
                self.wrong(f"{name}: {twice[:3]} more than once")
            for state, old in zip(self.states, before, strict=True):
                missing = [slot for slot in old if slot not in seen and slot in state]
                if missing:
                    self.wrong(f"{name}: {missing[:3]} of {len(missing)} not in a scan")
            self._end.wait(0.2)

    def _follow_feed(self, name: str) -> None:
        container = self.container()
        latest: dict[tuple[str, str], int] = {}
        position = None
        ended = False
        while True:
            page = container.read_change_feed(continuation=position)
            position = page.continuation
            for item in page.items:
                slot, value = (str(item["pk"]), str(item["id"])), item["v"]
                assert isinstance(value, int)
                if value < latest.get(slot, 0):
                    self.wrong(f"feed: {slot} {value} after {latest[slot]}")
                latest[slot] = value
            self.count("feed items", len(page.items))
            if page.at_end and ended:
                break
            if page.at_end:
                ended = self._end.wait(0.02)
        for state in self.states:
            late = [slot for slot, value in state.items() if latest.get(slot) != value]
            if late:
                self.wrong(f"feed: {len(late)} never came as they are, as {late[:3]}")

    def _watch_layout(self, name: str) -> None:
        container = self.container()
        while not self._end.is_set():
            ranges = [(one.start, one.end) for one in container.feed_ranges()]
            tiled = all(left[1] == right[0] for left, right in pairwise(ranges))
            if not tiled or ranges[0][0] != "" or ranges[-1][1] != "FF":
                self.wrong(f"the ranges do not tile: {ranges}")
            self._ranges_most = max(self._ranges_most, len(ranges))
            if self.size.merges and len(ranges) > 5:
                self._merge_two(container)
            self._end.wait(0.05)
        self.count("most ranges", self._ranges_most)

    def _merge_two(self, container: Container) -> None:
        """The two smallest neighbours; the housekeeper splits again what gets too large."""
        sizes = [(one.size_bytes, one.id) for one in container.partitions()]
        pairs = [(a[0] + b[0], (a[1], b[1])) for a, b in pairwise(sizes)]
        try:
            container.merge(min(pairs)[1])
            self.count("merges")
        except DbError:
            self.count("merges refused")  # one of them is splitting

    # --- the end --------------------------------------------------------------------------------

    def _measure_windows(self) -> None:
        acks = sorted(self._acks)
        self.found.windows_missed = sum(
            int((right - left) / 0.1) for left, right in pairwise(acks) if right - left > 0.1
        )

    def _judge(self) -> None:
        self.account.settle()
        container = self.container()
        expected = {slot: value for state in self.states for slot, value in state.items()}
        found = [((str(i["pk"]), str(i["id"])), i["v"]) for i in container.read_all_items()]
        if len(found) != len(dict(found)):
            self.wrong("an item is there twice")
        if dict(found) != expected:
            wrong = [
                s
                for s in expected.keys() | dict(found).keys()
                if dict(found).get(s) != expected.get(s)
            ]
            self.wrong(f"{len(wrong)} items are not as acknowledged, as {wrong[:3]}")
        for slot, value in expected.items():
            if container.read_item(slot[1], slot[0])["v"] != value:
                self.wrong(f"{slot} reads differently alone")
        self._judge_keys(container)
        store = container._store
        for owner in store.refresh().table.ranges:
            with store.engine.read(owner.space) as reader:
                for line in problems(reader, store.state.policies):
                    self.wrong(f"range {owner.ordinal}: {line}")
        self.count("ranges at the end", len(store.state.table.ranges))

    def _judge_keys(self, container: Container) -> None:
        """No logical partition is cut."""
        keys = Counter(str(one.key) for one in container.logical_partitions(top=10**6))
        cut = [key for key, count in keys.items() if count > 1]
        if cut:
            self.wrong(f"cut: {cut[:3]}")


class _Thread(threading.Thread):
    """Whatever an actor dies of is a finding."""

    def __init__(self, work: Callable[[str], None], storm: Storm, name: str) -> None:
        super().__init__(name=f"storm {name}", daemon=True)
        self._work, self._storm, self._argument = work, storm, name

    def run(self) -> None:
        try:
            self._work(self._argument)
        except BaseException as error:
            self._storm.wrong(f"{self.name}: {type(error).__name__}: {error}")
            raise
