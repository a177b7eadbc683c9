"""Edges of some vertices straight from the index. HOT: every hop of every traversal.

    _vertexId = "v1" in the range of one physical partition  ─▶  index entries ─▶ rids ─▶ documents

The index names candidates and each document is looked at (`Reader.tails`). Many vertices are asked
for in parts, so that a snapshot is short and memory is bounded. What is left (a vertex with very
many edges, an index in the making, items that may expire) is for the query runner, which is the
reference; tests/property/test_gremlin_store.py compares both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from time import perf_counter
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from armillary.api.gremlin.graph.costs import Costs
from armillary.api.gremlin.graph.elements import (
    EDGE,
    IN_ID,
    IN_PARTITION,
    OUT_ID,
    Document,
)
from armillary.api.gremlin.graph.small import Check
from armillary.encoding.json_model import JSON_MODEL
from armillary.engine.base import Reader
from armillary.partition.ranges import Range
from armillary.partition.request_units import Coefficients, query_ru
from armillary.store.catalog.state import ContainerState
from armillary.store.index.paths import path_hash
from armillary.store.items.containers import ContainerStore
from armillary.store.items.reading import sizes_of, texts_of
from armillary.store.rows import layout
from armillary.store.rows.meta import unpack_meta

ENTRIES_MAX: Final = 4096  # that are read at once; a vertex with more edges is read in pages
IDS_MAX: Final = 256  # that are asked for at once
RID_BYTES: Final = 8


# --- what a hop looks at --------------------------------------------------------------------------


class Link(msgspec.Struct, gc=False):
    """The ends of an edge. `partition`: of its source."""

    partition: Any = None
    label: Any = None
    is_edge: Any = None
    out_id: Any = None
    in_id: Any = None
    in_partition: Any = msgspec.UNSET


ReadLink: TypeAlias = Callable[[bytes], Link]


@lru_cache(maxsize=64)
def link_reader(partition_name: str) -> ReadLink:
    """Links out of documents as they are stored: a third of the time of parsing them whole."""
    names = _names(partition_name)
    if len(set(names.values())) < len(names):  # the partition key is one of the others, too
        whole: Callable[[bytes], Document] = msgspec.json.Decoder(dict[str, Any]).decode
        return lambda text: link_of(whole(text), partition_name)
    fields = [(name, Any, getattr(Link(), name)) for name in Link.__struct_fields__]
    shape: Any = msgspec.defstruct("StoredLink", fields, bases=(Link,), rename=names, gc=False)
    decode: ReadLink = msgspec.json.Decoder(shape).decode
    return decode


def link_of(document: Document, partition_name: str) -> Link:
    get = document.get
    return Link(
        get(partition_name), get("label"), get(EDGE), get(OUT_ID), get(IN_ID),
        get(IN_PARTITION, msgspec.UNSET),
    )  # fmt: skip


def _names(partition_name: str) -> dict[str, str]:
    return {
        "partition": partition_name, "label": "label", "is_edge": EDGE, "out_id": OUT_ID,
        "in_id": IN_ID, "in_partition": IN_PARTITION,
    }  # fmt: skip


# --- from the index -------------------------------------------------------------------------------


class TooMany(Exception):
    """Entries for one read. Control flow: ask for fewer ids."""


class _Found(NamedTuple):
    items: list[bytes] | None
    """As they are stored. None: not here."""
    size: int
    """Of their bodies, in bytes."""
    end: bytes
    """Of the range that was read: a split may have made it shorter."""


def index_prefixes(place: str, ids: Sequence[str]) -> list[bytes] | None:
    """What the index entries of each id begin with. None: an id that is cut in its term."""
    path = layout.IX + path_hash((place,))
    if not all(map(JSON_MODEL.is_exact, ids)):
        return None
    return [path + term for term in map(JSON_MODEL.term, ids)]


def indexed_edges(
    store: ContainerStore,
    start: bytes,
    end: bytes,
    place: str,
    ids: Sequence[str],
    costs: Costs,
    most: int | None = None,
    check: Check | None = None,
) -> list[bytes] | None:
    """Documents, as JSON, among which all edges are whose `place` (`_vertexId`, `_sink`) is one of
    the ids, with hashes from `start` on. The caller looks at what each of them is. None: the index
    can't tell. Raises TooMany: in one physical partition there are more than `most`."""
    state = store.state
    if state.definition.default_ttl or not state.plan.covers((place,)):
        return None
    prefixes = index_prefixes(place, ids)
    if prefixes is None:
        return None
    found: list[bytes] = []
    at = start
    while at < end:
        began = perf_counter()

        def read(state: ContainerState, owner: Range, reader: Reader) -> _Found:
            items = _read(reader, prefixes, ENTRIES_MAX if most is None else most, check)
            return _Found(items, sum(sizes_of(items or ())), owner.end)

        page = store.look(at, read, cost=_cost, operation="query")
        if page.items is None:
            return None
        at = page.end
        ru = _cost(page, store.profile)
        costs.note(1, len(page.items), page.size, perf_counter() - began, ru)
        found += texts_of(page.items)
    costs.queries += 1
    return found


def _read(
    reader: Reader, prefixes: Sequence[bytes], most: int, check: Check | None
) -> list[bytes] | None:
    if unpack_meta(reader.meta).stale_items:
        return None
    return documents_at(reader, prefixes, most, check)


def documents_at(
    reader: Reader, prefixes: Sequence[bytes], most: int, check: Check | None
) -> list[bytes]:
    """Items under these prefixes of index entries, as they are stored. Raises TooMany."""
    rids = reader.tails(prefixes, RID_BYTES, most)
    if rids is None:
        raise TooMany
    if check is not None:
        check(reader.meta, len(rids))
    values = reader.get_many([layout.DOC + rid for rid in sorted(rids)])
    return [value for value in values if value is not None]


def _cost(found: _Found, profile: Coefficients) -> float:
    return query_ru(1, len(found.items or ()), found.size, found.size, profile=profile)
