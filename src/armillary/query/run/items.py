"""Items for a program: from a snapshot of one physical partition, or from rows in memory.

A `View` is one snapshot of the part of a physical partition that a piece of the hash space covers.
It feeds items in rid order: by a scan of all items, of one logical partition, or of the few that
an index names. Expired items, items of other hashes, and items of another key with the same hash
never appear. What an index can do is decided in `index_access.py`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Protocol, TypeVar

from armillary.budget import Budget, unbounded
from armillary.encoding.documents import (
    BODY_BYTES,
    DIGEST_SLICE,
    EPK_AT,
    EPK_LENGTH_AT,
    MOMENT,
)
from armillary.engine.base import Reader, unmarked
from armillary.limits import FUNCTION_ROWS
from armillary.partition.ranges import Range
from armillary.partition.request_units import Coefficients
from armillary.query.access.choice import choose, rids
from armillary.query.plan.nodes import Piece
from armillary.query.run.consume import ITEMS_BETWEEN_LOOKS, Feed
from armillary.query.run.metrics import QueryMetrics
from armillary.query.run.program import Program
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore
from armillary.store.items.expiry import TTL_OFF, is_expired
from armillary.store.items.paging import bounds
from armillary.store.rows import layout
from armillary.store.rows.meta import Meta, unpack_meta
from armillary.values import JSON, UNDEFINED

T = TypeVar("T")

ENTRIES_BETWEEN_LOOKS = 2_000  # of an index, at the clock
CHUNK_FIRST = 16  # items looked up at once; later chunks are larger
CHUNK_MAX = 256


class View(Protocol):
    """Something to be fed from, at one moment."""

    def feed(self, program: Program, after: bytes, *, inclusive: bool = False) -> Feed:
        """Items in rid order, from the one after `after` (or with it)."""
        ...

    def is_done(self, program: Program, after: bytes) -> bool:
        """Whether `feed` would give nothing after `after`; False when that takes long to tell."""
        ...


class Source(Protocol):
    """Where the items of a query come from."""

    pieces: list[Piece]

    def look(self, piece: Piece, work: Callable[[View], T]) -> tuple[T, bytes]:
        """Do work on a snapshot of the beginning of a piece, and say where that beginning ends."""
        ...

    def are_together(self, first: Piece, second: Piece) -> bool:
        """Whether both begin in one physical partition."""
        ...

    def is_first(self, piece: Piece) -> bool:
        """Whether no earlier part of the query lies in the physical partition where it begins."""
        ...


# --- the store ------------------------------------------------------------------------------------


@dataclass(slots=True)
class StoreView:
    state: ContainerState
    reader: Reader
    meta: Meta
    piece: Piece
    low: bytes
    high: bytes
    """The piece as bounds of the EPKs in keys and headers."""
    is_whole: bool
    """Whether the piece is all of the physical partition."""
    now_s: int
    metrics: QueryMetrics
    computed: Collection[str] = ()
    """Names of properties that no index knows."""
    budget: Budget = field(default_factory=unbounded)

    def feed(self, program: Program, after: bytes, *, inclusive: bool = False) -> Feed:
        start = after if inclusive else after + b"\x00"
        choice = choose(self, program.accesses)
        if choice is None:
            return self.items(program, self.everything(start))
        self.metrics.index_used.update(dict.fromkeys(choice.names))
        return self.items(program, self.load(rids(self, choice, start)))

    def batches(self, program: Program, after: bytes) -> Iterator[list[tuple[bytes, bytes]]]:
        """The stored items that `feed` would give, and others that are not visible; a list at a
        time, under their keys. The first lists are short: few rows may be all that is wanted.
        """
        start = after + b"\x00"
        rows_max = CHUNK_MAX if program.is_quick else ITEMS_BETWEEN_LOOKS
        choice = choose(self, program.accesses)
        if choice is not None:
            self.metrics.index_used.update(dict.fromkeys(choice.names))
            return self._loaded(rids(self, choice, start), CHUNK_FIRST, rows_max, layout.DOC)
        if self.piece.key is None:
            end = layout.after(layout.DOC)
            return self.reader.scan_lists(layout.DOC + start, end, rows_max)
        return self._loaded(self._rids_of_key(start), CHUNK_FIRST, rows_max, layout.DOC)

    def is_done(self, program: Program, after: bytes) -> bool:
        """Nothing is decoded or counted: the next page does, and pays for it."""
        batches = self.batches(program, after)
        first = next(batches, [])
        return not self.visible(first) and next(batches, None) is None

    def visible(self, rows: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        return rows if self.shows_all else [row for row in rows if self.is_visible(row[1])]

    @property
    def shows_all(self) -> bool:
        """Whether every item of the physical partition is visible."""
        return self.is_whole and self.state.definition.default_ttl == TTL_OFF

    def entries(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Rows of an index. They cost no steps, but the client may have left; to find where they
        begin is a step, and a filter may name thousands of such ranges."""
        self.budget.spend()
        left = ENTRIES_BETWEEN_LOOKS
        for row in self.reader.scan(start, end):
            left -= 1
            if not left:
                self.budget.check()
                left = ENTRIES_BETWEEN_LOOKS
            yield row

    def is_inside(self, epk: bytes) -> bool:
        """Whether an entry of the index belongs to an item of the piece."""
        return self.is_whole or self.low <= epk < self.high

    def inside(self, rows: Iterable[tuple[bytes, bytes]]) -> Iterable[tuple[bytes, bytes]]:
        """The entries that do."""
        return rows if self.is_whole else (row for row in rows if self.low <= row[1] < self.high)

    def items(self, program: Program, rows: Iterable[tuple[bytes, bytes]]) -> Feed:
        metrics = self.metrics
        calls = program.filter_calls
        if program.functions is not None:
            rows = self._foreseen(program, iter(rows))
        frame, keeps = program.scope.frame, program.gives_stored
        spend, body_bytes = frame.budget.spend, BODY_BYTES.unpack_from
        combinations, shows_all = program.combinations_of_text, self.shows_all
        for rid, value in rows:
            spend()
            if not shows_all and not self.is_visible(value):
                continue
            if keeps:
                frame.stored = rid, unmarked(value)
            metrics.retrieved_items += 1
            metrics.retrieved_bytes += body_bytes(value)[0]
            metrics.calls += calls
            yield rid, combinations(value[EPK_AT + value[EPK_LENGTH_AT] :])

    def _foreseen(
        self, program: Program, rows: Iterator[tuple[bytes, bytes]]
    ) -> Iterator[tuple[bytes, bytes]]:
        """The same rows, after user-defined functions were called for a chunk of them."""
        size = CHUNK_FIRST
        while chunk := list(islice(rows, size)):
            program.foresee_texts(
                [
                    value[EPK_AT + value[EPK_LENGTH_AT] :]
                    for _, value in chunk
                    if self.is_visible(value)
                ]
            )
            yield from chunk
            size = min(2 * size, FUNCTION_ROWS)

    def is_visible(self, value: bytes) -> bool:
        """HOT: once per item of a scan."""
        if not self.is_whole:
            epk = value[EPK_AT : EPK_AT + value[EPK_LENGTH_AT]]
            if not self.low <= epk < self.high:
                return False
            key = self.piece.key
            if key is not None and value[DIGEST_SLICE] != key.digest:
                return False
        default_ttl = self.state.definition.default_ttl
        if default_ttl == TTL_OFF:
            return True
        _, ts, ttl = MOMENT.unpack_from(value)
        return not is_expired(ts, ttl, default_ttl, self.now_s)

    def everything(
        self, start: bytes, *, descending: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """All items of the piece in rid order, from `start` on; descending, from there down."""
        if self.piece.key is not None:
            return self.load(self._rids_of_key(start, descending=descending))
        if descending:
            rows = self._between(layout.DOC, start, descending)
            return ((key[1:], value) for key, value in rows)
        low, high = layout.DOC + start, layout.after(layout.DOC)
        lists = self.reader.scan_lists(low, high, ITEMS_BETWEEN_LOOKS)
        return ((key[1:], value) for rows in lists for key, value in rows)

    def _rids_of_key(self, start: bytes, *, descending: bool = False) -> Iterator[bytes]:
        """The items of the logical partition that the piece is."""
        assert self.piece.key is not None
        prefix = layout.LR + self.piece.key.epk_key
        rows = self._between(prefix, start, descending)
        return (key[len(prefix) :] for key, _ in rows)

    def _between(
        self, prefix: bytes, start: bytes, descending: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        low, high = prefix + start, layout.after(prefix)
        if descending:
            low, high = prefix, prefix + start + b"\x00" if start else high
        return self.reader.scan(low, high, reverse=descending)

    def load(
        self, wanted: Iterable[bytes], first: int = CHUNK_FIRST
    ) -> Iterator[tuple[bytes, bytes]]:
        """Items by rid, in the order given. `first`: how many at first; they may be large."""
        return chain.from_iterable(self._loaded(wanted, first, CHUNK_MAX))

    def _loaded(
        self, wanted: Iterable[bytes], first: int, most: int, prefix: bytes = b""
    ) -> Iterator[list[tuple[bytes, bytes]]]:
        """Items by rid, in the order given, under `prefix` and the rid; a chunk at a time, which is
        one round trip on an engine that has them.
        """
        waiting = iter(wanted)
        size = first
        while chunk := list(islice(waiting, size)):
            values = self.reader.get_behind(layout.DOC, chunk)
            assert None not in values, "a rid without its item"
            keys = [prefix + rid for rid in chunk] if prefix else chunk
            yield list(zip(keys, values, strict=True))  # type: ignore[arg-type]
            size = min(2 * size, most)


class StoreSource:
    """The items of a container in some pieces of its hash space, in the order of hashes."""

    def __init__(
        self,
        store: ContainerStore,
        pieces: list[Piece],
        metrics: QueryMetrics,
        computed: Collection[str] = (),
        budget: Budget | None = None,
    ) -> None:
        self.budget = budget
        self.store = store
        self.pieces = pieces
        self._starts = [piece.start for piece in pieces]
        self.metrics = metrics
        self.computed = computed

    def are_together(self, first: Piece, second: Piece) -> bool:
        table = self.store.state.table
        return table.find(first.start) == table.find(second.start)

    def is_first(self, piece: Piece) -> bool:
        """From the pieces alone, which are sorted: a later page comes to the same answer."""
        owner = self.store.state.table.find(piece.start)
        before = bisect_left(self._starts, piece.start) - 1
        if before < 0 or owner.start >= piece.start:
            return True
        return self.pieces[before].end <= owner.start

    def look(self, piece: Piece, work: Callable[[View], T]) -> tuple[T, bytes]:
        if self.budget is not None:
            self.budget.check()

        def read(state: ContainerState, owner: Range, reader: Reader) -> tuple[T, bytes]:
            reach = min(piece.end, owner.end)
            low, high = bounds(state, piece.start, reach)
            is_whole = piece.key is None and piece.start <= owner.start and owner.end <= reach
            meta = unpack_meta(reader.meta)
            view = StoreView(
                state,
                reader,
                meta,
                piece,
                low,
                high,
                is_whole,
                self.store.now_s(),
                self.metrics,
                self.computed,
                self.budget or unbounded(),
            )
            return work(view), reach

        def cost(found: tuple[T, bytes], profile: Coefficients) -> float:
            # All that is not paid yet, so that asking this partition is paid here and not where
            # the query began: it was counted before we came.
            if self.budget is not None:
                self.metrics.steps = self.budget.steps
            ru = self.metrics.charge_ru() - self.metrics.charged_ru
            self.metrics.charged_ru += ru
            return ru

        return self.store.look(piece.start, read, cost=cost, operation="query")


# --- memory ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryView:
    rows: list[tuple[bytes, JSON]]

    def feed(self, program: Program, after: bytes, *, inclusive: bool = False) -> Feed:
        left = ((t, v) for t, v in self.rows if t > after or (inclusive and t == after))
        while chunk := list(islice(left, FUNCTION_ROWS)):
            if program.functions is not None:
                program.foresee_values([value for _, value in chunk])
            for tie, value in chunk:
                yield tie, program.combinations(value)

    def is_done(self, program: Program, after: bytes) -> bool:
        return not self.rows or self.rows[-1][0] <= after


class MemorySource:
    """Rows that were computed, each with something unique to sort it by."""

    def __init__(self, rows: Iterable[tuple[bytes, JSON]]) -> None:
        self.pieces = [Piece()]
        self._view = MemoryView(sorted(rows, key=lambda row: row[0]))

    def look(self, piece: Piece, work: Callable[[View], T]) -> tuple[T, bytes]:
        return work(self._view), piece.end

    def are_together(self, first: Piece, second: Piece) -> bool:
        return True

    def is_first(self, piece: Piece) -> bool:
        return True


def one_row() -> MemorySource:
    """For a query without FROM: one row, in which no name means anything."""
    return MemorySource([(b"\x01", UNDEFINED)])
