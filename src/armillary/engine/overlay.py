"""A write transaction as a layer of changes in memory over a snapshot.

    put, delete ──▶ { key: value or None }          changes() ──▶ what to write, once, at the end
                            │ not there
    get, scan ──────────────┴──▶ base: Reader       never written through this module

Rows of a bulk load (`put_joined`) lie apart as the lists they came in: nothing looks at them before
they are written, nearly always. What does, or changes a row of their kind, finds them put into the
changes first.

Engines that cannot or should not write row by row (memory, whose snapshots are shared; PostgreSQL,
where each write would be a round trip) run a whole group on one overlay. Undoing a nested scope is
a walk back over a log of previous states, so every command of a group can have its own.

It does not commit, lock, or know where the rows are from.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from enum import Enum
from itertools import groupby, islice
from typing import Any, Final, TypeAlias

from armillary.engine.base import (
    META_KEY,
    Handlers,
    Reader,
    Row,
    Rows,
    scanned_lists,
    scanned_tails,
)
from armillary.engine.groups import Job
from armillary.errors import DbError
from armillary.limits import KEY_BYTES_MAX


class _Untouched(Enum):
    """The state of a key that the overlay says nothing about. None means deleted."""

    UNTOUCHED = 0


_UNTOUCHED: Final = _Untouched.UNTOUCHED


#: Rows of one kind, key and value in one, and how long their values are.
Joined: TypeAlias = tuple[list[bytes], int]


def split_joined(rows: Iterable[bytes], width: int) -> dict[bytes, bytes]:
    if width == 0:
        return dict.fromkeys(rows, b"")
    return {row[:-width]: row[-width:] for row in rows}


class Scope:
    """Undone when its block raises. A class, because a generator takes four times as long."""

    __slots__ = ("_mark", "_writer")

    def __init__(self, writer: OverlayWriter) -> None:
        self._writer = writer

    def __enter__(self) -> None:
        self._mark = self._writer.mark()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._writer.undo_to(self._mark)


class OverlayWriter:
    """Writes are buffered, reads see them. One thread, one transaction."""

    __slots__ = (
        "_base",
        "_changes",
        "_joined",
        "_joined_kinds",
        "_order",
        "_own_from",
        "_scanned",
        "_undo",
        "meta",
    )

    def __init__(self, base: Reader, *, own_from: int | None = None) -> None:
        """`own_from`: keys that begin with this byte or a higher one belong to the engine."""
        self._base = base
        self._own_from = 0x100 if own_from is None else own_from
        self._changes: dict[bytes, bytes | None] = {}
        self._order: list[bytes] = []  # the first of the keys of _changes, sorted
        self._scanned = False
        #: (key, what it was), or keys that were not there.
        self._undo: list[tuple[bytes | list[bytes], bytes | _Untouched | None]] = []
        self._joined: list[Joined] = []
        self._joined_kinds: set[bytes] = set()
        # A later command of the same group must see the fence its neighbour wrote.
        self.meta = base.meta

    def get(self, key: bytes) -> bytes | None:
        if self._joined and key[:1] in self._joined_kinds:
            self._fold()
        value = self._changes.get(key, _UNTOUCHED)
        return self._base.get(key) if value is _UNTOUCHED else value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        if self._joined:
            self._fold_for(keys)
        changes = self._changes
        below = [key for key in keys if key not in changes]
        found = dict(zip(below, self._base.get_many(below), strict=True)) if below else {}
        return [changes[key] if key in changes else found[key] for key in keys]

    def get_via(self, key: bytes, prefix: bytes) -> tuple[bytes, bytes | None] | None:
        if self._joined:
            self._fold_for((key, prefix))
        first = self._changes.get(key, _UNTOUCHED)
        if first is None:
            return None
        if first is not _UNTOUCHED:
            return first, self.get(prefix + first)
        found = self._base.get_via(key, prefix)
        if found is None:
            return None
        second = self._changes.get(prefix + found[0], _UNTOUCHED)
        return found if second is _UNTOUCHED else (found[0], second)

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[Row]:
        self._fold()
        ours = self._within(start, end)
        if not ours:
            return self._base.scan(start, end, reverse=reverse, limit=limit)
        if reverse:
            ours.reverse()
        # Each of our keys hides at most one row of the base.
        below = None if limit is None else limit + len(ours)
        base = self._base.scan(start, end, reverse=reverse, limit=below)
        merged = _merge(base, ours, self._changes, reverse)
        return merged if limit is None else _first(limit, merged)

    def get_behind(self, prefix: bytes, tails: Sequence[bytes]) -> list[bytes | None]:
        return self.get_many([prefix + tail for tail in tails])

    def scan_lists(self, start: bytes, end: bytes, rows_max: int) -> Iterator[list[Row]]:
        return scanned_lists(self, start, end, rows_max)

    def tails(self, prefixes: Sequence[bytes], size: int, limit: int) -> set[bytes] | None:
        return scanned_tails(self, prefixes, size, limit)

    def put(self, key: bytes, value: bytes) -> None:
        self._set(key, value)

    def put_many(self, rows: Rows) -> None:
        self.change_many(rows if type(rows) is dict else dict(rows))

    # HOT: thirteen rows of every create. Keys that are new here are taken in as one.
    def change_many(self, new: Mapping[bytes, bytes | None]) -> None:
        if self._joined:
            self._fold_for(new)
        if (
            new
            and new.keys().isdisjoint(self._changes.keys())  # views: the shorter one is walked
            and META_KEY not in new
            and b"" not in new
            and max(map(len, new)) <= KEY_BYTES_MAX
            and max(new)[0] < self._own_from
        ):
            keys = list(new)
            self._undo.append((keys, _UNTOUCHED))
            self._changes.update(new)
            return
        for key, value in new.items():
            self._set(key, value)

    def put_joined(self, rows: list[bytes], width: int) -> None:
        if not rows:
            return
        kind = rows[0][:1]
        if kind != rows[-1][:1] or kind == META_KEY[:1] or kind[0] >= self._own_from:
            raise ValueError("joined rows are of one kind, which is the caller's")
        if min(map(len, rows)) <= width or max(map(len, rows)) > KEY_BYTES_MAX + width:
            raise ValueError(f"keys of one kind; each has 1 to {KEY_BYTES_MAX} bytes")
        self._joined.append((rows, width))
        self._joined_kinds.add(kind)
        self._undo.append((rows, _UNTOUCHED))

    def delete(self, key: bytes) -> bool:
        there = self.get(key) is not None
        if there:
            self._set(key, None)
        return there

    def delete_many(self, keys: Iterable[bytes]) -> None:
        self.change_many(dict.fromkeys(keys))

    def nested(self) -> Scope:
        return Scope(self)

    def mark(self) -> int:
        """Where `undo_to` leads back to."""
        return len(self._undo)

    def new_changes(self) -> dict[bytes, bytes | None] | None:
        """What was changed since `accept`. None: there are joined rows."""
        if self._joined:
            return None
        changes, new = self._changes, dict[bytes, bytes | None]()
        for key, _ in self._undo:
            if isinstance(key, list):
                new.update(zip(key, map(changes.__getitem__, key), strict=True))
            else:
                new[key] = changes[key]
        return new

    def accept(self) -> None:
        """What was changed stays."""
        self._undo.clear()

    def changes(self) -> Mapping[bytes, bytes | None]:
        """The final state of every key written: its value, or None when deleted."""
        self._fold()
        return self._changes

    def changes_apart(self) -> tuple[Mapping[bytes, bytes | None], list[Joined]]:
        """The same, for an engine that writes joined rows as they are: they are newer than changes
        of their kinds."""
        return self._changes, self._joined

    def puts_and_deletes(self) -> tuple[list[Row], list[bytes]]:
        """The changes in key order, as the two statements of a commit want them."""
        puts: list[Row] = []
        deletes: list[bytes] = []
        self._fold()
        for key in self._sorted():
            value = self._changes[key]
            if value is None:
                deletes.append(key)
            else:
                puts.append((key, value))
        return puts, deletes

    def _set(self, key: bytes, value: bytes | None) -> None:
        if not 0 < len(key) <= KEY_BYTES_MAX:
            raise ValueError(f"a key of {len(key)} bytes; allowed 1 to {KEY_BYTES_MAX}")
        if key[0] >= self._own_from:
            raise ValueError(f"keys from {self._own_from:02x} on belong to the engine")
        if key == META_KEY:
            if value is None:
                raise ValueError("the fence goes only with its space: drop_space")
            self.meta = value
        if self._joined and key[:1] in self._joined_kinds:
            self._fold()
        changes = self._changes
        self._undo.append((key, changes.get(key, _UNTOUCHED)))
        changes[key] = value

    def undo_to(self, mark: int) -> None:
        if len(self._undo) == mark:
            return
        while len(self._undo) > mark:
            key, before = self._undo.pop()
            if isinstance(key, list):
                if self._joined and self._joined[-1][0] is key:
                    self._joined.pop()
                    continue
                for one in key:
                    del self._changes[one]
            elif before is _UNTOUCHED:
                del self._changes[key]
            else:
                self._changes[key] = before
        self._joined_kinds = {rows[0][:1] for rows, _ in self._joined}
        self._order = []
        meta = self._changes.get(META_KEY)
        self.meta = self._base.meta if meta is None else meta

    def _fold_for(self, keys: Iterable[bytes]) -> None:
        """Before something of these kinds is read or changed."""
        if not self._joined_kinds.isdisjoint([key[:1] for key in keys]):
            self._fold()

    def _fold(self) -> None:
        """Put joined rows into the changes."""
        if not self._joined:
            return
        folded = {id(rows): split_joined(rows, width) for rows, width in self._joined}
        self._joined = []
        self._joined_kinds = set()
        for at, (keys, before) in enumerate(self._undo):
            new = folded.get(id(keys)) if isinstance(keys, list) else None
            if new is not None:
                assert new.keys().isdisjoint(self._changes.keys()), "joined rows are new ones"
                self._changes.update(new)
                self._undo[at] = list(new), before

    def _within(self, start: bytes, end: bytes) -> list[bytes]:
        """Our keys from `start` to before `end`, in order."""
        if not self._scanned:
            # Mostly the only scan of a group: to compare every key is less than to sort them.
            self._scanned = True
            return sorted([key for key in self._changes if start <= key < end])
        order = self._sorted()
        return order[bisect_left(order, start) : bisect_left(order, end)]

    def _sorted(self) -> list[bytes]:
        if len(self._order) < len(self._changes):
            # New keys come behind the others, and stay where they are when they change.
            self._order += islice(self._changes, len(self._order), None)
            self._order.sort()  # cheap: one long sorted run and a few new keys
        return self._order


def _merge(
    base: Iterator[Row],
    ours: Sequence[bytes],
    changes: Mapping[bytes, bytes | None],
    reverse: bool,
) -> Iterator[Row]:
    """Both in scan order; a key of ours hides the same key of the base."""
    position = 0
    for row in base:
        key = row[0]
        hidden = False
        while position < len(ours) and (
            ours[position] >= key if reverse else ours[position] <= key
        ):
            mine = ours[position]
            position += 1
            hidden = mine == key
            value = changes[mine]
            if value is not None:
                yield mine, value
        if not hidden:
            yield row
    for mine in ours[position:]:
        value = changes[mine]
        if value is not None:
            yield mine, value


def _first(count: int, rows: Iterator[Row]) -> Iterator[Row]:
    # Not islice: it would hold the base's iterator open, and a chunk may cost a round trip.
    if count > 0:
        for number, row in enumerate(rows, 1):
            yield row
            if number >= count:
                return


Outcome = tuple[Job, Any, BaseException | None]


def run_jobs(
    writer: OverlayWriter,
    jobs: Iterable[Job],
    handlers: Handlers,
    fatal: tuple[type[BaseException], ...] = (),
) -> list[Outcome]:
    """Commands of one space. A refusal undoes that command alone.

    `fatal` are the engine's own failures: they end the whole group, because every command in it
    has lost its transaction. The callers are not answered here: that waits for the commit.
    """
    outcomes: list[Outcome] = []
    for name, same in groupby(jobs, _name_of):
        line = list(same)
        many = _run_many(writer, line, handlers, fatal) if len(line) > 1 else None
        if many is not None:
            outcomes += many
            continue
        for job in line:
            mark = writer.mark()
            try:
                outcomes.append((job, handlers[name].run(writer, job.command.data), None))
            except fatal:
                raise
            except Exception as error:  # noqa: BLE001 - handed to the caller, not swallowed
                writer.undo_to(mark)
                outcomes.append((job, None, error))
    return outcomes


def _name_of(job: Job) -> str:
    return job.command.name


def _run_many(
    writer: OverlayWriter,
    jobs: list[Job],
    handlers: Handlers,
    fatal: tuple[type[BaseException], ...],
) -> list[Outcome] | None:
    """Commands of one name by one call; None: by a call each."""
    handler = handlers.get(jobs[0].command.name)
    if handler is None or handler.run_many is None:
        return None
    mark = writer.mark()
    try:
        answers = handler.run_many(writer, [job.command.data for job in jobs])
    except fatal:
        raise
    except Exception:  # noqa: BLE001 - whose it is turns out when each runs by itself
        writer.undo_to(mark)
        return None
    return [
        (job, None, answer) if isinstance(answer, DbError) else (job, answer, None)
        for job, answer in zip(jobs, answers, strict=True)
    ]


def tell(outcomes: Iterable[Outcome]) -> None:
    """Answer the callers. Only after the commit."""
    for job, result, error in outcomes:
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)


def refuse(jobs: Iterable[Job], error: Exception) -> None:
    """Give every caller the error that ended the group, each its own copy: one exception raised
    in several threads would mix their tracebacks.
    """
    for job in jobs:
        own = copy(error)
        own.__cause__ = error.__cause__
        job.future.set_exception(own)
