"""The nearest vectors first, from the vector index: only about as many items are loaded as rows are
needed.

The index has each vector as float32. From those come scores that are off by a known, tiny bound, so
each item's true place lies between two numbers. Items are loaded in the order of the better one and
their distance is computed again, until the rows that are there beat all that could still come:

    bounds      a ├─┤    b  ├─┤      c        ├─┤
    two wanted  load a, b; the worse of them beats the better bound of c: done

So the rows and their order are those of a scan, whatever the type of the index. Items without a
vector have no distance: they come last where larger is better and first where smaller is (then the
index is left alone unless it knows that there are none).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from armillary.query.access.coverage import other_index
from armillary.query.access.kinds.base import AccessKind
from armillary.query.access.lookups import path_at
from armillary.query.access.rids import RID_BYTES
from armillary.query.expr import nodes
from armillary.query.expr.evaluate import Scope, constant
from armillary.query.functions.vectors import is_vector, metric_of
from armillary.store.index.kinds.vector import NO_VECTOR, VectorIndex
from armillary.store.index.paths import Path, path_hash, path_text
from armillary.store.rows import layout
from armillary.values import UNDEFINED

if TYPE_CHECKING:
    from armillary.query.run.consume import OrderedRow
    from armillary.query.run.items import StoreView
    from armillary.query.run.order import Place, Sorter
    from armillary.query.run.program import Program

RowsOf: TypeAlias = "Callable[..., Iterable[OrderedRow]]"
ROWS_AT_ONCE = 1024  # of the index, in one batch
CHUNK_MAX = 1024  # items loaded before the next look at the bounds
FLOAT32_ERROR = 1.2e-7  # twice what rounding a number to float32 can change, relatively
DOUBLE_ERROR = 1e-11  # of sums of thousands of products


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a sort key asks of the index."""

    path: Path
    vector: list[float]
    metric: str


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rids by the best sort key they can have (smaller is better), those of which nothing is
    known apart; and how many items have a row in the index.
    """

    unknown: list[bytes]
    known: list[tuple[float, bytes]]
    entries: int


def nearest(
    view: StoreView,
    program: Program,
    sorter: Sorter,
    after: Place | None,
    need: int,
    *,
    rows_of: RowsOf,
) -> list[OrderedRow] | None:
    """The first rows after a place, or None when the index can't say. `rows_of`: what a query makes
    of items, `run/consume.py:ordered_rows`."""
    wanted = _wanted(program)
    if wanted is None or (after is not None and type(after.keys[0]) not in (int, float)):
        return None
    index = other_index(view, layout.VX, wanted.path)
    if not isinstance(index, VectorIndex) or index.dimensions != len(wanted.vector):
        return None
    sign = -1 if sorter.ties_descend else 1
    start = None if after is None else sign * after.keys[0]
    found = _candidates(view, wanted, sign, start)
    is_complete = view.is_whole and found.entries == view.meta.items
    if not is_complete and not sorter.ties_descend:
        return None
    rows = _best(view, program, sorter, after, need, found, sign, rows_of)
    if not is_complete and (len(rows) < need or _has_no_key(rows[-1])):
        return None  # items that the index does not know have no distance either
    view.metrics.index_used[path_text(wanted.path)] = None
    return rows


def _wanted(program: Program) -> Wanted | None:
    plan = program.plan
    alias = plan.bound.container
    if len(plan.order) != 1 or alias is None or plan.base is not None:
        return None
    call = plan.order[0].expr
    if not isinstance(call, nodes.Call) or call.function != "VECTORDISTANCE":
        return None
    options: Any = {}
    for number, arg in enumerate(call.args[2:]):
        known, value = _constant(arg, program.scope)
        if not known or (number == 0 and value is not False):
            return None
        options = value if number == 1 else options
    metric = metric_of(options, program.scope.context_for(call).metric)
    for one, other in (call.args[:2], call.args[1::-1]):
        path = path_at(one, {alias: ()})
        known, vector = _constant(other, program.scope)
        if path and known and is_vector(vector) and metric is not None:
            return Wanted(path, vector, metric)
    return None


def _constant(expr: nodes.Expr, scope: Scope) -> tuple[bool, Any]:
    if any(isinstance(node, nodes.Identifier | nodes.Subquery) for node in nodes.walk(expr)):
        return False, UNDEFINED
    return constant(expr, scope)


# --- reading --------------------------------------------------------------------------------------


def _candidates(view: StoreView, wanted: Wanted, sign: int, start: float | None) -> Candidates:
    prefix = layout.VX + path_hash(wanted.path)
    rows = view.entries(prefix, layout.after(prefix))
    unknown: list[bytes] = []
    known: list[tuple[float, bytes]] = []
    entries = 0
    size = 1 + 4 * len(wanted.vector)
    while batch := list(islice(rows, ROWS_AT_ONCE)):
        entries += len(batch)
        rids: list[bytes] = []
        data: list[bytes] = []
        for key, value in batch:
            is_odd = value[:1] == NO_VECTOR
            if not view.is_inside(value[1:] if is_odd else value[size:]):
                continue
            if is_odd:
                unknown.append(key[-RID_BYTES:])
            else:
                rids.append(key[-RID_BYTES:])
                data.append(value[1:size])
        if not rids:
            continue
        for rid, low, high in zip(rids, *_bounds(b"".join(data), wanted, sign), strict=True):
            if not low <= high:  # no number
                unknown.append(rid)
            elif start is None or high >= start:
                known.append((low, rid))
    known.sort()
    return Candidates(unknown, known, entries)


def _bounds(data: bytes, wanted: Wanted, sign: int) -> tuple[list[float], list[float]]:
    """Between which sort keys each vector lies."""
    import numpy as np

    asked = np.asarray(wanted.vector, np.float64)
    vectors = np.frombuffer(data, "<f4").reshape(-1, len(wanted.vector)).astype(np.float64)
    with np.errstate(all="ignore"):
        lengths, length = np.sqrt((vectors * vectors).sum(axis=1)), np.sqrt(asked.dot(asked))
        if wanted.metric == "euclidean":
            apart = vectors - asked
            scores = np.sqrt((apart * apart).sum(axis=1))
            margins = FLOAT32_ERROR * lengths + DOUBLE_ERROR * (lengths + length)
        else:
            scores = vectors @ asked
            margins = (FLOAT32_ERROR + DOUBLE_ERROR) * lengths * length
            if wanted.metric == "cosine":
                scores, margins = scores / (lengths * length), margins / (lengths * length) * 4
        keys = sign * scores
        return (keys - margins).tolist(), (keys + margins).tolist()


def _best(
    view: StoreView,
    program: Program,
    sorter: Sorter,
    after: Place | None,
    need: int,
    found: Candidates,
    sign: int,
    rows_of: RowsOf,
) -> list[OrderedRow]:
    last = None if after is None else sorter.of(after)
    best: list[OrderedRow] = []

    def take(rids: list[bytes]) -> None:
        nonlocal best
        rows = rows_of(view.items(program, view.load(rids)), program, sorter, last)
        best = heapq.nsmallest(need, [*best, *rows], key=lambda row: row.sortable)

    take(found.unknown)
    at, chunk = 0, min(CHUNK_MAX, need + 16)
    while at < len(found.known):
        if len(best) >= need and _key(best[-1], sign) < found.known[at][0]:
            break
        take([rid for _, rid in found.known[at : at + chunk]])
        at += chunk
        chunk = min(CHUNK_MAX, 2 * chunk)
    return best


def _has_no_key(row: OrderedRow) -> bool:
    return type(row.place.keys[0]) not in (int, float)


def _key(row: OrderedRow, sign: int) -> float:
    """The sort key of a row, smaller is better; what has none comes last when larger is better."""
    value = row.place.keys[0]
    if _has_no_key(row):
        return float("inf") if sign < 0 else float("-inf")
    return float(sign * value)


KIND: Final = AccessKind(prefix=layout.VX, first_rows=nearest)
