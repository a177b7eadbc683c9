"""Queries over items on the wire: where they run, and what is said about them. Facts: nosql-rest 5.

    range id, EPK bounds   that part, original or rewritten text           run_range
    partition key          that logical partition, or prefix               run_query
    filter fixes the key   its partition                                   run_query
    else                   everywhere, if rows can simply be concatenated  run_query
                           else 400, 1004, and the plan for the client to run itself

A server with `gateway_merge` answers the last kind too. Running is `query/run/sql.py`'s;
rewriting for clients is `query/gateway/rewriting.py`'s.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

import orjson
from msgspec.structs import replace

from armillary.api.core.query_text import parse_query_body
from armillary.api.http.messages import Response
from armillary.api.nosql.call import Call, feed_body, reply
from armillary.api.nosql.items.feeds import DOCUMENTS, check_session, slice_headers
from armillary.api.nosql.items.pages import CROSS_TEXT, page_headers
from armillary.api.nosql.items.placing import Slice, at_level, slice_of, store_of
from armillary.api.nosql.options import CROSS_PARTITION
from armillary.errors import BadInput, NeedsMerge
from armillary.query.access.advice import possible_indexes
from armillary.query.expr.queries import BoundQuery
from armillary.query.gateway.rewriting import needs_plan, plan_scope, query_plan
from armillary.query.plan.key_ranges import ANYWHERE, HashRange, is_point, key_ranges
from armillary.query.plan.optimize import path_of
from armillary.query.problems import QueryError, RefusedQuery
from armillary.query.run.metrics import index_header, metrics_header
from armillary.query.run.sql import QueryPage, bound_query, run_query, run_range
from armillary.query.sql import ast
from armillary.query.sql.computed import computed_of
from armillary.query.sql.syntax import syntax_of
from armillary.store.catalog.state import ContainerState
from armillary.store.index.policy import parse_policy
from armillary.store.items.containers import ContainerStore
from armillary.values import JSON

FEATURES: Final = "x-ms-cosmos-supported-query-features"
KEY_INDEX: Final = "/_epk/?"  # what the original names the way to one partition key
EXCLUDED_TEXT: Final = "The index path corresponding to the specified order-by item is excluded."


class Asked(NamedTuple):
    text: str
    parameters: dict[str, JSON]
    bound: BoundQuery


def query_items(call: Call) -> Response:
    return at_level(call, partial(_query_items, call))


def _query_items(call: Call, store: ContainerStore) -> Response:
    asked = _asked(call)
    part = slice_of(call, store)
    check_session(call, store, part)
    _check_order(store, asked.bound)
    page = _run(call, store, asked, part)
    body = feed_body(store.state.record.rid, DOCUMENTS, page.rows)
    headers = page_headers(
        len(page.rows),
        _wrapped(page.continuation),
        _metrics(call, store, asked, page) | slice_headers(call, store, part),
    )
    return reply(call, 200, body, headers, ru=page.metrics.charge_ru())


def plan_query(call: Call) -> Response:
    listed = call.options.headers.get(FEATURES)
    features = None if listed is None else {one.strip() for one in listed.split(",")}
    plan = _plan(call, store_of(call), _asked(call), features)
    return reply(call, 200, orjson.dumps(plan))


def _plan(
    call: Call, store: ContainerStore, asked: Asked, features: set[str] | None = None
) -> dict[str, JSON]:
    definition = store.state.definition
    return query_plan(
        asked.bound,
        asked.parameters,
        definition.partition_key,
        features,
        key=call.options.key,
        vector_policy=definition.document.get("vectorEmbeddingPolicy"),
        model=store.state.model,
    )


def _asked(call: Call) -> Asked:
    text, parameters = parse_query_body(call.json())
    return Asked(text, parameters, bound_query(text))


def _run(call: Call, store: ContainerStore, asked: Asked, part: Slice) -> QueryPage:
    options = call.options
    size, token = options.page_size, _unwrapped(options.continuation)
    if part.owner is not None or options.epk_bounds is not None:
        return run_range(
            store,
            asked.text,
            asked.parameters,
            start=part.start,
            end=part.end,
            key=options.key,
            continuation=token,
            max_items=size,
            texts=True,
            budget=call.budget,
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
        texts=True,
        budget=call.budget,
    )


def _wrapped(token: str | None) -> str | None:
    """As the service gives it: an object of JSON, which the JavaScript SDK reads to tell a token of
    the server from one of its own."""
    return None if token is None else f'{{"token":"{token}"}}'


def _unwrapped(token: str | None) -> str | None:
    """Tokens of earlier versions are bare."""
    if token is None or not token.startswith("{"):
        return token
    try:
        found = orjson.loads(token)["token"]
    except (ValueError, KeyError) as error:
        raise BadInput("Invalid Continuation Token") from error
    if not isinstance(found, str):
        raise BadInput("Invalid Continuation Token")
    return found


def _check_everywhere(call: Call, store: ContainerStore, asked: Asked) -> None:
    """May a query that names no partition run here and now?"""
    ranges = _ranges(store, asked)
    if ranges == [ANYWHERE] or (is_point(ranges) and not _is_bare_aggregate(asked.bound)):
        return
    if not call.options.flag(CROSS_PARTITION):
        if store.state.definition.partition_key.system_key:
            return  # everywhere is one partition
        raise BadInput(CROSS_TEXT)
    if needs_plan(asked.bound) and not call.gateway.settings.gateway_merge:
        raise NeedsMerge(plan=_plan(call, store, asked))


def _check_order(store: ContainerStore, bound: BoundQuery) -> None:
    """The original sorts by what it has an index of. In process a sort without one is slow, no
    error; several keys need their composite index everywhere, and `run.py` sees to it.
    """
    order = syntax_of(bound).order_by
    if not isinstance(order, ast.OrderBy) or len(order.items) != 1 or bound.is_grouped:
        return
    path = None if bound.container is None else path_of(order.items[0].expr, bound.container)
    if path is None or _is_sortable(store.state, path) or _is_sortable(store.refresh(), path):
        return
    raise RefusedQuery.of([QueryError(None, EXCLUDED_TEXT)])


def _is_sortable(state: ContainerState, path: tuple[str, ...]) -> bool:
    """`/*` does not mean computed properties: their path has to be named (nosql-query 7.4)."""
    document = state.definition.document
    if path[0] not in computed_of(document):
        return state.plan.covers(path)
    policy = parse_policy(document["indexingPolicy"])
    return any(each.segments[:1] == path[:1] for each in policy.included)


def _ranges(store: ContainerStore, asked: Asked) -> list[HashRange]:
    """The parts of the hash space that can hold the answer."""
    scope = replace(plan_scope(asked.parameters), model=store.state.model)
    return key_ranges(asked.bound, scope, store.state.definition.partition_key)


def _is_bare_aggregate(bound: BoundQuery) -> bool:
    """`SELECT AVG(c.n) FROM c`: the gateway leaves it to the client even when the filter names one
    key, and the Python SDK, which can't do it, says so (azure-cosmos 4.17, its aggregate tests)."""
    query = syntax_of(bound)
    is_value = isinstance(query.select, ast.SelectValue)
    return bool(bound.aggregates) and not is_value and not query.group_by


def _metrics(
    call: Call, store: ContainerStore, asked: Asked, page: QueryPage
) -> dict[str, str | None]:
    options = call.options
    headers: dict[str, str | None] = {}
    if options.flag("x-ms-documentdb-populatequerymetrics"):
        headers["x-ms-documentdb-query-metrics"] = metrics_header(page.metrics)
    if options.key is not None:
        page.metrics.index_used.setdefault(KEY_INDEX)
    version = 2 if options.flag("x-ms-cosmos-populateindexmetrics-v2") else 1
    if version == 2 or options.flag("x-ms-cosmos-populateindexmetrics"):
        possible = possible_indexes(page.plan, asked.parameters, store.state.plan)
        page.metrics.index_possible.update(dict.fromkeys(possible))
        headers["x-ms-cosmos-index-utilization"] = index_header(page.metrics, version=version)
    return headers
