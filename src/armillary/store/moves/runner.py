"""Splits and merges while the application goes on: one runner, step by step.

    begin     the catalog says what will become what; parents stay owners
    claim     parents keep every change from now on (LSN L0)
    build     children are made, empty
    copy      items, in the order of their rids, in short snapshots      ┐
    load      their index entries and other rows, sorted                 │
    history   old versions, for the all-versions feed                    │ writers go on
    replay    what changed since L0, until little is left                ┘
    freeze    parents are frozen for a moment
    drain     the last changes; if they are too many for a moment, writers go on and replay again
    finish    children open, their LSNs continue
    switch    one catalog transaction: from here on the children are the owners
    drop      the parents' spaces go

A crash before `switch` leaves the parents as they were; after it the children are complete.
What a dead runner left is taken over (`takeovers.py`): the epoch is bumped, and it begins again at
`claim`. Each step is a method and says which comes next, so that a test can interleave them with
writers and stop between any two. What is read from a parent for each piece is in `pieces.py`, what
is made of it for a child in `rows.py`, and how far that is in `filling.py`.

While others write, the runner rests after each piece for as long as it took to read, sort and load
it: at least half of the time of the writer and of the interpreter is theirs.
"""

import sys
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from armillary import steps
from armillary.encoding.documents import POLICY
from armillary.encoding.hashing import epk_key_bound
from armillary.engine.base import CATALOG_SPACE, Command, Row, SpaceGone
from armillary.errors import Conflict, DbError, NotFound, NotSplittable, Stale, StorageFull
from armillary.limits import (
    MOVE_BEAT_MS,
    MOVE_FREEZE_LSNS,
    MOVE_FROZEN_MS,
    MOVE_PIECE_ITEMS,
    MOVE_REPLAYS_MAX,
)
from armillary.partition.ranges import Range
from armillary.store.catalog.records import chosen_spaces, decode_container
from armillary.store.items.containers import ContainerStore
from armillary.store.items.requests import Context
from armillary.store.moves.filling import Filling
from armillary.store.moves.handlers import Final, Piece, Totals
from armillary.store.moves.pieces import next_replay, read_changes, read_history
from armillary.store.moves.records import Target, find_move
from armillary.store.moves.split_points import split_point
from armillary.store.rows import layout
from armillary.store.rows.meta import Meta, State
from armillary.store.rows.secondary import unpack_log

DONE = "done"
#: Steps before which a move can still be given up: no range is frozen yet.
EARLY = frozenset({"claim", "build", "copy", "load", "history", "replay", "freeze"})
#: Steps before which parents are frozen.
FROZEN = frozenset({"drain", "finish", "switch"})
COMMITS_KEPT = 3  # of which the middle one says what a commit takes

T = TypeVar("T")


class _PolicyChanged(Exception):
    """An item was indexed by a policy that this runner has not heard of."""


def begin_move(
    store: ContainerStore, parents: list[int], bounds: list[bytes], ranges_max: int | None = None
) -> "Move":
    """Ranges `parents` (neighbours) become the ranges between the inner bounds."""
    target = target_of(store)
    edges = [bound.hex().upper() for bound in bounds]
    chosen = _chosen(store, len(bounds) + 1, parents)
    data = (target, parents, edges, store.engine.now_ms(), ranges_max, chosen)
    _, epoch = store.engine.run(CATALOG_SPACE, Command("catalog.begin_move", data))
    steps.reached("move.begin")
    return Move(store, target, epoch)


def begin_split(
    store: ContainerStore,
    ordinal: int,
    at: bytes | None = None,
    *,
    ranges_max: int | None = None,
) -> "Move":
    """Cut one physical partition in two: at half of its bytes, or at a given hash. Locked when the
    container would then have more than `ranges_max`."""
    state = store.refresh()
    owner = state.table.by_ordinal(ordinal)
    if owner is None:
        raise NotFound(f"The container has no physical partition {ordinal}.")
    if state.is_fixed:
        raise NotSplittable("A fixed container has one physical partition and never grows.")
    if at is None:
        try:
            at = split_point(store, owner)
        except SpaceGone:
            raise NotFound(f"The physical partition {ordinal} has just gone.") from None
    return begin_move(store, [ordinal], [at], ranges_max)


def begin_merge(store: ContainerStore, ordinals: list[int]) -> "Move":
    return begin_move(store, ordinals, [])


def take_over(store: ContainerStore, target: Target, epoch: int) -> int:
    move = find_move(store.refresh().record, epoch)
    chosen = _chosen(store, len(move.children), move.parents)
    data = (target, epoch, store.engine.now_ms(), chosen)
    _, new_epoch = store.engine.run(CATALOG_SPACE, Command("catalog.take_over_move", data))
    assert isinstance(new_epoch, int)
    return new_epoch


def _chosen(store: ContainerStore, count: int, parents: Sequence[int]) -> Sequence[int] | None:
    """Spaces for the children: where the ranges that stay are not."""
    record = store.state.record
    stay = [one.space for one in record.ranges if one.ordinal not in parents]
    coming = [child.space for move in record.moves for child in move.children]
    return chosen_spaces(store.engine, count, [*stay, *coming])


def target_of(store: ContainerStore) -> Target:
    return Target(store.database, store.name, store.refresh().record.rid)


class Move:
    """One runner of one move under one epoch. Lives until another runner takes the move over."""

    def __init__(self, store: ContainerStore, target: Target, epoch: int) -> None:
        self.store = store
        self.engine = store.engine
        self.target = target
        self.next = "claim"
        self._begin(epoch)

    def _begin(self, epoch: int) -> None:
        self.epoch = epoch
        self.state = self.store.refresh()
        self.record = find_move(self.state.record, epoch)
        self.parents = [r for r in self.state.table.ranges if r.ordinal in self.record.parents]
        self.children = [child.to_range() for child in self.record.children]
        self._beat_ms = self.record.beat_ms
        self._filling = Filling(self.parents, self.children)
        self._logs: dict[int, bytes] = {}
        self._history: list[tuple[Range, bytes]] = []
        self._finals: list[Final] = []
        self._commits_ms: tuple[int, ...] = ()
        self._commit_ms = 0
        self.rest_ms = 0
        """How long to leave the writer and the interpreter to others before the next step."""
        self._began_ms = 0
        self._replay_limit = MOVE_PIECE_ITEMS
        self._left = sys.maxsize
        self._replays = 0
        self._frozen_ms = 0
        self._thaws = 0
        self.copied_items = 0

    def run(
        self, after_step: Callable[[], object] = bool, is_off: Callable[[], bool] = bool
    ) -> bool:
        """To its end. `after_step` is called after each, to keep a lease; a lease that is lost does
        not end the move: it has an epoch of its own, and a heartbeat that tells others to wait.
        `is_off` is asked while it can still be given up; then this is False, and all is as
        before. So it is when the disk has no room for a second copy, which is raised."""
        while self.next != DONE:
            if self.next in EARLY and is_off():
                self.cancel()
                return False
            try:
                self.step()
            except StorageFull:
                if self.next != "drop":
                    self.cancel()
                raise
            except DbError:
                if self.next in FROZEN:
                    self._open_again()
                raise
            after_step()
            if self.rest_ms:
                time.sleep(self.rest_ms / 1000)
        return True

    def cancel(self) -> None:
        """Give the move up before its switch. The parents are changed first: should we die between
        the two, the move is taken over and ends, instead of leaving parents that keep every
        change."""
        for parent in self.parents:
            data = (self.state.container, parent.ordinal, self.epoch)
            self._run(parent.space, "move.release", data)
        self._run(CATALOG_SPACE, "catalog.cancel_move", (self.target, self.epoch))
        self._drop_spaces(self.children)

    def step(self) -> None:
        """One step. Raises Stale when another runner has taken over, NotFound when the container
        has gone."""
        name = self.next
        self.rest_ms = 0
        try:
            if name != "drop":  # the catalog knows nothing of the move any more
                self.beat()
            self._began_ms = self.engine.now_ms()
            self.next = STEPS[name](self)
        except _PolicyChanged:
            self.next = self._begin_again()
        except SpaceGone as gone:
            self._filling.close()
            self._find()  # says why
            raise Stale("A space of a split or merge has gone.") from gone
        except BaseException:
            self._filling.close()
            raise
        steps.reached(f"move.{name}")

    # --- steps ----------------------------------------------------------------------------------

    def _claim(self) -> str:
        for parent in self.parents:
            lsn, settings, policy = self._claim_parent(parent)
            self._settings, self._policy = settings, policy
            self._logs[parent.space] = layout.LOG + (lsn + 1).to_bytes(8, "big")
        return "build"

    def _build(self) -> str:
        for child in self.children:
            row = (layout.META, self._child_meta(child).pack())
            with suppress(Conflict):  # made before, by this same runner
                self.engine.create_space(child.space, [row])
        self._disown_if_lost()
        return "copy"

    def _copy(self) -> str:
        found = self._filling.next_items(self.engine)
        self._check_policies(piece for _, piece in found)
        policies, policy = self.state.policies, self._policy
        self._fill(
            [
                (
                    child,
                    self._filling.gather(child, [one for _, one in own], policies, policy),
                    None,
                )
                for child, own in self._by_child(found, lambda one: one[0])
            ]
        )
        self.copied_items += len(found)
        return "copy" if self._filling.copying else "load"

    def _load(self) -> str:
        self._fill([self._filling.next_rows()])
        if self._filling.loading:
            return "load"
        self._filling.close()
        keeps_versions = bool(self.state.definition.retention_s)
        self._history = [(parent, layout.LOG) for parent in self.parents if keeps_versions]
        return "history"

    def _copy_history(self) -> str:
        if not self._history:
            return "replay"
        parent, start = self._history[0]
        with self.engine.read(parent.space) as reader:
            old, last = read_history(reader, start)
        for child, rows in self._by_child(old, _epk_of_row):
            self._install(child, [], rows)
        if last is None:
            self._history.pop(0)
        else:
            self._history[0] = (parent, last + b"\x00")
        return "history"

    def _replay(self) -> str:
        began_ms = self.engine.now_ms()
        before, self._left = self._left, sum(map(self._replay_piece, self.parents))
        if self._left <= MOVE_FREEZE_LSNS:
            return "freeze"
        gained, took_ms = self._left < before, self.engine.now_ms() - began_ms
        self._replay_limit = next_replay(self._replay_limit, gained, took_ms, self._commit_ms)
        if gained and before != sys.maxsize:  # against nothing nothing is gained
            return "replay"
        self._replays += 1
        # Writers may be quicker than we are, for ever: let them wait for a moment.
        return "replay" if self._replays % MOVE_REPLAYS_MAX else "freeze"

    def _freeze(self) -> str:
        self._finals = []
        self._frozen_ms = self.engine.now_ms()
        for parent in self.parents:
            data = (self.state.container, parent.ordinal, self.epoch, self._settings)
            try:
                self._finals.append(Final(*self._run(parent.space, "move.freeze", data)))
            except Stale:
                # The container's settings changed meanwhile (or we lost the move, which
                # taking it over will tell): begin again with the new ones.
                return self._begin_again()
        return "drain"

    def _drain(self) -> str:
        # Writers are blocked now: the sooner it is over the better.
        self._replay_limit = max(self._replay_limit, MOVE_PIECE_ITEMS)
        self._left = sum(map(self._replay_piece, self.parents))
        if self._left == 0:
            return "finish"
        # Longer each time, so that this ends even if a thousand writes wait behind every freeze.
        if self.engine.now_ms() - self._frozen_ms < MOVE_FROZEN_MS << self._thaws:
            return "drain"
        self._thaws += 1
        for parent in self.parents:
            self._claim_parent(parent)
        return "replay"

    def _finish(self) -> str:
        final = _final(self._finals)
        self._run_all(
            [(one.space, "move.finish", (self._context(one), final)) for one in self.children]
        )
        return "switch"

    def _switch(self) -> str:
        data = (self.target, self.epoch, self.engine.now_ms())
        row = self._run(CATALOG_SPACE, "catalog.switch_move", data)
        assert decode_container(row).rid == self.target.rid
        return "drop"

    def _drop(self) -> str:
        self._drop_spaces(self.parents)
        return DONE

    # --- inside ---------------------------------------------------------------------------------

    def _drop_spaces(self, ranges: list[Range]) -> None:
        spaces = [one.space for one in ranges]
        for space in spaces:
            self.engine.drop_space(space)
        self._run(CATALOG_SPACE, "catalog.forget_spaces", spaces)

    def _begin_again(self) -> str:
        """The settings have changed: new children, under a new epoch."""
        self._filling.close()
        self._begin(take_over(self.store, self.target, self.epoch))
        return "claim"

    def _open_again(self) -> None:
        """We stop while parents are frozen, and need not be found dead first. Only under a new
        epoch: the switch may have happened, and then there is nothing to open."""
        with suppress(DbError):
            Move(self.store, self.target, take_over(self.store, self.target, self.epoch)).step()

    def _find(self) -> None:
        """Raise Stale or NotFound if this is no longer our move."""
        find_move(self.store.refresh().record, self.epoch)

    def _disown_if_lost(self) -> None:
        """Spaces made after another runner took over are in no list: they go at once."""
        try:
            self._find()
        except (NotFound, Stale):
            for child in self.children:
                self.engine.drop_space(child.space)
            raise

    def _claim_parent(self, parent: Range) -> tuple[int, int, int]:
        """Open, with every change kept for us. (LSN, settings, policy)"""
        record = self.state.record
        data = (self.state.container, parent.ordinal, self.epoch, record.settings, record.policy)
        lsn, settings, policy = self._run(parent.space, "move.claim", data)
        return lsn, settings, policy

    def _replay_piece(self, parent: Range) -> int:
        """Bring the next changes of a parent to the children. How many LSNs are left."""
        with self.engine.read(parent.space) as reader:
            changes = read_changes(reader, self._logs[parent.space], self._replay_limit)
        self._check_policies(piece for _, piece in changes.pieces)
        items = dict(self._by_child(changes.pieces, lambda one: one[0]))
        old = dict(self._by_child(changes.old, _epk_of_row))
        self._install_all(
            [
                (child, [piece for _, piece in items.get(child, ())], old.get(child, []))
                for child in self.children
                if child in items or child in old
            ]
        )
        if changes.last is not None:
            self._logs[parent.space] = changes.last + b"\x00"
        return changes.left

    def _check_policies(self, pieces: Iterable[Piece]) -> None:
        known = {version for version, _ in self.state.policies}
        for piece in pieces:
            if piece.value and POLICY.unpack_from(piece.value)[0] not in known:
                raise _PolicyChanged

    def _fill(self, parts: Sequence[tuple[Range, list[Row], Totals | None]]) -> None:
        """One piece of rows for the children."""
        began_ms = self.engine.now_ms()
        self._run_all(
            [
                (child.space, "move.load", (self._child_meta(child).fence(), rows, totals))
                for child, rows, totals in parts
            ]
        )
        now_ms = self.engine.now_ms()
        if self._filling.note(self.engine, now_ms - began_ms, self._commit_ms):
            self.rest_ms = now_ms - self._began_ms

    def _by_child(
        self, things: Iterable[T], epk: Callable[[T], bytes]
    ) -> Iterable[tuple[Range, list[T]]]:
        """Each thing with the child that its hash falls into."""
        starts = [self._bound(child.start) for child in self.children]
        found: dict[Range, list[T]] = defaultdict(list)
        for thing in things:
            found[self.children[bisect_right(starts, epk(thing)) - 1]].append(thing)
        return found.items()

    def _install(self, child: Range, pieces: list[Piece], rows: list[Row]) -> None:
        self._install_all([(child, pieces, rows)])

    def _install_all(self, parts: list[tuple[Range, list[Piece], list[Row]]]) -> None:
        self._run_all(
            [
                (child.space, "move.install", (self._context(child), pieces, rows))
                for child, pieces, rows in parts
            ]
        )

    def _bound(self, epk: bytes) -> bytes:
        return epk_key_bound(epk, self.state.definition.partition_key)

    def _child_meta(self, child: Range) -> Meta:
        return Meta(
            self.state.container,
            child.ordinal,
            child.epoch,
            self._settings,
            State.BUILDING,
            child.start,
            child.end,
            policy=self._policy,
        )

    def _context(self, child: Range) -> Context:
        limit = self.store.logical_bytes_max
        return self.state.context(self._child_meta(child).fence(), self.store.now_s(), limit)

    def _run(self, space: int, name: str, data: Any) -> Any:
        return self.engine.run(space, Command(name, data))

    def _run_all(self, commands: list[tuple[int, str, Any]]) -> None:
        """Submitted together, so that on one disk they are one commit."""
        waiting = [self.engine.submit(space, Command(name, data)) for space, name, data in commands]
        for future in waiting:
            future.exception()  # all of them, before one is raised
        for future in waiting:
            future.result()

    def beat(self) -> None:
        """Say that it has a runner, if that is due."""
        now_ms = self.engine.now_ms()
        if now_ms - self._beat_ms >= MOVE_BEAT_MS:
            self._run(CATALOG_SPACE, "catalog.beat_move", (self.target, self.epoch, now_ms))
            self._beat_ms = now_ms
            took_ms = self.engine.now_ms() - now_ms
            kept = self._commits_ms = (took_ms, *self._commits_ms)[:COMMITS_KEPT]
            # The middle one: after one that happened to be slow, slow pieces would look quick.
            self._commit_ms = sorted(kept)[(len(kept) - 1) // 2]


STEPS: dict[str, Callable[[Move], str]] = {
    "claim": Move._claim,
    "build": Move._build,
    "copy": Move._copy,
    "load": Move._load,
    "history": Move._copy_history,
    "replay": Move._replay,
    "freeze": Move._freeze,
    "drain": Move._drain,
    "finish": Move._finish,
    "switch": Move._switch,
    "drop": Move._drop,
}


def _final(parents: list[Final]) -> Final:
    """A child of a split goes on where its parent stopped. A merged range starts above all its
    parents, under a higher session version, so that no token of theirs means anything else."""
    if len(parents) == 1:
        return parents[0]
    return Final(
        lsn=max(one.lsn for one in parents) + 1,
        session=max(one.session for one in parents) + 1,
        ts=max(one.ts for one in parents),
        log_start=min(one.log_start for one in parents),
        floors=tuple(floor for one in parents for floor in one.floors),
    )


def _epk_of_row(row: Row) -> bytes:
    return unpack_log(row[1]).epk
