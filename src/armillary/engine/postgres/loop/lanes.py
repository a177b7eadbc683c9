"""Reads and groups of writes on the event loop of a server: no thread for a request that waits.

    read_via ──▶ a lane for reads: many questions under way at once
    submit   ──▶ a line per space ──▶ a lane for writes, for one group at a time:

        BEGIN · take the fence · announced rows    ──▶
                                                   ◀── the commands run here, on an overlay
        guard and write the fence · rows · COMMIT  ──▶
                                                   ◀── the callers are answered

It is the same group as in `engine.py`, with the same statements, guards and rules of what is
uncertain; only the waiting is another. A group takes all commands of its space that came until its
turn, and a space has one group at a time. A command that reads what it did not announce is run
again with those rows (handlers are pure); one that scans, and every group that loses its connection
or its lock before the commit, is handed over to the threads of the engine, which try again.

`lane_pool.py` opens the connections and leaves those that are lost. Without one nothing is begun
here: the caller then takes the general path, which says what is wrong.
"""

from __future__ import annotations

import itertools
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, NoReturn

import psycopg

from armillary import steps
from armillary.engine.base import META_KEY, Command, Handlers, Row, SpaceGone
from armillary.engine.groups import Job, settle
from armillary.engine.overlay import Outcome, OverlayWriter, refuse, run_jobs, tell
from armillary.engine.postgres.errors import kind_of, translated
from armillary.engine.postgres.group import Warnings, announced
from armillary.engine.postgres.loop.lane import (
    Lane,
    Loop,
    LoopFuture,
    Results,
    Statement,
    array,
    failure,
    int4,
    int8,
)
from armillary.engine.postgres.loop.lane_pool import LanePool
from armillary.engine.postgres.pool import Pool
from armillary.engine.postgres.reader import PrefetchedReader
from armillary.engine.postgres.sql import Statements, batches
from armillary.errors import Unavailable, WriteUncertain
from armillary.limits import (
    FEW_ROWS,
    GROUP_COMMANDS_MAX,
    POSTGRES_WAITING_MAX,
    QUEUE_COMMANDS_MAX,
)

log = logging.getLogger("armillary.postgres")

READ_LANES: Final = 2  # one server process does not keep two backends busy
ROUNDS_MAX: Final = 4  # of running a group again with rows that it had not announced
LOOK_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 0.2
BEGIN: Final[Statement] = (b"begin", ())
COMMIT: Final[Statement] = (b"commit", ())
ROLLBACK: Final[Statement] = (b"rollback", ())


class Unannounced(Exception):
    """A command reads these rows, which were not fetched; None: it scans."""

    def __init__(self, keys: Sequence[bytes] | None) -> None:
        self.keys = keys


def _refuse_scan(query: bytes, arguments: Sequence[Any]) -> NoReturn:
    raise Unannounced(None)


class _KnownReader(PrefetchedReader):
    """Knows what was fetched, and can't wait for more."""

    __slots__ = ()

    def get(self, key: bytes) -> bytes | None:
        try:
            return self._known[key]
        except KeyError:
            raise Unannounced((key,)) from None

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        missing = [key for key in keys if key not in self._known]
        if missing:
            raise Unannounced(missing)
        return [self._known[key] for key in keys]

    def get_via(self, key: bytes, prefix: bytes) -> tuple[bytes, bytes | None] | None:
        first = self.get(key)
        return None if first is None else (first, self.get(prefix + first))


class _Group:
    __slots__ = ("base", "jobs", "lane", "rounds", "space", "version", "warnings")

    def __init__(self, lane: Lane, space: int, jobs: list[Job], version: int) -> None:
        self.lane = lane
        self.space = space
        self.jobs = jobs
        self.version = version
        self.base: _KnownReader | None = None
        self.rounds = 0
        self.warnings = Warnings()


class Lanes:
    """All methods on the loop, but where it says otherwise."""

    def __init__(
        self,
        loop: Loop,
        pool: Pool,
        statements: Statements,
        handlers: Handlers,
        versions: Iterator[int],
        *,
        writers: int,
        deadline_s: float,
        hand_over: Callable[[int, list[Job]], None],
    ) -> None:
        """`hand_over`: runs a group in a thread. `writers`: lanes for writes; 0: none."""
        self._loop = loop
        self._statements = statements
        self._handlers = handlers
        self._versions = versions
        self._hand_over = hand_over
        self._free: list[Lane] = []
        self._turn = itertools.count()
        self._lines: dict[int, deque[Job]] = {}
        self._ready: deque[int] = deque()
        self._waiting = 0
        self._planned = False
        self._lanes = LanePool(
            loop,
            pool,
            statements,
            {"read": READ_LANES, "write": writers},
            deadline_s=deadline_s,
            may_close=lambda kind, lane: kind == "read" or lane in self._free,
            opened=self._opened,
            lost=self._lost,
        )

    # --- reads ----------------------------------------------------------------------------------

    def read_via(self, space: int, key: bytes, prefix: bytes) -> Future[Any] | None:
        """As of the engine; None: not now. HOT: once per point read over HTTP."""
        lane = self._reader()
        if lane is None:
            return None
        future = LoopFuture()
        lane.ask(((b"read_via", (key, prefix, int4(space))),), partial(_read, future, space))
        return future

    def read_few(
        self, space: int, start: bytes, end: bytes, limit: int, tail: int, prefix: bytes
    ) -> Future[Any] | None:
        """As of the engine; None: not now."""
        lane = self._reader()
        if lane is None:
            return None
        future = LoopFuture()
        given = int4(tail), start, end, prefix, int4(space)
        lane.ask(((b"read_few", given),), partial(_read_few, future, space, limit))
        return future

    def _reader(self) -> Lane | None:
        lanes = self._lanes.open["read"]
        if len(lanes) < READ_LANES:
            self._lanes.want("read")
            if not lanes:
                return None
        lane = lanes[next(self._turn) % len(lanes)]
        return None if lane.waiting >= POSTGRES_WAITING_MAX else lane

    # --- writes ---------------------------------------------------------------------------------

    @property
    def may_write(self) -> bool:
        if not self._lanes.open["write"]:
            self._lanes.want("write")
            return False
        return True

    def submit(self, space: int, command: Command) -> Future[Any]:
        if self._waiting >= QUEUE_COMMANDS_MAX:
            raise Unavailable(
                f"{self._waiting} commands are waiting to be written; that is the limit. "
                "Send fewer at once, or try again in a moment.",
                waiting=self._waiting,
            )
        future = LoopFuture()
        line = self._lines.get(space)
        if line is None:
            # A line exists exactly while it is ready or its group is running.
            line = self._lines[space] = deque()
            self._ready.append(space)
        line.append(Job(space, command, future))
        self._waiting += 1
        self._plan()
        return future

    def _plan(self) -> None:
        """At the end of the turn: what comes in the same turn joins the group."""
        if not self._planned and self._ready:
            self._planned = True
            self._loop.call_soon(self._start)

    def _start(self) -> None:
        self._planned = False
        while self._ready:
            if not self._free:
                self._lanes.want("write")
                if not self._lanes.open["write"]:
                    self._give_all_away()
                return
            space = self._ready.popleft()
            line = self._lines[space]
            jobs = [line.popleft() for _ in range(min(len(line), GROUP_COMMANDS_MAX))]
            self._waiting -= len(jobs)
            group = _Group(self._free.pop(), space, jobs, next(self._versions))
            self._guard(self._begin, group)

    def _give_all_away(self) -> None:
        while self._ready:
            space = self._ready.popleft()
            jobs = list(self._lines.pop(space))
            self._waiting -= len(jobs)
            self._hand_over(space, jobs)

    def _guard(self, step: Callable[..., None], group: _Group, *given: Any) -> None:
        """A mistake of ours must not leave callers without an answer, nor a lock held."""
        try:
            step(group, *given)
        except Exception as error:
            log.exception("a bug: a group of writes")
            settle(group.jobs, error)
            group.lane.close()
            self._end(group)

    def _begin(self, group: _Group) -> None:
        keys, vias = announced(group.jobs, self._handlers)
        space = int4(group.space)
        asked: list[Statement] = [BEGIN, (b"fence_take", (int8(group.version), space))]
        if keys:
            asked.append((b"get_many", (space, array(keys))))
        if vias:
            first, prefixes = [key for key, _ in vias], [prefix for _, prefix in vias]
            asked.append((b"get_vias", (array(first), array(prefixes), space)))
        group.lane.ask(asked, partial(self._guard, self._begun, group, keys, vias))

    def _begun(
        self,
        group: _Group,
        keys: list[bytes],
        vias: list[Row],
        results: Results,
        error: psycopg.Error | None,
    ) -> None:
        if not self._goes_on(group, results, error):
            return
        fence = results[1]
        if not fence.ntuples:
            refuse(group.jobs, SpaceGone(group.space))
            self._roll_back(group)
            return
        meta = fence.get_value(0, 0)
        assert meta is not None
        base = group.base = _KnownReader(_refuse_scan, self._statements, group.space, meta)
        if vias:
            base.know_vias(vias, _rows(results[-1], 4))
        if keys:
            base.know_rows(keys, _rows(results[2], 2))
        steps.reached("group.begin")
        self._run(group)

    def _run(self, group: _Group) -> None:
        assert group.base is not None
        writer = OverlayWriter(group.base)
        try:
            outcomes = run_jobs(writer, group.jobs, self._handlers, fatal=(Unannounced,))
        except Unannounced as missing:
            group.rounds += 1
            if missing.keys is None or group.rounds > ROUNDS_MAX:
                self._hand_over(group.space, group.jobs)
                self._roll_back(group)
                return
            keys = missing.keys
            asked = [(b"get_many", (int4(group.space), array(keys)))]
            group.lane.ask(asked, partial(self._guard, self._learned, group, keys))
            return
        steps.reached("group.applied")
        self._commit(group, writer, outcomes)

    def _learned(
        self,
        group: _Group,
        keys: Sequence[bytes],
        results: Results,
        error: psycopg.Error | None,
    ) -> None:
        if self._goes_on(group, results, error):
            assert group.base is not None
            group.base.know_rows(keys, _rows(results[0], 2))
            self._run(group)

    def _commit(self, group: _Group, writer: OverlayWriter, outcomes: list[Outcome]) -> None:
        assert group.base is not None
        puts, deletes = writer.puts_and_deletes()
        changed = bool(puts or deletes)
        was = meta = group.base.meta
        if puts and puts[0][0] == META_KEY:  # they are in key order, and no key is less
            meta = puts.pop(0)[1]
        space = int4(group.space)
        asked: list[Statement] = []
        if changed:
            asked.append((b"fence_guard", (meta, space, int8(group.version), was)))
        for batch in batches(puts):
            rows = array([key for key, _ in batch]), array([value for _, value in batch])
            asked.append((b"put_arrays", (space, *rows)))
        if deletes:
            asked.append((b"delete_many", (space, array(deletes))))
        asked.append(COMMIT)
        group.lane.connection.add_notice_handler(group.warnings.note)
        group.lane.ask(asked, partial(self._guard, self._committed, group, outcomes, changed))

    def _committed(
        self,
        group: _Group,
        outcomes: list[Outcome],
        changed: bool,
        results: Results,
        error: psycopg.Error | None,
    ) -> None:
        lane = group.lane
        lane.connection.remove_notice_handler(group.warnings.note)
        failed = error or failure(results)
        if failed is not None:
            # As in `group.commit`: only a transaction that is open and failed has surely not been
            # committed.
            if changed and not (error is None and lane.failed):
                refuse(group.jobs, WriteUncertain(sqlstate=failed.sqlstate))
                self._end(group)
            else:
                self._goes_on(group, results, error)
            return
        assert results[-1].command_status == b"COMMIT", results[-1].command_status
        uncertain = group.warnings.uncertain()
        if uncertain is not None:
            refuse(group.jobs, uncertain)
        else:
            steps.reached("group.committed")
            tell(outcomes)
            steps.reached("group.acknowledged")
        self._end(group)

    def _goes_on(self, group: _Group, results: Results, error: psycopg.Error | None) -> bool:
        """False: it failed before the commit, and that has been seen to."""
        failed = error or failure(results)
        if failed is None:
            return True
        kind = kind_of(failed)
        if kind is not None and kind.again:
            self._hand_over(group.space, group.jobs)
        else:
            refuse(group.jobs, _ours(failed))
        if error is None:
            self._roll_back(group)
        else:
            self._end(group)
        return False

    def _roll_back(self, group: _Group) -> None:
        group.lane.ask([ROLLBACK], lambda results, error: self._end(group))

    def _end(self, group: _Group) -> None:
        """The lane is free, and the next group of the space may begin."""
        if group.lane.open:
            self._free.append(group.lane)
        self._lanes.used("write")
        if self._lines.get(group.space):
            self._ready.append(group.space)
        else:
            self._lines.pop(group.space, None)
        self._plan()

    # --- lanes ----------------------------------------------------------------------------------

    def _opened(self, kind: str, lane: Lane) -> None:
        if kind == "write":
            self._free.append(lane)
            self._plan()

    def _lost(self, kind: str, lane: Lane) -> None:
        if lane in self._free:
            self._free.remove(lane)
        if kind == "write":
            self._plan()

    def close(self) -> None:
        """Idempotent."""
        if not self._lanes.closed:
            self._lanes.close()
            self._give_all_away()


def _rows(result: Any, columns: int) -> list[tuple[Any, ...]]:
    value = result.get_value
    return [
        tuple([value(row, column) for column in range(columns)]) for row in range(result.ntuples)
    ]


def _read(future: Future[Any], space: int, results: Results, error: psycopg.Error | None) -> None:
    failed = error or failure(results)
    if failed is not None:
        future.set_exception(_ours(failed))
    elif not results[0].ntuples:
        future.set_exception(SpaceGone(space))
    else:
        value = results[0].get_value
        future.set_result((value(0, 0), value(0, 1), value(0, 2)))


def _read_few(
    future: Future[Any], space: int, limit: int, results: Results, error: psycopg.Error | None
) -> None:
    failed = error or failure(results)
    if failed is not None:
        future.set_exception(_ours(failed))
        return
    rows = _rows(results[0], 3)
    if not rows:
        future.set_exception(SpaceGone(space))
        return
    found = sorted((tail, value) for _, tail, value in rows if tail is not None)
    values = [value for _, value in found]
    is_few = len(values) < min(limit, FEW_ROWS) and None not in values
    future.set_result((rows[0][0], values) if is_few else None)


def _ours(error: psycopg.Error) -> Exception:
    found = translated(error)
    found.__cause__ = error
    return found
