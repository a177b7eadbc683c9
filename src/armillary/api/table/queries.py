"""Queries over entities on the wire: `$filter`, `$select`, `$top`, continuation. Facts: table 6, 7.

$filter ──▶ tree ──▶ conditions that the index and the partition key can use ──▶ plan
               └───▶ predicate over the item: decides
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from armillary.api.http.messages import Response
from armillary.api.table.call import Call, document
from armillary.api.table.entities import store_of
from armillary.api.table.filter.grammar import And, Compare, Filter, Literal
from armillary.api.table.filter.predicate import parsed, predicate
from armillary.api.table.problems import refused
from armillary.api.table.wire.presenting import METADATA, selected, view_of
from armillary.encoding import edm_values as edm
from armillary.encoding.edm_values import PARTITION_KEY
from armillary.limits import TABLE_PAGE_ENTITIES_MAX
from armillary.query.plan.nodes import simple_plan
from armillary.query.run.sql import run_plan

NEXT_PARTITION: Final = "x-ms-continuation-NextPartitionKey"
NEXT_ROW: Final = "x-ms-continuation-NextRowKey"
NO_ROW: Final = "NA"  # what Cosmos DB sends; clients echo it


def query_entities(call: Call) -> Response:
    store = store_of(call)
    text = call.parameters.get("$filter")
    node = parsed(text) if text else None
    holds = None if node is None else predicate(node, storage=call.flavour.is_storage)
    most = page_size(call)
    token = call.parameters.get("NextPartitionKey") or None
    found: list[Mapping[str, Any]] = []
    ru = 0.0
    while True:
        page = run_plan(
            store,
            simple_plan(),
            text=None,
            partition_key=_partition(node),
            continuation=token,
            max_items=most - len(found),
        )
        found += (one for one in page.rows if holds is None or holds(one))
        token = page.continuation
        ru += page.metrics.charge_ru()
        if token is None or len(found) >= most:
            break
    # A client counts pages: none that is empty should follow a full last one (table 7).
    if token is not None:
        page = run_plan(
            store, simple_plan(), partition_key=_partition(node), continuation=token, max_items=1
        )
        if not page.rows and page.continuation is None:
            token = None
    return _answer(call, found, token, ru)


def _answer(call: Call, found: list[Mapping[str, Any]], token: str | None, ru: float) -> Response:
    view = view_of(call, call.target.table, selected(call))
    rows = [view.show(one) for one in found]
    body: dict[str, Any] = {"value": rows}
    if call.level != "nometadata":
        metadata = f"{call.base_url}/$metadata#{call.target.table}"
        # Cosmos DB has it behind the rows, Storage before (recorded answers).
        body = (
            {METADATA: metadata, **body}
            if call.flavour.is_storage
            else {**body, METADATA: metadata}
        )
    headers = {} if token is None else {NEXT_PARTITION: token, NEXT_ROW: NO_ROW}
    return document(call, 200, body, headers, ru=ru)


def page_size(call: Call) -> int:
    text = call.parameters.get("$top")
    if text is None:
        return TABLE_PAGE_ENTITIES_MAX
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise refused("url")
    if call.flavour.is_storage and int(text) > TABLE_PAGE_ENTITIES_MAX:
        raise refused("url")
    return min(int(text), TABLE_PAGE_ENTITIES_MAX)


def _partition(node: Filter | None) -> tuple[str] | None:
    terms = node.terms if isinstance(node, And) else (node,)
    for one in terms:
        if (
            isinstance(one, Compare)
            and one.operator == "eq"
            and one.left.name == "PartitionKey"
            and isinstance(one.right, Literal)
            and one.right.value[0] == edm.STRING
        ):
            return (one.right.value[1],)
    return None


assert PARTITION_KEY
