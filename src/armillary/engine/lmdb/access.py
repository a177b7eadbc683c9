"""A snapshot of one space, on LMDB, and the changes of a commit written to one.

A reader sees one space only: the place given at the start fixes the sub-database and the prefix,
and no method takes another. The meta row carries its space's number in front (spaces.py); it
is put on and taken off here. Rows of packed kinds are looked for in runs (engine/runs), which a
snapshot opens only when it is asked for such a row: a point read pays nothing for them.

An old snapshot keeps every page that was freed since from being used again, so that the file grows
by some 30 KB with each write for as long as it lives. A reader therefore refuses to go on when it
is too old; it notices at its next step.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, count, islice
from operator import itemgetter
from time import monotonic
from typing import Any

import lmdb

from armillary.engine.base import (
    LIST_ROWS_FIRST,
    META_KEY,
    Row,
    SpaceGone,
    scanned_lists,
    scanned_tails,
)
from armillary.engine.lmdb.place import TAG_BYTES, Place
from armillary.engine.runs import checking
from armillary.engine.runs.area import Area
from armillary.engine.runs.blocks import DIRECTORY_KEY, END, FIRST_OWN
from armillary.engine.runs.cache import CACHE, BlockCache
from armillary.engine.runs.directory import Directory, unpack_directory
from armillary.engine.runs.reading import Part, RunReader, parts_of
from armillary.engine.sealing import cut_rows, cut_sealed, unseal, unseal_many
from armillary.errors import SnapshotExpired
from armillary.limits import KEY_BYTES_MAX

CHUNK_ROWS = 4, 32  # of the first list of a scan, and at most
CHUNK_BYTES = 256 * 1024
DIRECTORIES_KEPT = 256
LOOKED_UP_KEPT = 4_096  # of questions to the index
LOOKED_UP_KEYS = 32  # of an answer to one

#: Not for `get_many` at once: of several kinds, empty, or the meta row.
OTHER_KINDS = (b"", META_KEY)

#: By the first byte of a key: above every key of its kind.
_ENDS = [bytes((kind + 1,)) for kind in range(255)]

_key_of = itemgetter(0)


class LmdbReader:
    """One snapshot. Raises SpaceGone when the place holds another space, or none."""

    __slots__ = (
        "_cache",
        "_deadline",
        "_packed",
        "_place",
        "_prefix",
        "_runs",
        "_seconds_max",
        "_txn",
        "meta",
    )

    def __init__(
        self,
        transaction: lmdb.Transaction[bytes],
        place: Place,
        seconds_max: float,
        cache: BlockCache | None = CACHE,
    ) -> None:
        raw = transaction.get(place.meta_key, None, place.db)
        if raw is None or not raw.startswith(place.tag):
            raise SpaceGone(place.tag)
        self._packed = place.packed
        self._runs: RunReader | None = None
        self._cache = cache
        self.meta = raw[TAG_BYTES:]
        self._txn = transaction
        self._place = place
        self._prefix = place.prefix
        self._seconds_max = seconds_max
        self._deadline = monotonic() + seconds_max

    def get(self, key: bytes) -> bytes | None:
        if monotonic() > self._deadline:
            self._expire()
        if not 0 < len(key) <= KEY_BYTES_MAX:
            return None
        if key[0] in self._packed:
            return self.runs().get(key)
        if key[0] >= FIRST_OWN and self._packed:
            return None
        value = self._txn.get(self._prefix + key, None, self._place.db)
        if value and key[0] in self._place.sealed:
            return unseal(value, key)
        return value[TAG_BYTES:] if key == META_KEY and value is not None else value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        # HOT: once per item of a short query.
        if monotonic() > self._deadline:
            self._expire()
        kinds = {key[:1] for key in keys}
        kind = kinds.pop() if len(kinds) == 1 else b""
        if (
            kind in OTHER_KINDS
            or (self._packed and (kind in self._packed or kind[0] >= FIRST_OWN))
            or max(map(len, keys)) > KEY_BYTES_MAX
        ):
            return [self.get(key) for key in keys]
        get, prefix, db = self._txn.get, self._prefix, self._place.db
        values = [get(prefix + key if prefix else key, None, db) for key in keys]
        return unseal_many(values, keys) if kind in self._place.sealed else values

    # HOT: once per item that an index finds.
    def get_behind(self, prefix: bytes, tails: Sequence[bytes]) -> list[bytes | None]:
        if (
            prefix[0] not in self._place.sealed
            or len(prefix) + max(map(len, tails), default=0) > KEY_BYTES_MAX
        ):
            return self.get_many([prefix + tail for tail in tails])
        if monotonic() > self._deadline:
            self._expire()
        get, db, begin = self._txn.get, self._place.db, self._prefix + prefix
        values = [get(begin + tail, None, db) for tail in tails]
        cut = None if None in values else cut_sealed(values)  # type: ignore[arg-type]
        if cut is None:
            return unseal_many(values, [prefix + tail for tail in tails])
        return cut  # type: ignore[return-value]

    def get_via(self, key: bytes, prefix: bytes) -> tuple[bytes, bytes | None] | None:
        value = self.get(key)
        return None if value is None else (value, self.get(prefix + value))

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[Row]:
        lists = self._lists(start, end, reverse)
        rows = chain.from_iterable(lists)
        return rows if limit is None else islice(rows, limit)

    # HOT: once per item of a long scan.
    def scan_lists(self, start: bytes, end: bytes, rows_max: int) -> Iterator[list[Row]]:
        if not start or start[0] not in self._place.sealed or end > bytes((start[0] + 1,)):
            return scanned_lists(self, start, end, rows_max)
        return self._sealed_lists(start, end, rows_max)

    def tails(self, prefixes: Sequence[bytes], size: int, limit: int) -> set[bytes] | None:
        if any(prefix[0] not in self._packed for prefix in prefixes):
            return scanned_tails(self, prefixes, size, limit)
        self._check_age()
        return self.runs().tails(prefixes, size, limit)

    def runs(self) -> RunReader:
        """The runs of this snapshot."""
        if self._runs is None:
            area = Area(self._txn, self._place.db, self._prefix)
            self._runs = known_runs(area, area.directory_row(), self._cache)
        return self._runs

    def problems(self) -> list[str]:
        """What does not agree about the runs of this snapshot."""
        if not self._packed:
            return []
        area = Area(self._txn, self._place.db, self._prefix)
        return list(checking.problems(area, self._packed, self._place.sealed))

    def _lists(self, start: bytes, end: bytes, reverse: bool) -> Iterator[list[Row]]:
        if not self._packed:
            return self._tree(start, end, reverse)
        if start and start[0] in self._packed and end <= _ENDS[start[0]]:
            return self._packed_lists(start, end, reverse)
        return self._segments(start, min(end, END), reverse)

    def _segments(self, start: bytes, end: bytes, reverse: bool) -> Iterator[list[Row]]:
        """A scan over several kinds: what lies in the tree and what lies in runs, in turn."""
        segments = list(segments_of(self._packed, start, end))
        for low, high, packed in reversed(segments) if reverse else segments:
            if not packed:
                yield from self._tree(low, high, reverse)
            else:
                yield from self._packed_lists(low, high, reverse)

    def _packed_lists(self, start: bytes, end: bytes, reverse: bool) -> Iterator[list[Row]]:
        self._check_age()
        for rows in self.runs().chunks(start, end, reverse):
            yield rows
            self._check_age()

    def _tree(self, start: bytes, end: bytes, reverse: bool) -> Iterator[list[Row]]:
        cursor = self._txn.cursor(self._place.db)
        lists = _chunks(cursor, self._prefix, start, end, reverse, self._check_age)
        sealed = self._place.sealed
        if any(start < bytes((kind + 1,)) and end > bytes((kind,)) for kind in sealed):
            return (_unsealed(rows, sealed) for rows in lists)
        return lists

    def _sealed_lists(self, start: bytes, end: bytes, rows_max: int) -> Iterator[list[Row]]:
        cursor, prefix = self._txn.cursor(self._place.db), self._prefix
        odd: dict[bytes, bytes] = {}
        sizes, take = (min(LIST_ROWS_FIRST, rows_max), rows_max), partial(cut_rows, odd=odd)
        for rows in _chunks(cursor, prefix, start, end, False, self._check_age, sizes, take):
            if not odd:
                yield rows
                continue
            yield [(key, unseal(v, key) if prefix + key in odd else v) for key, v in rows]
            odd.clear()

    def _check_age(self) -> None:
        if monotonic() > self._deadline:
            self._expire()

    def _expire(self) -> None:
        raise SnapshotExpired(
            f"A read held its snapshot for more than {self._seconds_max:g} seconds. "
            "Read less at once, in pages.",
            seconds_max=self._seconds_max,
        )


def segments_of(packed: bytes, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes, bool]]:
    """(from, up to, whether it is of packed kinds), in order."""
    at = start
    for kind in sorted(packed):
        low, high = bytes((kind,)), bytes((kind + 1,))
        if high <= at:
            continue
        if low >= end:
            break
        if at < low:
            yield at, low, False
        yield max(at, low), min(end, high), True
        at = high
    if at < end:
        yield at, end, False


def _unsealed(rows: list[Row], sealed: bytes) -> list[Row]:
    if rows[0][0][0] != rows[-1][0][0]:
        return [(key, unseal(value, key) if key[0] in sealed else value) for key, value in rows]
    if rows[0][0][0] not in sealed:
        return rows
    keys = [key for key, _ in rows]
    return list(zip(keys, unseal_many([value for _, value in rows], keys), strict=True))  # type: ignore[arg-type]


_directories: dict[bytes | None, tuple[int, Directory, list[Part]]] = {}
_latest: dict[tuple[Any, bytes], list[Part]] = {}
_numbers = count()


def _known_directory(
    row: bytes | None, db: Any, prefix: bytes
) -> tuple[int, Directory, list[Part]]:
    """A directory is decoded once: most snapshots find the row that the one before found. With a
    number of its own in this process."""
    found = _directories.get(row)
    if found is None:
        if len(_directories) >= DIRECTORIES_KEPT:
            _directories.clear()
        directory = unpack_directory(row)
        found = _directories[row] = next(_numbers), directory, parts_of(directory)
        _forget_replaced((db, prefix), found[2])
    return found


def _forget_replaced(space: tuple[Any, bytes], parts: list[Part]) -> None:
    """An older snapshot that still looks at one of those runs decodes it again."""
    there = {part[-1] for part in parts}
    CACHE.forget(part[-1] for part in _latest.get(space, ()) if part[-1] not in there)
    if len(_latest) >= DIRECTORIES_KEPT:
        _latest.clear()
    _latest[space] = parts


def known_runs(area: Area, row: bytes | None, cache: BlockCache | None) -> RunReader:
    _, directory, parts = _known_directory(row, area.db, area.prefix)
    return RunReader(area, directory, cache, parts)


_looked_up: dict[tuple[int, bytes, bytes], list[bytes]] = {}


# HOT: every short query. What lies in runs is the same for as long as their directory is, so an
# answer to the same question is kept; without it a look takes some 6 µs.
def few_keys(
    transaction: lmdb.Transaction[bytes], db: Any, start: bytes, end: bytes, limit: int
) -> list[bytes] | None:
    """The keys of packed kinds from `start` to before `end`, of a space that has a sub-database to
    itself, in a snapshot of what is committed; None when there may be `limit` or more."""
    row = transaction.get(DIRECTORY_KEY)
    number, directory, parts = _known_directory(row, db, b"")
    question = number, start, end
    found = _looked_up.get(question)
    if found is None:
        runs = RunReader(Area(transaction, db, b""), directory, CACHE, parts)
        found = runs.few(start, end, limit)
        if found is not None and len(found) <= LOOKED_UP_KEYS and not directory.tree:
            if len(_looked_up) >= LOOKED_UP_KEPT:
                _looked_up.clear()
            _looked_up[question] = found
    return found if found is None or len(found) < limit else None


# HOT: once per row of every scan. Rows come in lists cut at `end` by bisection, so no Python code
# runs per row; lists start small (a limit of one should not read 64 documents) and their bytes are
# bounded. Reference: the contract suite compares it with the memory engine.
def _chunks(
    cursor: lmdb.Cursor[bytes],
    prefix: bytes,
    start: bytes,
    end: bytes,
    reverse: bool,
    check_age: Callable[[], None],
    sizes: tuple[int, int] = CHUNK_ROWS,
    take: Callable[[Iterable[Row]], list[Row]] = list,
) -> Iterator[list[Row]]:
    if start >= end:
        return
    skip = len(prefix)
    low, high = prefix + start, prefix + end
    found = _seek_last(cursor, high) if reverse else _seek_first(cursor, low)
    rows_left: Iterator[Any] = iter(())
    if found:
        rows_left = cursor.iterprev() if reverse else cursor.iternext()
    size, rows_max = sizes
    check_age()
    while rows := take(islice(rows_left, size)):
        short = len(rows) < size
        last = rows[-1][0]
        if reverse and last < low:
            # Descending keys: those below the start are at the end of the list.
            rows.reverse()
            rows = rows[bisect_left(rows, low, key=_key_of) :]
            rows.reverse()
            short = True
        elif not reverse and last >= high:
            del rows[bisect_left(rows, high, key=_key_of) :]
            short = True
        if rows:
            size = _next_size(rows, rows_max)
            meta_at = -1 if reverse else 0
            if rows[meta_at][0] == prefix + META_KEY:
                rows[meta_at] = rows[meta_at][0], rows[meta_at][1][TAG_BYTES:]
            yield [(key[skip:], value) for key, value in rows] if skip else rows
        if short:
            return
        check_age()


def _next_size(rows: list[Row], rows_max: int) -> int:
    """Twice as many, unless the values are large; one of eight is looked at."""
    some = [len(value) for _, value in rows[::8]]
    fitting = CHUNK_BYTES * len(some) // (sum(some) + 1)
    return max(1, min(2 * len(rows), fitting, rows_max))


def _seek_first(cursor: lmdb.Cursor[bytes], low: bytes) -> bool:
    """To the first key >= low. LMDB takes no longer keys than it stores: cut, then step over."""
    cut = low[:LMDB_KEY_BYTES]
    found = cursor.set_range(cut)
    while found and cursor.key() < low:
        found = cursor.next()
    return found


def _seek_last(cursor: lmdb.Cursor[bytes], high: bytes) -> bool:
    """To the last key < high."""
    if not cursor.set_range(high[:LMDB_KEY_BYTES]):
        return cursor.last()
    return cursor.key() < high or cursor.prev()


LMDB_KEY_BYTES = KEY_BYTES_MAX + TAG_BYTES
