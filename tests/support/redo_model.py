"""Random histories of a data folder with a redo log, held against plain dictionaries.

A history is groups of commands in three spaces, flushes, merges, spaces that come and go, and
readers that keep what they began with; in between the writer dies, alone or with all others, or the
power is lost; the folder is opened again, compacted, backed up and gone on with from the backup.
After each step every way of reading has to agree with the dictionary, in this process and with the
eyes of another one.

    loss of power   data.mdb as it is: LMDB has synced it · of the log each sector as it was synced
                    or as it was written since, what follows garbled · the head as it was at any
                    moment since, or lost · nothing that processes share
    death           the files as they are · the locks are free
    death of one    the same, and another engine of the folder goes on

A group whose writer died may be there or not; from the next write or opening on it is one or the
other for good. Sizes are tiny, so that a short history passes through everything.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from tests.support.commands import HANDLERS, LAST, command

from armillary.engine import groups
from armillary.engine.base import META_KEY, SpaceGone, unmarked
from armillary.engine.groups import Job
from armillary.engine.lmdb import commit, redo_log
from armillary.engine.lmdb.compaction import compact_folder
from armillary.engine.lmdb.engine import LmdbEngine, LmdbStore
from armillary.engine.lmdb.redo_log import BOOT_AT, HEAD_PAGE, REDO_NAME, RedoLog
from armillary.engine.lmdb.tail import Tail
from armillary.errors import WriteUncertain

Rows = dict[bytes, bytes]
Truth = dict[int, Rows]
Operation = tuple[Any, ...]

PACKED, PLAIN, SEALED, LOADED = b"\x31", b"\x41", b"\x42", b"\x51"
OPTIONS: dict[str, Any] = {
    "packed": PACKED + LOADED,
    "sealed": SEALED,
    "own_max": 2,  # the third space shares a sub-database
    "map_bytes": 64 << 20,
    "reserve_bytes": 1 << 16,
}
SPACES = (1, 2, 3)
NUMBERS = b"abcdef"
KEYS = [kind + bytes((number,)) for kind in (PACKED, PLAIN, SEALED) for number in NUMBERS]
VIA = [b"\x43" + bytes((number,)) for number in NUMBERS[:3]]  # these name a document
LOG_BYTES, RECORD_BYTES = 3_072, 1_200
SECTOR = 512
STEPS = 14

#: What is on the disk of each log, by its file.
_synced: dict[tuple[int, int], bytes] = {}


class Wrong(AssertionError):
    """What is read is not what was written."""


class Dead(BaseException):
    """Of the process, as far as the code knows."""


def _noting(sync: Callable[[int], None]) -> Callable[[int], None]:
    def noted(file: int) -> None:
        sync(file)
        _note(file)

    return noted


def _note(file: int) -> None:
    state = os.fstat(file)
    if state.st_size == HEAD_PAGE + LOG_BYTES:
        _synced[state.st_dev, state.st_ino] = os.pread(file, state.st_size, 0)


@contextmanager
def small() -> Iterator[None]:
    _synced.clear()
    with (
        patch.object(os, "fdatasync", _noting(os.fdatasync)),
        patch.object(os, "fsync", _noting(os.fsync)),
        patch.object(redo_log, "REDO_LOG_BYTES", LOG_BYTES),
        patch.object(redo_log, "REDO_RECORD_BYTES_MAX", RECORD_BYTES),
        patch.object(groups, "PAUSE_SECONDS", 1_000.0),  # a history says when there is one
        patch.object(groups, "IDLE_SECONDS", 1_000.0),
        patch.object(commit, "REDO_SECONDS_MAX", 1_000.0),
    ):
        yield


class History:
    def __init__(self, random: Random, folder: Path) -> None:
        self.random = random
        self._folders = folder
        self._made = 0
        self.folder = self._new_folder()
        self.truth: Truth = {}
        #: Of a group whose writer died: what it would be with it.
        self.perhaps: Truth | None = None
        self.kept: list[tuple[Any, Any, Truth]] = []
        self._loaded = 0
        self._heads: list[bytes] = []  # of earlier moments of this folder
        self._open()
        for space in SPACES:
            self.create(space)

    # --- engines ----------------------------------------------------------------------------------

    def _new_folder(self) -> Path:
        self._made += 1
        return self._folders / str(self._made)

    def _open(self) -> None:
        """Two engines of one folder, as of two processes, and the eyes of a third."""
        self.engines = [LmdbEngine(self.folder, HANDLERS, **OPTIONS) for _ in range(2)]
        self.other = LmdbStore(self.folder, **OPTIONS)
        self._eyes: RedoLog | None = RedoLog(self.folder)
        self.other._tail = Tail(self._eyes)
        self.engine = self.engines[0]
        if self.perhaps is not None:
            self.settle()

    def close(self) -> None:
        self.let_go()
        for one in (*self.engines, self.other):
            one.close()
        if self._eyes is not None:
            self._eyes.close()
            self._eyes = None

    def let_go(self) -> None:
        for kept, _, _ in self.kept:
            kept.close()
        self.kept = []

    def settle(self) -> None:
        """Which of the two it is, now that it must not change any more."""
        assert self.perhaps is not None
        found = {space: self.rows(self.engine, space) for space in self.truth}
        if found == self.perhaps:
            self.truth = self.perhaps
        self.perhaps = None

    # --- steps ------------------------------------------------------------------------------------

    def run(self, steps: int = STEPS) -> None:
        try:
            for _ in range(steps):
                self.step()
                self.note_head()
                self.check()
        finally:
            with suppress(Exception):
                self.close()

    def step(self) -> None:
        ways: list[tuple[int, Callable[[], None]]] = [
            (30, self.group),
            (8, self.flush),
            (6, self.keep),
            (4, self.other_writer),
            (2, self.merge),
            (6, self.come_and_go),
            (4, self.lose_power),
            (3, self.die),
            (4, self.die_alone),
            (4, self.die_in_append),
            (2, self.fail_in_append),
            (3, self.overtake),
            (3, self.die_in_flush),
            (2, self.reopen),
            (2, self.compact),
            (2, self.back_up),
            (2, self.old_log),
        ]
        weights = [weight for weight, _ in ways]
        self.random.choices([way for _, way in ways], weights)[0]()

    def note_head(self) -> None:
        self._heads.append(self._head())

    def create(self, space: int) -> None:
        rows = {META_KEY: b"m:0", b"\x41z": b"first"}
        self.engine.create_space(space, list(rows.items()))
        self._written()
        self.truth[space] = rows

    def come_and_go(self) -> None:
        space = self.random.choice(SPACES)
        if space in self.truth:
            self.engine.drop_space(space)
            for truth in (self.truth, self.perhaps or {}):
                truth.pop(space, None)
            self._written()
        else:
            self.create(space)

    def group(self) -> None:
        commands = self._commands()
        jobs, truth = self._jobs(commands)
        self._add(jobs)
        if self.perhaps is not None:
            # Settled before these were run, so they tell it by what they found; or not yet, where
            # they changed nothing, and the record of the dead is still the first of the log.
            both = [self._after(truth, commands), self._after(self.perhaps, commands)]
            found = {space: self.rows(self.engine, space) for space in truth}
            if found == both[1]:
                self.truth, self.perhaps = both[1], None
            else:
                is_over = self._head_end() > 0 or not self.engine._environment.redo.is_open
                self.truth, self.perhaps = both[0], None if is_over else both[1]
            return
        for (space, operations), job in zip(commands, jobs, strict=True):
            refused = operations[-1][0] in ("fail", "bug")
            self.same(job.future.exception() is not None, refused, "refused", space)  # type: ignore[attr-defined]
        self.truth = self._after(truth, commands)

    def _add(self, jobs: list[Job]) -> None:
        self.engine.add(jobs)
        for job in jobs:
            job.future.exception(60)  # type: ignore[attr-defined]

    def _jobs(self, commands: list[tuple[int, list[Operation]]]) -> tuple[list[Job], Truth]:
        return [Job(space, command(*ops), Future()) for space, ops in commands], self.truth

    def _commands(self) -> list[tuple[int, list[Operation]]]:
        there = sorted(self.truth) or [SPACES[0]]
        if not self.truth:
            self.create(there[0])
        count = self.random.choice((1, 1, 2, 4))
        return [(self.random.choice(there), self._operations()) for _ in range(count)]

    def _operations(self) -> list[Operation]:
        operations = [self._operation() for _ in range(self.random.randrange(1, 4))]
        if self.random.random() < 0.15:
            operations.append(self.random.choice([("fail", "no"), ("bug",)]))
        return operations

    def _operation(self) -> Operation:
        random = self.random
        kind = random.random()
        if kind < 0.35:
            return "put", *self._row()
        if kind < 0.5:
            return "put_many", [self._row() for _ in range(random.randrange(1, 5))]
        if kind < 0.65:
            return "delete", random.choice(KEYS + VIA)
        if kind < 0.72:
            return "delete_many", random.sample(KEYS, 3)
        if kind < 0.8:
            return ("count_meta",)
        if kind < 0.9:
            inner = [self._operation() for _ in range(2)]
            return "nested", inner, random.random() < 0.5
        if kind < 0.95:
            self._loaded += 1
            return "put_joined", [b"%s%06d%d=" % (LOADED, self._loaded, n) for n in range(3)], 1
        size = random.choice((RECORD_BYTES // 2, RECORD_BYTES + 1))
        return "put", b"\x41large", bytes((random.randrange(256),)) * size

    def _row(self) -> tuple[bytes, bytes]:
        if self.random.random() < 0.2:
            return self.random.choice(VIA), bytes((self.random.choice(NUMBERS),))
        # Two bytes below 40 first: what is sealed begins so.
        value = b"\x01\x00%d" % self.random.randrange(10**6)
        return self.random.choice(KEYS), value

    def _after(self, truth: Truth, commands: list[tuple[int, list[Operation]]]) -> Truth:
        made = {space: dict(rows) for space, rows in truth.items()}
        for space, operations in commands:
            rows = dict(made[space])
            if all(_perform(rows, one) for one in operations):
                made[space] = rows
        return made

    def flush(self) -> None:
        if self.random.random() < 0.5:
            self.engine._commit.flush()
        else:
            self.other.flush()

    def other_writer(self) -> None:
        self.engine = self.engines[self.engines.index(self.engine) - 1]

    def merge(self) -> None:
        space = self.random.choice(SPACES)
        self.engine._commit.merge(space, self.random.choice((1, 5, 100)))
        self._written()

    def _written(self) -> None:
        """Somebody has committed: what a dead one left is decided."""
        if self.perhaps is not None:
            self.settle()

    def keep(self) -> None:
        if self.perhaps is not None:
            return
        truth = {space: dict(rows) for space, rows in self.truth.items()}
        store = self.random.choice((self.engine, self.other))
        pin = store.pin()
        self.kept.append((pin, pin, truth))
        if len(self.kept) > 3:
            kept, _, _ = self.kept.pop(0)
            kept.close()

    def reopen(self) -> None:
        self.close()
        self._open()

    def compact(self) -> None:
        self.close()
        compact_folder(self.folder)
        self._open()

    def back_up(self) -> None:
        target = self._new_folder()
        self.random.choice((self.engine, self.other)).backup(target)
        backup = LmdbStore(target, **OPTIONS)
        found = {space: self.rows(backup, space) for space in self.truth}
        if self.perhaps is None or found != self.perhaps:
            self.same(found, self.truth, "backup", 0)
        backup.close()
        if self.random.random() < 0.3:
            self._go_on_with(target)

    # --- deaths -----------------------------------------------------------------------------------

    def _head(self) -> bytes:
        with (self.folder / REDO_NAME).open("rb") as file:
            return file.read(HEAD_PAGE)

    def _head_end(self) -> int:
        return self.engine._environment.redo.head()[1]

    def _copied(self) -> Path:
        target = self._new_folder()
        target.mkdir()
        for name in ("FORMAT", "data.mdb", REDO_NAME, "in-use"):
            shutil.copy(self.folder / name, target / name)
        return target

    def _go_on_with(self, folder: Path) -> None:
        """The engines of before end in the folder of before."""
        with suppress(Exception):
            self.close()
        self.folder = folder
        self._heads = []
        if (folder / REDO_NAME).exists():
            with (folder / REDO_NAME).open("rb") as file:
                _note(file.fileno())
        self._open()

    def lose_power(self) -> None:
        end, random = self._head_end(), self.random
        log = bytearray(self._on_disk())
        head = random.choice([bytes(HEAD_PAGE), *self._heads[-4:], bytes(log[:HEAD_PAGE])])
        log[:HEAD_PAGE] = head
        log[BOOT_AT] = random.randbytes(16)
        if self.perhaps is None and random.random() < 0.7:
            # What was on its way then.
            size = random.choice((1, 16, 40, 300))
            garbage = random.randbytes(min(LOG_BYTES - end, size))
            log[HEAD_PAGE + end : HEAD_PAGE + end + len(garbage)] = garbage
        target = self._copied()
        (target / REDO_NAME).write_bytes(log)
        self._go_on_with(target)

    def _on_disk(self) -> bytes:
        written = (self.folder / REDO_NAME).read_bytes()
        state = (self.folder / REDO_NAME).stat()
        synced = _synced.get((state.st_dev, state.st_ino), written)
        found = bytearray(written)
        for at in range(HEAD_PAGE, len(written), SECTOR):
            if self.random.random() < 0.5:
                found[at : at + SECTOR] = synced[at : at + SECTOR]
        return bytes(found)

    def die(self) -> None:
        self._go_on_with(self._copied())

    def die_alone(self) -> None:
        """The writer; the other engine goes on."""
        live = self.engine._commit._live
        if live is not None:
            environment = self.engine._environment
            self.engine._commit._live = environment.flush = None
            live.transaction.abort()
            environment.leave()
        self.other_writer()

    def die_in_append(self) -> None:
        """The record is in the file, or a part of it, and the head does not say so."""
        if self.perhaps is not None:
            return
        commands = self._commands()
        part = self.random.choice((None, None, 1, 8, 17, 30))
        pwrite, at_sync = os.pwrite, self.random.random() < 0.5

        def write_and_die(file: int, data: bytes, at: int) -> int:
            if any(data):
                pwrite(file, data[:part], at)
                raise Dead
            return pwrite(file, data, at)

        how = {"fdatasync": _die} if at_sync else {"pwrite": write_and_die}
        if not self._interrupted(commands, how):
            return
        self.die_alone()
        if self.random.random() < 0.5:
            # Readers may have seen it by now, and then it has to stay.
            self.check()
            self.random.choice((self.lose_power, self.lose_power, self.die))()

    def fail_in_append(self) -> None:
        """The disk does not say whether it has it. The process would end; this one does not, and
        then it must be as if the group had never been."""
        if self.perhaps is not None:
            return

        def fail(file: int) -> None:
            raise OSError(5, "the disk")

        with patch.object(self.engine._commit, "_panic", lambda error: None):
            if not self._interrupted(self._commands(), {"fdatasync": fail}):
                return
        if self.random.random() < 0.7:
            if self.random.random() < 0.5:
                self.check()
            self.engine._commit.flush()
            self.perhaps = None

    def _interrupted(
        self, commands: list[tuple[int, list[Operation]]], how: dict[str, Callable[..., Any]]
    ) -> bool:
        """Whether the group was: it may as well have gone to LMDB, or been refused."""
        jobs, truth = self._jobs(commands)
        with ExitStack() as stack:
            for name, way in how.items():
                stack.enter_context(patch.object(os, name, way))
            self._add(jobs)
        errors = [job.future.exception() for job in jobs]  # type: ignore[attr-defined]
        if not any(isinstance(error, Dead | WriteUncertain) for error in errors):
            self.truth = self._after(truth, commands)
            return False
        self.perhaps = self._after(truth, commands)
        return True

    def overtake(self) -> None:
        """While a reader is between its look at the log and its snapshot, the log goes to LMDB, and
        others write what it is about to read."""
        if self.perhaps is not None:
            return
        environment, space = self.engine._environment, self.random.choice(sorted(self.truth) or [0])
        if not space:
            return
        before, begin = dict(self.truth[space]), environment.begin
        more = [(space, self._operations()) for _ in range(self.random.choice((0, 1, 2)))]
        states = [before]

        def begins(*given: Any, **named: Any) -> Any:
            environment.begin = begin
            self.engine._commit.flush()
            for one in more:
                self._add(self._jobs([one])[0])
                self.truth = self._after(self.truth, [one])
                states.append(self.truth[space])
                self.engine._commit.flush()
            return begin(*given, **named)

        environment.begin = begins
        try:
            found = self.rows(self.random.choice((self.engine, self.other)), space)
        finally:
            environment.begin = begin
        self.same(found in states, True, "overtaken", space)

    def die_in_flush(self) -> None:
        """In the middle of the commit, or between it and the head."""
        environment = self.engine._environment
        live = self.engine._commit._live
        if live is None or live.is_empty:
            return
        if self.random.random() < 0.5:
            with patch.object(environment.redo, "end", _die), suppress(Dead):
                self.engine._commit.flush()
        else:
            with patch.object(self.engine._commit, "_commit", _die), suppress(Dead):
                self.engine._commit.flush()
        self.die_alone()
        if self.random.random() < 0.5:
            self.random.choice((self.lose_power, self.die))()

    def old_log(self) -> None:
        """Somebody puts the log of an earlier state back."""
        saved = (self.folder / REDO_NAME).read_bytes()
        if self.engine._commit._live is None or not self._head_end():
            return
        self.engine._commit.flush()
        for _ in range(self.random.randrange(3)):
            self.group()
        self.close()
        (self.folder / REDO_NAME).write_bytes(saved)
        self._open()

    # --- looking ----------------------------------------------------------------------------------

    def check(self) -> None:
        if self.perhaps is not None:
            # Who looks at a space for the first time writes, and so decides it.
            for store in (self.engine, self.other):
                found = {space: self.rows(store, space) for space in self.truth}
            if found != self.truth:
                self.settle()
        for store in (self.engine, self.other):
            self.same(sorted(store.spaces()), sorted(self.truth), "spaces", 0)
            for space in SPACES:
                if space in self.truth:
                    self.look(store, space, self.truth[space])
                else:
                    self.gone(store, space)
        for _, pin, truth in self.kept:
            space = self.random.choice(SPACES)
            with suppress(SpaceGone), pin.read(space) as reader:
                if space in truth:
                    self.scans(reader, truth[space], "kept", space)
                    self.gets(reader, truth[space], "kept", space)

    def gone(self, store: LmdbStore, space: int) -> None:
        try:
            found = self.rows(store, space)
        except SpaceGone:
            return
        raise Wrong(f"space {space} is there: {found}")

    def look(self, store: LmdbStore, space: int, rows: Rows) -> None:
        with store.read(space) as reader:
            self.gets(reader, rows, "get", space)
            self.scans(reader, rows, "scan", space)
        plain = [key for key in VIA if self.random.random() < 0.7]
        for key in plain:
            for prefix in (PLAIN, SEALED):
                first = rows.get(key)
                second = None if first is None else rows.get(prefix + first)
                found = store.read_via(space, key, prefix)
                found = *found[:2], None if found[2] is None else _plain(prefix, found[2])
                self.same(found, (rows[META_KEY], first, second), "read_via", space)
        for kind in (PACKED, PLAIN):
            for prefix in (PLAIN, SEALED):
                keys = [key for key in rows if kind <= key < kind + b"g" and len(key) == 2]
                wanted = [rows.get(prefix + key[-1:], b"") for key in sorted(keys)]
                got, values = store.read_few(space, kind + b"a", kind + b"g", 20, 1, prefix)
                cut = [_plain(prefix, value) for value in values]
                self.same((got, cut), (rows[META_KEY], wanted), "read_few", space)

    def gets(self, reader: Any, rows: Rows, where: str, space: int) -> None:
        keys = self.random.sample(KEYS + VIA, 8)
        self.same(reader.meta, rows[META_KEY], where, space)
        self.same([reader.get(key) for key in keys], [rows.get(key) for key in keys], where, space)
        self.same(reader.get_many(keys), [rows.get(key) for key in keys], where, space)
        tails = [bytes((number,)) for number in NUMBERS]
        behind = [_plain(SEALED, one) for one in reader.get_behind(SEALED, tails)]
        self.same(behind, [rows.get(SEALED + tail) for tail in tails], where, space)

    def scans(self, reader: Any, rows: Rows, where: str, space: int) -> None:
        random = self.random
        start = random.choice([b"\x01", PACKED, PLAIN, SEALED, *KEYS])
        end = random.choice([LAST, b"\x32", b"\x42", b"\x43", *KEYS])
        limit = random.choice((None, None, 1, 3))
        wanted = sorted((key, value) for key, value in rows.items() if start <= key < end)
        self.same(list(reader.scan(start, end, limit=limit)), wanted[:limit], where, space)
        back = list(reader.scan(start, end, reverse=True, limit=limit))
        self.same(back, wanted[::-1][:limit], where, space)
        sealed = [(key, value) for key, value in rows.items() if key[:1] == SEALED]
        lists = chain.from_iterable(reader.scan_lists(SEALED, b"\x43", 4))
        cut = [(key, _plain(SEALED, value)) for key, value in lists]
        self.same(cut, sorted(sealed), where, space)
        whole = list(reader.scan(b"\x01", LAST))
        self.same(whole, sorted(one for one in rows.items() if one[0] != META_KEY), where, space)

    def rows(self, store: LmdbStore, space: int) -> Rows:
        with store.read(space) as reader:
            return {META_KEY: reader.meta, **dict(reader.scan(b"\x01", LAST))}

    def same(self, found: Any, expected: Any, where: str, space: int) -> None:
        if found != expected:
            raise Wrong(f"{where}, space {space}: {found!r}, not {expected!r}")


def _die(*_: object) -> None:
    raise Dead


def _plain(prefix: bytes, value: bytes | None) -> Any:
    """Some ways of reading leave the marks of a checksum in."""
    return unmarked(value) if value and len(value) > 1 and prefix == SEALED else value


def _perform(rows: Rows, operation: Operation) -> bool:
    """False: the command is refused."""
    match operation:
        case ("put", key, value):
            rows[key] = value
        case ("put_many", many):
            rows.update(many)
        case ("put_joined", many, width):
            rows.update({row[:-width]: row[-width:] for row in many})
        case ("delete", key):
            rows.pop(key, None)
        case ("delete_many", keys):
            for key in keys:
                rows.pop(key, None)
        case ("count_meta",):
            name, _, number = rows[META_KEY].rpartition(b":")
            rows[META_KEY] = name + b":%d" % (int(number) + 1)
        case ("nested", inner, fails):
            made = dict(rows)
            for one in inner:
                _perform(made, one)
            if not fails:
                rows.clear()
                rows.update(made)
        case _:
            return False
    return True


def run_history(random: Random, steps: int = STEPS) -> None:
    memory = Path("/dev/shm")
    with (
        small(),
        tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder,
    ):
        History(random, Path(folder)).run(steps)


def first_wrong(histories: int) -> int | None:
    """The seed of the first history that goes wrong."""
    for seed in range(histories):
        try:
            run_history(Random(seed))
        except (AttributeError, NameError, TypeError):
            raise  # a rule that was not broken as it was meant
        except (Exception, Dead):  # noqa: BLE001 - broken code fails in any way it likes
            return seed
    return None
