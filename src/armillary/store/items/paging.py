"""Reading a whole container, one of its logical partitions, or its change feed, page by page.

Each function takes a position and gives back a page and the next position. A page ends at its item
count, at its size, or at the end of a physical partition; an empty page with a next position is not
the end.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from armillary.budget import Budget, checked
from armillary.encoding.hashing import epk_key_bound, key_digest
from armillary.encoding.partition_key import KeyValues
from armillary.engine.base import Reader
from armillary.errors import BadInput
from armillary.partition.ranges import EPK_MAX, EPK_MIN, Range
from armillary.partition.request_units import Coefficients, feed_ru
from armillary.store.catalog.state import ContainerState
from armillary.store.feed import reading as feed
from armillary.store.items.containers import ContainerStore
from armillary.store.items.positions import Kind, Position, Segment, point, whole
from armillary.store.items.reading import Page, Stored, page_of_key, page_of_range
from armillary.store.items.requests import Key
from armillary.store.items.routing import key_in
from armillary.store.rows.meta import unpack_meta

T = TypeVar("T")

PAGE_SIZE_TEXT = (
    "The input PageSize {0} is invalid. Ensure to pass a valid page size which must be a positive "
    "integer or -1 for a dynamic page size."
)


@dataclass(frozen=True, slots=True)
class Paged(Generic[T]):
    items: Sequence[T]
    position: Position | None
    """Where to go on; None at the end (a change feed has none)."""


def check_page_size(limit: int, dynamic: int) -> int:
    if limit == -1:
        return dynamic
    if type(limit) is not int or limit < 1:
        raise BadInput(PAGE_SIZE_TEXT.format(limit))
    return limit


def read_items(
    store: ContainerStore, position: Position | None, limit: int, budget: Budget | None = None
) -> Paged[Stored]:
    """Every item of the container."""
    within = checked(budget)
    at = (position or whole("items")).cut(store.state.table)
    first = at.segments[0]

    def read(state: ContainerState, owner: Range, reader: Reader) -> Page | None:
        if first.end > owner.end:
            return None  # it was split since we cut: cut again
        start, end = bounds(state, first.start, first.end)
        ttl, now_s = state.definition.default_ttl, store.now_s()
        return page_of_range(reader, start, end, _rid(first.at), limit, ttl, now_s, within)

    page = store.look(first.start, read, cost=page_cost, operation="list")
    if page is None:
        return read_items(store, at, limit, within)
    return Paged(page.items, _after(at, page))


def read_items_of_key(
    store: ContainerStore,
    values: KeyValues,
    position: Position | None,
    limit: int,
    budget: Budget | None = None,
) -> Paged[Stored]:
    """Every item of one logical partition."""
    within = checked(budget)

    def read(state: ContainerState, key: Key, reader: Reader) -> Paged[Stored]:
        at = point(key_in(state, values)[0])
        if position is not None:
            if position.segments[0].start != at.segments[0].start:
                raise BadInput("Invalid Continuation Token")  # it belongs to another key
            at = position
        ttl, now_s = state.definition.default_ttl, store.now_s()
        page = page_of_key(reader, key, _rid(at.segments[0].at), limit, ttl, now_s, within)
        return Paged(page.items, _after(at, page))

    return store.look_at_key(values, read, cost=items_cost, operation="list")


def feed_now(
    store: ContainerStore,
    kind: Kind,
    start: bytes = EPK_MIN,
    end: bytes = EPK_MAX,
    budget: Budget | None = None,
) -> Position:
    """A position after everything that has happened."""

    def last(reader: Reader) -> int:
        return unpack_meta(reader.meta).lsn

    return _feed_from(store, kind, start, end, last, checked(budget))


def feed_since(
    store: ContainerStore,
    kind: Kind,
    ts: int,
    start: bytes = EPK_MIN,
    end: bytes = EPK_MAX,
    budget: Budget | None = None,
) -> Position:
    """A position before the first change at or after `ts` seconds."""
    within = checked(budget)

    def first(reader: Reader) -> int:
        return feed.first_lsn_since(reader, ts, within)

    return _feed_from(store, kind, start, end, first, within)


def read_feed(
    store: ContainerStore, position: Position, limit: int, budget: Budget | None = None
) -> tuple[Paged[feed.FeedEntry], bool]:
    """Changes after the position, and whether every range has been read to its end.

    Ranges take turns; a page has the changes of one range only.
    """
    budget = checked(budget)
    for _ in range(len(store.state.table.ranges) + len(position.segments)):
        budget.spend()
        position = position.cut(store.state.table)
        taken = _feed_slice(store, position, limit, budget)
        if taken is None:
            continue
        position = position.advanced(taken.lsn)
        if taken.entries:
            nxt = position if not taken.at_end else position.rotated()
            return Paged(taken.entries, nxt), False
        position = position.rotated()
        if not taken.at_end:
            return Paged([], position), False
    return Paged([], position), True


def _feed_slice(
    store: ContainerStore, position: Position, limit: int, budget: Budget
) -> feed.FeedSlice | None:
    first = position.segments[0]

    def read(state: ContainerState, owner: Range, reader: Reader) -> feed.FeedSlice | None:
        if first.end > owner.end:
            return None
        start, end = bounds(state, first.start, first.end)
        ttl = state.definition.default_ttl
        scan = feed.FeedScan(start, end, first.at, limit, ttl, store.now_s(), budget)
        if position.kind == "latest":
            return _only(state, position, feed.read_latest(reader, scan))
        if not state.definition.retention_s:
            raise BadInput(
                "The all-versions change feed needs a container with a changeFeedPolicy: "
                'create it with {"retentionDuration": minutes}.'
            )
        found = feed.read_all_versions(reader, scan, first.start, first.end)
        return _only(state, position, found)

    return store.look(first.start, read, cost=_slice_cost, operation="feed")


# A page costs what reading each of its items costs; one that had to be cut again costs nothing.


def page_cost(page: Page | None, profile: Coefficients) -> float:
    return 0.0 if page is None else feed_ru((one.body_bytes for one in page.items), profile=profile)


def items_cost(page: Paged[Stored], profile: Coefficients) -> float:
    return feed_ru((one.body_bytes for one in page.items), profile=profile)


def feed_cost(entries: Sequence[feed.FeedEntry], profile: Coefficients) -> float:
    return feed_ru((len(one.text) for one in entries), profile=profile)


def _slice_cost(taken: feed.FeedSlice | None, profile: Coefficients) -> float:
    return 0.0 if taken is None else feed_cost(taken.entries, profile)


def _only(state: ContainerState, position: Position, found: feed.FeedSlice) -> feed.FeedSlice:
    """The entries of the key value that the position is about: the EPK alone does not tell."""
    if not position.digest:
        return found
    definition = state.definition.partition_key
    entries = [
        entry
        for entry in found.entries
        if key_digest(feed.key_values(entry, state), definition) == position.digest
    ]
    return replace(found, entries=entries)


def bounds(state: ContainerState, start: bytes, end: bytes) -> tuple[bytes, bytes]:
    definition = state.definition.partition_key
    return epk_key_bound(start, definition), epk_key_bound(end, definition)


def _rid(number: int) -> bytes:
    return number.to_bytes(8, "big") if number else b""


def _after(at: Position, page: Page) -> Position | None:
    if page.last_rid is not None:
        return at.advanced(int.from_bytes(page.last_rid, "big"))
    return at.without_first()


def _feed_from(
    store: ContainerStore,
    kind: Kind,
    start: bytes,
    end: bytes,
    lsn: Callable[[Reader], int],
    budget: Budget,
) -> Position:
    def read(state: ContainerState, owner: Range, reader: Reader) -> tuple[bytes, int]:
        return owner.end, lsn(reader)

    segments: list[Segment] = []
    while start < end:
        budget.spend()
        # Each answer says how far it reaches: our picture of the ranges may be old.
        reach, found = store.look(start, read)
        segments.append(Segment(start, min(end, reach), found))
        start = reach
    return Position(kind, tuple(segments))
