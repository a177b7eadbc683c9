"""Reading a container of one physical partition as it was at one moment, over many requests.

    begin          where the log is, once changes are kept from there on (store/rows/undo.py)
    before         items that have changed since, as they were then

A reader takes what it finds now that is no newer than the snapshot, and what `before` adds. It asks
`before` last: an item that changes while pages are read is then in one of the two. No reader is
kept open and no writer waits; a snapshot that is too old, or whose container is gone, is an error.
"""

from collections.abc import Iterator
from typing import NamedTuple

from armillary.budget import Budget, checked
from armillary.encoding.documents import LSN
from armillary.engine.base import Command, Reader
from armillary.errors import NotFound, Stale
from armillary.limits import SNAPSHOT_SECONDS
from armillary.partition.ranges import EPK_MIN, Range
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore
from armillary.store.items.reading import Stored, is_live
from armillary.store.items.routing import ROUNDS_MAX
from armillary.store.rows import layout
from armillary.store.rows.meta import KEEP_UNDO, unpack_meta
from armillary.store.rows.undo import read_hold, split_undo_key, undo_item, undo_key
from armillary.store.snapshots.holds import HOLD


class Snapshot(NamedTuple):
    container: bytes
    lsn: int
    now_s: int
    """By which items are expired."""
    items: int
    """How many there were."""


def begin(store: ContainerStore) -> Snapshot:
    """Of a container that never splits."""

    def look(state: ContainerState, owner: Range, reader: Reader) -> Snapshot | None:
        meta, now_s = unpack_meta(reader.meta), store.now_s()
        if not meta.keep_log & KEEP_UNDO or read_hold(reader)[0] < now_s + SNAPSHOT_SECONDS:
            return None
        return Snapshot(state.container, meta.lsn, now_s, meta.items)

    def hold(state: ContainerState, owner: Range) -> None:
        context = store.context(state, owner)
        store.engine.run(owner.space, Command(HOLD, context))

    for _ in range(ROUNDS_MAX):
        found = store.look(EPK_MIN, look)
        if found is not None:
            return found
        store.retrying(EPK_MIN, hold)
    raise Stale


def before(
    store: ContainerStore, snapshot: Snapshot, budget: Budget | None = None
) -> list[Stored] | None:
    """None: the snapshot is gone."""
    within = checked(budget)

    def look(state: ContainerState, owner: Range, reader: Reader) -> list[Stored] | None:
        meta = unpack_meta(reader.meta)
        if state.container != snapshot.container:
            return None
        if meta.lsn == snapshot.lsn:
            return []
        if not meta.keep_log & KEEP_UNDO or read_hold(reader)[1] > snapshot.lsn:
            return None
        default_ttl = state.definition.default_ttl
        return [
            Stored(value)
            for value in _first_values(reader, snapshot.lsn, within)
            if LSN.unpack_from(value)[0] <= snapshot.lsn
            and (not default_ttl or is_live(value, default_ttl, snapshot.now_s))
        ]

    try:
        return store.look(EPK_MIN, look)
    except NotFound:
        return None


def _first_values(reader: Reader, lsn: int, budget: Budget) -> Iterator[bytes]:
    """What each item that changed was before its first change after an LSN."""
    seen: set[bytes] = set()
    rows = reader.scan(undo_key(lsn + 1, b""), layout.after(layout.UNDO))
    for key, row in rows:
        budget.spend()
        rid = split_undo_key(key)[1]
        if rid not in seen:
            seen.add(rid)
            yield undo_item(row)
