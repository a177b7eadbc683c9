"""Queries over entities on the wire: `$filter`, `$select`, `$top`, continuation. Facts: table 6, 7.

    $filter ──▶ filter/conditions: a plan ──▶ run_plan ──▶ a page of stored items ──▶ OData JSON

A filter that fixes both keys is a point read. The continuation is the plan's own token, which
survives splits; clients echo it as NextPartitionKey.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from armillary.api.http.messages import Response
from armillary.api.table.auth.sas import Sas
from armillary.api.table.call import Call, document
from armillary.api.table.entities import store_of
from armillary.api.table.filter.conditions import KEY_ORDER, Question, question, with_predicate
from armillary.api.table.filter.predicate import Item
from armillary.api.table.problems import refused
from armillary.api.table.wire.presenting import METADATA, selected, view_of
from armillary.encoding.edm.values import PARTITION_KEY, ROW_KEY, item_id
from armillary.errors import NotFound, OwnerNotFound
from armillary.limits import TABLE_PAGE_ENTITIES_MAX
from armillary.partition.request_units import miss_ru
from armillary.query.access.order import has_order_index
from armillary.query.expr.rows import StoredRow
from armillary.query.plan.nodes import simple_plan
from armillary.query.run.continuation import query_digest
from armillary.query.run.pages import QueryPage, run_plan
from armillary.store.items.containers import ContainerStore
from armillary.store.items.reading import Stored
from armillary.units import whole_number

NEXT_PARTITION: Final = "x-ms-continuation-NextPartitionKey"
NEXT_ROW: Final = "x-ms-continuation-NextRowKey"
NO_ROW: Final = "NA"  # what Cosmos DB sends; clients echo it
TOP_HINT: Final = f"$top is a number from 1 to {TABLE_PAGE_ENTITIES_MAX}."
BY_KEYS: Final = simple_plan(stored=True, order=KEY_ORDER)


def query_entities(call: Call) -> Response:
    store = store_of(call)
    storage = call.flavour.is_storage
    ordered = storage and has_order_index(BY_KEYS, store.state.plan)
    text = call.parameters.get("$filter", "")
    asked = question(text, storage=storage, ordered=ordered)
    known_by = query_digest(text)
    most = page_size(call)
    token = call.parameters.get("NextPartitionKey") or None
    sas = call.caller.sas
    if asked.point is not None and token is None:
        return _point(call, store, asked, asked.point)
    plan = asked.plan
    if sas is not None and (sas.start or sas.end):
        plan = with_predicate(plan, lambda item: _covers(sas, item))
    budget = call.budget
    page = run_plan(
        store,
        plan,
        text=f"$filter={asked.shape}",
        query=known_by,
        continuation=token,
        max_items=most,
        budget=budget,
    )
    ru = page.metrics.charge_ru()
    items = [orjson.loads(row.text) for row in _stored(page)]
    token = page.continuation
    if token is not None and len(items) == most:
        # Clients count pages: no empty one should follow a full last one (table 7).
        ahead = run_plan(
            store,
            plan,
            query=known_by,
            continuation=token,
            max_items=1,
            budget=budget,
        )
        ru += ahead.metrics.charge_ru()
        if not ahead.rows and ahead.continuation is None:
            token = None
    return _answer(call, items, token, ru)


def _stored(page: QueryPage) -> Iterable[StoredRow]:
    for row in page.rows:
        assert isinstance(row, StoredRow)
        yield row


def _covers(sas: Sas, item: Item) -> bool:
    return sas.covers(item[PARTITION_KEY], item[ROW_KEY])


def _point(call: Call, store: ContainerStore, asked: Question, keys: tuple[str, str]) -> Response:
    partition_key, row_key = keys
    try:
        value, _, _, ru = store.read_placed(item_id(row_key), (partition_key,))
    except OwnerNotFound:
        raise
    except NotFound:
        return _answer(call, [], None, miss_ru())
    item = orjson.loads(Stored(value).text)
    sas = call.caller.sas
    passes = asked.holds(item) and (sas is None or _covers(sas, item))
    return _answer(call, [item] if passes else [], None, ru)


def _answer(
    call: Call, items: Iterable[Mapping[str, Any]], token: str | None, ru: float
) -> Response:
    view = view_of(call, call.target.table, selected(call))
    rows = [view.show(one) for one in items]
    body: dict[str, Any] = {"value": rows}
    if call.level != "nometadata":
        metadata = {METADATA: f"{call.base_url}/$metadata#{call.target.table}"}
        # Cosmos DB has it behind the rows, Storage before (recorded answers).
        body = metadata | body if call.flavour.is_storage else body | metadata
    headers = {} if token is None else {NEXT_PARTITION: token, NEXT_ROW: NO_ROW}
    return document(call, 200, body, headers, ru=ru)


def page_size(call: Call) -> int:
    text = call.parameters.get("$top")
    if text is None:
        return TABLE_PAGE_ENTITIES_MAX
    top = whole_number(text, digits=9)
    if not top or (call.flavour.is_storage and top > TABLE_PAGE_ENTITIES_MAX):
        raise refused("url", hint=TOP_HINT)
    return min(top, TABLE_PAGE_ENTITIES_MAX)
