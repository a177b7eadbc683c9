"""The writer's part of writes, by what takes it: groups of commands through the engine, in process.

    python -m bench.groups [--items N] [--ops N] [--group N] [--parts]

Commands are prepared first and kept back, then committed as groups, as the writer of a busy server
gets them; nothing is synced (`relaxed`). Printed is the processor time of the committing thread for
each command, in microseconds. `--parts` says what of it is where, how often an index entry is
written again by merging (which no other work on the machine disturbs), and how many runs are live.
Looking costs some microseconds itself, so the whole is to be compared without it, in turns with
another version.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from bench.report import Report, folder, item

import armillary
from armillary.container import Container
from armillary.engine.base import Command
from armillary.engine.groups import Job
from armillary.engine.lmdb import commit, write
from armillary.engine.runs import merging, writing
from armillary.engine.runs.area import Area
from armillary.engine.runs.blocks import Block
from armillary.engine.runs.directory import Directory
from armillary.engine.runs.writing import Nonce

#: What is looked at, and which part it belongs to; what one calls of another is counted there only.
PARTS = (
    (commit, "run_jobs", "handlers"),
    (commit, "write_changes", "rows"),
    (commit, "tell", "answers"),
    (commit.GroupCommit, "_commit", "commit"),
    (write, "of_entries", "new run"),
    (writing, "flush_blocks", "new run"),
    (merging, "plan", "planning"),
    (merging, "is_due", "planning"),
    (merging, "work", "merging"),
    (Area, "save", "directory"),
    (Area, "directory", "directory"),
)
SUBMITS = ("run", "submit", "submit_now", "submit_soon")


class KeptBack(Exception):
    """Instead of an answer: the command is to be committed later."""


class Parts:
    def __init__(self) -> None:
        self.spent_s: defaultdict[str, float] = defaultdict(float)
        self._inner_s: list[float] = []
        self._thread = threading.get_ident()

    def watch(self, owner: Any, name: str, part: str) -> None:
        work = getattr(owner, name)

        def timed(*arguments: Any, **named: Any) -> Any:
            if threading.get_ident() != self._thread:  # merging at rest
                return work(*arguments, **named)
            self._inner_s.append(0.0)
            began = time.thread_time()
            try:
                return work(*arguments, **named)
            finally:
                took = time.thread_time() - began
                self.spent_s[part] += took - self._inner_s.pop()
                if self._inner_s:
                    self._inner_s[-1] += took

        setattr(owner, name, timed)


class Merges:
    """How many entries were new, how many were merged, and how many runs each flush found."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.new = self.merged = self.flushes = self.runs = 0

    def watch(self) -> None:
        flush, piece = writing.flush_blocks, merging.merge_piece

        def flushed(area: Area, directory: Directory, new: list[Block], nonce: Nonce) -> Directory:
            self.new += sum(map(len, new))
            self.flushes += 1
            self.runs += len(directory.parts())
            return flush(area, directory, new, nonce)

        def merged(
            area: Area, directory: Directory, at: int, entries: int
        ) -> tuple[Directory, int]:
            after, read = piece(area, directory, at, entries)
            self.merged += read
            return after, read

        writing.flush_blocks, merging.merge_piece = flushed, merged

    def shown(self) -> dict[str, float]:
        if not self.new:
            return {}
        again, runs = self.merged / self.new, self.runs / self.flushes
        return {"merged again": round(again, 2), "live runs": round(runs, 1)}


class Writes:
    """Commands of one container, kept back and committed in groups."""

    def __init__(self, container: Container, items: int) -> None:
        self._container = container
        self._engine: Any = container._store.engine
        self._chance = random.Random(5)
        self._number = items
        self._keys: list[str] = []
        for start in range(0, items, 2_000):
            made = [item(n, self._chance) for n in range(start, min(items, start + 2_000))]
            self._keys += [one["pk"] for one in made]
            container.upsert_all(made)

    def create(self) -> None:
        self._number += 1
        self._container.create_item(item(self._number, self._chance))

    def upsert(self) -> None:
        number = self._chance.randrange(len(self._keys))
        made = item(number, self._chance)
        self._container.upsert_item(made | {"pk": self._keys[number]})

    def patch(self) -> None:
        number = self._chance.randrange(len(self._keys))
        change = {"op": "set", "path": "/property2", "value": self._chance.random()}
        self._container.patch_item(f"item-{number:09}", self._keys[number], [change])

    def commit_group(self, write_one: Callable[[], None], group: int) -> float:
        """Seconds of processor time."""
        with self._kept_back() as kept:
            for _ in range(group):
                try:
                    write_one()
                except KeptBack:
                    continue
        jobs = [Job(space, command, Future()) for space, command in kept]
        began = time.thread_time()
        self._engine._commit.run(jobs)
        return time.thread_time() - began

    @contextmanager
    def _kept_back(self) -> Iterator[list[tuple[int, Command]]]:
        kept: list[tuple[int, Command]] = []

        def keep(space: int, command: Command) -> None:
            kept.append((space, command))
            raise KeptBack

        for name in SUBMITS:
            setattr(self._engine, name, keep)
        try:
            yield kept
        finally:
            for name in SUBMITS:
                delattr(self._engine, name)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--ops", type=int, default=4_000)
    parser.add_argument("--group", type=int, default=16)
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    report, parts, merges = Report("groups"), Parts(), Merges()
    if given.parts:
        merges.watch()
        for owner, name, part in PARTS:
            parts.watch(owner, name, part)
    with folder() as place:
        account = armillary.open(place / "data", durability="relaxed", housekeeping=False)
        container = account.create_database("d").create_container("c", "/pk")
        writes = Writes(container, given.items)
        groups = max(1, given.ops // given.group)
        for write_one in (writes.create, writes.upsert, writes.patch):
            parts.spent_s.clear()
            merges.clear()
            spent_s = sum(writes.commit_group(write_one, given.group) for _ in range(groups))
            each_us = 1e6 / (groups * given.group)
            shown = {part: round(s * each_us, 1) for part, s in sorted(parts.spent_s.items())}
            name = f"{write_one.__name__}, groups of {given.group}"
            report.line(name, spent_s * each_us, unit="us cpu", **shown, **merges.shown())
        account.close()


if __name__ == "__main__":
    main()
