"""One LMDB environment per folder and process, shared by all engines that open it.

LMDB forbids opening a file twice in a process (closing one would free the locks of both), so opens
are counted per real path. A forked child must not touch its parent's environment at all: it finds a
`begin` that raises. Workers are spawned, never forked.

This module owns what belongs to the process: the map, the turn of the writer, the check for dead
readers, the check for room, the redo log and when it is replayed. What lies inside the map is in
spaces.py.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn

import lmdb

from armillary.engine.base import Durability
from armillary.engine.lmdb.errors import translate
from armillary.engine.lmdb.folder import MOUNTS, DataFolder, opening
from armillary.engine.lmdb.format import DATA_NAME
from armillary.engine.lmdb.free_pages import Unreadable, free_pages
from armillary.engine.lmdb.nonces import NONCES
from armillary.engine.lmdb.redo_log import MARK_BYTES, MARK_KEY, MARKED_AT_KEY, RedoLog
from armillary.engine.lmdb.tail import Tail
from armillary.errors import BadInput, DbError, FormatMismatch, StorageFull, Unavailable
from armillary.limits import (
    MAP_BYTES_DEFAULT,
    MB,
    READER_CHECK_SECONDS,
    READERS_MAX,
    RESERVE_BYTES,
    SPACES_OWN_DATABASE_MAX,
)

log = logging.getLogger("armillary.engine")

ENGINE_NAME = "lmdb"
DATABASES_MAX = SPACES_OWN_DATABASE_MAX + 8  # LMDB's own, the shared one, some to spare
OLD_READER_SECONDS = 0.25  # between two looks at the reader slots
OLD_READER_COMMITS = 16  # of dozens of commands each: many freed pages are kept
FREE_LIST_READS = 3
SPARE_READS = 64  # finished read transactions kept for reuse; each holds one reader slot


@dataclass(frozen=True, slots=True)
class Settings:
    durability: Durability = "full"
    map_bytes: int = MAP_BYTES_DEFAULT
    reserve_bytes: int = RESERVE_BYTES
    mounts: Path = MOUNTS
    keep_format: bool = False


class Environment:
    """Use `acquire` and `release`, not the constructor."""

    def __init__(self, path: Path, settings: Settings) -> None:
        self.settings = settings
        self.users = 0
        self.forked = False
        with opening(
            path, ENGINE_NAME, keep_format=settings.keep_format, mounts=settings.mounts
        ) as folder:
            self.folder: DataFolder = folder
            self.lmdb = _open(path, settings)
            if settings.durability == "relaxed":
                folder.mark_relaxed()
            self.redo = RedoLog(path)
        self.begin: Callable[..., lmdb.Transaction[bytes]] = self.lmdb.begin
        self.page_bytes = self.lmdb.stat()["psize"]
        self.tail = Tail(self.redo)
        self.flush: Callable[[], None] | None = None
        """Commits what this process has in the redo log and lets go of `writing`. For who has the
        turn."""
        self.replay: Callable[[lmdb.Transaction[bytes]], None] = _nothing
        """Puts what a process that died has left in the redo log into this transaction."""
        self.turn = threading.Lock()
        """Of this process: held by who writes."""
        self._readers_known_until = 0.0
        self._old_reader = False
        self._stop = threading.Event()
        self._checker = threading.Thread(
            target=self._check_readers, name="lmdb-readers", daemon=True
        )
        self._checker.start()

    @contextmanager
    def write(self) -> Iterator[lmdb.Transaction[bytes]]:
        """The writer's turn: a transaction, committed by the block or else aborted. Fair between
        processes; within one, only one at a time.
        """
        if self.forked:
            _refuse_after_fork()  # before any lock: that of the file is its parent's too
        with self.turn:
            if self.flush is not None:
                self.flush()
            self.enter()
            try:
                if self.redo.is_open:  # for a process that died
                    self.replay_left()
                with self.transaction() as transaction:
                    yield transaction
            finally:
                self.leave()

    @contextmanager
    def transaction(self) -> Iterator[lmdb.Transaction[bytes]]:
        """For who has entered."""
        transaction = self.begin(write=True)
        try:
            yield transaction
        finally:
            transaction.abort()  # nothing happens if it was committed

    def enter(self) -> None:
        """No other process writes from now on. For who has the turn."""
        turnstile = self.folder.turnstile
        turnstile.take()
        try:
            self.folder.writing.take()
        finally:
            turnstile.free()

    def leave(self) -> None:
        self.folder.writing.free()

    def replay_left(self) -> None:
        """For who has entered. Whatever one who died has left behind the end does not count any
        more: there is a new mark."""
        with self.transaction() as transaction:
            if self.redo.left(transaction.get(MARK_KEY)):
                self.replay(transaction)
            elif self.redo.is_open:
                # LMDB may have it all, and a second commit above the base is one too many for
                # readers (tail.py).
                self.redo.hide()
            else:
                self.redo.end()
                return
            put_mark(transaction)
            transaction.commit()
        self.redo.end()

    def replay_at_start(self) -> None:
        """What was left by a process that died, or before a loss of power, when the head is lost or
        an old one. Who writes has done the same, so nobody writes before it is done."""
        with self.turn:
            if self.flush is not None:
                return  # it is ours
            self.enter()
            try:
                self.replay_left()
            finally:
                self.leave()

    def read(self, db: Any = None) -> lmdb.Transaction[bytes]:
        """A read transaction, after clearing out dead readers when every slot is taken."""
        try:
            return self.begin(db)
        except lmdb.ReadersFullError:
            self.lmdb.reader_check()
            return self.begin(db)

    def has_old_reader(self) -> bool:
        """Whether a snapshot (a backup, a long read) is so old that pages freed since can't be used
        again. Looked at now and then only: it reads every reader slot."""
        now = monotonic()
        if now >= self._readers_known_until:
            self._readers_known_until = now + OLD_READER_SECONDS
            last = self.lmdb.info()["last_txnid"]
            # One line per reader after the heading: pid, thread, and the snapshot or "-".
            lines = self.lmdb.readers().splitlines()[1:]
            seen = [int(fields[2]) for line in lines if (fields := line.split())[2:3] > ["-"]]
            self._old_reader = bool(seen) and min(seen) + OLD_READER_COMMITS < last
        return self._old_reader

    def panic(self) -> lmdb.PanicError | None:
        """After a failed write of a meta page LMDB refuses everything for ever, reads too, so the
        process had better end now than at its next write. After a full disk it does not.
        """
        try:
            self.read().abort()  # a read, because a write might wait for another process
        except lmdb.PanicError as error:
            return error
        return None

    def has_room(self, more: int = 0) -> bool:
        """Whether `refuse_when_full` need not look at pages that deletes have freed, also when so
        many bytes more are written. Costs two system calls."""
        reserve = self.settings.reserve_bytes
        state = self.lmdb.info()
        map_bytes = state["map_size"]
        left = map_bytes - (state["last_pgno"] + 1) * self.page_bytes  # never goes up
        if self.folder.free_bytes() < reserve + more:
            return False
        return left >= min(reserve, map_bytes // 8) + more

    def refuse_when_full(self, pages_used: Callable[[], int]) -> None:
        """Raise StorageFull while there is still room enough to free something. `pages_used` is
        asked only near the end of disk or map: it looks at every space. Pages that deletes have
        freed are written again before the file grows, so they count.
        """
        if self.has_room():
            return
        reserve = self.settings.reserve_bytes
        free = self.folder.free_bytes()
        state = self.lmdb.info()
        file_bytes = (state["last_pgno"] + 1) * self.page_bytes
        map_bytes = state["map_size"]
        map_reserve = min(reserve, map_bytes // 8)
        used_bytes = pages_used() * self.page_bytes
        room = free + max(0, file_bytes - used_bytes)
        if room < reserve:
            raise StorageFull(
                f"The disk of the data folder has {room} bytes left; writes need {reserve}. "
                "Reads and deletes go on. Free some space.",
                free_bytes=room,
            )
        left = map_bytes - used_bytes
        if left < map_reserve:
            raise StorageFull(
                f"The store has {left} of its {map_bytes} bytes left; writes need {map_reserve}. "
                "Reads and deletes go on. Delete something, or open it with a larger map.",
                free_bytes=left,
            )

    def close(self) -> None:
        self._stop.set()
        self._checker.join()
        with self.turn, suppress(lmdb.Error, DbError):  # then the log keeps it for the next opening
            if self.flush is not None:
                self.flush()
        self.lmdb.sync(True)
        self.lmdb.close()
        self.redo.close()
        self.folder.close()

    def abandon(self) -> None:
        """In a forked child: never again, not even to close."""
        self.forked = True
        self.begin = _refuse_after_fork

    def _check_readers(self) -> None:
        while not self._stop.wait(READER_CHECK_SECONDS):
            self.lmdb.reader_check()


def put_mark(transaction: lmdb.Transaction[bytes]) -> None:
    """What the redo log has belongs to the state that this transaction leaves."""
    transaction.put(MARK_KEY, NONCES(MARK_BYTES))
    transaction.put(MARKED_AT_KEY, transaction.id().to_bytes(8, "big"))


def is_marked(transaction: lmdb.Transaction[bytes]) -> bool:
    """Whether the last commit before this one has set the mark, which is of no other state then."""
    last = (transaction.id() - 1).to_bytes(8, "big")
    return transaction.get(MARK_KEY) is not None and transaction.get(MARKED_AT_KEY) == last


def _nothing(transaction: lmdb.Transaction[bytes]) -> None:
    """No space is known yet."""


def _refuse_after_fork(*_: Any, **__: Any) -> NoReturn:
    raise Unavailable(
        "This engine was opened before a fork and can't be used in the child process. "
        "Spawn processes and open the engine in each."
    )


def _open(path: Path, settings: Settings) -> lmdb.Environment:
    # py-lmdb 3 carries two versions of LMDB with different files; ours stays the first.
    two = int(lmdb.__version__.split(".")[0]) >= 3
    version: dict[str, Any] = {"lib_version": 0} if two else {}
    try:
        environment = lmdb.open(
            str(path),
            map_size=settings.map_bytes,
            mode=0o600,
            # Never writemap: with it a full disk is a SIGBUS, not an error.
            writemap=False,
            sync=settings.durability == "full",
            max_readers=READERS_MAX,
            max_dbs=DATABASES_MAX,
            max_spare_txns=SPARE_READS,
            **version,
        )
    except lmdb.Error as error:
        raise translate(error) from error
    try:
        _refuse_cut_file(path, environment)
        environment.reader_check()
    except BaseException:
        environment.close()
        raise
    return environment


def _refuse_cut_file(path: Path, environment: lmdb.Environment) -> None:
    """A file shorter than its own last page would end in a SIGBUS at some later read; unless the
    pages that it lacks are free: LMDB writes none that a transaction took and gave back."""
    pages = environment.info()["last_pgno"] + 1
    page_bytes = environment.stat()["psize"]
    needed = pages * page_bytes
    size = (path / DATA_NAME).stat().st_size
    # A new file has its two meta pages only.
    if size < needed and not _are_free(path, page_bytes, range(size // page_bytes, pages)):
        environment.close()
        raise FormatMismatch(
            f"{path / DATA_NAME} has {size} bytes but refers to {needed}: it was cut short. "
            "Restore a backup."
        )


def _are_free(path: Path, page_bytes: int, pages: range) -> bool:
    for _ in range(FREE_LIST_READS):  # another process may write meanwhile
        try:
            return free_pages(path / DATA_NAME, page_bytes).issuperset(pages)
        except Unreadable as error:
            log.debug("the free list: %s", error)
    return False


_opened: dict[str, Environment] = {}
_registry = threading.Lock()


def acquire(path: Path, settings: Settings) -> Environment:
    """The environment of this folder; opened by the first who asks."""
    if settings.map_bytes < MB:
        raise BadInput(f"A map of {settings.map_bytes} bytes is too small; at least {MB}.")
    real = os.path.realpath(path)
    forked = _opened.get(real)
    if forked is not None and forked.forked:
        _refuse_after_fork()
    with _registry:
        environment = _opened.get(real)
        if environment is None:
            environment = _opened[real] = Environment(Path(real), settings)
        elif environment.settings != settings:
            raise Unavailable(
                f"{path} is open in this process already, with other settings: "
                f"{environment.settings}."
            )
        environment.users += 1
        return environment


def release(environment: Environment) -> None:
    if environment.forked:
        return
    with _registry:
        environment.users -= 1
        if environment.users == 0:
            del _opened[str(environment.folder.path)]
            environment.close()


def _abandon_all() -> None:
    for environment in _opened.values():
        environment.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
