"""Short queries without a program: whole items by one comparison that an index answers.

    SELECT * FROM c WHERE c.path = @value        also <, <=, >, >=; the other way round; a literal

    text ──▶ plan ──▶ Quick, once per text ──▶ value ──▶ Bounds: index entries ──▶ items

HOT: most queries of applications look like this, and making a program for each takes ten times as
long as reading its items. Rows are given as the JSON that is stored. Everything else, and every
doubt (many entries, more than a page, items that may expire, an index in the making), gives None,
and `pages.py` runs the plan; it is the reference (tests/property/test_hot_queries.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from struct import Struct
from typing import Final, TypeAlias

from armillary.clock import MayNotWait
from armillary.encoding.json_model import JSON_MODEL
from armillary.limits import PAGE_BYTES_MAX
from armillary.partition.ranges import Range
from armillary.partition.request_units import query_ru
from armillary.query.access.choice import FEW
from armillary.query.access.filters import both_ways, comparison_terms
from armillary.query.access.lookups import path_at
from armillary.query.access.term_ranges import can_compare
from armillary.query.expr import nodes
from armillary.query.gateway.rewriting import needs_plan
from armillary.query.plan.nodes import fact
from armillary.query.run.program import Facts
from armillary.query.run.sql import bound_query, plan_of
from armillary.query.sql.computed import computed_of
from armillary.store.catalog.state import ContainerState
from armillary.store.index.paths import path_hash
from armillary.store.items.containers import ContainerStore
from armillary.store.items.expiry import TTL_OFF
from armillary.store.items.reading import sizes_of, texts_of
from armillary.store.rows import layout
from armillary.store.rows.meta import FENCE_BYTES
from armillary.store.throughput.meter import Ticket
from armillary.values import JSON, UNDEFINED

RID_BYTES: Final = 8
#: Of a meta row after its fence: items, items of older indexing policies.
COUNTS: Final = Struct(">36xQ16xQ")

Bounds: TypeAlias = tuple[bytes, bytes, int, int, bytes]
"""The entries of an index that answer a query, and how `Engine.read_few` finds their items."""
Quick: TypeAlias = Callable[[Mapping[str, JSON]], Bounds | None]
"""A query that can be quick, for as long as the state of its container is this one: given its
parameters, its bounds; None: not one range of entries, or not exactly."""


def quick_of(text: str, state: ContainerState) -> Quick | None:
    """Raises BadQuery."""
    definition, plan = state.definition, plan_of(text, {})
    if (
        definition.default_ttl != TTL_OFF
        or state.model is not JSON_MODEL
        or computed_of(definition.document)
        or needs_plan(bound_query(text))
        or not fact(plan, "program", Facts).gives_text
        or (plan.order or plan.rank or plan.blocks or plan.offset or plan.limit is not None)
        or not isinstance(where := plan.where, nodes.Binary)
    ):
        return None
    synthetic = definition.synthetic_key
    keys = {*definition.partition_key.paths, *(() if synthetic is None else synthetic.sources)}
    for one, other, operator in both_ways(where.operator, where.left, where.right):
        path = path_at(one, {str(plan.bound.container): ()})
        if not path or not isinstance(other, nodes.Parameter | nodes.Literal):
            continue
        # A key narrows the hashes, which `optimize.py` knows how to do.
        if path not in keys and state.plan.covers(path):
            return partial(_bounds, layout.IX + path_hash(path), operator, other)
    return None


def _bounds(
    prefix: bytes,
    operator: str,
    given: nodes.Parameter | nodes.Literal,
    parameters: Mapping[str, JSON],
) -> Bounds | None:
    value: JSON = (
        parameters.get(given.name, UNDEFINED) if isinstance(given, nodes.Parameter) else given.value
    )
    if value is UNDEFINED or not can_compare(value):
        return None
    ranges, is_exact = comparison_terms(operator, value, JSON_MODEL)
    if not is_exact or len(ranges) != 1:
        return None
    (start, end) = ranges[0]
    return prefix + start, prefix + end, FEW, RID_BYTES, layout.DOC


# HOT: once per such query.
def rows_of(
    store: ContainerStore,
    state: ContainerState,
    owner: Range,
    items_max: int,
    ticket: Ticket | None,
    meta: bytes,
    values: list[bytes],
) -> tuple[list[bytes], float]:
    """The whole answer, (items as JSON, RU), charged, if what an engine has read by `Bounds` is
    that. MayNotWait: the caller takes the general path."""
    items, stale = COUNTS.unpack_from(meta, FENCE_BYTES)
    if (
        stale
        or not meta.startswith(state.fences[owner.space])
        or len(values) >= min(FEW, items, items_max)
        or (loaded_bytes := sum(sizes_of(values))) > PAGE_BYTES_MAX // 2
    ):
        raise MayNotWait
    texts = texts_of(values)
    ru = query_ru(1, len(texts), loaded_bytes, sum(map(len, texts)), profile=store.profile)
    if store.meter is not None:
        store.meter.charge(state, owner, b"", ru, "query", 200, ticket)
    return texts, ru
