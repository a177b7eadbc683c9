"""Short queries from bytes to bytes: decodes what `items/queries.py:query_items` decodes, runs what
`query/run/quick.py` has an access path for, and fills the form of the answer. They run on the loop:
a few dozen microseconds, bounded by the number of index entries and the size of a page.
HOT: see `decoding.py`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import orjson

from armillary.api.core.fast import keep, new_activity
from armillary.api.http.encoding import INTEGER_MARK
from armillary.api.http.messages import Request, Waiting
from armillary.api.nosql.call import feed_body
from armillary.api.nosql.fast.decoding import ITEMS, KEYED, SESSION_TOKEN, SIGNED, Decoder, Known
from armillary.api.nosql.items.feeds import DOCUMENTS
from armillary.api.nosql.items.queries import page_headers
from armillary.api.nosql.options import CONTAINER_RID, CROSS_PARTITION, RANGE_ID, Options
from armillary.engine.base import SpaceGone
from armillary.errors import DbError
from armillary.limits import PAGE_ITEMS_MAX
from armillary.partition.ranges import Range
from armillary.query.run.quick import (
    COUNTS,
    Quick,
    Rows,
    begin_quick,
    charge_quick,
    quick_of,
    read_quick,
    rows_of,
)
from armillary.store.items.containers import ContainerStore
from armillary.store.rows.meta import FENCE_BYTES

TEXT_CHARACTERS_MAX: Final = 2_000


class Queries(Decoder):
    method = "POST"
    has_body = True
    target = ITEMS
    captured: Final = {
        **SIGNED,
        **SESSION_TOKEN,
        CONTAINER_RID: KEYED[CONTAINER_RID],
        RANGE_ID: rb"[0-9]{1,9}",
        "x-ms-max-item-count": rb"-?[0-9]{1,9}",
    }
    fixed = Decoder.fixed | {"x-ms-documentdb-isquery", "x-ms-documentdb-query", CROSS_PARTITION}
    ignored = Decoder.ignored | {"x-ms-documentdb-query-parallelizecrosspartitionquery"}

    def form(self, store: ContainerStore) -> bytes:
        return self.marked(store, 200, lambda place: page_headers(INTEGER_MARK, None, place))

    def accepts(self, request: Request) -> bool:
        headers, options = request.headers, Options(request.headers)
        return (
            options.is_query
            and (RANGE_ID in headers or options.flag(CROSS_PARTITION))
            and self.is_at_level(headers)
        )

    def answer(
        self,
        date_line: bytes,
        names: bytes,
        date: bytes,
        authorization: bytes,
        activity: bytes,
        token: bytes,
        rid: bytes,
        range_id: bytes,
        size: bytes,
        body: bytes,
    ) -> bytes | Waiting | None:
        if not self.is_ours(b"post\ndocs", names, date, authorization):
            return None
        known, asked = self.container(names, rid), _asked(body)
        if known is None or asked is None:
            return None
        text, parameters = asked
        quick = known.kept.get(text) or self._keep_query(known, text)
        ranges = known.state.table.ranges
        if range_id:
            owner = known.state.table.by_ordinal(int(range_id))
        else:
            owner = ranges[0] if len(ranges) == 1 else None
        items_max = int(size) if size else -1
        if quick is None or owner is None or items_max == 0 or items_max < -1:
            return None
        items_max = PAGE_ITEMS_MAX if items_max < 0 else items_max
        ask = (known.store, known.state, owner, quick, parameters)
        rows: Callable[[], Rows | None] = partial(read_quick, *ask, items_max)
        if self.waits:
            begun = begin_quick(*ask)
            if begun is None:
                return None
            future, ticket = begun
            rows = lambda: rows_of(known.state, owner, future.result(), items_max, ticket)  # noqa: E731
            given = (names, known, owner, activity, token, rows)
            return Waiting(future, partial(self._finish, *given), self.nothing_happened)
        return self._finish(names, known, owner, activity, token, rows, date_line)

    def _finish(
        self,
        names: bytes,
        known: Known,
        owner: Range,
        activity: bytes,
        token: bytes,
        read: Callable[[], Rows | None],
        date_line: bytes,
    ) -> bytes | None:
        try:
            rows = read()
        except (DbError, SpaceGone):
            rows = None
        if rows is None:
            self.is_another(names, known)
            return None
        ordinal = owner.ordinal
        lsn, version, _, _ = COUNTS.unpack_from(rows.meta, FENCE_BYTES)
        if token and self.is_behind(token, owner, version, lsn):
            return None
        ru = charge_quick(known.store, known.state, owner, rows)
        page = feed_body(known.state.record.rid, DOCUMENTS, rows.texts)
        return known.form % (
            activity or new_activity().encode(),
            self.charges.get(ru) or self.charge(ru),
            len(rows.texts),
            *(ordinal, version, lsn, ordinal, lsn),
            *(date_line, len(page), page),
        )

    def _keep_query(self, known: Known, text: str) -> Quick | None:
        if text in known.kept or len(text) > TEXT_CHARACTERS_MAX:
            return None
        quick: Quick | None = None
        with suppress(DbError):
            quick = quick_of(text, known.state)
        keep(known.kept, text, quick)
        return quick


def _asked(body: bytes) -> tuple[str, dict[str, Any]] | None:
    """The text and the parameters; None where anything of it is unusual."""
    try:
        document = orjson.loads(body)
        text, given = document["query"], document.get("parameters", ())
        parameters = {one["name"]: one["value"] for one in given}
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    is_usual = type(text) is str and (given == () or type(given) is list)
    return (text, parameters) if is_usual and all(type(one) is str for one in parameters) else None
