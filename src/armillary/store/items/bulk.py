"""Many independent writes on their way: gathered by space, sent in commands of some hundred.

One command is one message, one look at the meta row and one run of index rows, whatever number of
items it has; it is small enough that the writer is not held for long by it.
"""

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from armillary.engine.base import Command, Engine, SpaceGone
from armillary.errors import DbError
from armillary.limits import BULK_OPERATIONS
from armillary.partition.ranges import Range
from armillary.store.items.operations import BULK
from armillary.store.items.requests import Context, Done, Key, Op, from_refusal


class Bulk:
    """`send` when all have been added."""

    def __init__(self, engine: Engine, context_of: Callable[[Range], Context]) -> None:
        self._engine = engine
        self._context_of = context_of
        self._gathered: dict[int, list[tuple[Key, Op, Future[Any]]]] = {}
        self._owners: dict[int, Range] = {}

    def add(self, owner: Range, key: Key, op: Op) -> Future[Any]:
        """Its `Done`, or the error that refused it, when its command has been committed."""
        future: Future[Any] = Future()
        gathered = self._gathered.setdefault(owner.space, [])
        gathered.append((key, op, future))
        self._owners[owner.space] = owner
        if len(gathered) >= BULK_OPERATIONS:
            self._send(owner.space)
        return future

    def send(self) -> None:
        for space in list(self._gathered):
            self._send(space)

    def _send(self, space: int) -> None:
        gathered = self._gathered.pop(space)
        futures = [future for _, _, future in gathered]
        data = (self._context_of(self._owners[space]), [(key, op) for key, op, _ in gathered])
        try:
            sent = self._engine.submit(space, Command(BULK, data))
        except (DbError, SpaceGone) as error:
            _fail(futures, error)
            return
        sent.add_done_callback(partial(_tell, futures))


def _tell(futures: list[Future[Any]], sent: Future[Any]) -> None:
    error = sent.exception()
    if error is not None:
        _fail(futures, error)
        return
    for future, answer in zip(futures, sent.result(), strict=True):
        if isinstance(answer, Done):
            future.set_result(answer)
        else:
            future.set_exception(from_refusal(answer))


def _fail(futures: list[Future[Any]], error: BaseException) -> None:
    for future in futures:
        future.set_exception(error)
