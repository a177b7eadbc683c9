"""Many independent writes on their way: gathered by space, sent in commands of some hundred.

One command is one message, one look at the meta row and one run of index rows, whatever number of
items it has; it is small enough that the writer is not held for long by it. New items that are all
alike go as lists (`store/inserts/loads.py`), a thousand in a command: the writer takes a third of
the time for each. What is ahead of the writer is bounded.
"""

import gc
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from armillary.engine.base import Command, Engine, SpaceGone
from armillary.errors import DbError
from armillary.limits import (
    BULK_COMMANDS_AHEAD,
    BULK_OPERATIONS,
    GARBAGE_OBJECTS,
    LOAD_BYTES,
    LOAD_ENTRIES,
    LOAD_ITEMS,
    LOAD_ITEMS_FIRST,
    LOAD_ITEMS_MIN,
)
from armillary.partition.ranges import Range
from armillary.store.inserts.loads import LOAD, Answers, columns_of, is_plain
from armillary.store.items.operations import BULK
from armillary.store.items.requests import Context, Done, Key, Op, from_refusal
from armillary.values import JSON


class Chunk:
    """Operations of one space that travel together, and the answer to all of them."""

    __slots__ = (
        "_found",
        "answers",
        "entries",
        "items_max",
        "kind",
        "loads",
        "owner",
        "pairs",
        "text_bytes",
    )

    def __init__(self, owner: Range, kind: str, items_max: int) -> None:
        """`items_max`: of those that go as lists."""
        self.owner = owner
        self.kind = kind
        """Of all of them, when they may go as lists; else empty."""
        self.items_max = items_max
        self.pairs: list[tuple[Key, Op]] = []
        self.text_bytes = 0
        self.entries = 0
        self.answers: Future[Any] = Future()
        self.loads: Answers | None = None
        """Of those that went as lists."""
        self._found: Any = None

    @property
    def is_full(self) -> bool:
        most = self.items_max if self.kind else BULK_OPERATIONS
        return (
            len(self.pairs) >= most or self.text_bytes >= LOAD_BYTES or self.entries >= LOAD_ENTRIES
        )

    def done(self, at: int) -> Done:
        if self._found is None:
            self._wait()
        if self.loads is not None:
            answer = self.loads.at(at)
        else:
            done, refused = self._found
            answer = done[at] or refused[at]
        if isinstance(answer, Done):
            return answer
        raise from_refusal(answer)

    def finish(self, at: int, item: dict[str, JSON]) -> dict[str, JSON] | None:
        if self._found is None:
            self._wait()
        return None if self.loads is None else self.loads.finish(at, item)

    def _wait(self) -> None:
        self._found = self.answers.result()
        if self.loads is not None:
            self.loads.take(self._found)


class Answer:
    """What became of one operation of a chunk. A future of its own costs as much as its write."""

    __slots__ = ("_at", "_chunk")

    def __init__(self, chunk: Chunk, at: int) -> None:
        self._chunk = chunk
        self._at = at

    def result(self) -> Done:
        """Its `Done` when its command has been committed, or the error that refused it."""
        return self._chunk.done(self._at)

    def finish(self, item: dict[str, JSON]) -> dict[str, JSON] | None:
        """The item that was sent, with its system properties, if it is one of many new ones."""
        return self._chunk.finish(self._at, item)


class Bulk:
    """`send` when all have been added."""

    def __init__(
        self, engine: Engine, context_of: Callable[[Range], Context], wants_text: bool
    ) -> None:
        """`wants_text`: the caller reads the items as they are stored."""
        self._engine = engine
        self._wants_text = wants_text
        self._context_of = context_of
        self._gathered: dict[int, Chunk] = {}
        self._ahead: deque[Future[Any]] = deque()
        self._items_max = LOAD_ITEMS_FIRST

    def add(self, owner: Range, key: Key, op: Op) -> Answer:
        space = owner.space
        kind = op.kind if is_plain(op) else ""
        chunk = self._gathered.get(space)
        if chunk is not None and chunk.kind != kind:
            if len(chunk.pairs) >= BULK_OPERATIONS:
                self._send(space)
                chunk = None
            else:
                chunk.kind = ""
        if chunk is None:
            chunk = self._gathered[space] = Chunk(owner, kind, self._items_max)
        answer = Answer(chunk, len(chunk.pairs))
        chunk.pairs.append((key, op))
        chunk.text_bytes += len(op.text)
        if op.entries is not None:
            chunk.entries += len(op.entries.ix)
        if chunk.is_full:
            self._send(space)
        return answer

    def send(self) -> None:
        for space in list(self._gathered):
            self._send(space)

    def _send(self, space: int) -> None:
        chunk = self._gathered.pop(space)
        context = self._context_of(chunk.owner)
        if chunk.kind and len(chunk.pairs) >= LOAD_ITEMS_MIN:
            load = columns_of(chunk.pairs)
            chunk.loads = Answers(context, load, self._wants_text)
            command = Command(LOAD, (context, load, self._wants_text))
        else:
            command = Command(BULK, (context, chunk.pairs, self._wants_text))
        while len(self._ahead) >= BULK_COMMANDS_AHEAD:
            self._ahead.popleft().exception()  # who asked for it hears of it
        try:
            chunk.answers = self._engine.submit(space, command)
        except (DbError, SpaceGone) as error:
            chunk.answers.set_exception(error)
        self._ahead.append(chunk.answers)
        chunk.pairs = []
        self._items_max = min(LOAD_ITEMS, 2 * self._items_max)


class FewCollections:
    """While a bulk runs, the garbage collector looks less often at what is new.

    Thousands of items are made ready and none of it is garbage until they are written; with the
    usual 700 objects between two looks, looking took as long as the work. Of the whole process, so
    it is counted; a program that has its own thresholds keeps them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._before = gc.get_threshold()

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1
            if self._running == 1:
                self._before = gc.get_threshold()
                if 0 < self._before[0] < GARBAGE_OBJECTS:
                    gc.set_threshold(GARBAGE_OBJECTS, *self._before[1:])

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            if not self._running and gc.get_threshold()[0] == GARBAGE_OBJECTS:
                gc.set_threshold(*self._before)


few_collections = FewCollections()
