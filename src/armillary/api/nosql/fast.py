"""Fast paths from bytes to bytes. Each is a decoder of an operation that the general path asks the
store for, and a form of the answer that its encoder writes.

    groups of a template ──▶ signature ──▶ container ──▶ `ask`: the store ──▶ Outcome ──▶ form

    PointReads   as `items/single.py:read_item`       `ContainerStore.read_at`
    Creates      as `items/single.py:begin_create`    `ContainerStore.start`, then `finish`
    Patches      as `items/single.py:begin_patch`     the same
    Queries      as `items/queries.py:query_items`    what `query/run/quick.py` can answer

HOT: once per request, on the event loop; numbers in bench/http_cost.py. The general path is the
reference (tests/property/test_hot_*.py), and answers after every doubt: a miss, a moved range, a
token from the future, a signature that is not the first key's. Texts that clients repeat are looked
up instead of read again; the signature of every request is computed.
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
from armillary.api.core.simple_query import parse_query_body
from armillary.api.http.encoding import BYTES_MARK, INTEGER_MARK, STATUS_LINES, form_of
from armillary.api.http.messages import Request, Response, Waiting
from armillary.api.nosql import call as calls
from armillary.api.nosql import options
from armillary.api.nosql.items.feeds import DOCUMENTS
from armillary.api.nosql.items.placing import STRONG, is_left_to_server, item_headers
from armillary.api.nosql.items.queries import page_headers
from armillary.api.nosql.items.sessions import Seen, check_barrier, parse_token
from armillary.api.nosql.items.single import STATUS, ended, patch_operation, written_headers
from armillary.clock import MayNotWait
from armillary.encoding.documents import LSN, json_offset, stored_etag
from armillary.encoding.partition_key import KeyValues, parse_key_header
from armillary.engine.base import SpaceGone
from armillary.errors import DbError
from armillary.limits import PAGE_ITEMS_MAX
from armillary.partition.ranges import Range
from armillary.query.run.quick import Bounds, Found, begin, find, quick_of
from armillary.store.catalog.controls import FAULTS
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore, Sent
from armillary.store.items.paging import check_page_size
from armillary.store.items.preparation import Operation
from armillary.store.items.reading import Placed
from armillary.store.rows.meta import FENCE_BYTES

KEY_HEADER: Final = {options.KEY: rb"\[[ -~]*\]"}
NAME: Final = rb"[A-Za-z0-9_.~!$&'()*+,;=:@-]"  # nothing that is escaped, cut or special in a path
CONTAINER: Final = rb"/(dbs/%b+/colls/%b+)/docs" % (NAME, NAME)
SIGNATURE: Final = slice(len("type%3dmaster%26ver%3d1.0%26sig%3d"), -3)
LEVEL: Final = "x-ms-consistency-level"
LINES: Final = {outcome: STATUS_LINES[status].encode() for outcome, status in STATUS.items()}
OK: Final = LINES["read"]
QUERY_BYTES_MAX: Final = 2_000  # of one that is kept
PLACE_LINE: Final = b"x-ms-session-token: "  # the first of those that say which range answered
LAST_LINES: Final = b"%bContent-Length"  # the first that are not the service's
PROGRESS: Final = Struct(">Qi")  # LSN and session version, the first counters of a meta row


class Known(NamedTuple):
    """A container as its link names it, for as long as its state is this one."""

    store: ContainerStore
    """At the prices of the level that requests read at."""
    state: ContainerState
    rid: bytes
    form: bytes
    """Of an answer; the status line is its first value, the lines of its place are one."""
    place: bytes
    """Form of those lines: range, session version, LSN."""
    places: dict[tuple[int, int, int], bytes]
    kept: dict[Any, Any]
    """What a decoder reads once: by the text of a key header, or the body of a query."""


Outcome: TypeAlias = tuple[bytes, float, tuple[Any, ...], Range, int, int, bytes]
"""What an operation gave: status line, RU, values of the headers that only its answers have, range,
session version, LSN, body."""


Own: TypeAlias = tuple[bytes, ...]
"""Of a request: the headers that only its kind captures, and the body."""


class Pending(NamedTuple):
    """An operation that waits for nothing but `future`: then `end` gives its outcome, or None for
    `otherwise` to answer."""

    future: Future[Any]
    end: Callable[[], Outcome | None]
    otherwise: Callable[[Request], Response | None] = lambda request: None


class Decoder:
    """A fast path of `api/http/messages.py`."""

    method, has_body, writes = "POST", True, False
    target = CONTAINER + rb"/?()"
    signed = b"post\ndocs\n"  # method and type of the resource
    captured: Mapping[str, bytes] = {
        "x-ms-date": DATE,
        "authorization": rb"type%3[dD]master%26ver%3[dD]1\.0%26sig%3[dD][A-Za-z0-9+/%]+%3[dD]",
        calls.ACTIVITY: rb"[!-~]{1,64}",
        options.CONTAINER_RID: rb"[!-~]+",
        "x-ms-session-token": rb"[0-9:#=,-]+",
    }
    fixed = frozenset({LEVEL})
    #: Sent by SDKs and read by nothing here, whatever they say.
    ignored = frozenset(
        {
            "cache-control",
            "content-type",
            "x-ms-client-id",
            "x-ms-cosmos-correlated-activityid",
            "x-ms-cosmos-sdk-supportedcapabilities",
            "x-ms-documentdb-query-iscontinuationexpected",
            "x-ms-thinclient-proxy-operation-type",
            "x-ms-thinclient-proxy-resource-type",
            "x-ms-version",
        }
    )

    def __init__(self, gateway: Gateway, call_of: Callable[[Request], calls.Call]) -> None:
        """`call_of`: who asks for what, of a request."""
        self._gateway = gateway
        self._call_of = call_of
        self._faults = gateway.shared.cells
        self._polls = gateway.shared.polls
        self._is_signed = gateway.keyring.is_first
        self._wall_ms = gateway.wall_ms
        self._level = gateway.settings.consistency
        # Whether answers are `Waiting`: for the writer, or for a database.
        self.waits = self.writes or gateway.settings.loop_reads
        self._containers: dict[bytes, Known] = {}
        self._tokens: dict[bytes, dict[int, Seen]] = {}
        self._charges: dict[float, bytes] = {}

    def headers(self, place: calls.Headers) -> calls.Headers:
        """Those of an answer, with marks, given those that name the range."""
        return written_headers(BYTES_MARK, INTEGER_MARK, place)

    def accepts(self, request: Request) -> bool:
        """At another level than the account's it takes the general path."""
        is_placed = options.KEY in request.headers or options.KEY not in self.captured
        return is_placed and request.headers.get(LEVEL, self._level) == self._level

    def ask(self, known: Known, item: bytes, token: bytes, own: Own) -> Outcome | Pending | None:
        """The operation, asked of the store. None, DbError, SpaceGone, MayNotWait: the general path
        answers."""
        raise NotImplementedError

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
        try:
            if self._faults[FAULTS] or (self._polls and self._gateway.shared.is_due):
                return None
            link, signature = target[1:] if item else names, authorization[SIGNATURE]
            if not self._is_signed(self.signed, link, date, signature, self._wall_ms() // 1000):
                return None
            known = self._containers.get(names)
            if known is None or known.store.known_state is not known.state:
                known = self._keep_container(names)
            if known is None or (rid and rid != known.rid):
                return None
            found = self.ask(known, item, token, own)
        except (DbError, SpaceGone, MayNotWait):
            return None
        if not isinstance(found, Pending):
            return None if found is None else self._filled(known, activity, found, lines)
        future, end, otherwise = found
        return Waiting(future, partial(self._end, known, activity, end), otherwise)

    def _end(
        self, known: Known, activity: bytes, end: Callable[[], Outcome | None], lines: bytes
    ) -> bytes | None:
        try:
            found = end()
        except (DbError, SpaceGone):
            return None
        return None if found is None else self._filled(known, activity, found, lines)

    def _filled(self, known: Known, activity: bytes, found: Outcome, lines: bytes) -> bytes:
        status, ru, own, owner, version, lsn, body = found
        charge = self._charges.get(ru) or keep(self._charges, ru, calls.format_charge(ru).encode())
        ordinal, activity = owner.ordinal, activity or new_activity().encode()
        at = ordinal, version, lsn
        place = known.places.get(at) or keep(known.places, at, known.place % (*at, ordinal, lsn))
        return known.form % (status, activity, charge, *own, place, lines, len(body), body)

    def _keep_container(self, names: bytes) -> Known | None:
        """None: the general path has not met it yet, or a database would be asked."""
        _, database, _, name = names.decode().split("/")
        store = self._gateway.known_container(database, name)
        if store is None or (self._polls and store.known_state is None):
            return None
        store = store.strong if self._level in STRONG else store
        state, place = store.state, item_headers(store, INTEGER_MARK, INTEGER_MARK, INTEGER_MARK)
        form = form_of(calls.response_of(200, BYTES_MARK, BYTES_MARK, self.headers(place)))
        own, line, rest = form.removeprefix(OK).partition(PLACE_LINE)
        lines, last, rest = rest.partition(LAST_LINES)
        form, rid = b"%b" + own + b"%b" + last + rest, state.record.rid.encode()
        known = Known(store, state, rid, form, line + lines, {}, {})
        return keep(self._containers, names, known)

    def check_session(self, token: bytes, owner: Range, version: int, lsn: int) -> None:
        """As the general path: raises what it raises if the client has seen more than is here."""
        seen = self._tokens.get(token) or keep(self._tokens, token, parse_token(token.decode()))
        check_barrier(seen, owner, Seen(version, lsn))


class PointReads(Decoder):
    method, has_body = "GET", False
    target = CONTAINER + rb"/(%b{1,128})" % NAME
    signed = b"get\ndocs\n"
    captured: Mapping[str, bytes] = {**Decoder.captured, **KEY_HEADER}

    def ask(self, known: Known, item: bytes, token: bytes, own: Own) -> Outcome | Pending | None:
        (key,), store = own, known.store
        spot = known.kept.get(key)
        if spot is None:
            spot = keep(known.kept, key, known.state.spot(parse_key_header(key.decode())))
        if not self.waits:
            return self._outcome(token, store.read_at(spot, item, final=False))
        future, end = store.begin_read_at(spot, item)
        return Pending(future, lambda: self._outcome(token, end()))

    def _outcome(self, token: bytes, found: Placed) -> Outcome:
        value, owner, meta, ru = found
        lsn, version = PROGRESS.unpack_from(meta, FENCE_BYTES)
        if token:
            self.check_session(token, owner, version, lsn)
        own = stored_etag(value), LSN.unpack_from(value)[0]
        return OK, ru, own, owner, version, lsn, value[json_offset(value) :]


class Creates(Decoder):
    writes = True
    captured: Mapping[str, bytes] = {
        **Decoder.captured,
        **KEY_HEADER,
        options.UPSERT: rb"[A-Za-z]+",
    }

    def ask(self, known: Known, item: bytes, token: bytes, own: Own) -> Outcome | Pending | None:
        key, body, store, gateway = own[0], own[-1], known.store, self._gateway
        kept = known.kept.get(key) or self._keep_key(known, key)
        if kept is None or len(body) > BODY_BYTES_MAX or not gateway.engine.never_waits:
            return None
        values, owner = kept
        operation = self.operation(item, own)
        if operation is None or (self._polls and not gateway.knows_session(owner.space)):
            return None
        ticket = store.admit_here(known.state, owner, operation.kind)
        sent = store.start(operation, values, ticket)
        return Pending(
            sent.future,
            partial(self._outcome, known, sent),
            lambda request: ended(self._call_of(request), store, values, sent),
        )

    def operation(self, item: bytes, own: Own) -> Operation | None:
        """None: the general path."""
        _, upsert, body = own
        return Operation("upsert" if upsert.lower() == b"true" else "create", body=body)

    def _outcome(self, known: Known, sent: Sent) -> Outcome | None:
        store, owner, gateway = known.store, sent.owner, self._gateway
        if sent.future.exception() is not None or store.known_state is not known.state:
            return None  # refused, or the range may be another one now
        if self._polls and not gateway.knows_session(owner.space):
            return None  # there was a failover, and the database would be asked
        done = store.finish(sent)
        assert done is not None
        own, version = (done.etag.encode(), done.lsn), gateway.session_version(owner.space)
        return LINES[done.outcome], done.charge_ru, own, owner, version, done.lsn, done.text

    @staticmethod
    def _keep_key(known: Known, key: bytes) -> tuple[KeyValues, Range] | None:
        """None: the header alone does not say where an item goes, or nothing may be written."""
        values, state = parse_key_header(key.decode()), known.state
        is_computed = state.definition.synthetic_key is not None
        if is_computed or state.record.closed or is_left_to_server(known.store, values):
            return None
        found = values, state.spot(values)[1]
        keep(known.kept, key, found)
        return found


class Patches(Creates):
    """Without a condition, which is a query and may take its time."""

    method, target, signed = "PATCH", PointReads.target, b"patch\ndocs\n"
    captured = PointReads.captured

    def operation(self, item: bytes, own: Own) -> Operation | None:
        if not self._gateway.settings.quick_reads:  # it reads the item first
            return None
        found = patch_operation(item.decode(), calls.parse_json(own[-1]), None, 0)
        return found if found.condition is None else None


class Queries(Decoder):
    captured: Mapping[str, bytes] = {
        **Decoder.captured,
        options.RANGE_ID: rb"[0-9]{1,9}",
        "x-ms-max-item-count": rb"-?[0-9]{1,9}",
    }
    fixed = frozenset(
        {LEVEL, options.CROSS_PARTITION, "x-ms-documentdb-isquery", "x-ms-documentdb-query"}
    )
    ignored = Decoder.ignored | {"x-ms-documentdb-query-parallelizecrosspartitionquery"}

    def headers(self, place: calls.Headers) -> calls.Headers:
        return page_headers(INTEGER_MARK, None, place)

    def accepts(self, request: Request) -> bool:
        given = options.Options(request.headers)
        is_placed = options.RANGE_ID in request.headers or given.flag(options.CROSS_PARTITION)
        return given.is_query and is_placed and super().accepts(request)

    def ask(self, known: Known, item: bytes, token: bytes, own: Own) -> Outcome | Pending | None:
        range_id, size, body = own
        state, ranges = known.state, known.state.table.ranges
        bounds = known.kept.get(body)
        if bounds is None and len(body) <= QUERY_BYTES_MAX:
            bounds = keep(known.kept, body, self._bounds(known, body))
        owner = state.table.by_ordinal(int(range_id)) if range_id else ranges[0]
        items_max = check_page_size(int(size), PAGE_ITEMS_MAX) if size else PAGE_ITEMS_MAX
        if not bounds or owner is None or (len(ranges) > 1 and not range_id):
            return None
        check = partial(self.check_session, token, owner) if token else None
        asked = known.store, state, owner, bounds, items_max, check
        if not self.waits:
            return self._outcome(known, owner, find(asked))
        future, end = begin(asked)
        return Pending(future, lambda: self._outcome(known, owner, end()))

    @staticmethod
    def _bounds(known: Known, body: bytes) -> Bounds | tuple[()]:
        """Empty: the general path."""
        text, parameters = parse_query_body(calls.parse_json(body))
        if text not in known.kept:
            keep(known.kept, text, quick_of(text, known.state))
        quick = known.kept[text]
        return (None if quick is None else quick(parameters)) or ()

    @staticmethod
    def _outcome(known: Known, owner: Range, found: Found | None) -> Outcome | None:
        if found is None:
            return None
        texts, version, lsn, ru = found
        page = calls.feed_body(known.state.record.rid, DOCUMENTS, texts)
        return OK, ru, (len(texts),), owner, version, lsn, page
