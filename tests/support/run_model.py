"""Random histories of one space with runs, held against a dict.

A history is commits of puts and deletes, some of them aborted, merging in pieces of any size in
between, and rows that were in the tree before there were runs. After each step every way of reading
has to agree with the dict. Some snapshots are first looked at when there is a newer one that was
read already: both share the cache. Runs, blocks and pieces are tiny, so that a short history passes
through everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from random import Random
from typing import Any
from unittest.mock import patch

from tests.support.run_area import MemoryArea

from armillary.engine.runs import blocks, checking, merging, reading, writing
from armillary.engine.runs.cache import BlockCache
from armillary.engine.runs.directory import EMPTY

KINDS = b"\x31\x51"
STEMS = [b"\x31", b"\x31a", b"\x31ab", b"\x51", b"\x51" + b"z" * 9, b"\x51y"]
KEYS = [stem + bytes((number,)) for stem in STEMS for number in range(4)]


@contextmanager
def tiny() -> Iterator[None]:
    with (
        patch.object(blocks, "PAGE_BYTES", 60),
        patch.object(blocks, "BOUND_BYTES_MAX", 6),
        patch.object(writing, "BOUND_BYTES_MAX", 6),
        patch.object(writing, "SMALL_ENTRIES", 2),
        patch.object(writing, "INLINE_ENTRIES", 6),
        patch.object(writing, "LONG_ENTRIES", 2),
        patch.object(merging, "PIECE_ENTRIES", 4),
        patch.object(merging, "WORK", ((0, 0),)),
        patch.object(merging, "WORK_MIN", 3),
        patch.object(merging, "FAN", 2),
        patch.object(merging, "WHOLE_ENTRIES", 5),
        patch.object(reading, "KEPT_ENTRIES", 5),
    ):
        yield


class Wrong(AssertionError):
    """What is read is not what was written."""


class History:
    def __init__(self, seed: int, cache: BlockCache) -> None:
        self.random = Random(seed)
        self.cache = cache
        self.truth: dict[bytes, bytes] = {}
        self.kept = MemoryArea()
        if self.random.random() < 0.5:
            for key in self.random.sample(KEYS, 8):
                self.truth[key] = self.kept.content[key] = b"old"
            self.kept = MemoryArea(self.kept.content)
        else:
            self.kept.save(EMPTY)
        self.older = self.kept, dict(self.truth)

    def step(self, number: int) -> None:
        if self.random.random() < 0.7:
            self.commit(number)
        else:
            self.merge()
        if self.random.random() < 0.3:
            self.older = self.kept, dict(self.truth)
            return
        self.check(self.kept, self.truth)
        self.check(*self.older)

    def commit(self, number: int) -> None:
        area = self.kept.copy()
        changes: dict[bytes, bytes | None] = {}
        for key in self.random.choices(KEYS, k=self.random.randrange(1, 9)):
            put = self.random.random() < 0.65
            changes[key] = b"%d" % number if put else None
        directory = area.directory()
        directory = writing.flush(area, directory, changes, self.random.randbytes)  # type: ignore[arg-type]
        busy = self.random.choice((False, True))
        directory = merging.plan(directory, self.random.randbytes, busy=busy)
        if self.random.random() < 0.7:
            directory = merging.work(area, directory, self.random.randrange(1, 12))  # type: ignore[arg-type]
        area.save(directory)
        if self.random.random() < 0.25:
            self.look(area)  # before an abort: what is read now must not be remembered
            return
        self.kept = area
        for key, value in changes.items():
            if value is None:
                self.truth.pop(key, None)
            else:
                self.truth[key] = value

    def merge(self) -> None:
        area = self.kept.copy()
        directory = area.directory()
        if directory.tree:
            rows = self.random.randrange(1, 4)
            directory = merging.move_from_tree(
                area,  # type: ignore[arg-type]
                directory,
                KINDS,
                rows,
                self.random.randbytes,
            )
        else:
            directory = merging.plan(directory, self.random.randbytes, busy=False)
            directory = merging.work(area, directory, self.random.randrange(1, 8))  # type: ignore[arg-type]
        area.save(directory)
        if self.random.random() < 0.3:
            self.look(area)
            return
        self.kept = area

    def look(self, area: MemoryArea) -> None:
        """As a transaction does that sees what it has written: without the cache."""
        for key in self.random.sample(KEYS, 4):
            self.reader(area, None).get(key)

    def reader(self, area: MemoryArea, cache: BlockCache | None) -> reading.RunReader:
        return reading.RunReader(area, area.directory(), cache)  # type: ignore[arg-type]

    def check(self, area: MemoryArea, truth: dict[bytes, bytes]) -> None:
        reader = self.reader(area, self.cache)
        for key in KEYS:
            self.same(reader.get(key), truth.get(key), key)
        ends = [b"\x31", b"\x51", *self.random.sample(KEYS, 2)]
        for start in ends:
            for end in (b"\x52", self.random.choice(KEYS)):
                expected = sorted(
                    (key, value) for key, value in truth.items() if start <= key < end
                )
                rows = list(chain.from_iterable(reader.chunks(start, end, False)))
                self.same(rows, expected, start)
                back = list(chain.from_iterable(reader.chunks(start, end, True)))
                self.same(back, expected[::-1], end)
                first = list(islice(chain.from_iterable(reader.chunks(start, end, False)), 2))
                self.same(first, expected[:2], start)
                few = reader.few(start, end, 6)
                if few is not None:
                    self.same(sorted(few), [key for key, _ in expected], start)
                prefix = start[:2]
                at = len(prefix)
                whole = [key for key in truth if key.startswith(prefix) and len(key) > at]
                found = reader.tails([prefix], 1, 10**6) or set()
                self.same({key[at : at + 1] for key in whole} - found, set(), prefix)
        self.same(list(checking.problems(area, KINDS)), [], b"")  # type: ignore[arg-type]

    def same(self, found: Any, expected: Any, where: bytes) -> None:
        if found != expected:
            raise Wrong(f"at {where!r}: {found!r}, not {expected!r}")


def run_histories(seed: int, steps: int = 12) -> None:
    """Two spaces of one process, which share its cache."""
    cache = BlockCache(1_000_000)
    spaces = [History(2 * seed + number, cache) for number in range(2)]
    for number in range(steps):
        for space in spaces:
            space.step(number)


def first_wrong(histories: int) -> int | None:
    """The seed of the first history that goes wrong."""
    with tiny():
        for seed in range(histories):
            try:
                run_histories(seed)
            except Exception:  # noqa: BLE001 - broken code fails in any way it likes
                return seed
    return None
