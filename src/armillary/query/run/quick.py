"""Short queries without a program: whole items by one comparison that an index answers.

    SELECT * FROM c WHERE c.path = @value        also <, <=, >, >=; the other way round; a literal

    text ──▶ plan ──▶ Quick, once per text ──▶ value ──▶ one range of index entries ──▶ items

HOT: most queries of applications look like this, and making a program for each takes ten times as
long as reading its items. Rows are given as the JSON that is stored. Everything else, and every
doubt (many entries, more than a page, items that may expire, an index in the making), gives None,
and `pages.py` runs the plan; it is the reference (tests/property/test_hot_queries.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

from armillary.clock import MayNotWait
from armillary.encoding.documents import BODY_BYTES, EPK_AT, EPK_LENGTH_AT
from armillary.encoding.json_model import JSON_MODEL
from armillary.limits import PAGE_BYTES_MAX
from armillary.partition.ranges import Range
from armillary.partition.request_units import query_ru
from armillary.query.access.choice import FEW
from armillary.query.access.filters import both_ways, comparison_terms, path_at
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
from armillary.store.rows import layout
from armillary.store.rows.meta import FENCE_BYTES
from armillary.store.throughput.meter import Ticket
from armillary.values import JSON, UNDEFINED

RID_BYTES: Final = 8
#: Of a meta row after its fence: LSN, session version, items, items of older indexing policies.
COUNTS: Final = Struct(">Qi24xQ16xQ")
_body_bytes: Final = BODY_BYTES.unpack_from


class Quick(NamedTuple):
    """A query that can be quick, for as long as the state of its container is this one."""

    prefix: bytes
    """What stands before a term in the index."""
    operator: str
    value: nodes.Parameter | nodes.Literal | None

    def bounds(self, parameters: Mapping[str, JSON]) -> tuple[bytes, bytes] | None:
        """The entries of the index that answer it; None: not one range of them, or not exactly."""
        given = self.value
        value: JSON = UNDEFINED
        if isinstance(given, nodes.Parameter):
            value = parameters.get(given.name, UNDEFINED)
        elif given is not None:
            value = given.value
        if value is UNDEFINED or not can_compare(value):
            return None
        ranges, is_exact = comparison_terms(self.operator, value, JSON_MODEL)
        if not is_exact or len(ranges) != 1:
            return None
        (start, end), prefix = ranges[0], self.prefix
        return prefix + start, prefix + end


NOT_QUICK: Final = Quick(b"", "=", None)


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
    ):
        return None
    synthetic = definition.synthetic_key
    keys = {*definition.partition_key.paths, *(() if synthetic is None else synthetic.sources)}
    where = plan.where
    if not isinstance(where, nodes.Binary):
        return None
    for one, other, operator in both_ways(where.operator, where.left, where.right):
        path = path_at(one, {str(plan.bound.container): ()})
        if not path or not isinstance(other, nodes.Parameter | nodes.Literal):
            continue
        # A key narrows the hashes, which `optimize.py` knows how to do.
        if path not in keys and state.plan.covers(path):
            return Quick(layout.IX + path_hash(path), operator, other)
    return None


Found: TypeAlias = tuple[list[bytes], int, int, float]
"""(items as JSON, session version, LSN, RU)"""


class Asked(NamedTuple):
    """A quick query with its values, of one range. HOT: once per such query."""

    store: ContainerStore
    state: ContainerState
    owner: Range
    bounds: tuple[bytes, bytes]
    items_max: int
    check: Callable[[int, int], None] | None
    """Given session version and LSN before anything is charged; raises when they won't do."""

    def find(self) -> Found | None:
        """Raises MayNotWait, SpaceGone and Throttled: the caller takes the general path."""
        store, state, owner, (start, end), _, _ = self
        ticket = store.admit_here(state, owner, "query")
        read = store.engine.read_few(owner.space, start, end, FEW, RID_BYTES, layout.DOC)
        return self._found(ticket, *read)

    def begin(self) -> tuple[Future[Any], Callable[[], Found | None]]:
        """The same on an event loop whose engine waits for a database: to be called when the future
        is done. Its result is None where that would have been too much for an event loop."""
        store, state, owner, (start, end), _, _ = self
        ticket = store.admit_here(state, owner, "query")
        future = store.engine.read_few_soon(owner.space, start, end, RID_BYTES, layout.DOC)
        if future is None:
            raise MayNotWait
        return future, lambda: future.result() and self._found(ticket, *future.result())

    def _found(
        self, ticket: Ticket | None, meta: bytes, values: list[bytes], extra: int
    ) -> Found | None:
        """The whole answer, charged, if what was read is that. `extra`: bytes at the end of each
        value that are the engine's."""
        store, state, owner, _, items_max, check = self
        lsn, version, items, stale = COUNTS.unpack_from(meta, FENCE_BYTES)
        if stale or not meta.startswith(state.fences[owner.space]):
            return None
        if len(values) >= min(FEW, items, items_max):
            return None
        loaded_bytes = sum([_body_bytes(stored)[0] for stored in values])
        if loaded_bytes > PAGE_BYTES_MAX // 2:
            return None
        if check is not None:
            check(version, lsn)
        cut = -extra or None
        texts = [stored[EPK_AT + stored[EPK_LENGTH_AT] : cut] for stored in values]
        out_bytes = sum(map(len, texts))
        ru = query_ru(1, len(texts), loaded_bytes, out_bytes, profile=store.profile)
        if store.meter is not None:
            store.meter.charge(state, owner, b"", ru, "query", 200, ticket)
        return texts, version, lsn, ru
