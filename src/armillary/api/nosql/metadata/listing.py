"""Feeds of everything that is not an item: databases, containers, offers, users, scripts.

All rows fit in memory, because their number is bounded; a page is cut from them by the number that
orders them, so that a feed goes on rightly when rows come and go between two pages.
"""

from collections.abc import Iterable, Sequence

import orjson

from armillary.api.http.messages import Response
from armillary.api.nosql.call import Call, feed_body, reply
from armillary.errors import BadInput
from armillary.limits import PAGE_ITEMS_MAX
from armillary.units import whole_number
from armillary.values import JSON

Numbered = tuple[int, dict[str, JSON]]


def list_page(call: Call, rid: str, key: str, rows: Iterable[Numbered]) -> Response:
    """One page; a query is answered from the same rows."""
    if call.options.is_query:
        return _query_page(call, rid, key, [document for _, document in sorted_rows(rows)])
    call.budget.check()
    after = _after(call.options.continuation)
    left = [row for row in sorted_rows(rows) if row[0] > after]
    size = call.options.page_size
    page = left[: PAGE_ITEMS_MAX if size == -1 else size]
    more = str(page[-1][0]) if len(page) < len(left) else None
    return _page(call, rid, key, [document for _, document in page], more)


def sorted_rows(rows: Iterable[Numbered]) -> list[Numbered]:
    return sorted(rows, key=lambda row: row[0])


def _query_page(call: Call, rid: str, key: str, documents: list[dict[str, JSON]]) -> Response:
    from armillary.api.core.simple_query import run_query  # with the first query, see `later.py`

    results = run_query(call.document(), documents, call.gateway.engine.now_ms(), call.budget)
    start = _after(call.options.continuation)
    size = call.options.page_size
    page = results[start : start + (PAGE_ITEMS_MAX if size == -1 else size)]
    end = start + len(page)
    return _page(call, rid, key, page, str(end) if end < len(results) else None)


def _page(call: Call, rid: str, key: str, page: Sequence[JSON], more: str | None) -> Response:
    body = feed_body(rid, key, map(orjson.dumps, page))
    headers = {"x-ms-item-count": str(len(page)), "x-ms-continuation": more}
    return reply(call, 200, body, headers)


def _after(token: str | None) -> int:
    if token is None:
        return 0
    after = whole_number(token)
    if after is None:
        raise BadInput("Invalid Continuation Token")
    return after
