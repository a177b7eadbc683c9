"""Lists of items and the change feed. Facts: nosql-rest 2.1, 7.

    GET docs                            every item, page by page; the token names hashes, not ranges
    GET docs, A-IM: Incremental Feed    what changed, each item once, as it is now
    GET docs, A-IM: Full-Fidelity Feed  every version, deletes too

The position in a change feed is its etag. Of one range it is the quoted LSN, which both children of
a split understand because they go on with its numbers; of several ranges it is a text of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import orjson

from armillary.api.http.messages import Response
from armillary.api.nosql.call import Call, feed_body, quoted, reply
from armillary.api.nosql.items.placing import (
    Slice,
    at_level,
    barrier_of,
    place_headers,
    read_store_of,
    session_headers,
    session_of,
    slice_of,
)
from armillary.api.nosql.items.sessions import check_barrier, seen_of
from armillary.api.nosql.options import FULL_FIDELITY
from armillary.encoding.documents import BODY_BYTES
from armillary.encoding.partition_key import KeyValues
from armillary.errors import BadInput, RangeGone
from armillary.limits import PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX
from armillary.partition.ranges import Range
from armillary.partition.request_units import feed_ru
from armillary.store.feed.reading import FeedEntry, deleted_key
from armillary.store.items.containers import ContainerStore
from armillary.store.items.paging import (
    feed_cost,
    feed_now,
    feed_since,
    read_feed,
    read_items,
    read_items_of_key,
)
from armillary.store.items.positions import (
    Kind,
    Position,
    Segment,
    decode_position,
    encode_position,
)
from armillary.store.items.reading import Stored
from armillary.store.rows.meta import unpack_meta
from armillary.units import whole_number

DOCUMENTS: Final = "Documents"
NOW: Final = "*"


def page_limit(size: int) -> int:
    return PAGE_ITEMS_MAX if size == -1 else size


def list_items(call: Call) -> Response:
    return at_level(call, partial(_list_items, call))


def _list_items(call: Call, store: ContainerStore) -> Response:
    size = call.options.page_size
    limit = PAGE_ITEMS_DEFAULT if "x-ms-max-item-count" not in call.options.headers else size
    limit = page_limit(limit)
    token = call.options.continuation
    part = slice_of(call, store)
    check_session(call, store, part)
    key = full_key(call, store)
    if key is not None:
        position = None if token is None else decode_position(token, ("key",))
        page = read_items_of_key(store, key, position, limit, call.budget)
    else:
        position = whole_of(part) if token is None else _within(part, token)
        if position is None:
            return _items(call, store, part, [], None)
        page = read_items(store, position, limit, call.budget)
    return _items(call, store, part, page.items, page.position)


def _items(
    call: Call,
    store: ContainerStore,
    part: Slice,
    found: Sequence[Stored],
    position: Position | None,
) -> Response:
    body = feed_body(store.state.record.rid, DOCUMENTS, (one.text for one in found))
    headers = {
        "x-ms-item-count": str(len(found)),
        "x-ms-continuation": None if position is None else encode_position(position),
        **slice_headers(call, store, part),
    }
    sizes = (BODY_BYTES.unpack_from(one.value)[0] for one in found)
    ru = feed_ru(sizes, profile=store.profile)
    return reply(call, 200, body, headers, ru=ru)


def full_key(call: Call, store: ContainerStore) -> KeyValues | None:
    """The partition key header when it names one logical partition, not a prefix."""
    key = call.options.key
    definition = store.state.definition.partition_key
    if key is None or call.options.epk_bounds is not None:
        return None
    return key if definition.system_key or len(key) == len(definition.paths) else None


def whole_of(part: Slice, kind: Kind = "items", at: int = 0) -> Position:
    return Position(kind, (Segment(part.start, part.end, at),))


def _within(part: Slice, token: str) -> Position | None:
    """A position from before, cut to what this request is about. None: nothing of it is left."""
    position = decode_position(token, ("items",))
    return cut_to(part, position)


def cut_to(part: Slice, position: Position) -> Position | None:
    kept = tuple(
        replace(one, start=max(one.start, part.start), end=min(one.end, part.end))
        for one in position.segments
        if one.start < part.end and part.start < one.end
    )
    return Position(position.kind, kept) if kept else None


# --- headers ------------------------------------------------------------------------------------


def owner_of(store: ContainerStore, part: Slice) -> Range | None:
    """The one range that a slice lies in."""
    owner = store.state.table.find(part.start)
    return owner if part.end <= owner.end or part.owner == owner else None


def slice_headers(call: Call, store: ContainerStore, part: Slice) -> dict[str, str | None]:
    """A range that was asked alone is named. Of several, the token has a part for each, so that a
    session goes on behind a query over all of them; no more parts than a header can hold."""
    owner = owner_of(store, part)
    if owner is not None:
        return place_headers(store, session_of(store, owner))
    return session_headers(call, store, store.state.table.overlapping(part.start, part.end))


def check_session(call: Call, store: ContainerStore, part: Slice) -> None:
    seen = barrier_of(call)
    if seen is None:
        return
    budget = call.budget
    for owner in store.state.table.overlapping(part.start, part.end):
        budget.check()
        store.look(
            owner.start,
            lambda state, at, reader: check_barrier(seen, at, seen_of(unpack_meta(reader.meta))),
        )


# --- change feed --------------------------------------------------------------------------------


def read_changes(call: Call) -> Response:
    store = read_store_of(call)
    part = slice_of(call, store)
    check_session(call, store, part)
    kind: Kind = "versions" if call.options.feed_mode == FULL_FIDELITY else "latest"
    limit = page_limit(call.options.page_size)
    position = _feed_position(call, store, part, kind)
    page, at_end = read_feed(store, position, limit, call.budget)
    assert page.position is not None, "a change feed has no end"
    if part.owner is not None and len(page.position.segments) > 1:
        raise RangeGone  # split while we read: one LSN can't say how far both children are
    etag = quoted(_etag_of(page.position))
    headers = {"etag": etag, **slice_headers(call, store, part)}
    if not page.items and at_end:
        return reply(call, 304, headers=headers, ru=feed_cost((), store.profile))
    texts = [_entry(store, kind, one) for one in page.items]
    body = feed_body(store.state.record.rid, DOCUMENTS, texts)
    ru = feed_cost(page.items, store.profile)
    return reply(call, 200, body, headers | {"x-ms-item-count": str(len(texts))}, ru=ru)


def _feed_position(call: Call, store: ContainerStore, part: Slice, kind: Kind) -> Position:
    given = call.options.if_none_match
    if given is not None and given.strip() != NOW:
        return _resumed(part, kind, given.strip().strip('"'))
    if given is not None:
        return feed_now(store, kind, part.start, part.end, call.budget)
    if kind == "versions":
        raise BadInput(
            "The all-versions change feed can't start at the beginning or at a time. You must read "
            "the change feed from within the retention period. Start it from now "
            "(If-None-Match: *) or from a continuation."
        )
    since = call.options.since
    if since is not None:
        return feed_since(store, kind, since, part.start, part.end, call.budget)
    return whole_of(part, kind)


def _resumed(part: Slice, kind: Kind, text: str) -> Position:
    lsn = whole_number(text)
    if lsn is not None:
        return whole_of(part, kind, lsn)
    position = cut_to(part, decode_position(text, (kind,)))
    if position is None:
        raise BadInput("Invalid Continuation Token")
    return position


def _etag_of(position: Position) -> str:
    if len(position.segments) == 1:
        return str(position.segments[0].at)
    return encode_position(position)


def _entry(store: ContainerStore, kind: Kind, entry: FeedEntry) -> bytes:
    if kind == "latest":
        return b'%b,"_lsn":%d}' % (entry.text[:-1], entry.lsn)
    about: dict[str, object] = {
        "operationType": entry.change,
        "lsn": entry.lsn,
        "crts": entry.ts,
    }
    if entry.previous_lsn:
        about["previousImageLSN"] = entry.previous_lsn
    if entry.change != "delete":
        return b'{"current":%b,"metadata":%b}' % (entry.text, orjson.dumps(about))
    gone = orjson.loads(entry.text)
    about |= {
        "timeToLiveExpired": entry.expired,
        "id": gone["id"],
        "partitionKey": deleted_key(gone, store.state),
    }
    return b'{"current":{},"metadata":%b}' % orjson.dumps(about)
