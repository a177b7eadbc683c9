"""The engine in memory: for tests, `:memory:`, and as the picture of what the others must do.

A space is one `Blocks` value in a dict. A reader takes the value and keeps it; the writer runs a
group on an overlay, makes the next value, and puts it in the dict: that assignment is the commit.
Nothing survives the process, except through `backup` and `restored`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from armillary import steps
from armillary.clock import Clock, SystemClock
from armillary.engine.base import (
    META_KEY,
    Command,
    EngineDefaults,
    Handlers,
    Row,
    SpaceGone,
    scanned_lists,
    scanned_tails,
)
from armillary.engine.blocks import EMPTY, Blocks
from armillary.engine.groups import Groups, Job
from armillary.engine.overlay import OverlayWriter, refuse, run_jobs, tell
from armillary.errors import BadInput, Conflict, FormatMismatch, Unavailable

FORMAT: Final = b"armillary memory 1\n"
ROWS: Final = msgspec.msgpack.Decoder(list[tuple[bytes, bytes]])


class MemoryReader:
    """One `Blocks` value. Nothing to let go."""

    __slots__ = ("_blocks", "meta")

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self.meta = _meta(blocks)

    def get(self, key: bytes) -> bytes | None:
        return self._blocks.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self._blocks.get(key) for key in keys]

    def get_via(self, key: bytes, prefix: bytes) -> tuple[bytes, bytes | None] | None:
        first = self._blocks.get(key)
        return None if first is None else (first, self._blocks.get(prefix + first))

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[Row]:
        scan = self._blocks.scan_reverse if reverse else self._blocks.scan
        rows = scan(start, end)
        return rows if limit is None else islice(rows, limit)

    def get_behind(self, prefix: bytes, tails: Sequence[bytes]) -> list[bytes | None]:
        return self.get_many([prefix + tail for tail in tails])

    def scan_lists(self, start: bytes, end: bytes, rows_max: int) -> Iterator[list[Row]]:
        return scanned_lists(self, start, end, rows_max)

    def tails(self, prefixes: Sequence[bytes], size: int, limit: int) -> set[bytes] | None:
        return scanned_tails(self, prefixes, size, limit)


class MemoryPin:
    def __init__(self, spaces: dict[int, Blocks]) -> None:
        self._spaces = spaces

    def read(self, space: int) -> AbstractContextManager[MemoryReader]:
        blocks = self._spaces.get(space)
        if blocks is None:
            raise SpaceGone(space)
        return nullcontext(MemoryReader(blocks))

    def close(self) -> None:
        self._spaces = {}


class MemoryEngine(EngineDefaults):
    def __init__(self, handlers: Handlers, *, clock: Clock | None = None) -> None:
        self.unclean_open = False
        self.never_waits = False
        self._handlers = handlers
        self.clock: Clock = SystemClock() if clock is None else clock
        self._spaces: dict[int, Blocks] = {}
        self._lock = threading.Lock()  # for changes of _spaces; readers need none
        self._closed = False
        self._groups = Groups(self._run_group, per_space=True, name="memory-writer")

    def read(self, space: int) -> AbstractContextManager[MemoryReader]:
        return nullcontext(MemoryReader(self._blocks(space)))

    def pin(self) -> MemoryPin:
        """A snapshot of every space, to be kept for a while."""
        with self._lock:
            return MemoryPin(dict(self._spaces))  # references: cheap

    def read_via(
        self, space: int, key: bytes, prefix: bytes
    ) -> tuple[bytes, bytes | None, bytes | None]:
        blocks = self._blocks(space)
        first = blocks.get(key)
        second = None if first is None else blocks.get(prefix + first)
        return _meta(blocks), first, second

    def submit(self, space: int, command: Command) -> Future[Any]:
        return self._groups.submit(space, command)

    def run(self, space: int, command: Command) -> Any:
        return self.submit(space, command).result()

    def create_space(self, space: int, rows: Iterable[Row]) -> None:
        blocks = EMPTY.apply(dict(rows))
        _meta(blocks)
        with self._lock:
            self._check_open()
            if space in self._spaces:
                raise Conflict(f"Space {space} exists already.")
            self._spaces[space] = blocks

    def drop_space(self, space: int) -> None:
        with self._lock:
            self._check_open()
            self._spaces.pop(space, None)

    def spaces(self) -> list[int]:
        with self._lock:
            self._check_open()
            return sorted(self._spaces)

    def now_ms(self) -> int:
        return self.clock.now_ms()

    def backup(self, target: Path) -> None:
        with self._lock:
            self._check_open()
            spaces = dict(self._spaces)  # all at one moment, and cheap: references
        target.mkdir(parents=True, exist_ok=True)
        if any(target.iterdir()):
            raise BadInput(f"The folder {target} is not empty.")
        for space, blocks in spaces.items():
            rows = list(blocks.scan(b"", b"\xff" * 512))
            (target / f"{space}.rows").write_bytes(msgspec.msgpack.encode(rows))
        # Last, so that a copy cut short is not taken for a whole one.
        unfinished = target / "FORMAT.new"
        unfinished.write_bytes(FORMAT)
        os.replace(unfinished, target / "FORMAT")

    def close(self) -> None:
        self._groups.close()
        with self._lock:
            self._closed = True
            self._spaces = {}

    def _run_group(self, jobs: list[Job]) -> None:
        space = jobs[0].space
        with self._lock:
            before = self._spaces.get(space)
        if before is None:
            refuse(jobs, SpaceGone(space))
            return
        steps.reached("group.begin")
        writer = OverlayWriter(MemoryReader(before))
        outcomes = run_jobs(writer, jobs, self._handlers)
        steps.reached("group.applied")
        after = before.apply(writer.changes()) if writer.changes() else before
        with self._lock:
            # Only this thread writes, but another may have dropped the space meanwhile.
            gone = self._spaces.get(space) is not before
            if not gone:
                self._spaces[space] = after
        if gone:
            refuse(jobs, SpaceGone(space))
            return
        steps.reached("group.committed")
        tell(outcomes)
        steps.reached("group.acknowledged")

    def _blocks(self, space: int) -> Blocks:
        blocks = self._spaces.get(space)
        if blocks is None:
            self._check_open()
            raise SpaceGone(space)
        return blocks

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("The engine is closed.")


def restored(source: Path, handlers: Handlers, *, clock: Clock | None = None) -> MemoryEngine:
    """A new engine with the rows of a `backup`."""
    stamp = source / "FORMAT"
    if not stamp.is_file() or stamp.read_bytes() != FORMAT:
        raise FormatMismatch(f"{source} is not a finished backup of this version.")
    engine = MemoryEngine(handlers, clock=clock)
    for path in source.glob("*.rows"):
        rows = ROWS.decode(path.read_bytes())
        engine.create_space(int(path.stem), rows)
    engine.unclean_open = True
    return engine


def _meta(blocks: Blocks) -> bytes:
    meta = blocks.get(META_KEY)
    assert meta is not None, "a space without its fence"
    return meta
