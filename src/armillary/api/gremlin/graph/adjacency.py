"""Edges of some vertices straight from the index. HOT: every hop of every traversal.

    _vertexId = "v1" in the range of one physical partition  ─▶  index entries ─▶ rids ─▶ documents

Everything else (many entries, an index in the making, items that may expire) answers None, and the
query runner does it, which is the reference; tests/property/test_gremlin_store.py compares both.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from time import perf_counter
from typing import Final, NamedTuple

import orjson

from armillary.api.gremlin.graph.costs import Costs
from armillary.api.gremlin.graph.elements import Document
from armillary.encoding.documents import json_offset
from armillary.engine.base import Reader
from armillary.partition.ranges import Range
from armillary.partition.request_units import Coefficients, query_ru
from armillary.query.access.term_ranges import equal_to
from armillary.store.catalog.state import ContainerState
from armillary.store.index.paths import path_hash
from armillary.store.items.containers import ContainerStore
from armillary.store.items.reading import body_bytes
from armillary.store.rows import layout
from armillary.store.rows.meta import unpack_meta

ENTRIES_MAX: Final = 4096  # that are read at once; a vertex with more edges is read in pages
IDS_MAX: Final = 1024
RID_BYTES: Final = 8


class _Found(NamedTuple):
    items: list[bytes] | None
    """As they are stored. None: not here."""
    size: int
    """Of their bodies, in bytes."""
    end: bytes
    """Of the range that was read: a split may have made it shorter."""


def indexed_edges(
    store: ContainerStore, start: bytes, end: bytes, place: str, ids: Sequence[str], costs: Costs
) -> list[Document] | None:
    """Edges whose `place` (`_vertexId`, `_sink`) is one of the ids, with hashes from `start` on.
    Some may lie outside: the caller looks at their vertices anyway."""
    state = store.state
    definition = state.definition
    if len(ids) > IDS_MAX or definition.default_ttl or not state.plan.covers((place,)):
        return None
    prefix = layout.IX + path_hash((place,))
    spans: list[tuple[bytes, bytes]] = []
    for id in ids:
        ranges, is_exact = equal_to(id)
        if not is_exact or len(ranges) != 1:
            return None
        spans.append((prefix + ranges[0][0], prefix + ranges[0][1]))
    found: list[Document] = []
    at = start
    while at < end:
        began = perf_counter()

        def read(state: ContainerState, owner: Range, reader: Reader) -> _Found:
            items = _read(reader, spans)
            return _Found(items, sum(map(body_bytes, items or ())), owner.end)

        page = store.look(at, read, cost=_cost, operation="query")
        if page.items is None:
            return None
        at = page.end
        ru = _cost(page, store.profile)
        costs.note(1, len(page.items), page.size, perf_counter() - began, ru)
        found += [orjson.loads(one[json_offset(one) :]) for one in page.items]
    costs.queries += 1
    return found


def _read(reader: Reader, spans: Sequence[tuple[bytes, bytes]]) -> list[bytes] | None:
    if unpack_meta(reader.meta).stale_items:
        return None
    rids: set[bytes] = set()
    for low, high in spans:
        room = ENTRIES_MAX - len(rids) + 1
        rids.update(key[-RID_BYTES:] for key, _ in islice(reader.scan(low, high), room))
        if len(rids) > ENTRIES_MAX:
            return None
    values = reader.get_many([layout.DOC + rid for rid in sorted(rids)])
    return [value for value in values if value is not None]


def _cost(found: _Found, profile: Coefficients) -> float:
    return query_ru(1, len(found.items or ()), found.size, found.size, profile=profile)
