"""Upkeep of a container, in pieces: what one command of `upkeep.py` does for a physical partition
is done here for all of them.

    due?  ──no──▶ next range          looked at in a snapshot: an idle container is only read
      │ yes
      ▼
    one piece of at most CHUNK_ITEMS items, one command; again until nothing is left

Cut short at any piece, the rest is found by the next call. `may` is asked before each piece that is
due: background work shares it with other processes.
"""

from collections.abc import Callable

from armillary.budget import Budget, checked
from armillary.encoding.partition_key import KeyValues
from armillary.engine.base import Command, Reader
from armillary.partition.ranges import Range
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore
from armillary.store.items.requests import Key
from armillary.store.rows import layout
from armillary.store.snapshots.holds import TRIM, next_trim_s
from armillary.store.upkeep import pieces
from armillary.store.upkeep.pieces import Progress, is_reindex_due, is_sweep_due, is_trim_due

CHUNK_ITEMS = 100  # of one command


def _always() -> bool:
    return True


def delete_by_key(store: ContainerStore, values: KeyValues, budget: Budget | None = None) -> int:
    """Delete the items a logical partition has now. Items written meanwhile stay. Past the `budget`
    those of whole pieces are gone, and the same call again goes on with the rest."""
    within = checked(budget)

    def newest(state: ContainerState, key: Key, reader: Reader) -> tuple[bytes, bytes | None]:
        prefix = layout.LR + key.epk_key
        rows = reader.scan(prefix, layout.after(prefix), reverse=True, limit=1)
        return state.container, next((row[len(prefix) :] for row, _ in rows), None)

    container, last = store.look_at_key(values, newest)
    if last is None:
        return 0

    def piece(state: ContainerState, owner: Range, key: Key) -> Progress:
        if state.container != container:
            return Progress(0, False)  # another container has the name by now
        data = (store.context(state, owner), key, position, last, CHUNK_ITEMS)
        return Progress(*store.engine.run(owner.space, Command("items.delete_by_key", data)))

    deleted, position = 0, b""
    while (progress := store.retrying_key(values, piece)).more:
        deleted += progress.done
        position = progress.position
        within.spend(progress.done)
        within.check()
    return deleted + progress.done


def sweep(store: ContainerStore, may: Callable[[], bool] = _always) -> int:
    """Remove what has expired. Readers do not see it anyway; this frees the space."""

    def is_due(state: ContainerState, reader: Reader) -> bool:
        return is_sweep_due(reader, state.definition.default_ttl, store.now_s())

    return _everywhere(store, "items.sweep", is_due, may)


def trim_log(store: ContainerStore, may: Callable[[], bool] = _always) -> int:
    """Forget versions and deletes that the all-versions feed no longer promises."""

    def is_due(state: ContainerState, reader: Reader) -> bool:
        return is_trim_due(reader, state.definition.retention_s, store.now_s())

    return _everywhere(store, "items.trim_log", is_due, may)


def trim_undo(store: ContainerStore, may: Callable[[], bool] = _always) -> int:
    """Forget what items were before changes that no snapshot is older than."""

    def is_due(state: ContainerState, reader: Reader) -> bool:
        moment_s = next_trim_s(reader)
        return moment_s is not None and moment_s <= store.now_s()

    return _everywhere(store, TRIM, is_due, may)


def reindex(store: ContainerStore, may: Callable[[], bool] = _always) -> int:
    """Build index entries again where the policy has changed. May be cut short and resumed."""
    return _everywhere(store, "items.reindex", lambda state, reader: is_reindex_due(reader), may)


def next_due_s(store: ContainerStore) -> int | None:
    """When time alone will make work for `sweep` or `trim_log`, if nothing changes; None: never."""

    def moment(state: ContainerState, owner: Range, reader: Reader) -> int | None:
        definition = state.definition
        due_s = pieces.next_due_s(reader, definition.default_ttl, definition.retention_s)
        moments = [one for one in (due_s, next_trim_s(reader)) if one is not None]
        return min(moments, default=None)

    found = [store.look(owner.start, moment) for owner in store.refresh().table.ranges]
    return min((one for one in found if one is not None), default=None)


def _everywhere(
    store: ContainerStore,
    name: str,
    is_due: Callable[[ContainerState, Reader], bool],
    may: Callable[[], bool],
) -> int:
    done = 0
    for owner in store.refresh().table.ranges:
        progress = Progress(0, True)
        while progress.more:
            progress = _piece(store, owner.start, name, progress.position, is_due, may)
            done += progress.done
    return done


def _piece(
    store: ContainerStore,
    epk: bytes,
    name: str,
    position: bytes,
    is_due: Callable[[ContainerState, Reader], bool],
    may: Callable[[], bool],
) -> Progress:
    if not store.look(epk, lambda state, owner, reader: is_due(state, reader)) or not may():
        return Progress(0, False)

    def attempt(state: ContainerState, owner: Range) -> Progress:
        data = (store.upkeep_context(state, owner), position, CHUNK_ITEMS)
        return Progress(*store.engine.run(owner.space, Command(name, data)))

    return store.retrying(epk, attempt)
