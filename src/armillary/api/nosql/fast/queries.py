"""Short queries from bytes to bytes: what `queries.query_items` answers to those that
`query/run/quick.py` knows how to read, and what the server makes of it.

    groups of a shape ──▶ signature ──▶ body ──▶ Quick, by text ──▶ rows ──▶ one bytes object

HOT: once per such query; numbers in bench/http_cost.py; the reference is the long way, and
tests/property/test_hot_queries.py holds that both answer alike. They run on the loop: a few dozen
microseconds, bounded by the number of index entries and the size of a page.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import orjson

from armillary.api.core.gateway import Gateway
from armillary.api.http.messages import Request
from armillary.api.nosql.call import ACTIVITY, CHARGE, COMMON, format_charge
from armillary.api.nosql.fast.containers import header_lines, known_state
from armillary.api.nosql.fast.signing import AUTHORIZATION, DATE, HotSigning, keep
from armillary.api.nosql.items.placing import STRONG, container_headers
from armillary.api.nosql.items.queries import EXECUTION
from armillary.api.nosql.items.sessions import Seen, parse_token
from armillary.api.nosql.options import KEY, RANGE_ID, Options
from armillary.errors import DbError, Throttled
from armillary.limits import PAGE_ITEMS_MAX
from armillary.partition.ranges import Range
from armillary.partition.request_units import query_ru
from armillary.query.run.quick import COUNTS, Quick, Rows, quick_of, read_quick
from armillary.store.catalog.controls import FAULTS
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore
from armillary.store.rows.meta import FENCE_BYTES

NAME: Final = rb"[A-Za-z0-9_.~!$&'()*+,;=:@-]"
TEXT_CHARACTERS_MAX: Final = 2_000
CROSS: Final = "x-ms-documentdb-query-enablecrosspartition"
#: Whoever sends these wants something else, or more.
OTHERS: Final = frozenset(
    {
        KEY,
        "a-im",
        "x-ms-continuation",
        "x-ms-start-epk",
        "x-ms-end-epk",
        "x-ms-cosmos-is-query-plan-request",
        "x-ms-cosmos-is-batch-request",
        "x-ms-documentdb-populatequerymetrics",
        "x-ms-cosmos-populateindexmetrics",
        "x-ms-cosmos-populateindexmetrics-v2",
        "x-ms-cosmos-intended-collection-rid",
        "content-encoding",
    }
)


class _Template(NamedTuple):
    """What answers of one container have in common, for as long as its state is this one."""

    state: ContainerState
    store: ContainerStore
    head: bytes
    end: bytes
    start: bytes
    """Of the body."""
    queries: dict[str, Quick | None]


class HotQueries:
    """A `Shortcut`."""

    method = "POST"
    has_body = True
    waits = False
    target = rb"/(dbs/%b+/colls/%b+)/docs/?" % (NAME, NAME)
    captured: Final = {
        "x-ms-date": DATE,
        "authorization": AUTHORIZATION,
        ACTIVITY: rb"[!-~]{1,64}",
        "x-ms-session-token": rb"[0-9:#=,-]+",
        RANGE_ID: rb"[0-9]{1,9}",
        "x-ms-max-item-count": rb"-?[0-9]{1,9}",
    }
    fixed: Final = frozenset(
        {"x-ms-consistency-level", "x-ms-documentdb-isquery", "x-ms-documentdb-query", CROSS}
    )

    def __init__(self, gateway: Gateway, faults: Sequence[int]) -> None:
        """`faults`: the cells of `store/catalog/controls.py`, which every request looks at."""
        self._gateway = gateway
        self._faults = faults
        self._is_ours = HotSigning(gateway).is_ours
        self._level = gateway.settings.consistency
        self._is_strong = self._level in STRONG
        self._tokens: dict[bytes, dict[int, Seen]] = {}
        self._templates: dict[bytes, _Template] = {}

    def accepts(self, request: Request) -> bool:
        headers, options = request.headers, Options(request.headers)
        return (
            options.is_query
            and not OTHERS & headers.keys()
            and (RANGE_ID in headers or options.flag(CROSS))
            and headers.get("x-ms-consistency-level", self._level) == self._level
        )

    def answer(
        self,
        date_line: bytes,
        names: bytes,
        date: bytes,
        authorization: bytes,
        activity: bytes,
        token: bytes,
        range_id: bytes,
        size: bytes,
        body: bytes,
    ) -> bytes | None:
        if self._faults[FAULTS]:
            return None
        if not self._is_ours(b"post\ndocs", names, date, authorization):
            return None
        template = self._templates.get(names)
        if template is None or template.store.known_state is not template.state:
            template = self._keep_template(names)
            if template is None:
                return None
        asked = _asked(body)
        if asked is None:
            return None
        text, parameters = asked
        quick = template.queries.get(text)
        if quick is None:
            quick = self._keep_query(template, text)
            if quick is None:
                return None
        table = template.state.table
        owner = table.by_ordinal(int(range_id)) if range_id else table.ranges[0]
        items_max = int(size) if size else -1
        if owner is None or items_max == 0 or items_max < -1:
            return None
        if not range_id and len(table.ranges) > 1:
            return None
        items_max = PAGE_ITEMS_MAX if items_max < 0 else items_max
        seen = None
        if token:
            seen = self._tokens.get(token) or self._keep_token(token)
            if seen is None:
                return None
        found = self._read(template, owner, quick, parameters, items_max, seen)
        if found is None:
            return None
        rows, ru = found
        lsn, version, _, _ = COUNTS.unpack_from(rows.meta, FENCE_BYTES)
        ordinal, texts = owner.ordinal, rows.texts
        told = b'%b%b],"_count":%d}' % (template.start, b",".join(texts), len(texts))
        lines = (
            f"\r\n{CHARGE}: {format_charge(ru)}\r\nx-ms-item-count: {len(texts)}\r\n"
            f"x-ms-session-token: {ordinal}:{version}#{lsn}\r\n{RANGE_ID}: {ordinal}\r\n"
            f"lsn: {lsn}\r\n"
        )
        return b"".join(
            (
                template.head,
                activity or str(uuid.uuid4()).encode(),
                lines.encode(),
                template.end,
                date_line,
                b"Content-Length: %d\r\n\r\n" % len(told),
                told,
            )
        )

    def _read(
        self,
        template: _Template,
        owner: Range,
        quick: Quick,
        parameters: dict[str, Any],
        items_max: int,
        seen: dict[int, Seen] | None,
    ) -> tuple[Rows, float] | None:
        store, state = template.store, template.state
        meter = store.meter
        try:
            ticket = None if meter is None else meter.admit_read(state, owner, "query", note=False)
        except Throttled:
            return None  # the long way refuses it, and counts it
        rows = read_quick(store.engine, state, owner, quick, parameters, items_max)
        if rows is None:
            return None
        if seen is not None:
            lsn, version, _, _ = COUNTS.unpack_from(rows.meta, FENCE_BYTES)
            now = (version, lsn)
            if any(seen.get(one, now) > now for one in (owner.ordinal, *owner.parents)):
                return None
        texts = rows.texts
        out_bytes = sum(map(len, texts))
        profile = (store.strong if self._is_strong else store).profile
        ru = query_ru(1, len(texts), rows.loaded_bytes, out_bytes, profile=profile)
        if meter is not None:
            meter.charge(state, owner, b"", ru, "query", 200, ticket)
        return rows, ru

    # --- what is kept ---------------------------------------------------------------------------

    def _keep_template(self, names: bytes) -> _Template | None:
        known = known_state(self._gateway, names)
        if known is None:
            return None
        store, state = known
        extra = {"x-ms-cosmos-query-execution-info": EXECUTION, **container_headers(store)}
        end = header_lines(extra)
        head = f"HTTP/1.1 200 OK\r\n{header_lines(COMMON)}{ACTIVITY}: "
        start = b'{"_rid":%b,"Documents":[' % orjson.dumps(state.record.rid)
        made = _Template(state, store, head.encode(), end.encode(), start, {})
        return keep(self._templates, names, made)

    def _keep_query(self, template: _Template, text: str) -> Quick | None:
        if text in template.queries or len(text) > TEXT_CHARACTERS_MAX:
            return None
        try:
            return keep(template.queries, text, quick_of(text, template.state))
        except DbError:
            return keep(template.queries, text, None)

    def _keep_token(self, token: bytes) -> dict[int, Seen] | None:
        try:
            return keep(self._tokens, token, parse_token(token.decode()))
        except DbError:
            return None


def _asked(body: bytes) -> tuple[str, dict[str, Any]] | None:
    """The text and the parameters; None where anything of it is unusual."""
    try:
        document = orjson.loads(body)
        text, given = document["query"], document.get("parameters", ())
        parameters = {one["name"]: one["value"] for one in given}
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    is_usual = type(text) is str and (given == () or type(given) is list)
    return (text, parameters) if is_usual and all(map(_is_text, parameters)) else None


def _is_text(name: Any) -> bool:
    return type(name) is str
