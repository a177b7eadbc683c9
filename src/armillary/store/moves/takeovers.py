"""Splits and merges whose runner is gone: opened at once, run to their end by another.

    silent ──take over, claim──▶ its parents are open ──▶ run, one after the other, under a lease

A dead runner may have left a range frozen, for which requests wait. To open it costs one command in
the catalog and one in the range, so that is done for every silent move first, also by a process
that is not the one to run them: the lease for running may be with one that copies for minutes.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from armillary.engine.base import SpaceGone
from armillary.errors import DbError, NotFound, Stale, StorageFull
from armillary.limits import MOVE_SILENT_MS
from armillary.store.catalog.records import MoveRecord
from armillary.store.items.containers import ContainerStore
from armillary.store.moves.runner import Move, take_over, target_of
from armillary.store.rows.meta import State, unpack_meta


def is_silent(move: MoveRecord, now_ms: int, silent_ms: int = MOVE_SILENT_MS) -> bool:
    """Also one that was heard of in the future: the clock was put back since."""
    return move.beat_ms + silent_ms <= now_ms or move.beat_ms > now_ms + MOVE_SILENT_MS


def resume(store: ContainerStore, *, silent_ms: int = MOVE_SILENT_MS) -> list[Move]:
    """Take over the moves whose runner has not been heard of. Their parents are open then."""
    now_ms = store.engine.now_ms()
    silent = [one for one in store.refresh().record.moves if is_silent(one, now_ms, silent_ms)]
    return _claimed(store, silent)


def run_all(moves: Sequence[Move], after_step: Callable[[], object] = bool) -> None:
    """One after the other. Those that wait for their turn say that they have a runner."""
    for number, move in enumerate(moves):
        waiting = moves[number + 1 :]

        def step_done(waiting: Sequence[Move] = waiting) -> None:
            after_step()
            for one in waiting:
                with suppress(Stale, NotFound):  # it finds out when its turn comes
                    one.beat()

        move.run(step_done)


def open_frozen(store: ContainerStore) -> bool:
    """Whether there were ranges that a silent runner has left frozen; they are open again, and what
    is left of their moves is for a runner to do."""
    now_ms = store.engine.now_ms()
    silent = [one for one in store.refresh().record.moves if is_silent(one, now_ms)]
    return bool(_claimed(store, [one for one in silent if is_frozen(store, [one])]))


def is_frozen(store: ContainerStore, moves: Iterable[MoveRecord]) -> bool:
    """Whether a parent of these is frozen."""
    parents = {ordinal for move in moves for ordinal in move.parents}
    for owner in store.state.table.ranges:
        if owner.ordinal in parents:
            with suppress(SpaceGone), store.engine.read(owner.space) as reader:
                if unpack_meta(reader.meta).state is State.FROZEN:
                    return True
    return False


def _claimed(store: ContainerStore, silent: Sequence[MoveRecord]) -> list[Move]:
    if not silent:
        return []
    taken: list[Move] = []
    failure: DbError | None = None
    target = target_of(store)
    for record in silent:
        try:
            move = Move(store, target, take_over(store, target, record.epoch))
            _open_or_cancel(move)
        except Stale:  # another was quicker, or its runner has woken up
            continue
        except DbError as error:  # the others are opened all the same
            failure = failure or error
            continue
        taken.append(move)
    if failure is not None and not taken:
        raise failure
    return taken


def _open_or_cancel(move: Move) -> None:
    """Given up where the disk has no room for it: its parents are open then too."""
    try:
        move.step()
    except StorageFull:
        move.cancel()
        raise
