"""The default engine: LMDB, embedded, durable, shared by several processes on one machine.

    environment  one map per folder and process: opening, the writer's turn, room, fork
    spaces       where each space lies in the map, and the replay of the redo log into it
    access       reading one space in one snapshot
    write        the changes of a commit, written into one space
    commit       a group of commands: one record of the redo log, later a part of one commit
    redo_log     the file of records: append, what is left after a death or a loss of power
    tail         what readers see of the redo log, on top of their snapshot
    engine       (here) the interface of base.py, put together

Reads run in the caller's thread on a fresh snapshot (0.3 µs to begin), with the rows of the redo
log over it while there are any. Writes queue for one writer thread, which takes whatever waits as
one group; a group is on the disk, as a record of the redo log or in a commit of LMDB, before its
callers are answered (`full`). `relaxed` has no log and leaves the disk to the operating system:
fast, and a power loss may cost the whole store. It is for data that may be thrown away, and the
next opening reports (`unclean_open`) when such a store was not closed properly.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

import lmdb

from armillary import steps
from armillary.clock import Clock, SystemClock
from armillary.engine.base import (
    META_KEY,
    Command,
    Durability,
    EngineDefaults,
    Handlers,
    Reader,
    Row,
    SpaceGone,
    read_few,
)
from armillary.engine.groups import Answer, Groups, Job
from armillary.engine.lmdb.access import LmdbReader, few_keys
from armillary.engine.lmdb.commit import GroupCommit
from armillary.engine.lmdb.environment import ENGINE_NAME, Settings, acquire, release
from armillary.engine.lmdb.errors import end_process, translate, uncertain
from armillary.engine.lmdb.folder import MOUNTS, UNCLEAN_PREFIX, from_system
from armillary.engine.lmdb.format import DATA_NAME, new_stamp, sync_folder, write_stamp
from armillary.engine.lmdb.place import TAG_BYTES, Place
from armillary.engine.lmdb.redo_log import END_AT
from armillary.engine.lmdb.spaces import Spaces
from armillary.engine.lmdb.tail import TailReader, View
from armillary.engine.sealing import cut_seal, cut_sealed
from armillary.errors import BadInput, DbError, Unavailable
from armillary.limits import (
    GROUP_COMMANDS_MAX,
    MAP_BYTES_DEFAULT,
    READ_SECONDS_MAX,
    RESERVE_BYTES,
    SPACES_OWN_DATABASE_MAX,
)

IDLE_MERGE_ENTRIES = 16_000  # in one commit, while no command waits
# Work of the engine itself, in the same queue as the commands. No handler can have these names.
CREATE, SHRINK, DROP, PURGE = "\0create", "\0shrink", "\0drop", "\0purge"
_MAIN_THREAD = threading.main_thread().ident


class LmdbRead:
    """`with engine.read(space) as reader:`"""

    __slots__ = ("_reader", "_transaction")

    def __init__(self, transaction: lmdb.Transaction[bytes], reader: Reader) -> None:
        self._transaction = transaction
        self._reader = reader

    def __enter__(self) -> Reader:
        return self._reader

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._transaction.abort()
        if isinstance(error, lmdb.Error):
            raise translate(error) from error


class LmdbPin:
    """A snapshot of every space. One thread at a time."""

    def __init__(
        self, store: LmdbStore, transaction: lmdb.Transaction[bytes], view: View | None
    ) -> None:
        self._store = store
        self._transaction = transaction
        self._view = view

    def read(self, space: int) -> AbstractContextManager[Reader]:
        try:
            return nullcontext(self._store.reader_in(self._transaction, space, self._view))
        except lmdb.Error as error:
            # Among others: a space in a sub-database that is younger than the snapshot.
            raise SpaceGone(space) from error

    def close(self) -> None:
        self._transaction.abort()


class LmdbStore(EngineDefaults):
    """The reading half, for any process that has the folder open."""

    def __init__(
        self,
        path: Path,
        *,
        durability: Durability = "full",
        clock: Clock | None = None,
        map_bytes: int = MAP_BYTES_DEFAULT,
        reserve_bytes: int = RESERVE_BYTES,
        own_max: int = SPACES_OWN_DATABASE_MAX,
        read_seconds_max: float = READ_SECONDS_MAX,
        packed: bytes | None = None,
        sealed: bytes = b"",
        keep_format: bool = False,
        mounts: Path = MOUNTS,
    ) -> None:
        """`packed`: the kinds of rows (first bytes of keys) that lie in runs, in every space but
        the catalog's; `sealed`: those that carry a checksum; None: as the folder has them.
        `keep_format`: an older folder is only read and not migrated."""
        settings = Settings(durability, map_bytes, reserve_bytes, mounts, keep_format)
        self._environment = acquire(path, settings)
        try:
            self._spaces = Spaces(self._environment, own_max, packed, sealed)
            self._environment.replay = self._spaces.replay
            self._environment.replay_at_start()
        except BaseException as error:
            release(self._environment)
            if isinstance(error, lmdb.Error):
                raise translate(error) from error
            raise
        self._places = self._spaces.places
        self._tail = self._environment.tail
        self._numbers = self._environment.redo.numbers  # of its head: point reads look there
        self.clock: Clock = clock or SystemClock()
        self._read_seconds_max = read_seconds_max
        self._closed = False
        self._closing = threading.Lock()
        self.unclean_open = self._environment.folder.unclean_open

    @property
    def never_waits(self) -> bool:
        return False

    def read(self, space: int) -> LmdbRead:
        try:
            self._check_open()
            place = self._places.get(space) or self._spaces.locate(space)
            while True:
                view = self._tail.view()
                transaction = self._environment.read(place.db)
                if view is not None and not self._tail.is_still(view):
                    transaction.abort()
                    continue
                try:
                    reader = self._reader(transaction, place, space, view)
                except SpaceGone:
                    transaction.abort()
                    before, place = place, self._spaces.locate(space)
                    if place == before:  # it still has its place, but not its meta row
                        self._places.pop(space, None)
                        raise
                    continue
                return LmdbRead(transaction, reader)
        except lmdb.Error as error:
            raise translate(error) from error

    def pin(self) -> LmdbPin:
        """A snapshot of every space, to be kept for a while: not longer than need be, see
        `access.py`."""
        try:
            self._check_open()
            while True:
                view = self._tail.view()
                transaction = self._environment.read()
                if view is None or self._tail.is_still(view):
                    return LmdbPin(self, transaction, view)
                transaction.abort()
        except lmdb.Error as error:
            raise translate(error) from error

    def reader_in(
        self, transaction: lmdb.Transaction[bytes], space: int, view: View | None
    ) -> Reader:
        self._check_open()
        place = self._places.get(space) or self._spaces.locate(space)
        return self._reader(transaction, place, space, view)

    def _reader(
        self, transaction: lmdb.Transaction[bytes], place: Place, space: int, view: View | None
    ) -> Reader:
        """Of a snapshot that is not older than the view, which is None or was still right when
        the snapshot had begun."""
        reader = LmdbReader(transaction, place, self._read_seconds_max)
        layer = None if view is None else view.layers.get(space)
        if layer is None or view is None or transaction.id() != view.base:
            return reader
        return TailReader(reader, layer)

    # HOT: every point read. Two or three gets in one snapshot, about 1.5 µs; no context manager, no
    # reader object. The general path is read().
    def read_via(
        self, space: int, key: bytes, prefix: bytes
    ) -> tuple[bytes, bytes | None, bytes | None]:
        place = self._places.get(space)
        view = self._tail.view() if self._numbers[END_AT] else None
        if view is not None and space in view.layers:
            found = self._read_via_over(view, space, key, prefix)
            if found is not None:
                return found
        elif place is not None and not place.prefix and key[0] not in place.packed:
            try:
                transaction = self._environment.begin(place.db)
                snapshot, meta = place.seen[0]
                if transaction.id() == snapshot or (meta := _see(transaction, place)):
                    second, first = None, transaction.get(key)
                    if first is not None:
                        row = prefix + first
                        second = transaction.get(row)
                    transaction.abort()
                    if second is not None and row[0] in place.sealed:
                        second = cut_seal(second, row)
                    return meta, first, second
                transaction.abort()
            except lmdb.Error:
                pass  # the general path says what is wrong, or clears out dead readers
        with self.read(space) as reader:
            pair = reader.get_via(key, prefix)
            return (reader.meta, None, None) if pair is None else (reader.meta, *pair)

    # HOT: every point read while writes go to the redo log.
    def _read_via_over(
        self, view: View, space: int, key: bytes, prefix: bytes
    ) -> tuple[bytes, bytes | None, bytes | None] | None:
        """The same through a layer of the redo log. None: not in this way."""
        changes, place = view.layers[space].changes, self._places.get(space)
        meta = changes.get(META_KEY)
        if meta is None or place is None or place.prefix or key[0] in place.packed:
            return None
        try:
            transaction = self._environment.begin(place.db)
            try:
                if transaction.id() != view.base or not self._tail.is_still(view):
                    return None
                if place.seen[0][0] != view.base and not _see(transaction, place):
                    return None  # another space has the place by now
                first = changes[key] if key in changes else transaction.get(key)
                if first is None:
                    return meta, None, None
                row = prefix + first
                if row in changes:
                    return meta, first, changes[row]
                second = transaction.get(row)
            finally:
                transaction.abort()
        except lmdb.Error:
            return None
        if second is not None and row[0] in place.sealed:
            second = cut_seal(second, row)
        return meta, first, second

    # HOT: every short query. The default is a reader's scan and get_many; the contract tests
    # compare.
    def read_few(
        self, space: int, start: bytes, end: bytes, limit: int, tail: int, prefix: bytes
    ) -> tuple[bytes, list[bytes]]:
        view = self._tail.view() if self._numbers[END_AT] else None
        found = None
        if view is None or space not in view.layers:
            found = self._read_few(space, start, end, limit, tail, prefix)
        return found or read_few(self, space, start, end, limit, tail, prefix)

    def _read_few(
        self, space: int, start: bytes, end: bytes, limit: int, tail: int, prefix: bytes
    ) -> tuple[bytes, list[bytes]] | None:
        place = self._places.get(space)
        if place is None or place.prefix:
            return None
        try:
            transaction = self._environment.begin(place.db)
            try:
                raw = transaction.get(META_KEY)
                if raw is None or not raw.startswith(place.tag):
                    return None
                if start[0] in place.packed:
                    keys = few_keys(transaction, place.db, start, end, limit)
                    if keys is None:
                        return None
                    found = [prefix + key[-tail:] for key in keys]
                else:
                    found = []
                    cursor = transaction.cursor()
                    if cursor.set_range(start):
                        for key in islice(cursor.iternext(True, False), limit):
                            if key >= end:
                                break
                            found.append(prefix + key[-tail:])
                        else:
                            if len(found) == limit:
                                return None
                found.sort()
                get = transaction.get
                values = [get(key, b"") for key in found]
                cut = cut_sealed(values) if prefix[0] in place.sealed else values
                return None if cut is None else (raw[TAG_BYTES:], cut)
            finally:
                transaction.abort()
        except lmdb.Error:
            return None  # the general path says what is wrong, or clears out dead readers

    def spaces(self) -> list[int]:
        try:
            self._check_open()
            return self._spaces.all()
        except lmdb.Error as error:
            raise translate(error) from error

    def check(self, space: int) -> list[str]:
        """What does not agree about the runs of a space, one line each. Raises SpaceGone."""
        self.flush()
        place = self._places.get(space) or self._spaces.locate(space)
        transaction = self._environment.read(place.db)
        try:
            return LmdbReader(transaction, place, self._read_seconds_max).problems()
        finally:
            transaction.abort()

    def flush(self) -> None:
        """All that was acknowledged until now is in LMDB, and not only in the redo log: who writes
        has committed it before somebody else gets his turn."""
        self.refuse_after_fork()
        if self._environment.redo.head()[1]:
            with self._environment.write():
                pass

    def now_ms(self) -> int:
        return self.clock.now_ms()

    def backup(self, target: Path) -> None:
        """A compact copy of one snapshot. The stamp comes last: half a backup can't be opened."""
        self._check_open()
        try:
            target.mkdir(parents=True, exist_ok=True)
            if any(target.iterdir()):
                raise BadInput(f"{target} is not empty. A backup needs a folder of its own.")
            self.flush()
            self._environment.lmdb.copy(str(target), compact=True)
            with (target / DATA_NAME).open("rb+") as file:
                os.fsync(file.fileno())
            # An engine that opens it has an older state than others may have seen.
            (target / f"{UNCLEAN_PREFIX}backup").touch()
            sync_folder(target)
            write_stamp(target, new_stamp(ENGINE_NAME))
        except lmdb.Error as error:
            raise translate(error) from error
        except OSError as error:
            raise from_system(error, target) from error

    def close(self) -> None:
        if self._environment.forked:
            return
        with self._closing:
            if not self._closed:
                self._closed = True
                self._finish()
                self._places = {}  # another engine may keep the map open; this one is done
                release(self._environment)

    def refuse_after_fork(self) -> None:
        """Before any lock: in a forked child they may be held by threads that do not exist."""
        if self._environment.forked:
            self._environment.begin()  # which raises

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("The engine is closed.")

    def _finish(self) -> None:
        """What has to end before the map goes."""


def _see(transaction: lmdb.Transaction[bytes], place: Place) -> bytes:
    """The meta row of a space, kept for the readers of the same snapshot. Empty: another space
    lives there, or none."""
    raw = transaction.get(META_KEY)
    if raw is None or not raw.startswith(place.tag):
        return b""
    meta = raw[TAG_BYTES:]
    place.seen[0] = transaction.id(), meta
    return meta


class LmdbEngine(LmdbStore):
    """The whole engine in one process, with a writer thread."""

    def __init__(
        self,
        path: Path,
        handlers: Handlers,
        *,
        group_max: int = GROUP_COMMANDS_MAX,
        panic: Callable[[BaseException], Any] = end_process,
        **options: Any,
    ) -> None:
        super().__init__(path, **options)
        self._commit = GroupCommit(self._environment, self._spaces, handlers, panic)
        self._panic = panic
        self.told: Callable[[], None] = _nothing
        """Called in the writer's thread whenever a group has been answered."""
        self._commit.rest = self._environment.has_old_reader
        self._commit.due.update(self._spaces.due())
        self._groups = Groups(
            self._run,
            group_max=group_max,
            name="lmdb-writer",
            idle=self._merge_when_idle,
            pause=self._commit.pause,
            pauses=lambda: self._commit.is_live,
        )
        for prefix in self._spaces.trash():
            self._groups.submit(prefix, Command(PURGE, None))

    def submit(self, space: int, command: Command) -> Future[Any]:
        self.refuse_after_fork()
        return self._groups.submit(space, command)

    def submit_now(self, space: int, command: Command) -> Future[Any]:
        """A command that is alone is committed by the calling thread: to wake the writer's and to
        be woken again takes longer than the command. Not by the main thread, which Ctrl-C may end
        anywhere: the next command would wait for ever."""
        self.refuse_after_fork()
        future = Answer()
        here = threading.get_ident() != _MAIN_THREAD
        self._groups.add([Job(space, command, future)], here=here)
        return future

    def add(self, jobs: Sequence[Job], *, here: bool = False) -> None:
        """Several commands at once; each is answered by its `future`. `here`: one that is alone may
        run in this thread."""
        self._groups.add(jobs, here=here)

    def run(self, space: int, command: Command) -> Any:
        return self.submit(space, command).result()

    def create_space(self, space: int, rows: Iterable[Row]) -> None:
        self.run(space, Command(CREATE, rows))

    def drop_space(self, space: int) -> None:
        drop_in_pieces(self.run, space)

    def _finish(self) -> None:
        self._groups.close()
        self._commit.flush()

    def _run(self, jobs: list[Job]) -> None:
        """Commands go in groups; what the engine does for itself goes alone, in its place."""
        try:
            self._run_all(jobs)
        finally:
            self.told()
        self._commit.flush_when_due()  # who was answered prepares the next group meanwhile

    def _run_all(self, jobs: list[Job]) -> None:
        group: list[Job] = []
        for job in jobs:
            own_work = OWN_WORK.get(job.command.name)
            if own_work is None:
                group.append(job)
                continue
            if group:
                self._commit.run(group)
                group = []
            self._run_own(own_work, job)
        if group:
            self._commit.run(group, self._joined)

    def _merge_when_idle(self) -> bool:
        """A piece of merging runs. Whether there is more; not while an old snapshot (a backup)
        keeps every page that merging frees, nor when the store is full."""
        due = self._commit.due
        if not due or self._environment.has_old_reader():
            return False
        space = next(iter(due))
        try:
            if not self._commit.merge(space, IDLE_MERGE_ENTRIES):
                due.discard(space)
        except (lmdb.Error, DbError):
            due.discard(space)  # its next commit goes on with it, and says what is wrong
        return bool(due)

    def _joined(self) -> list[Job]:
        """Of the next group, those that need nothing but the transaction; where the disk is slow.
        Where it is quick, workers prepare the next group while this one is written."""
        if not self._commit.is_slow_to_sync:
            return []
        places = self._spaces.places
        return self._groups.joined(
            lambda job: job.command.name not in OWN_WORK and job.space in places
        )

    def _run_own(self, work: Callable[[LmdbEngine, Job], object], job: Job) -> None:
        try:
            result = work(self, job)
        except lmdb.Error as error:
            # An error without a name of its own is the system's, from the commit: a failed disk.
            failure = uncertain(error) if type(error) is lmdb.Error else translate(error)
            failure.__cause__ = error
            job.future.set_exception(failure)
            self._end_after_panic(error)
        except Exception as error:  # noqa: BLE001 - handed to the caller
            job.future.set_exception(error)
            self._end_after_panic(error.__cause__)  # of a flush that it began with
        else:
            job.future.set_result(result)

    def _end_after_panic(self, cause: BaseException | None) -> None:
        if isinstance(cause, lmdb.Error):
            panic = self._environment.panic() or cause
            if isinstance(panic, lmdb.PanicError):
                self._panic(panic)

    def _create(self, job: Job) -> None:
        self._environment.refuse_when_full(self._spaces.pages_used)
        self._spaces.create(job.space, job.command.data)

    def _shrink(self, job: Job) -> bool:
        more = self._spaces.shrink(job.space)
        if more:
            steps.reached("drop.piece")
        return more

    def _drop(self, job: Job) -> None:
        # Not refused when full: dropping is how room is made.
        prefix = self._spaces.drop(job.space)
        if prefix is not None:
            self._purge_later(prefix)

    def _purge(self, job: Job) -> None:
        if self._spaces.purge(job.space):
            self._purge_later(job.space)

    def _purge_later(self, prefix: int) -> None:
        try:
            self._groups.submit(prefix, Command(PURGE, None))
        except DbError:
            return  # closing, or very busy: the next opening goes on with it


def _nothing() -> None:
    """No other process waits for answers."""


def drop_in_pieces(run: Callable[[int, Command], Any], space: int) -> None:
    """Others write between two pieces. Cut short, the space is gone for readers and writers; it is
    still one of `spaces()`, and can be dropped again."""
    while run(space, Command(SHRINK, None)):
        pass
    run(space, Command(DROP, None))


OWN_WORK: dict[str, Callable[[LmdbEngine, Job], object]] = {
    CREATE: LmdbEngine._create,
    SHRINK: LmdbEngine._shrink,
    DROP: LmdbEngine._drop,
    PURGE: LmdbEngine._purge,
}
