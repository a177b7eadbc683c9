"""Reading items: one by its key and id, many at once, and page by page.

    point read    id → rid → item in one round trip of the engine (`ContainerStore.read_at`)
    read many     the same for a list, one snapshot per physical partition
    page          one logical partition in rid order (lr), or a whole range in rid order (doc)

Expired items are not there. An item of another key with the same hash is not there either.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import orjson

from armillary.budget import Budget
from armillary.encoding.documents import (
    BODY_BYTES,
    DIGEST_SLICE,
    EPK_AT,
    EPK_LENGTH_AT,
    MOMENT,
    json_offset,
    stored_etag,
)
from armillary.engine.base import Reader
from armillary.limits import PAGE_BYTES_MAX
from armillary.partition.ranges import Range
from armillary.store.items.expiry import is_expired
from armillary.store.items.requests import Key
from armillary.store.rows import layout
from armillary.store.rows.secondary import is_cut

CHUNK_ITEMS = 100  # looked up at once for a page


def body_bytes(value: bytes) -> int:
    """Of a stored item."""
    found: int = BODY_BYTES.unpack_from(value)[0]
    return found


# HOT: every item of a hop of a graph, so that no function is called for each.
def sizes_of(values: Sequence[bytes]) -> list[int]:
    """`body_bytes` of each."""
    size = BODY_BYTES.unpack_from
    return [size(value)[0] for value in values]


def texts_of(values: Sequence[bytes]) -> list[bytes]:
    """The JSON of each."""
    return [value[EPK_AT + value[EPK_LENGTH_AT] :] for value in values]


@dataclass(frozen=True, slots=True)
class Stored:
    """An item as it lies there: header and JSON in one value."""

    value: bytes

    @property
    def text(self) -> bytes:
        return self.value[json_offset(self.value) :]

    @property
    def etag(self) -> str:
        return stored_etag(self.value).decode()

    @property
    def lsn(self) -> int:
        return int(MOMENT.unpack_from(self.value)[0])

    @property
    def body_bytes(self) -> int:
        """Of the user's body: what reading it is charged by."""
        return body_bytes(self.value)

    @property
    def epk_key(self) -> bytes:
        return self.value[EPK_AT : EPK_AT + self.value[EPK_LENGTH_AT]]


Placed: TypeAlias = tuple[bytes, Range, bytes, float]
"""(stored item, the range it was read in, the meta row of the same snapshot, RU)"""


def is_live(value: bytes, default_ttl: int, now_s: int) -> bool:
    _, ts, ttl = MOMENT.unpack_from(value)
    return not is_expired(ts, ttl, default_ttl, now_s)


def read_many(
    reader: Reader,
    wanted: Sequence[tuple[Key, str, bytes]],
    default_ttl: int,
    now_s: int,
) -> list[Stored | None]:
    """The items of one space, in the order asked for; None where there is none."""
    values = read_values(reader, wanted, default_ttl, now_s)
    return [None if value is None else Stored(value) for value in values]


def read_values(
    reader: Reader,
    wanted: Sequence[tuple[Key, str, bytes]],
    default_ttl: int,
    now_s: int,
) -> list[bytes | None]:
    """The same as they are stored. HOT: every end of every hop of a graph."""
    rids = reader.get_many([layout.ID + key.epk_key + part for key, _, part in wanted])
    found = [rid for rid in rids if rid is not None]
    values = dict(zip(found, reader.get_many([layout.DOC + rid for rid in found]), strict=True))
    items: list[bytes | None] = []
    for (key, item_id, part), rid in zip(wanted, rids, strict=True):
        value = None if rid is None else values[rid]
        if value is not None and (
            value[DIGEST_SLICE] != key.digest
            or (default_ttl and not is_live(value, default_ttl, now_s))
            or (is_cut(part) and orjson.loads(Stored(value).text)["id"] != item_id)
        ):
            value = None
        items.append(value)
    return items


@dataclass(frozen=True, slots=True)
class Page:
    items: list[Stored]
    last_rid: bytes | None
    """Where to go on from; None when the end was reached."""


def page_of_key(
    reader: Reader,
    key: Key,
    after_rid: bytes,
    limit: int,
    default_ttl: int,
    now_s: int,
    budget: Budget,
) -> Page:
    """Items of one logical partition, from the one after `after_rid`, in rid order."""
    prefix = layout.LR + key.epk_key
    rows = reader.scan(prefix + after_rid + b"\x00", layout.after(prefix))
    rids = (row[len(prefix) :] for row, _ in rows)
    page = _PageMaker(limit)
    # A chunk at a time: an engine with round trips answers it in one. And one more than there is
    # room for, to know whether anything follows.
    while chunk := list(islice(rids, min(limit - len(page.items) + 1, CHUNK_ITEMS))):
        budget.spend(len(chunk))
        values = reader.get_many([layout.DOC + rid for rid in chunk])
        for rid, value in zip(chunk, values, strict=True):
            assert value is not None, "a rid without its item"
            is_wanted = value[DIGEST_SLICE] == key.digest and is_live(value, default_ttl, now_s)
            if is_wanted and not page.take(rid, value):
                return page.cut()
    return Page(page.items, None)


def page_of_range(
    reader: Reader,
    start: bytes,
    end: bytes,
    after_rid: bytes,
    limit: int,
    default_ttl: int,
    now_s: int,
    budget: Budget,
) -> Page:
    """Items of a space whose key lies in [start, end), in rid order."""
    rows = reader.scan(layout.DOC + after_rid + b"\x00", layout.after(layout.DOC))
    page = _PageMaker(limit)
    # Most may be of other keys, or expired.
    while chunk := list(islice(rows, min(limit - len(page.items) + 1, CHUNK_ITEMS))):
        budget.spend(len(chunk))
        for row, value in chunk:
            is_wanted = start <= Stored(value).epk_key < end and is_live(value, default_ttl, now_s)
            if is_wanted and not page.take(row[1:], value):
                return page.cut()
    return Page(page.items, None)


class _PageMaker:
    """Items until the page is full: by their number, or because the next would go beyond the size
    of an answer. The first always fits.
    """

    __slots__ = ("_last", "_limit", "_size_bytes", "items")

    def __init__(self, limit: int) -> None:
        self.items: list[Stored] = []
        self._limit = limit
        self._size_bytes = 0
        self._last = b""

    def take(self, rid: bytes, value: bytes) -> bool:
        """False, and not taken, when there is no room for it."""
        self._size_bytes += len(value)
        if len(self.items) >= self._limit or (self.items and self._size_bytes > PAGE_BYTES_MAX):
            return False
        self.items.append(Stored(value))
        self._last = rid
        return True

    def cut(self) -> Page:
        return Page(self.items, self._last)
