"""Many independent writes on their way: gathered by space, sent in commands of some hundred.

One command is one message, one look at the meta row and one run of index rows, whatever number of
items it has; it is small enough that the writer is not held for long by it.
"""

from collections.abc import Callable
from concurrent.futures import Future

from armillary.engine.base import Command, Engine, SpaceGone
from armillary.errors import DbError
from armillary.limits import BULK_OPERATIONS
from armillary.partition.ranges import Range
from armillary.store.items.operations import BULK, BulkAnswer
from armillary.store.items.requests import Context, Done, Key, Op, from_refusal


class Chunk:
    """Operations of one space that travel together, and the answer to all of them."""

    __slots__ = ("answers", "owner", "pairs")

    def __init__(self, owner: Range) -> None:
        self.owner = owner
        self.pairs: list[tuple[Key, Op]] = []
        self.answers: Future[BulkAnswer] = Future()


class Answer:
    """What became of one operation of a chunk. A future of its own costs as much as its write."""

    __slots__ = ("_at", "_chunk")

    def __init__(self, chunk: Chunk, at: int) -> None:
        self._chunk = chunk
        self._at = at

    def result(self) -> Done:
        """Its `Done` when its command has been committed, or the error that refused it."""
        done, refused = self._chunk.answers.result()
        answer = done[self._at]
        if answer is not None:
            return answer
        raise from_refusal(refused[self._at])


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

    def add(self, owner: Range, key: Key, op: Op) -> Answer:
        chunk = self._gathered.get(owner.space)
        if chunk is None:
            chunk = self._gathered[owner.space] = Chunk(owner)
        answer = Answer(chunk, len(chunk.pairs))
        chunk.pairs.append((key, op))
        if len(chunk.pairs) >= BULK_OPERATIONS:
            self._send(owner.space)
        return answer

    def send(self) -> None:
        for space in list(self._gathered):
            self._send(space)

    def _send(self, space: int) -> None:
        chunk = self._gathered.pop(space)
        data = (self._context_of(chunk.owner), chunk.pairs, self._wants_text)
        try:
            chunk.answers = self._engine.submit(space, Command(BULK, data))
        except (DbError, SpaceGone) as error:
            chunk.answers.set_exception(error)
