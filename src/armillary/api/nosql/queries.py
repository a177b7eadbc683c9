"""Queries over items on the wire: where they run, and what is said about them. Facts: nosql-rest 5.

    range id, EPK bounds   that part, original or rewritten text           run_range
    partition key          that logical partition, or prefix               run_query
    filter fixes the key   its partition                                   run_query
    else                   everywhere, if rows can simply be concatenated  run_query
                           else 400, 1004, and the plan for the client to run itself

A server with `gateway_merge` answers the last kind too. Running is `query/run.py`'s; rewriting for
clients is `query_plans.py`'s.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import orjson

from armillary.api.nosql.call import Call, feed_body, reply
from armillary.api.nosql.feeds import DOCUMENTS, check_session, slice_headers
from armillary.api.nosql.messages import Response
from armillary.api.nosql.placing import Slice, slice_of, store_of
from armillary.api.nosql.query_plans import check_features, make_info, needs_merge, plan_json
from armillary.api.nosql.simple_query import parse_query_body
from armillary.errors import BadInput, NeedsMerge
from armillary.query.evaluate import Frame, Scope
from armillary.query.functions import Context
from armillary.query.metrics import index_header, metrics_header
from armillary.query.optimize import narrow, pieces_of_key
from armillary.query.plan import Piece, Plan
from armillary.query.planning import make_plan
from armillary.query.run import QueryPage, bound_query, run_query, run_range
from armillary.query.sql import ast
from armillary.query.sql.bound import BoundQuery
from armillary.store.containers import ContainerStore
from armillary.values import JSON

FEATURES: Final = "x-ms-cosmos-supported-query-features"
EXECUTION: Final = '{"reverseRidEnabled":false,"reverseIndexScan":false}'
STRONG: Final = frozenset({"Strong", "BoundedStaleness"})
KEY_INDEX: Final = "/_epk/?"  # what the original names the way to one partition key
CROSS_TEXT: Final = (
    "Cross partition query is required but disabled. Please set "
    "x-ms-documentdb-query-enablecrosspartition to true, specify "
    "x-ms-documentdb-partitionkey, or revise your query to avoid this exception."
)


class Asked(NamedTuple):
    text: str
    parameters: dict[str, JSON]
    bound: BoundQuery
    plan: Plan


def query_items(call: Call) -> Response:
    store = store_of(call)
    asked = _asked(call)
    part = slice_of(call, store)
    check_session(call, store, part)
    page = _run(call, store, asked, part)
    rows = [orjson.dumps(row) for row in page.rows]
    body = feed_body(store.state.record.rid, DOCUMENTS, rows)
    strong = call.options.level(call.gateway.settings.consistency) in STRONG
    headers = {
        "x-ms-item-count": str(len(rows)),
        "x-ms-continuation": page.continuation,
        "x-ms-cosmos-query-execution-info": EXECUTION,
        **_metrics(call, page),
        **slice_headers(call, store, part),
    }
    return reply(call, 200, body, headers, ru=page.metrics.charge_ru(strong=strong))


def plan_query(call: Call) -> Response:
    store = store_of(call)
    asked = _asked(call)
    pieces = _pieces(call, store, asked)
    info = make_info(asked.bound, asked.plan, one_key=_is_one_key(pieces))
    check_features(info, call.options.headers.get(FEATURES))
    return reply(call, 200, orjson.dumps(plan_json(info, pieces)))


def _asked(call: Call) -> Asked:
    text, parameters = parse_query_body(call.json())
    bound = bound_query(text)
    return Asked(text, parameters, bound, make_plan(bound, parameters))


def _run(call: Call, store: ContainerStore, asked: Asked, part: Slice) -> QueryPage:
    options = call.options
    size, token = options.page_size, options.continuation
    if part.owner is not None or options.epk_bounds is not None:
        return run_range(
            store,
            asked.bound,
            asked.parameters,
            start=part.start,
            end=part.end,
            key=options.key,
            continuation=token,
            max_items=size,
        )
    if options.key is None:
        _check_everywhere(call, store, asked)
    return run_query(
        store,
        asked.text,
        asked.parameters,
        partition_key=options.key,
        continuation=token,
        max_items=size,
        page_per_range=True,  # the gateway asks one range per page
    )


def _check_everywhere(call: Call, store: ContainerStore, asked: Asked) -> None:
    """May a query that names no partition run here and now?"""
    pieces = _pieces(call, store, asked)
    is_merged = _is_bare_aggregate(asked.bound)
    if (_is_one_key(pieces) and not is_merged) or pieces == [] or not asked.plan.sources:
        return
    if not call.options.flag("x-ms-documentdb-query-enablecrosspartition"):
        raise BadInput(CROSS_TEXT)
    if needs_merge(asked.plan) and not call.gateway.settings.gateway_merge:
        info = make_info(asked.bound, asked.plan)
        raise NeedsMerge(plan=plan_json(info, pieces))


def _pieces(call: Call, store: ContainerStore, asked: Asked) -> list[Piece] | None:
    """The parts of the hash space that can hold the answer; None for all."""
    definition = store.state.definition
    if call.options.key is not None:
        return pieces_of_key(call.options.key, definition)
    context = Context(now_ticks=0, random=lambda: 0.0)
    scope = Scope(Frame(), asked.parameters, context, bound=asked.plan.bound)
    return narrow(asked.plan, scope, definition)


def _is_bare_aggregate(bound: BoundQuery) -> bool:
    """`SELECT AVG(c.n) FROM c`: the gateway leaves it to the client even when the filter names one
    key, and the Python SDK, which can't do it, says so (azure-cosmos 4.17, its aggregate tests)."""
    query = bound.query
    is_value = isinstance(query.select, ast.SelectValue)
    return bool(bound.aggregates) and not is_value and not query.group_by


def _is_one_key(pieces: list[Piece] | None) -> bool:
    return pieces is not None and len(pieces) == 1 and pieces[0].key is not None


def _metrics(call: Call, page: QueryPage) -> dict[str, str | None]:
    options = call.options
    headers: dict[str, str | None] = {}
    if options.flag("x-ms-documentdb-populatequerymetrics"):
        headers["x-ms-documentdb-query-metrics"] = metrics_header(page.metrics)
    if options.key is not None:
        page.metrics.index_used.setdefault(KEY_INDEX)
    if options.flag("x-ms-cosmos-populateindexmetrics-v2"):
        headers["x-ms-cosmos-index-utilization"] = index_header(page.metrics, version=2)
    elif options.flag("x-ms-cosmos-populateindexmetrics"):
        headers["x-ms-cosmos-index-utilization"] = index_header(page.metrics)
    return headers
