"""Short queries without a program: whole items by one comparison that an index answers.

    SELECT * FROM c WHERE c.path = @value        also <, <=, >, >=; the other way round; a literal

    text ──▶ plan ──▶ Quick, once per text ──▶ value ──▶ one range of index entries ──▶ items

HOT: most queries of applications look like this, and making a program for each takes ten times as
long as reading its items. Rows are given as the JSON that is stored. Everything else, and every
doubt (many entries, more than a page, items that may expire, an index in the making), answers None:
`run.py` then does it, which is the reference; tests/property/test_quick.py compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from struct import Struct
from typing import Any, Final, NamedTuple

from armillary.encoding.documents import BODY_BYTES, EPK_AT, EPK_LENGTH_AT
from armillary.encoding.json_model import JSON_MODEL
from armillary.engine.base import SpaceGone
from armillary.limits import PAGE_BYTES_MAX
from armillary.partition.ranges import Range
from armillary.partition.request_units import query_ru
from armillary.query.access.choice import FEW
from armillary.query.access.filters import path_at
from armillary.query.access.term_ranges import can_compare, compared_to, equal_to
from armillary.query.expr import nodes
from armillary.query.gateway.rewriting import needs_plan
from armillary.query.plan.nodes import Plan
from armillary.query.run.sql import bound_query, plan_of
from armillary.query.sql.computed import computed_of
from armillary.store.catalog.state import ContainerState
from armillary.store.index.paths import path_hash
from armillary.store.items.containers import ContainerStore
from armillary.store.items.expiry import TTL_OFF
from armillary.store.rows import layout
from armillary.store.rows.meta import FENCE_BYTES
from armillary.store.throughput.meter import Ticket
from armillary.values import JSON, UNDEFINED

FLIPPED: Final = {"=": "=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
RID_BYTES: Final = 8
#: Of a meta row after its fence: LSN, session version, items, items of older indexing policies.
COUNTS: Final = Struct(">Qi24xQ16xQ")
_body_bytes: Final = BODY_BYTES.unpack_from


class Quick(NamedTuple):
    """A query that can be quick, for as long as the state of its container is this one."""

    prefix: bytes
    """What stands before a term in the index."""
    operator: str
    parameter: str
    """Empty: a literal."""
    literal: JSON


class Rows(NamedTuple):
    texts: list[bytes]
    loaded_bytes: int
    meta: bytes
    ticket: Ticket | None


def quick_of(text: str, state: ContainerState) -> Quick | None:
    """Raises BadQuery."""
    definition = state.definition
    plan = plan_of(text, {})
    if (
        definition.default_ttl != TTL_OFF
        or state.model is not JSON_MODEL
        or computed_of(definition.document)
        or needs_plan(bound_query(text))
        or not _is_plain(plan)
    ):
        return None
    found = _comparison(plan)
    if found is None:
        return None
    path, operator, value = found
    synthetic = definition.synthetic_key
    sources = () if synthetic is None else synthetic.sources
    if path in {tuple(one) for one in (*definition.partition_key.paths, *sources)}:
        return None  # it narrows the hashes, which `optimize.py` knows how to do
    if not state.plan.covers(path):
        return None
    prefix = layout.IX + path_hash(path)
    if isinstance(value, nodes.Parameter):
        return Quick(prefix, operator, value.name, None)
    return Quick(prefix, operator, "", value.value)


def _is_plain(plan: Plan) -> bool:
    return (
        plan.base is None
        and len(plan.sources) == 1
        and plan.sources[0].yields == "item"
        and plan.sources[0].root is None
        and plan.bound.container is not None
        and plan.output == nodes.Identifier(plan.bound.container)
        and not (plan.order or plan.rank or plan.fold or plan.distinct or plan.offset)
        and plan.limit is None
    )


def _comparison(
    plan: Plan,
) -> tuple[tuple[str, ...], str, nodes.Parameter | nodes.Literal] | None:
    where = plan.where
    if not isinstance(where, nodes.Binary) or where.operator not in FLIPPED:
        return None
    operator, one, other = str(where.operator), where.left, where.right
    if isinstance(one, nodes.Parameter | nodes.Literal):
        operator, one, other = FLIPPED[operator], other, one
    assert plan.bound.container is not None
    path = path_at(one, {plan.bound.container: ()})
    if not path or not isinstance(other, nodes.Parameter | nodes.Literal):
        return None
    names = tuple(each for each in path if isinstance(each, str))
    return (names, operator, other) if len(names) == len(path) else None


def read_quick(
    store: ContainerStore,
    state: ContainerState,
    owner: Range,
    quick: Quick,
    parameters: Mapping[str, JSON],
    items_max: int,
) -> Rows | None:
    """All rows, if they are few; `charge_quick` then. HOT: once per such query. Raises Throttled,
    not counted: the caller takes the general path."""
    bounds = bounds_of(quick, parameters)
    if bounds is None:
        return None
    meter = store.meter
    ticket = None if meter is None else meter.admit_read(state, owner, "query", note=False)
    try:
        found = store.engine.read_few(owner.space, *bounds, FEW, RID_BYTES, layout.DOC)
    except SpaceGone:
        return None
    return rows_of(state, owner, found, items_max, ticket)


def begin_quick(
    store: ContainerStore,
    state: ContainerState,
    owner: Range,
    quick: Quick,
    parameters: Mapping[str, JSON],
) -> tuple[Future[Any], Ticket | None] | None:
    """The same for an event loop and an engine that waits for a database: `rows_of` ends it."""
    bounds = bounds_of(quick, parameters)
    if bounds is None:
        return None
    ticket = None
    if store.meter is not None:
        ticket = store.meter.admit_here(state, owner, "query", note=False)
        if ticket is None:
            return None
    future = store.engine.read_few_soon(owner.space, *bounds, RID_BYTES, layout.DOC)
    return None if future is None else (future, ticket)


def bounds_of(quick: Quick, parameters: Mapping[str, JSON]) -> tuple[bytes, bytes] | None:
    """The entries of the index that answer it; None: not one range of them, or not exactly."""
    value = parameters.get(quick.parameter, UNDEFINED) if quick.parameter else quick.literal
    if value is UNDEFINED or not can_compare(value):
        return None
    operator = quick.operator
    ranges, is_exact = equal_to(value) if operator == "=" else compared_to(operator, value)
    if not is_exact or len(ranges) != 1:
        return None
    (start, end), prefix = ranges[0], quick.prefix
    return prefix + start, prefix + end


def rows_of(
    state: ContainerState,
    owner: Range,
    found: tuple[bytes, list[bytes], int] | None,
    items_max: int,
    ticket: Ticket | None,
) -> Rows | None:
    """What was found, if it is the whole answer. `found` is None where that was too much for an
    event loop."""
    if found is None:
        return None
    meta, values, extra = found
    _, _, items, stale = COUNTS.unpack_from(meta, FENCE_BYTES)
    if stale or not meta.startswith(state.fences[owner.space]):
        return None
    if len(values) >= min(FEW, items, items_max):
        return None
    loaded_bytes = sum([_body_bytes(stored)[0] for stored in values])
    if loaded_bytes > PAGE_BYTES_MAX // 2:
        return None
    cut = -extra or None
    texts = [stored[EPK_AT + stored[EPK_LENGTH_AT] : cut] for stored in values]
    return Rows(texts, loaded_bytes, meta, ticket)


def charge_quick(store: ContainerStore, state: ContainerState, owner: Range, rows: Rows) -> float:
    texts = rows.texts
    out_bytes = sum(map(len, texts))
    ru = query_ru(1, len(texts), rows.loaded_bytes, out_bytes, profile=store.profile)
    if store.meter is not None:
        store.meter.charge(state, owner, b"", ru, "query", 200, rows.ticket)
    return ru
