"""Reads inside one PostgreSQL transaction: single rows, many rows, and scans in keyset chunks.

A scan asks for a chunk, then for the rows after the last key of it, so nothing stays open on the
server between two chunks (a server cursor would), and memory is bounded by a chunk. That the
chunks fit together is the transaction's doing: REPEATABLE READ for a reader, the lock on the fence
for a writer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from armillary.engine.base import META_KEY, Row, after, scanned_lists
from armillary.engine.postgres.sql import Statements
from armillary.limits import SCAN_CHUNK_BYTES, SCAN_CHUNK_ROWS, SCAN_CHUNK_ROWS_MAX

Fetch: TypeAlias = Callable[[bytes, Sequence[Any]], list[tuple[Any, ...]]]


class PostgresReader:
    __slots__ = ("_fetch", "_space", "_statements", "meta")

    def __init__(self, fetch: Fetch, statements: Statements, space: int, meta: bytes) -> None:
        self._fetch = fetch
        self._statements = statements
        self._space = space
        self.meta = meta

    def get(self, key: bytes) -> bytes | None:
        found = self._fetch(self._statements["get"], (self._space, key))
        return found[0][0] if found else None

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        if not keys:
            return []
        query = self._statements["get_many"]
        found: dict[bytes, bytes] = dict(self._fetch(query, (self._space, list(set(keys)))))
        return [found.get(key) for key in keys]

    def get_via(self, key: bytes, prefix: bytes) -> tuple[bytes, bytes | None] | None:
        arguments = ([key], [prefix], self._space)
        found = self._fetch(self._statements["get_vias"], arguments)
        return (found[0][2], found[0][3]) if found else None

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[Row]:
        query = self._statements["scan_reverse" if reverse else "scan"]
        left, rows = limit, SCAN_CHUNK_ROWS
        while start < end and (left is None or left > 0):
            rows = rows if left is None else min(rows, left)
            chunk = self._fetch(query, (self._space, start, end, rows))
            yield from chunk
            if len(chunk) < rows:
                return
            last: bytes = chunk[-1][0]
            if reverse:
                end = last
            else:
                start = last + b"\x00"  # the least key after it
            left = None if left is None else left - len(chunk)
            rows = _next_rows(chunk)

    def get_behind(self, prefix: bytes, tails: Sequence[bytes]) -> list[bytes | None]:
        return self.get_many([prefix + tail for tail in tails])

    def scan_lists(self, start: bytes, end: bytes, rows_max: int) -> Iterator[list[Row]]:
        return scanned_lists(self, start, end, rows_max)

    def tails(self, prefixes: Sequence[bytes], size: int, limit: int) -> set[bytes] | None:
        """In one round trip."""
        if not prefixes:
            return set()
        low, high = list(prefixes), [after(one) for one in prefixes]
        most = limit + 1
        arguments = (size, low, high, self._space, most, most)
        found = self._fetch(self._statements["tails"], arguments)
        return None if len(found) > limit else {row[0] for row in found}


def _next_rows(chunk: Sequence[tuple[Any, ...]]) -> int:
    """As many rows as SCAN_CHUNK_BYTES hold if they are like the last ones, at most 8x as many."""
    size = sum(len(key) + len(value) for key, value in chunk)
    fitting = SCAN_CHUNK_BYTES * len(chunk) // max(size, 1)
    return max(1, min(fitting, 8 * len(chunk), SCAN_CHUNK_ROWS_MAX))


class PrefetchedReader(PostgresReader):
    """The base of a write group: what its commands announced has been fetched already, and what
    one of them asks for besides is remembered for its neighbours. The lock on the fence keeps
    that true until the commit.
    """

    __slots__ = ("_known",)

    def __init__(self, fetch: Fetch, statements: Statements, space: int, meta: bytes) -> None:
        super().__init__(fetch, statements, space, meta)
        self._known: dict[bytes, bytes | None] = {META_KEY: meta}

    def know_rows(self, asked: Iterable[bytes], found: Iterable[tuple[Any, ...]]) -> None:
        self._known.update(dict.fromkeys(asked))
        self._known.update(found)

    def know_vias(
        self, asked: Iterable[tuple[bytes, bytes]], found: Iterable[tuple[Any, ...]]
    ) -> None:
        self._known.update(dict.fromkeys(key for key, _ in asked))
        for key, prefix, first, second in found:
            self._known[key] = first
            self._known[prefix + first] = second

    def get(self, key: bytes) -> bytes | None:
        if key not in self._known:
            self._known[key] = super().get(key)
        return self._known[key]

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        missing = [key for key in keys if key not in self._known]
        if missing:
            self._known.update(zip(missing, super().get_many(missing), strict=True))
        return [self._known[key] for key in keys]

    def get_via(self, key: bytes, prefix: bytes) -> tuple[bytes, bytes | None] | None:
        if key not in self._known:
            found = super().get_via(key, prefix)
            self._known[key] = None if found is None else found[0]
            if found is not None:
                self._known[prefix + found[0]] = found[1]
        first = self._known[key]
        return None if first is None else (first, self.get(prefix + first))
