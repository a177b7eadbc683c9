"""The rows of one space inside one LMDB transaction, as the modules of this folder use them.

One cursor that seeks for each step: blocks are read page by page, so a seek (1 µs) is little, and
several scans may be under way at once without being in each other's way.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import lmdb

from armillary.engine.base import Row
from armillary.engine.runs.blocks import DIRECTORY_KEY
from armillary.engine.runs.directory import Directory, pack_directory, unpack_directory

LMDB_KEY_BYTES = 511


class Area:
    __slots__ = ("_cursor", "_txn", "db", "prefix")

    def __init__(self, transaction: lmdb.Transaction[bytes], db: Any, prefix: bytes) -> None:
        self._txn = transaction
        self.db = db
        self.prefix = prefix
        self._cursor = transaction.cursor(db)

    def directory_row(self) -> bytes | None:
        return self._txn.get(self.prefix + DIRECTORY_KEY, None, self.db)

    def directory(self) -> Directory:
        return unpack_directory(self.directory_row())

    def save(self, directory: Directory) -> None:
        self.put(DIRECTORY_KEY, pack_directory(directory))

    def get(self, key: bytes) -> bytes | None:
        return self._txn.get(self.prefix + key, None, self.db)

    def put(self, key: bytes, value: bytes) -> None:
        self._txn.put(self.prefix + key, value, True, True, False, self.db)

    def put_sorted(self, rows: list[Row]) -> None:
        if self.prefix:
            rows = [(self.prefix + key, value) for key, value in rows]
        self._cursor.putmulti(rows)

    def delete(self, key: bytes) -> None:
        self._txn.delete(self.prefix + key, b"", self.db)

    def take(self, prefix: bytes) -> list[Row]:
        """The rows whose keys begin with `prefix`, which are deleted."""
        cursor, wanted, skip = self._cursor, self.prefix + prefix, len(self.prefix)
        found: list[Row] = []
        there = cursor.set_range(wanted)
        while there:
            key, value = cursor.item()
            if not key.startswith(wanted):
                break
            found.append((key[skip:], value))
            there = cursor.delete()
        return found

    def delete_from(self, key: bytes, count: int) -> None:
        """Delete the row of this key, which is there, and those that follow it: `count` in all."""
        cursor = self._cursor
        cursor.set_range(self.prefix + key)
        for _ in range(count):
            cursor.delete()

    def first_from(self, key: bytes, prefix: bytes) -> bytes | None:
        """The first key >= `key` that begins with `prefix`; the cursor is there."""
        cursor, own = self._cursor, self.prefix
        if not cursor.set_range(own + key if own else key):
            return None
        if own:
            return self._here(prefix)
        found = cursor.key()
        return found if found.startswith(prefix) else None

    def first_row(self, key: bytes, prefix: bytes) -> Row | None:
        """The same, with its value."""
        cursor, own = self._cursor, self.prefix
        if not cursor.set_range(own + key if own else key):
            return None
        found, value = cursor.item()
        if own:
            return (found[len(own) :], value) if found.startswith(own + prefix) else None
        return (found, value) if found.startswith(prefix) else None

    def last_below(self, key: bytes, prefix: bytes) -> bytes | None:
        """The last key < `key` that begins with `prefix`; the cursor is there."""
        cursor = self._cursor
        found = cursor.prev() if cursor.set_range(self.prefix + key) else cursor.last()
        return self._here(prefix) if found else None

    def value(self) -> bytes:
        """Of the row that the search just found."""
        return self._cursor.value()

    def rows(self, start: bytes, end: bytes, limit: int) -> list[Row]:
        """At most `limit` rows of the tree with start <= key < end."""
        skip = len(self.prefix)
        cursor = self._txn.cursor(self.db)
        found: list[Row] = []
        low, high = self.prefix + start, self.prefix + end
        there = cursor.set_range(low[:LMDB_KEY_BYTES])
        while there and cursor.key() < low:  # a longer bound than LMDB takes was cut
            there = cursor.next()
        if there:
            for key, value in islice(cursor.iternext(), limit):
                if key >= high:
                    break
                found.append((key[skip:], value))
        return found

    def rows_below(self, start: bytes, end: bytes, limit: int) -> list[Row]:
        """At most `limit` rows of the tree, the last ones with start <= key < end, ascending."""
        skip = len(self.prefix)
        cursor = self._txn.cursor(self.db)
        found: list[Row] = []
        high, low = self.prefix + end, self.prefix + start
        if cursor.set_range(high[:LMDB_KEY_BYTES]):
            there = cursor.key() < high or cursor.prev()
        else:
            there = cursor.last()
        if there:
            for key, value in islice(cursor.iterprev(), limit):
                if key < low:
                    break
                found.append((key[skip:], value))
        found.reverse()
        return found

    # HOT: every block that is merged.
    def rows_from(self, key: bytes, prefix: bytes) -> Iterator[Row]:
        """Rows >= `key` whose keys begin with `prefix`, in order. By a cursor of its own; nothing
        may be written meanwhile."""
        own = self.prefix
        cursor = self._txn.cursor(self.db)
        if not cursor.set_range(own + key if own else key):
            return
        wanted, skip = own + prefix, len(own)
        for found, value in cursor.iternext():
            if not found.startswith(wanted):
                return
            yield (found[skip:] if skip else found), value

    def keys_of(self, prefix: bytes) -> Iterator[bytes]:
        key = self.first_from(prefix, prefix)
        while key is not None:
            yield key
            key = self.first_from(key + b"\x00", prefix)

    def _here(self, prefix: bytes) -> bytes | None:
        key = self._cursor.key()
        skip = len(self.prefix)
        return key[skip:] if key.startswith(self.prefix + prefix) else None
