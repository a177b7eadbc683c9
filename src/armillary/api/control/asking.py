"""A query over a whole container, with everything there is to know about how it ran: what the query
page of the portal shows.

Unlike the query of the NoSQL API, where SDKs merge what several partitions say, this answers in one
piece whatever the query is, and tells its plan.
"""

from __future__ import annotations

from collections.abc import Iterable

from armillary.api.control.call import ControlCall, answer, refuse_unknown
from armillary.api.core.query_text import parse_query_body
from armillary.api.http.messages import Response
from armillary.encoding.partition_key import coerce
from armillary.errors import BadInput
from armillary.limits import PAGE_ITEMS_DEFAULT
from armillary.query.access.advice import possible_indexes
from armillary.query.plan.nodes import Piece
from armillary.query.run.sql import run_query
from armillary.store.catalog.state import ContainerState
from armillary.values import JSON

MEMBERS = ("query", "parameters", "partition_key", "max_items", "continuation")


def query(call: ControlCall) -> Response:
    store = call.container()
    body = call.json()
    asked = parse_query_body(body)
    refuse_unknown(body, MEMBERS)
    size = body.get("max_items", PAGE_ITEMS_DEFAULT)
    if not isinstance(size, int) or isinstance(size, bool):
        raise BadInput("'max_items' is a whole number.")
    token = body.get("continuation")
    if not isinstance(token, str | None):
        raise BadInput("'continuation' is the text that the page before ended with.")
    page = run_query(
        store,
        asked.text,
        asked.parameters,
        partition_key=coerce(body["partition_key"]) if "partition_key" in body else None,
        continuation=token,
        max_items=size,
        budget=call.budget,
    )
    metrics = page.metrics
    index: JSON = {
        "used": list(metrics.index_used),
        "possible": list(possible_indexes(page.plan, asked.parameters, store.state.plan)),
        "only": metrics.index_only and not metrics.retrieved_items,
    }
    return answer(
        200,
        {
            "rows": page.rows,
            "continuation": page.continuation,
            "charge_ru": metrics.charge_ru(),
            "elapsed_ms": metrics.total_ms,
            "partitions": _partitions(store.state, page.pieces),
            "partitions_read": metrics.ranges,
            "retrieved_items": metrics.retrieved_items,
            "retrieved_bytes": metrics.retrieved_bytes,
            "output_bytes": metrics.output_bytes,
            "index": index,
            "plan": list[JSON](page.plan_text.splitlines()),
        },
    )


def _partitions(state: ContainerState, pieces: Iterable[Piece]) -> list[JSON]:
    """Those that can hold a part of the answer."""
    found = {
        one.ordinal for piece in pieces for one in state.table.overlapping(piece.start, piece.end)
    }
    return [str(ordinal) for ordinal in sorted(found)]
