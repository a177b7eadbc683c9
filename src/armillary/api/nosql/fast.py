"""Fast paths from bytes to bytes. Each is a decoder of an operation that the general path asks the
store for, and a form of the answer that its encoder writes.

    groups of a template ──▶ signature ──▶ container ──▶ `ask` the store ──▶ `outcome` ──▶ form

    PointReads   as `items/single.py:read_item`       `ContainerStore.read_at`
    Creates      as `items/single.py:begin_create`    `ContainerStore.start`, then `finish`
    Patches      as `items/single.py:begin_patch`     the same
    Queries      as `items/queries.py:query_items`    what `query/run/quick.py` can answer

HOT: once per request, on the event loop; numbers in bench/http_cost.py. The general path is the
reference (tests/property/test_hot_*.py), and answers after every doubt: a miss, a moved range, a
token from the future, a signature that is not the first key's. Every signature is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

from armillary.api.core.activities import new_activity
from armillary.api.core.fast import BODY_BYTES_MAX, DATE, keep
from armillary.api.core.gateway import Gateway
from armillary.api.core.query_text import parse_query_body
from armillary.api.http.encoding import BYTES_MARK, INTEGER_MARK, STATUS_LINES, form_of
from armillary.api.http.messages import Request, Response, Waiting
from armillary.api.nosql import call as calls
from armillary.api.nosql import options
from armillary.api.nosql.items.feeds import DOCUMENTS
from armillary.api.nosql.items.pages import page_headers
from armillary.api.nosql.items.placing import STRONG, is_left_to_server, item_headers
from armillary.api.nosql.items.sessions import Seen, check_barrier, parse_token
from armillary.api.nosql.items.single import STATUS, ended, patch_operation, written_headers
from armillary.clock import MayNotWait
from armillary.encoding.documents import shown
from armillary.encoding.partition_key import KeyValues, parse_key_header
from armillary.engine.base import SpaceGone
from armillary.errors import DbError
from armillary.limits import PAGE_ITEMS_MAX
from armillary.partition.ranges import Range
from armillary.store.catalog.controls import FAULTS
from armillary.store.catalog.state import ContainerState, Spot
from armillary.store.items.containers import ContainerStore
from armillary.store.items.paging import check_page_size
from armillary.store.items.preparation import Operation
from armillary.store.rows.layout import DOC
from armillary.store.rows.meta import FENCE_BYTES
from armillary.store.throughput.meter import Ticket

KEY_HEADER: Final = {options.KEY: rb"\[[ -~]*\]"}
NAME: Final = rb"[A-Za-z0-9_.~!$&'()*+,;=:@-]"  # nothing that is escaped, cut or special in a path
CONTAINER: Final = rb"/(dbs/%b+/colls/%b+)/docs" % (NAME, NAME)
SIGNATURE: Final = slice(len("type%3dmaster%26ver%3d1.0%26sig%3d"), -3)
LEVEL: Final = "x-ms-consistency-level"
LINES: Final = {outcome: STATUS_LINES[status].encode() for outcome, status in STATUS.items()}
OK: Final = LINES["read"]
QUERY_BYTES_MAX: Final = 2_000  # of one that is kept
PLACE_MARK: Final = "\0p"  # of what a range says of itself, which is the same until the next write
PLACES_MAX: Final = 64  # of one container, each until the next write to a range
PROGRESS: Final = Struct(">Qi")  # LSN and session version, the first counters of a meta row


class Known(NamedTuple):
    """A container as its link names it, for as long as its state is this one."""

    store: ContainerStore
    """At the prices of the level that requests read at."""
    state: ContainerState
    rid: bytes
    form: bytes
    """Of the form of an answer: given a place, it is that; the status line is its first value."""
    admit: Callable[..., Ticket | None]
    """A refusal is not counted: the general path is going to refuse again."""
    kept: dict[Any, Any]
    """What a decoder reads once: by the text of a key header, or the body of a query."""
    places: dict[bytes, tuple[Seen, bytes]]
    """By the meta row of a range: how far it is, and the form of its answers until it goes on."""


Outcome: TypeAlias = tuple[bytes, float, tuple[Any, ...], bytes, bytes]
"""What an operation gave: status line, RU, values of the headers that are its own, form, body."""
Asked: TypeAlias = tuple[Future[Any] | None, tuple[Any, ...]]
"""What an operation of the store waits for, and what `outcome` needs of it."""


class Decoder:
    """A fast path of `api/http/messages.py`. The general path answers where the methods of one kind
    raise DbError, SpaceGone or MayNotWait."""

    method, has_body, writes = "POST", True, False
    target = CONTAINER + rb"/?()"
    signed = b"post\ndocs\n"  # method and type of the resource
    captured: Mapping[str, bytes] = {
        "x-ms-date": DATE,
        "authorization": rb"type%3[dD]master%26ver%3[dD]1\.0%26sig%3[dD][A-Za-z0-9+/%]+%3[dD]",
        calls.ACTIVITY: rb"[!-~]{1,64}",
        options.CONTAINER_RID: rb"[!-~]+",
        "x-ms-session-token": rb"[0-9:#=,-]{1,500}",
    }
    fixed = frozenset({LEVEL})
    ignored = options.UNREAD | {"cache-control", "content-type", "x-ms-version"}

    def __init__(self, gateway: Gateway, call_of: Callable[[Request], calls.Call]) -> None:
        """`call_of`: who asks for what, of a request."""
        self._gateway, self._call_of, self._shared = gateway, call_of, gateway.shared
        self._level = gateway.settings.consistency
        # Whether answers are `Waiting`: for the writer, or for a database.
        self.waits = self.writes or gateway.settings.loop_reads
        self._containers: dict[bytes, Known] = {}

    def headers(self, place: calls.Headers) -> calls.Headers:
        """Those of an answer, with marks, given those that name the range."""
        return written_headers(BYTES_MARK, INTEGER_MARK, place)

    def accepts(self, request: Request) -> bool:
        """At another level than the account's it takes the general path."""
        is_placed = options.KEY in request.headers or options.KEY not in self.captured
        return is_placed and request.headers.get(LEVEL, self._level) == self._level

    def ask(self, known: Known, item: bytes, token: bytes, own: tuple[bytes, ...]) -> Asked:
        """`own`: the headers that only this kind captures, and the body."""
        raise NotImplementedError

    def outcome(self, known: Known, token: bytes, asked: tuple[Any, ...]) -> Outcome:
        raise NotImplementedError

    def otherwise(self, asked: tuple[Any, ...], request: Request) -> Response | None:
        return None  # nothing has happened

    def answer(
        self,
        lines: bytes,
        target: bytes,
        names: bytes,
        item: bytes,
        date: bytes,
        authorization: bytes,
        activity: bytes,
        rid: bytes,
        token: bytes,
        *own: bytes,
    ) -> bytes | Waiting | None:
        shared, link = self._shared, target[1:] if item else names
        now_s, signature = self._gateway.wall_ms() // 1000, authorization[SIGNATURE]
        try:
            if shared.cells[FAULTS] or (shared.polls and shared.is_due):
                return None
            if not self._gateway.keyring.is_first(self.signed, link, date, signature, now_s):
                return None
            known = self._containers.get(names)
            if known is None or known.store.known_state is not known.state:
                known = self._keep_container(names)
            if known is None or (rid and rid != known.rid):
                return None
            future, asked = self.ask(known, item, token, own)
        except (DbError, SpaceGone, MayNotWait):
            return None
        if future is None:
            return self._filled(known, activity, token, asked, lines)
        filled = partial(self._filled, known, activity, token, asked)
        return Waiting(future, filled, partial(self.otherwise, asked))

    def _filled(
        self, known: Known, activity: bytes, token: bytes, asked: tuple[Any, ...], lines: bytes
    ) -> bytes | None:
        try:
            status, ru, values, form, body = self.outcome(known, token, asked)
        except (DbError, SpaceGone, MayNotWait):
            return None
        charge = known.kept.get(ru) or keep(known.kept, ru, calls.format_charge(ru).encode())
        activity = activity or new_activity().encode()
        return form % (status, activity, charge, *values, lines, len(body)) + body

    def _keep_container(self, names: bytes) -> Known | None:
        """None: the general path has not met it yet, or a database would be asked."""
        _, database, _, name = names.decode().split("/")
        store = self._gateway.known_container(database, name)
        if store is None or (self._shared.polls and store.known_state is None):
            return None
        store = store.strong if self._level in STRONG else store
        headers = self.headers(item_headers(store, PLACE_MARK, PLACE_MARK, PLACE_MARK))
        form = form_of(calls.response_of(200, BYTES_MARK, BYTES_MARK, headers)).removeprefix(OK)
        form = (b"%b" + form).replace(b"%", b"%%").replace(PLACE_MARK.encode(), b"%d")
        state, rid = store.state, store.state.record.rid.encode()
        admit = store.meter.admit_here if store.meter is not None else lambda *asked, note: None
        return keep(self._containers, names, Known(store, state, rid, form, admit, {}, {}))

    def spot(self, known: Known, key: bytes) -> tuple[KeyValues, Spot]:
        values = parse_key_header(key.decode())
        found: tuple[KeyValues, Spot] = keep(known.kept, key, (values, known.state.spot(values)))
        return found

    def seen(self, known: Known, owner: Range, token: bytes, read: Any) -> tuple[Any, bytes]:
        """What an engine has read, or its future gives, the meta row first, and the form of its
        answer. None: it can't be read here."""
        if read is None or (self.waits and (read := read.result()) is None):
            raise MayNotWait
        if (place := known.places.get(read[0])) is None:
            (lsn, version), at = PROGRESS.unpack_from(read[0], FENCE_BYTES), owner.ordinal
            place = Seen(version, lsn), known.form % (at, version, lsn, at, lsn)
            keep(known.places, read[0], place, PLACES_MAX)
        if token:
            seen = known.kept.get(token) or keep(known.kept, token, parse_token(token.decode()))
            check_barrier(seen, owner, place[0])
        return read, place[1]


class PointReads(Decoder):
    method, has_body = "GET", False
    target = CONTAINER + rb"/(%b{1,128})" % NAME
    signed = b"get\ndocs\n"
    captured: Mapping[str, bytes] = {**Decoder.captured, **KEY_HEADER}

    def ask(self, known: Known, item: bytes, token: bytes, own: tuple[bytes, ...]) -> Asked:
        store, (_, spot) = known.store, known.kept.get(own[0]) or self.spot(known, own[0])
        ticket, owner = known.admit(known.state, spot[1], "read", note=False), spot[1]
        engine_read = store.engine.read_via_soon if self.waits else store.engine.read_via
        read: Any = engine_read(owner.space, spot[2] + item, DOC)
        return (read if self.waits else None), (spot, item, ticket, read)

    def outcome(self, known: Known, token: bytes, asked: tuple[Any, ...]) -> Outcome:
        spot, item, ticket, read = asked
        found, form = self.seen(known, spot[1], token, read)
        value, _, _, ru = known.store.read_at(spot, item, final=False, begun=(ticket, found))
        etag, lsn, text = shown(value)
        return OK, ru, (etag, lsn), form, text


class Creates(Decoder):
    writes = True
    captured: Mapping[str, bytes] = {**PointReads.captured, options.UPSERT: rb"[A-Za-z]+"}

    def operation(self, item: bytes, own: tuple[bytes, ...]) -> Operation:
        _, upsert, body = own
        return Operation("upsert" if upsert.lower() == b"true" else "create", body=body)

    def ask(self, known: Known, item: bytes, token: bytes, own: tuple[bytes, ...]) -> Asked:
        store, gateway = known.store, self._gateway
        values, spot = known.kept.get(own[0]) or self.spot(known, own[0])
        if (
            len(own[-1]) > BODY_BYTES_MAX
            or known.state.record.closed
            or is_left_to_server(store, values)
            or not gateway.engine.never_waits
            or (self._shared.polls and not gateway.knows_session(spot[1].space))
        ):
            raise MayNotWait
        operation = self.operation(item, own)
        ticket = known.admit(known.state, spot[1], operation.kind, note=False)
        sent = store.start(operation, values, ticket)
        return sent.future, (store, values, sent)

    def otherwise(self, asked: tuple[Any, ...], request: Request) -> Response | None:
        return ended(self._call_of(request), *asked)

    def outcome(self, known: Known, token: bytes, asked: tuple[Any, ...]) -> Outcome:
        (store, _, sent), gateway = asked, self._gateway
        if (
            sent.future.exception() is not None
            or store.known_state is not known.state  # the range may be another one now
            or (self._shared.polls and not gateway.knows_session(sent.owner.space))  # a failover
        ):
            raise MayNotWait
        done = store.finish(sent)
        assert done is not None
        at, version = sent.owner.ordinal, gateway.session_version(sent.owner.space)
        form = known.form % (at, version, done.lsn, at, done.lsn)
        return LINES[done.outcome], done.charge_ru, (done.etag.encode(), done.lsn), form, done.text


class Patches(Creates):
    """Without a condition, which is a query and may take its time."""

    method, target, signed = "PATCH", PointReads.target, b"patch\ndocs\n"
    captured = PointReads.captured

    def operation(self, item: bytes, own: tuple[bytes, ...]) -> Operation:
        found = patch_operation(item.decode(), calls.parse_json(own[-1]), None, 0)
        if found.condition is not None or not self._gateway.settings.quick_reads:
            raise MayNotWait  # it reads the item first
        return found


class Queries(Decoder):
    captured: Mapping[str, bytes] = {
        **Decoder.captured,
        options.RANGE_ID: rb"[0-9]{1,9}",
        "x-ms-max-item-count": rb"-?[0-9]{1,9}",
    }
    fixed = frozenset({LEVEL, options.CROSS_PARTITION, *options.QUERY})

    def headers(self, place: calls.Headers) -> calls.Headers:
        return page_headers(INTEGER_MARK, None, place)

    def accepts(self, request: Request) -> bool:
        given = options.Options(request.headers)
        is_placed = options.RANGE_ID in request.headers or given.flag(options.CROSS_PARTITION)
        return given.is_query and is_placed and super().accepts(request)

    def ask(self, known: Known, item: bytes, token: bytes, own: tuple[bytes, ...]) -> Asked:
        range_id, size, body = own
        store, state, ranges = known.store, known.state, known.state.table.ranges
        bounds: tuple[Any, ...] | None = known.kept.get(body)
        if bounds is None and len(body) <= QUERY_BYTES_MAX:
            bounds = keep(known.kept, body, self._bounds(known, body))
        owner = state.table.by_ordinal(int(range_id)) if range_id else ranges[0]
        items_max = check_page_size(int(size), PAGE_ITEMS_MAX) if size else PAGE_ITEMS_MAX
        if not bounds or owner is None or (len(ranges) > 1 and not range_id):
            raise MayNotWait
        ticket = known.admit(state, owner, "query", note=False)
        engine_read = store.engine.read_few_soon if self.waits else store.engine.read_few
        read: Any = engine_read(owner.space, *bounds)
        return (read if self.waits else None), (owner, items_max, ticket, read)

    def outcome(self, known: Known, token: bytes, asked: tuple[Any, ...]) -> Outcome:
        owner, size, ticket, read = asked
        found, form = self.seen(known, owner, token, read)
        texts, ru = self._rows_of(known.store, known.state, owner, size, ticket, *found)
        page = calls.feed_body(known.state.record.rid, DOCUMENTS, texts)
        return OK, ru, (len(texts),), form, page

    def _bounds(self, known: Known, body: bytes) -> tuple[Any, ...]:
        """Empty: the general path."""
        from armillary.query.run import quick as kind  # the first query of that path imports it

        self._rows_of = kind.rows_of
        text, parameters = parse_query_body(calls.parse_json(body))
        if text not in known.kept:
            keep(known.kept, text, kind.quick_of(text, known.state))
        quick = known.kept[text]
        return (None if quick is None else quick(parameters)) or ()
