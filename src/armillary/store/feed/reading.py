"""The change feed of a range: what changed after an LSN, in order. Facts: nosql-rest 7.

A position is (EPK range, LSN). It survives splits and merges, because it names hashes and not
partitions, and a child continues its parent's numbering. Order holds within a range, so within a
logical partition.

    latest        each item once, as it is now; deletes and versions in between are not seen
    all versions  every change within the retention, deletes too; can't start at the beginning

A page never divides a transaction: entries of one LSN come together, beyond the page size if need
be.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from armillary.budget import Budget
from armillary.encoding.documents import MOMENT, json_offset
from armillary.encoding.partition_key import KeyValues, key_of
from armillary.encoding.paths import format_path
from armillary.engine.base import Reader
from armillary.errors import BadInput
from armillary.limits import FEED_SCAN_ROWS_MAX, PAGE_BYTES_MAX
from armillary.store.catalog.state import ContainerState
from armillary.store.feed.log import current
from armillary.store.items.expiry import is_expired
from armillary.store.moves.floors import forgotten
from armillary.store.rows import layout
from armillary.store.rows.meta import unpack_meta
from armillary.store.rows.secondary import U64, Change, LogEntry, LogFlag, split_log_key, unpack_log
from armillary.values import JSON, UNDEFINED

SPENT_ROWS = 100  # that are taken from a budget at once
CHANGE_NAMES = {Change.CREATE: "create", Change.REPLACE: "replace", Change.DELETE: "delete"}


@dataclass(frozen=True, slots=True)
class FeedEntry:
    lsn: int
    change: str
    ts: int
    text: bytes
    """The item's JSON; for a delete `{"id", "partitionKey": [values]}`."""
    previous_lsn: int = 0
    expired: bool = False


@dataclass(frozen=True, slots=True)
class FeedSlice:
    entries: list[FeedEntry]
    lsn: int
    """Everything up to here has been given."""
    at_end: bool


@dataclass(frozen=True, slots=True)
class FeedScan:
    """What to read of one space: keys in [start, end), changes after `lsn`."""

    start: bytes
    end: bytes
    lsn: int
    limit: int
    default_ttl: int
    now_s: int
    budget: Budget


_Take: TypeAlias = Callable[[Reader, FeedScan, int, bytes, LogEntry], FeedEntry | None]


def read_latest(reader: Reader, scan: FeedScan) -> FeedSlice:
    return _read(reader, scan, _latest)


def read_all_versions(reader: Reader, scan: FeedScan, first: bytes, last: bytes) -> FeedSlice:
    """`first`, `last`: the same part of the ring as in the scan, as EPKs."""
    log_start = unpack_meta(reader.meta).log_start
    if scan.lsn < forgotten(reader, log_start, first, last):
        raise BadInput(
            "The position is older than the retention of the all-versions change feed. "
            "Start again from now."
        )
    return _read(reader, scan, _version)


def key_values(entry: FeedEntry, state: ContainerState) -> KeyValues:
    """The partition key value of the item that changed."""
    content = orjson.loads(entry.text)
    if entry.change == CHANGE_NAMES[Change.DELETE]:
        return tuple(UNDEFINED if one == {} else one for one in content["partitionKey"])
    return key_of(content, state.definition.partition_key, state.model.key)


def deleted_key(content: dict[str, Any], state: ContainerState) -> dict[str, JSON]:
    """The partition key of a deleted item by its paths. A level that the item lacked is absent."""
    paths, values = state.definition.partition_key.paths, content["partitionKey"]
    pairs = zip(paths, values, strict=False)
    return {format_path(path).lstrip("/"): value for path, value in pairs if value != {}}


def first_lsn_since(reader: Reader, ts: int, budget: Budget) -> int:
    """The last LSN before the first change at or after `ts`. LSN order is _ts order: bisect."""
    meta = unpack_meta(reader.meta)
    if meta.session >= 0:
        return _first_lsn_looking(reader, ts, budget)
    low, high = 0, meta.lsn
    while low < high:
        middle = (low + high) // 2
        start = layout.LOG + U64.pack(middle + 1)
        row = next(reader.scan(start, layout.after(layout.LOG), limit=1), None)
        if row is None or unpack_log(row[1]).ts >= ts:
            high = middle
        else:
            low = split_log_key(row[0])[0]
    return low


def _first_lsn_looking(reader: Reader, ts: int, budget: Budget) -> int:
    """The same in a range that was once merged: changes of its parents lie between each other, so
    the order of LSNs says nothing about time. Earlier changes may then be given too; none is
    missed."""
    for key, row in reader.scan(layout.LOG, layout.after(layout.LOG)):
        budget.spend()
        if unpack_log(row).ts >= ts:
            return split_log_key(key)[0] - 1
    return unpack_meta(reader.meta).lsn


def _read(reader: Reader, scan: FeedScan, take: _Take) -> FeedSlice:
    entries: list[FeedEntry] = []
    size_bytes = 0
    reached = scan.lsn
    rows = reader.scan(layout.LOG + U64.pack(scan.lsn + 1), layout.after(layout.LOG))
    for count, (key, row) in enumerate(rows):
        if not count % SPENT_ROWS:
            scan.budget.spend(SPENT_ROWS)
        lsn, rid = split_log_key(key)
        full = len(entries) >= scan.limit or size_bytes >= PAGE_BYTES_MAX
        if lsn != reached and (full or count >= FEED_SCAN_ROWS_MAX):
            return FeedSlice(entries, reached, False)
        reached = lsn
        entry = unpack_log(row)
        if scan.start <= entry.epk < scan.end:
            taken = take(reader, scan, lsn, rid, entry)
            if taken is not None:
                entries.append(taken)
                size_bytes += len(taken.text)
    return FeedSlice(entries, unpack_meta(reader.meta).lsn, True)


def _latest(
    reader: Reader, scan: FeedScan, lsn: int, rid: bytes, entry: LogEntry
) -> FeedEntry | None:
    if not entry.is_live:
        return None
    value = current(reader.get(layout.DOC + rid), lsn)
    if value is None:
        return None
    _, ts, ttl = MOMENT.unpack_from(value)
    if is_expired(ts, ttl, scan.default_ttl, scan.now_s):
        return None
    return _entry(lsn, entry, value[json_offset(value) :])


def _version(
    reader: Reader, scan: FeedScan, lsn: int, rid: bytes, entry: LogEntry
) -> FeedEntry | None:
    if entry.is_live:
        value = current(reader.get(layout.DOC + rid), lsn)
        return None if value is None else _entry(lsn, entry, value[json_offset(value) :])
    return _entry(lsn, entry, entry.payload)


def _entry(lsn: int, entry: LogEntry, text: bytes) -> FeedEntry:
    return FeedEntry(
        lsn,
        CHANGE_NAMES[entry.change],
        entry.ts,
        text,
        entry.previous_lsn,
        bool(entry.flags & LogFlag.EXPIRED),
    )
