"""How far the filling of the children of a split or merge is, and how large the next piece may be.

    items     next from a parent, in the order of their rids ─▶ gathered for the child they go to
    rows      next from what was gathered for a child, sorted ─▶ then its totals

It reads and sorts; the commands are the runner's (`moves.py`). Parsing and sorting are ours alone,
and readers of this process shall not wait for them: meanwhile threads take shorter turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from armillary.engine.base import Engine, Row
from armillary.limits import MOVE_PIECE_BYTES, MOVE_PIECE_BYTES_MIN, MOVE_PIECE_ROWS
from armillary.partition.ranges import Range
from armillary.store.moves.handlers import Piece, Totals
from armillary.store.moves.pieces import next_size, read_items
from armillary.store.moves.rows import ChildRows
from armillary.store.rows import layout
from armillary.store.rows.meta import unpack_meta
from armillary.store.rows.secondary import LogicalPartition
from armillary.turns import SWITCHES

LOAD_ROWS = 64  # taken from a sort at once
#: Of our threads while others wait. With half of that reads were no quicker and a split was longer.
TURN_SECONDS = 0.0002


class Filling:
    def __init__(self, parents: Sequence[Range], children: Sequence[Range]) -> None:
        self.copying = [(parent, layout.DOC) for parent in parents]
        self.loading = list(children)
        self.gathered = {child.space: ChildRows() for child in children}
        self.rows: Iterator[Row] | None = None
        self._parents = parents
        self._known: dict[bytes, LogicalPartition] = {}
        self._loaded = 0
        self._piece_bytes = MOVE_PIECE_BYTES_MIN
        self._lsns: list[int] = []

    def next_items(self, engine: Engine) -> list[tuple[bytes, Piece]]:
        """A piece of items, each with its hash. There may be none in the last one."""
        parent, start = self.copying[0]
        with engine.read(parent.space) as reader:
            found, last = read_items(reader, start, self._piece_bytes, self._known)
        if last is None:
            self.copying.pop(0)
        else:
            self.copying[0] = (parent, last + b"\x00")
        return found

    def gather(
        self,
        child: Range,
        pieces: Iterable[Piece],
        policies: tuple[tuple[int, bytes], ...],
        policy: int,
    ) -> list[Row]:
        """The rows of the items themselves; the rest is kept until all are known."""
        rows: list[Row] = []
        gathered = self.gathered[child.space]
        with SWITCHES.short(TURN_SECONDS):
            for piece in pieces:
                rows.append(gathered.add(piece, policies, policy))
        return rows

    def next_rows(self) -> tuple[Range, list[Row], Totals | None]:
        """A piece of the sorted rows of a child; the totals with its last one."""
        child = self.loading[0]
        gathered = self.gathered[child.space]
        if self.rows is None:
            self.rows = islice(gathered.rows(), self._loaded, None)
        rows: list[Row] = []
        size_bytes, is_last = 0, False
        # Each row is a turn of the interpreter's lock, which readers want too: alone it takes the
        # writer a microsecond, alongside a busy one 6, and now and then 50.
        rows_max = MOVE_PIECE_ROWS * self._piece_bytes // MOVE_PIECE_BYTES
        with SWITCHES.short(TURN_SECONDS):
            while size_bytes < self._piece_bytes and len(rows) < rows_max and not is_last:
                more = list(islice(self.rows, LOAD_ROWS))
                rows += more
                size_bytes += sum(map(len, chain.from_iterable(more)))
                is_last = len(more) < LOAD_ROWS
        self._loaded += len(rows)
        if not is_last:
            return child, rows, None
        self.loading.pop(0)
        self.rows, self._loaded = None, 0
        return child, rows, gathered.totals()

    def note(self, engine: Engine, took_ms: int, commit_ms: int) -> bool:
        """How long a piece took to load, and so how large the next one may be. Whether there are
        others who write."""
        self._piece_bytes = next_size(self._piece_bytes, took_ms, commit_ms)
        before, self._lsns = self._lsns, [_lsn(engine, one) for one in self._parents]
        return bool(before) and before != self._lsns

    def close(self) -> None:
        """Let go of what was gathered: it may be in files. Idempotent."""
        for rows in self.gathered.values():
            rows.close()
        self.gathered, self.rows = {}, None


def _lsn(engine: Engine, parent: Range) -> int:
    with engine.read(parent.space) as reader:
        return unpack_meta(reader.meta).lsn
