"""Background work of one process, container by container.

    splits     of physical partitions that are full, or that a change of throughput needs
    merges     that were asked for and whose runner has died
    take-over  of splits and merges whose runner has died
    expiry     of items past their time to live; readers do not see them anyway
    the rest   old versions past their retention, index entries after a change of policy, the hours
               of autoscale

Each job is done under a lease (`leasing.py`), by one process at a time of all that share a store.
It is asked for when there is something to do: a container is looked at soon after it was written
to, and all of them now and then; an idle account costs nothing in between. What another process
does, or is not yet given up for dead, is looked at again a little later.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from armillary.errors import DbError, Locked, NotFound, NotSplittable, Stale, StorageFull
from armillary.limits import MOVE_NO_ROOM_MS
from armillary.partition.budgets.ledger import Ledger
from armillary.store.catalog.accounts import AccountStore
from armillary.store.catalog.records import ContainerRecord
from armillary.store.items.containers import ContainerStore
from armillary.store.moves.merges import run_merges
from armillary.store.moves.runner import begin_split
from armillary.store.moves.takeovers import is_frozen, is_silent, open_frozen, resume, run_all
from armillary.store.throughput.autoscale import bill_container, bill_database
from armillary.store.throughput.provisioned import (
    raise_for_storage,
    run_scaling,
    stored_bytes,
)
from armillary.store.upkeep.containers import next_due_s, reindex, sweep, trim_log, trim_undo
from armillary.store.upkeep.leases import Round
from armillary.store.upkeep.watch import Watch

ROUND_SECONDS = 10.0  # between two looks at every container
SPARE_ROUND_SECONDS = 60.0  # the same, of a process alongside one that looks more often
PAUSE_SECONDS = 0.5  # between two looks at a container that is being written to
WAIT_SECONDS = 0.25  # between two looks at what another process does
log = logging.getLogger("armillary.housekeeping")


class Housekeeper:
    """A thread. With a `ledger`, what this process has set aside of a budget and does not use goes
    back while the second lasts."""

    def __init__(
        self,
        account: AccountStore,
        *,
        ledger: Ledger | None = None,
        round_s: float = ROUND_SECONDS,
        pause_s: float = PAUSE_SECONDS,
    ) -> None:
        self._account = account
        self._ledger = ledger
        self._round_s = round_s
        self._pause_s = pause_s
        self._watch = Watch(account.engine, account.owner)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="housekeeper", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._account.activity.wake()
        self._thread.join()
        with suppress(DbError):
            self._watch.release()

    def _loop(self) -> None:
        # Soon after the start: what a dead process left should not wait for a round.
        full_at = time.monotonic() + self._pause_s
        while not self._stop.is_set():
            noted = self._account.activity.wait(max(0.0, full_at - time.monotonic()))
            if self._stop.wait(self._pause_s if noted else 0):
                return
            only: set[tuple[str, str]] | None = self._account.activity.take() if noted else None
            if time.monotonic() >= full_at:
                # Also under constant writing: those without writes have work too.
                only, full_at = None, time.monotonic() + self._round_s
            self._keep(only)

    def _keep(self, only: set[tuple[str, str]] | None) -> None:
        try:
            if self._ledger is not None and only is not None:
                self._ledger.idle(self._account.engine.now_ms())
            if only is not None or self._watch.elected():
                keep_house(self._account, only, self._watch)
        except DbError as error:
            # A full disk or a lost database: writers get the error; we try again later.
            log.warning("housekeeping stopped early: %s", error)
        except Exception:
            # Our bug. Without this thread nothing would ever split or expire again.
            log.exception("housekeeping failed")


def settle(account: AccountStore) -> None:
    """Until nothing is left to do. What another process does is waited for; should that one be
    dead, its work is taken over when its lease has ended."""
    while keep_house(account):
        account.wait(WAIT_SECONDS)


def keep_house(
    account: AccountStore,
    only: set[tuple[str, str]] | None = None,
    watch: Watch | None = None,
) -> bool:
    """One look at every container, or at these; with a `watch`, at those that it knows to need one.
    True when something was left to others, or to a later look. The first failure is raised when all
    have been looked at."""
    failure: DbError | None = None
    brief: set[tuple[str, str]] = set()
    told = False
    with account.round() as leases:
        if only is None:
            account.clean_up(leases.gate("spaces"))
            records: list[ContainerRecord] = []
            bills = watch is None or watch.is_brief_due()
            for owner in account.list_databases():
                records += _containers(account, owner.id)
                if not bills:
                    continue
                with suppress(NotFound, Stale):  # deleted since it was listed; billed by another
                    failure = _refusal(partial(bill_database, account, owner, leases)) or failure
            only = {(record.database, record.id) for record in records}
            if watch is not None:
                only, told = watch.due(records), watch.wants_moments
                if bills and len(only) < len(records):
                    brief = watch.brief(records) - only
        left = leases.left
        if len(only) > 1:
            failure = _open_all_frozen(account, only) or failure
        for database, name in sorted(only | brief):
            leases.left = False
            store = account.container(database, name)
            try:
                if (database, name) in brief:
                    keep_briefly(account, store, leases)
                else:
                    keep_container(account, store, leases)
                    if watch is not None and told and not leases.left:
                        watch.looked((database, name), next_due_s(store))
            except NotFound:
                continue  # deleted under our eyes
            except Stale:
                leases.left = True  # another process does the same
            except DbError as error:
                failure = failure or error
            if leases.left:
                if watch is not None:
                    watch.again((database, name))
                store.note_write()  # come again
                left = True
    if failure is not None:
        raise failure
    return left


def _open_all_frozen(account: AccountStore, names: Iterable[tuple[str, str]]) -> StorageFull | None:
    """Before the first container is kept, which may take minutes: requests wait for these. Of its
    failures one is for good: moves for which there is no room are given up."""
    full: StorageFull | None = None
    for database, name in names:
        try:
            open_frozen(account.container(database, name))
        except StorageFull as error:
            full = error
        except DbError:
            continue  # raised again when it has its turn
    return full


def _containers(account: AccountStore, database: str) -> list[ContainerRecord]:
    try:
        return account.list_containers(database)
    except NotFound:
        return []  # deleted since it was listed


def keep_container(account: AccountStore, store: ContainerStore, leases: Round) -> None:
    """A full disk stops what needs room, and not what gives it back: expired items go although a
    partition can't be split. That it is full is raised at the end."""
    full = _refusal(partial(take_over, store, leases))
    tasks: tuple[Callable[[], object], ...] = (
        partial(scale, account, store, leases),
        partial(split_full, account, store, leases),
        partial(sweep, store, leases.gate("expiry")),
        partial(trim_log, store, leases.gate("log")),
        partial(trim_undo, store, leases.gate("log")),
        partial(reindex, store, leases.gate("index")),
        partial(bill_container, store, leases),
    )
    # A look at a frozen range now would wait, perhaps for this process.
    if is_frozen(store, store.refresh().record.moves):
        leases.left = True  # its runner may be dead, which shows later
        tasks = ()
    for task in tasks:
        full = _refusal(task) or full
    if full is not None:
        raise full


def keep_briefly(account: AccountStore, store: ContainerStore, leases: Round) -> None:
    """What can be due although no partition changed: only the catalog is read for it."""
    take_over(store, leases)
    scale(account, store, leases)
    bill_container(store, leases)


def _refusal(task: Callable[[], object]) -> StorageFull | None:
    try:
        task()
    except StorageFull as full:
        return full
    return None


def scale(account: AccountStore, store: ContainerStore, leases: Round) -> None:
    may = leases.gate("scaling")
    try:
        run_merges(store, may=may)
        run_scaling(store, may=may, of=account.limits)
    except Locked:
        leases.left = True


def take_over(store: ContainerStore, leases: Round) -> None:
    """Run the moves whose runner sends no heartbeat, and come again for the others."""
    now_ms = store.engine.now_ms()
    moves = store.refresh().record.moves
    if any(is_silent(one, now_ms) for one in moves):
        if leases.may("takeover"):
            run_all(resume(store), leases.gate("takeover"))
        else:
            open_frozen(store)  # who has the lease may be busy with another for long
        moves = store.refresh().record.moves
    leases.left = leases.left or bool(moves)


def split_full(account: AccountStore, store: ContainerStore, leases: Round) -> None:
    """Halve every physical partition that is over the size limit, again while a half still is. One
    that another runner has in hand is left for a later look; one for which there was no room for a
    much later one, because until it is given up its copy takes the room of others."""
    now_ms = store.engine.now_ms()
    sizes = stored_bytes(store)
    raise_for_storage(store, sum(sizes.values()), leases.gate("scaling"), of=account.limits)
    if store.state.is_fixed:
        return  # it never grows
    passed: set[int] = set()
    while True:
        full = [
            ordinal
            for ordinal, size_bytes in sizes.items()
            if size_bytes >= account.limits.bytes
            and ordinal not in passed
            and account.unsplittable.get(_space(store, ordinal)) != size_bytes
            and account.no_room.get(_space(store, ordinal), 0) <= now_ms
        ]
        if not full:
            return
        for ordinal in full:
            if not leases.may("scaling"):
                return
            try:
                begin_split(store, ordinal).run(leases.gate("scaling"))
            except NotSplittable:
                passed.add(ordinal)
                account.unsplittable[_space(store, ordinal)] = sizes[ordinal]
            except StorageFull:
                account.no_room[_space(store, ordinal)] = now_ms + MOVE_NO_ROOM_MS
                raise
            except Locked:
                passed.add(ordinal)
                leases.left = True
            except NotFound:
                break  # another process has split it: look again
        sizes = stored_bytes(store)


def _space(store: ContainerStore, ordinal: int) -> int:
    owner = store.state.table.by_ordinal(ordinal)
    return -1 if owner is None else owner.space
