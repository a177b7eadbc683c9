"""Point reads, creates, patches and short queries, each a decoder of what `items/` asks of the
store.

    PointReads   as `items/single.py:read_item`       `ContainerStore.read_at`
    Creates      as `items/single.py:begin_create`    `ContainerStore.start`, then `finish`
    Patches      as `items/single.py:begin_patch`     the same
    Queries      as `items/queries.py:query_items`    what `query/run/quick.py` can answer

HOT: see `decoding.py`. All of it runs on the event loop: a few dozen microseconds each, queries
bounded by the number of index entries and the size of a page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from struct import Struct
from typing import Final

from armillary.api.core.fast import keep
from armillary.api.core.gateway import Gateway
from armillary.api.core.simple_query import parse_query_body
from armillary.api.http.encoding import BYTES_MARK, INTEGER_MARK, STATUS_LINES
from armillary.api.http.messages import Request
from armillary.api.nosql.call import Call, feed_body, parse_json
from armillary.api.nosql.fast.decoding import NAME, OK, Decoder, Known, Outcome, Own, Pending
from armillary.api.nosql.items.feeds import DOCUMENTS
from armillary.api.nosql.items.placing import is_left_to_server
from armillary.api.nosql.items.queries import page_headers
from armillary.api.nosql.items.single import STATUS, ended, patch_operation, written_headers
from armillary.api.nosql.options import CROSS_PARTITION, KEY, RANGE_ID, UPSERT, Options
from armillary.encoding.documents import EPK_AT, EPK_LENGTH_AT, ETAG_SLICE, LSN
from armillary.encoding.etags import etag_text
from armillary.encoding.partition_key import KeyValues, parse_key_header
from armillary.limits import PAGE_ITEMS_MAX
from armillary.partition.ranges import Range
from armillary.query.run.quick import NOT_QUICK, Asked, Found, quick_of
from armillary.store.items.containers import Sent
from armillary.store.items.paging import check_page_size
from armillary.store.items.preparation import Operation
from armillary.store.items.reading import Placed
from armillary.store.rows.meta import FENCE_BYTES

KEY_HEADER: Final = {KEY: rb"\[[ -~]*\]"}
LINES: Final = {outcome: STATUS_LINES[status].encode() for outcome, status in STATUS.items()}
TEXT_CHARACTERS_MAX: Final = 2_000  # of a query that is kept
PROGRESS: Final = Struct(">Qi")  # LSN and session version, the first counters of a meta row


class PointReads(Decoder):
    method = "GET"
    has_body = False
    target = rb"/((dbs/%b+/colls/%b+)/docs/(%b{1,128}))" % (NAME, NAME, NAME)
    signed = b"get\ndocs"
    captured: Mapping[str, bytes] = {**Decoder.captured, **KEY_HEADER}

    def headers(self, place: Mapping[str, str | None]) -> Mapping[str, str | None]:
        return written_headers(BYTES_MARK, INTEGER_MARK, place)

    def accepts(self, request: Request) -> bool:
        return KEY in request.headers and super().accepts(request)

    def ask(self, known: Known, item: bytes, token: bytes, own: Own) -> Outcome | Pending | None:
        (key,), store = own, known.store
        spot = known.kept.get(key)
        if spot is None:
            spot = keep(known.kept, key, known.state.spot(parse_key_header(key.decode())))
        if not self.waits:
            return self._outcome(token, store.read_at(spot, item, final=False))
        begun = store.begin_read_at(spot, item)
        if begun is None:
            return None
        return Pending(begun[0], lambda: self._outcome(token, store.end_read_at(spot, item, begun)))

    def _outcome(self, token: bytes, found: Placed) -> Outcome:
        value, owner, meta, ru = found
        lsn, version = PROGRESS.unpack_from(meta, FENCE_BYTES)
        if token:
            self.check_session(token, owner, version, lsn)
        own = etag_text(value[ETAG_SLICE]).encode(), LSN.unpack_from(value)[0]
        return OK, ru, own, owner.ordinal, version, lsn, value[EPK_AT + value[EPK_LENGTH_AT] :]


class Creates(Decoder):
    captured: Mapping[str, bytes] = {**Decoder.captured, **KEY_HEADER, UPSERT: rb"[A-Za-z]+"}
    headers = PointReads.headers

    def __init__(
        self, gateway: Gateway, call_of: Callable[[Request], Call], bytes_max: int
    ) -> None:
        """`call_of`: who asks for what, of a request. `bytes_max`: of a body."""
        super().__init__(gateway)
        self.waits = True
        self._call_of = call_of
        self._bytes_max = bytes_max

    def accepts(self, request: Request) -> bool:
        return KEY in request.headers

    def ask(self, known: Known, item: bytes, token: bytes, own: Own) -> Outcome | Pending | None:
        key, body = own[0], own[-1]
        store, gateway = known.store, self._gateway
        kept = known.kept.get(key) or self._keep_key(known, key)
        if kept is None or len(body) > self._bytes_max or not gateway.engine.never_waits:
            return None
        values, owner = kept
        if self._polls and not gateway.knows_session(owner.space):
            return None
        operation, ticket = self.operation(item, own), None
        if operation is None:
            return None
        if store.meter is not None:
            ticket = store.meter.admit_here(known.state, owner, operation.kind, note=False)
            if ticket is None:
                return None
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
        store, space = known.store, sent.owner.space
        if sent.future.exception() is not None or store.known_state is not known.state:
            return None  # refused, or the range may be another one now
        if self._polls and not self._gateway.knows_session(space):
            return None  # there was a failover, and the database would be asked
        done = store.finish(sent)
        assert done is not None
        own, lsn = (done.etag.encode(), done.lsn), done.lsn
        version, ordinal = self._gateway.session_version(space), sent.owner.ordinal
        return LINES[done.outcome], done.charge_ru, own, ordinal, version, lsn, done.text

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

    method = "PATCH"
    target = PointReads.target
    signed = b"patch\ndocs"
    captured: Mapping[str, bytes] = {**Decoder.captured, **KEY_HEADER}

    def operation(self, item: bytes, own: Own) -> Operation | None:
        asked = parse_json(own[-1])
        if type(asked) is not dict or "condition" in asked:
            return None
        if not self._gateway.settings.quick_reads:  # it reads the item first
            return None
        return patch_operation(item.decode(), asked, None, 0)


class Queries(Decoder):
    captured: Mapping[str, bytes] = {
        **Decoder.captured,
        RANGE_ID: rb"[0-9]{1,9}",
        "x-ms-max-item-count": rb"-?[0-9]{1,9}",
    }
    fixed = Decoder.fixed | {"x-ms-documentdb-isquery", "x-ms-documentdb-query", CROSS_PARTITION}
    ignored = Decoder.ignored | {"x-ms-documentdb-query-parallelizecrosspartitionquery"}

    def headers(self, place: Mapping[str, str | None]) -> Mapping[str, str | None]:
        return page_headers(INTEGER_MARK, None, place)

    def accepts(self, request: Request) -> bool:
        options = Options(request.headers)
        is_placed = RANGE_ID in request.headers or options.flag(CROSS_PARTITION)
        return options.is_query and is_placed and super().accepts(request)

    def ask(self, known: Known, item: bytes, token: bytes, own: Own) -> Outcome | Pending | None:
        range_id, size, body = own
        state, (text, parameters) = known.state, parse_query_body(parse_json(body))
        query = known.kept.get(text)
        if query is None:
            if len(text) > TEXT_CHARACTERS_MAX:
                return None
            query = keep(known.kept, text, quick_of(text, state) or NOT_QUICK)
        ranges = state.table.ranges
        owner = state.table.by_ordinal(int(range_id)) if range_id else ranges[0]
        items_max = check_page_size(int(size or -1), PAGE_ITEMS_MAX)
        bounds = query.bounds(parameters)
        if bounds is None or owner is None or (len(ranges) > 1 and not range_id):
            return None
        check = partial(self.check_session, token, owner) if token else None
        asked = Asked(known.store, state, owner, bounds, items_max, check)
        begun = asked.begin(soon=self.waits)
        if begun is None:
            return None
        read, ticket = begun
        if isinstance(read, tuple):
            return self._outcome(known, owner, asked.found(read, ticket))
        return Pending(
            read, lambda: self._outcome(known, owner, asked.found(read.result(), ticket))
        )

    @staticmethod
    def _outcome(known: Known, owner: Range, found: Found | None) -> Outcome | None:
        if found is None:
            return None
        texts, version, lsn, ru = found
        page = feed_body(known.state.record.rid, DOCUMENTS, texts)
        return OK, ru, (len(texts),), owner.ordinal, version, lsn, page
