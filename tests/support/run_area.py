"""A space in memory for the code of engine/runs: rows in a dict, transactions by copying it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from armillary.engine.base import Row
from armillary.engine.runs.blocks import DIRECTORY_KEY
from armillary.engine.runs.directory import Directory, pack_directory, unpack_directory


class MemoryArea:
    """As `Area`, without LMDB. `copy` is a transaction that may be kept or forgotten."""

    def __init__(self, rows: dict[bytes, bytes] | None = None) -> None:
        self.content = dict(rows or {})
        self._order = sorted(self.content)
        self._here = b""

    def copy(self) -> MemoryArea:
        return MemoryArea(self.content)

    def directory_row(self) -> bytes | None:
        return self.content.get(DIRECTORY_KEY)

    def directory(self) -> Directory:
        return unpack_directory(self.directory_row())

    def save(self, directory: Directory) -> None:
        self.put(DIRECTORY_KEY, pack_directory(directory))

    def get(self, key: bytes) -> bytes | None:
        return self.content.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        if key not in self.content:
            self._order.insert(bisect_left(self._order, key), key)
        self.content[key] = value

    def put_sorted(self, rows: list[Row]) -> None:
        for key, value in rows:
            self.put(key, value)

    def delete(self, key: bytes) -> None:
        if self.content.pop(key, None) is not None:
            del self._order[bisect_left(self._order, key)]

    def take(self, prefix: bytes) -> list[Row]:
        rows = list(self.rows_from(prefix, prefix))
        for key, _ in rows:
            self.delete(key)
        return rows

    def delete_from(self, key: bytes, count: int) -> None:
        at = self._order.index(key)
        for one in self._order[at : at + count]:
            self.delete(one)

    def first_from(self, key: bytes, prefix: bytes) -> bytes | None:
        at = bisect_left(self._order, key)
        return self._found(at, prefix)

    def first_row(self, key: bytes, prefix: bytes) -> Row | None:
        where = self.first_from(key, prefix)
        return None if where is None else (where, self.content[where])

    def rows_from(self, key: bytes, prefix: bytes) -> Iterator[Row]:
        row = self.first_row(key, prefix)
        while row is not None:
            yield row
            row = self.first_row(row[0] + b"\x00", prefix)

    def last_below(self, key: bytes, prefix: bytes) -> bytes | None:
        return self._found(bisect_left(self._order, key) - 1, prefix)

    def value(self) -> bytes:
        return self.content[self._here]

    def rows(self, start: bytes, end: bytes, limit: int) -> list[Row]:
        low, high = bisect_left(self._order, start), bisect_left(self._order, end)
        return [(key, self.content[key]) for key in self._order[low:high][:limit]]

    def rows_below(self, start: bytes, end: bytes, limit: int) -> list[Row]:
        low, high = bisect_left(self._order, start), bisect_left(self._order, end)
        return [(key, self.content[key]) for key in self._order[max(low, high - limit) : high]]

    def keys_of(self, prefix: bytes) -> Iterator[bytes]:
        return iter([key for key in self._order if key.startswith(prefix)])

    def _found(self, at: int, prefix: bytes) -> bytes | None:
        if not 0 <= at < len(self._order) or not self._order[at].startswith(prefix):
            return None
        self._here = self._order[at]
        return self._here
