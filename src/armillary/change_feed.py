"""The change feed of a container in process: pages of changes, and where a page begins.

A feed is read over a part of the ring: all of it, a range of hashes, or one partition key. The
entries and positions are those of `store/`; here they become items, and texts that a program keeps
between two pages. `Container.read_change_feed` is what programs call.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, TypeAlias

import orjson

from armillary.encoding.hashing import locate, parse_epk_hex, prefix_range
from armillary.encoding.partition_key import KeyValues, check_key
from armillary.errors import BadInput
from armillary.limits import PAGE_ITEMS_DEFAULT
from armillary.partition.ranges import EPK_MAX, EPK_MIN
from armillary.store.feed.reading import FeedEntry, deleted_key
from armillary.store.items import paging
from armillary.store.items.containers import ContainerStore
from armillary.store.items.positions import (
    Kind,
    Position,
    Segment,
    decode_position,
    encode_position,
)
from armillary.values import JSON

FeedMode: TypeAlias = Literal["latest", "all_versions"]
FeedStart: TypeAlias = Literal["beginning", "now"] | datetime

FEED_KINDS: Final[dict[str, Kind]] = {"latest": "latest", "all_versions": "versions"}


@dataclass(frozen=True, slots=True)
class FeedPage:
    """Changes, and where to go on. `at_end`: nothing newer in any range at that moment."""

    items: list[dict[str, JSON]]
    continuation: str
    at_end: bool


@dataclass(frozen=True, slots=True)
class FeedRange:
    """A range of hashes; the container has one per physical partition."""

    start: str
    end: str


def read_page(
    store: ContainerStore,
    continuation: str | None,
    start: FeedStart,
    mode: FeedMode,
    key: KeyValues | None,
    feed_range: FeedRange | None,
    max_items: int,
) -> FeedPage:
    """Without a continuation, the first page of what `key` or `feed_range` name, or of all."""
    limit = paging.check_page_size(max_items, PAGE_ITEMS_DEFAULT)
    if mode not in FEED_KINDS:
        raise BadInput(f"The change feed mode is 'latest' or 'all_versions', not '{mode}'.")
    kind = FEED_KINDS[mode]
    if continuation is not None:
        position = decode_position(continuation, [kind])
    else:
        first, last, digest = _scope(store, key, feed_range)
        position = replace(_first(store, kind, start, first, last), digest=digest)
    page, at_end = paging.read_feed(store, position, limit)
    assert page.position is not None
    if kind == "latest":
        items = [_latest(one) for one in page.items]
    else:
        items = [_version(store, one) for one in page.items]
    return FeedPage(items, encode_position(page.position), at_end)


def feed_ranges(store: ContainerStore) -> list[FeedRange]:
    ranges = store.refresh().table.ranges
    return [FeedRange(one.start.hex().upper(), one.end.hex().upper()) for one in ranges]


def _first(
    store: ContainerStore, kind: Kind, start: FeedStart, first: bytes, last: bytes
) -> Position:
    if kind == "versions" and start != "now":
        raise BadInput("The all-versions change feed starts from now or from a continuation.")
    if start == "now":
        return paging.feed_now(store, kind, first, last)
    if isinstance(start, datetime):
        return paging.feed_since(store, kind, int(start.timestamp()), first, last)
    if start != "beginning":
        raise BadInput("The change feed starts from 'beginning', 'now' or a datetime.")
    return Position(kind, (Segment(first, last, 0),))


def _scope(
    store: ContainerStore, given: KeyValues | None, feed_range: FeedRange | None
) -> tuple[bytes, bytes, bytes]:
    """Where to look, and the digest of the one key value that is wanted, if it is one."""
    if feed_range is not None:
        start, end = parse_epk_hex(feed_range.start), parse_epk_hex(feed_range.end)
        if not start < end <= EPK_MAX:
            raise BadInput(
                f"The feed range '{feed_range.start}' to '{feed_range.end}' is invalid: it "
                "must end after its start, and at 'FF' at the latest."
            )
        return start, end, b""
    if given is None:
        return EPK_MIN, EPK_MAX, b""
    definition = store.state.definition.partition_key
    key = check_key(given, definition, prefix_allowed=True)
    if len(key) < len(definition.paths) and not definition.system_key:
        return *prefix_range(key, definition), b""
    found, digest = locate(key, definition)
    return found, found + b"\x00", digest


def _latest(entry: FeedEntry) -> dict[str, JSON]:
    item: dict[str, JSON] = orjson.loads(entry.text)
    item["_lsn"] = entry.lsn
    return item


def _version(store: ContainerStore, entry: FeedEntry) -> dict[str, JSON]:
    metadata: dict[str, JSON] = {
        "operationType": entry.change,
        "lsn": entry.lsn,
        "crts": entry.ts,
    }
    if entry.previous_lsn:
        metadata["previousImageLSN"] = entry.previous_lsn
    content = orjson.loads(entry.text)
    if entry.change != "delete":
        return {"current": content, "metadata": metadata}
    key = deleted_key(content, store.state)
    metadata |= {"timeToLiveExpired": entry.expired, "id": content["id"], "partitionKey": key}
    return {"metadata": metadata}
