"""Background work of one process, container by container.

    splits     of physical partitions that are full, or that a change of throughput needs
    take-over  of splits and merges whose runner has died
    expiry     of items past their time to live; readers do not see them anyway
    the rest   old versions past their retention, index entries after a change of policy

Each piece does no harm when two processes do it at once. A container is looked at soon after it was
written to, and all of them now and then; an idle account costs nothing in between.
"""

import logging
import threading
import time
from contextlib import suppress

from armillary.engine.base import SpaceGone
from armillary.errors import DbError, Locked, NotFound, NotSplittable, Stale
from armillary.store.accounts import AccountStore
from armillary.store.catalog import ContainerRecord
from armillary.store.containers import ContainerStore
from armillary.store.meta import State, unpack_meta
from armillary.store.moves import begin_split, resume
from armillary.store.throughput import run_scaling, stored_bytes

ROUND_SECONDS = 10.0  # between two looks at every container
PAUSE_SECONDS = 0.5  # between two looks at a container that is being written to
log = logging.getLogger("armillary.housekeeping")


class Housekeeper:
    def __init__(
        self,
        account: AccountStore,
        *,
        round_s: float = ROUND_SECONDS,
        pause_s: float = PAUSE_SECONDS,
    ) -> None:
        self._account = account
        self._round_s = round_s
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="housekeeper", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._account.activity.wake()
        self._thread.join()

    def _loop(self) -> None:
        # Soon after the start: what a dead process left should not wait for a round.
        full_at = time.monotonic() + self._pause_s
        while not self._stop.is_set():
            noted = self._account.activity.wait(max(0.0, full_at - time.monotonic()))
            if self._stop.wait(self._pause_s if noted else 0):
                return
            only: set[tuple[str, str]] | None = self._account.activity.take() if noted else None
            if time.monotonic() >= full_at:
                # Also under constant writing: those that nobody writes to have work too.
                only, full_at = None, time.monotonic() + self._round_s
            self._keep(only)

    def _keep(self, only: set[tuple[str, str]] | None) -> None:
        try:
            keep_house(self._account, only)
        except DbError as error:
            # A full disk or a lost database: whoever writes hears of it; we try again later.
            log.warning("housekeeping stopped early: %s", error)
        except Exception:
            # Our bug. Without this thread nothing would ever split or expire again.
            log.exception("housekeeping failed")


def keep_house(account: AccountStore, only: set[tuple[str, str]] | None = None) -> None:
    """One look at every container, or at these. The first failure is raised when all have been
    looked at."""
    if only is None:
        account.clean_up()
        only = {
            (database.id, record.id)
            for database in account.list_databases()
            for record in _containers(account, database.id)
        }
    failure: DbError | None = None
    for database, name in sorted(only):
        try:
            keep_container(account, account.container(database, name))
        except (NotFound, Stale):
            continue  # deleted under our eyes, or another process does the same
        except DbError as error:
            failure = failure or error
    if failure is not None:
        raise failure


def _containers(account: AccountStore, database: str) -> list[ContainerRecord]:
    try:
        return account.list_containers(database)
    except NotFound:
        return []  # deleted since it was listed


def keep_container(account: AccountStore, store: ContainerStore) -> None:
    for move in resume(store):
        move.run()
    if stands_still(store):
        store.note_write()  # its runner may be dead, which shows later: come again
        return
    with suppress(Locked):  # another process is at it
        run_scaling(store, of=account.limits)
    split_full(account, store)
    store.sweep()
    store.trim_log()
    store.reindex()


def stands_still(store: ContainerStore) -> bool:
    """Whether a range is frozen. Whoever looked at it now would wait, perhaps for this process."""
    state = store.refresh()
    moving = {ordinal for move in state.record.moves for ordinal in move.parents}
    for owner in state.table.ranges:
        if owner.ordinal in moving:
            with suppress(SpaceGone), store.engine.read(owner.space) as reader:
                if unpack_meta(reader.meta).state is State.FROZEN:
                    return True
    return False


def split_full(account: AccountStore, store: ContainerStore) -> None:
    """Halve every physical partition that is over the size limit, again while a half still is."""
    if store.state.definition.partition_key.system_key:
        return  # a fixed container never grows
    unsplittable: set[int] = set()
    while True:
        full = [
            ordinal
            for ordinal, size_bytes in stored_bytes(store).items()
            if size_bytes >= account.limits.bytes and ordinal not in unsplittable
        ]
        if not full:
            return
        for ordinal in full:
            try:
                begin_split(store, ordinal).run()
            except (NotSplittable, Locked):
                unsplittable.add(ordinal)
            except NotFound:
                break  # another process has split it: look again
