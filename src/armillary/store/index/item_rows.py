"""The rows of one item in the indexes, and which of them a write changes.

An entry becomes a row by the rid of the item behind it; rows of unique keys and of expiry have a
form of their own.
"""

from typing import NamedTuple

import msgspec

from armillary.encoding.documents import Header
from armillary.store.index.entries import Entries, IndexPlan, stamp
from armillary.store.rows import layout
from armillary.store.rows.secondary import expiry_key


class Indexed(NamedTuple):
    """What an item has in the indexes: entries that are its rid away from a row, and the rest."""

    plan: IndexPlan | None
    entries: Entries
    rid: bytes
    epk: bytes
    rest: dict[bytes, bytes]
    size_bytes: int

    @property
    def rows(self) -> dict[bytes, bytes]:
        return {entry + self.rid: self.epk for entry in self.entries.ix} | self.rest


class Moved(msgspec.Struct, frozen=True, gc=False):
    """What a replace changes in the indexes: rows (None: deleted), how much larger they are, and
    the leaves that went and came."""

    rows: dict[bytes, bytes | None]
    size_bytes: int
    leaves_removed: int
    leaves_added: int
    shapes: tuple[Indexed, Indexed] | None = None
    """Both versions, if their paths may differ."""


NOTHING_INDEXED = Indexed(None, Entries(shape=b""), b"", b"", {}, 0)


def changed_rows(was: Indexed, now: Indexed) -> dict[bytes, bytes | None]:
    """None: a row that only the old version has. Without asking whether it is there: of a row in
    runs that would be a search."""
    before, after = frozenset(was.entries.ix), frozenset(now.entries.ix)
    rows: dict[bytes, bytes | None] = {entry + was.rid: None for entry in before - after}
    rows |= dict.fromkeys(was.rest.keys() - now.rest.keys())
    rows |= {entry + now.rid: now.epk for entry in after - before}
    # A vector may change under its key; every other row is all in the key.
    rows |= {row: value for row, value in now.rest.items() if was.rest.get(row) != value}
    return rows


def index_rows(plan: IndexPlan, entries: Entries, rid: bytes, header: Header) -> Indexed:
    epk_key, ix = header.epk, entries.ix
    rest: dict[bytes, bytes] = {}
    for entry in stamp(entries.cx, entries.stamps, header.ts):
        rest[entry + rid] = epk_key
    for entry in entries.ux:
        rest[layout.UX + epk_key + entry] = rid
    if plan.ts_prefix is not None:
        rest[plan.ts_prefix + plan.model.term(header.ts) + rid] = epk_key
    if header.ttl > 0:
        rest[expiry_key(header.ts + header.ttl, rid)] = b""
    size_bytes = sum(map(len, ix)) + len(ix) * len(rid) + sum(map(len, rest))
    for entry, data in entries.others:
        rest[entry + rid] = data + epk_key
        size_bytes += len(entry) + len(rid) + len(data)
    return Indexed(plan, entries, rid, epk_key, rest, size_bytes)
