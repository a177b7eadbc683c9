"""What all requests share: the account, its settings, and the way from names to containers.

A path names things by name or by rid; by name is tried first, because a database may have a name
that looks like a rid. Containers found are kept: a `ContainerStore` notices by itself when its
picture is old, and its users hear of it only when the container is gone.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, Final

from armillary.api.core.paths import is_database_rid
from armillary.api.core.regions import Regions
from armillary.api.core.settings import GatewaySettings
from armillary.api.core.signing import Keyring
from armillary.clock import Clock, LoopAwareWait
from armillary.engine.base import CATALOG_SPACE, SpaceGone
from armillary.errors import DbError, Locked, NotFound, OwnerNotFound, Stale
from armillary.scripts.lazy import LazyRuntime
from armillary.store.catalog.accounts import AccountStore
from armillary.store.catalog.controls import SharedControls
from armillary.store.catalog.records import (
    ContainerRecord,
    DatabaseRecord,
    find_container,
    find_database,
)
from armillary.store.catalog.resources import find_owner
from armillary.store.items.containers import ContainerStore
from armillary.store.rows.meta import unpack_meta
from armillary.store.throughput.provisioned import run_scaling
from armillary.store.upkeep.containers import reindex
from armillary.store.upkeep.housekeeper import Housekeeper

log = logging.getLogger("armillary.api")

STORES_MAX: Final = 1024
SPLIT_NOTICE_SECONDS: Final = 0.75  # from the announcement of splits to the first; see scale_later


class Gateway:
    def __init__(
        self,
        account: AccountStore,
        settings: GatewaySettings | None = None,
        *,
        wall: Clock | None = None,
        shared: SharedControls | None = None,
        housekeeper: Housekeeper | None = None,
        regions: Regions | None = None,
        wait: LoopAwareWait | None = None,
    ) -> None:
        """`wall`: the clock that clients sign by; `shared`: faults and time for all workers;
        `housekeeper`: background work, and `regions` with their replicas: ended with us. `wait`:
        how requests wait for a frozen range, told which thread may not."""
        settings = settings or GatewaySettings()
        self.account = account
        self.engine = account.engine
        self.shared = shared or SharedControls(account.engine)
        self.wall_ms = (wall or self.shared.own_clock).now_ms
        self.settings = settings
        self.regions = regions or Regions(account.engine, self.shared, here=settings.region)
        self._housekeeper = housekeeper
        self._wait = wait
        self.keyring = Keyring(settings.keys, settings.read_only_keys)
        self._stores: dict[tuple[str, str], ContainerStore] = {}
        self._sessions: dict[tuple[int, object], int] = {}
        self._scalings = ThreadPoolExecutor(1, "scaling")
        self._indexings = ThreadPoolExecutor(1, "indexing")
        self._closing = Event()
        self.scripts = LazyRuntime(
            settings.script_seconds, settings.script_heap_bytes, settings.script_processes
        )

    def now_s(self) -> int:
        return self.engine.now_ms() // 1000

    def wall_s(self) -> int:
        """The time that clients sign with. Not the store's where a test has stopped that one: the
        clock of a client goes on."""
        return self.wall_ms() // 1000

    # --- names ----------------------------------------------------------------------------------

    def database(self, text: str) -> DatabaseRecord:
        with self.engine.read(CATALOG_SPACE) as reader:
            found = find_database(reader, text)
            if found is None and is_database_rid(text):
                by_rid = find_owner(reader, text)
                found = by_rid if isinstance(by_rid, DatabaseRecord) else None
        if found is None:
            raise NotFound
        return found

    def owner_database(self, text: str) -> DatabaseRecord:
        """The same, for what lives in it: 404 says then that it is the owner that is missing."""
        try:
            return self.database(text)
        except NotFound as error:
            raise OwnerNotFound from error

    def container_record(self, database: str, text: str) -> ContainerRecord:
        owner = self.owner_database(database)
        with self.engine.read(CATALOG_SPACE) as reader:
            found = find_container(reader, owner.id, text)
            if found is None:
                by_rid = find_owner(reader, text)
                if isinstance(by_rid, ContainerRecord) and by_rid.database == owner.id:
                    found = by_rid
        if found is None:
            raise NotFound
        return found

    def known_container(self, database: str, name: str) -> ContainerStore | None:
        """One that has been asked for before, by name."""
        return self._stores.get((database, name))

    def container(self, database: str, text: str) -> ContainerStore:
        """HOT: once per request about items; nearly always the first line."""
        store = self._stores.get((database, text))
        if store is not None:
            return store
        try:
            record = self.container_record(database, text)
        except NotFound as error:
            raise OwnerNotFound from error
        store = self._stores.get((record.database, record.id))
        if store is None:
            store = self.scripts.serve_queries(self.account.container(record.database, record.id))
            if len(self._stores) >= STORES_MAX:
                self._forget(list(self._stores))
            self._stores[record.database, record.id] = store
        return store

    def forget(self, database: str, name: str | None = None) -> None:
        """A container, or a whole database, is gone."""
        known = list(self._stores)  # a copy: other threads open containers meanwhile
        self._forget([one for one in known if one[0] == database and name in (None, one[1])])

    def _forget(self, names: list[tuple[str, str]]) -> None:
        """Who still holds such a store finds it without its state."""
        for one in names:
            store = self._stores.pop(one, None)
            if store is not None:
                store.forget_state()

    # --- background -----------------------------------------------------------------------------

    def scale_later(self, store: ContainerStore) -> None:
        """Splits that a change of throughput needs, while requests go on. Should this process die,
        the housekeeper of another goes on with them.

        They begin after a notice. In the original they take minutes, ours of a small container some
        milliseconds: a client that follows the ranges would never see one `splitting`, and one
        that asks range after range would hear 410 between two of them, for which SDKs throw away
        all they know of the ranges. No right answer depends on it (docs/partitions.md)."""
        self._scalings.submit(self._scale, store, time.monotonic() + SPLIT_NOTICE_SECONDS)

    def _scale(self, store: ContainerStore, at: float) -> None:
        if self._closing.wait(max(0.0, at - time.monotonic())):
            return
        try:
            with self.account.round() as leases:
                run_scaling(store, may=leases.gate("scaling"), of=self.account.limits)
        except (Locked, Stale, NotFound) as error:  # who keeps house was quicker, or it is gone
            log.debug("scaling %s/%s is left to others: %s", store.database, store.name, error)
            store.note_write()
        except DbError as error:
            log.warning("scaling %s/%s stopped: %s", store.database, store.name, error)

    def index_later(self, store: ContainerStore) -> None:
        """Index entries of a new policy, while requests go on. Should this process end before, who
        keeps house goes on."""
        self._indexings.submit(self._index, store)

    def _index(self, store: ContainerStore) -> None:
        try:
            with self.account.round() as leases:
                may = leases.gate("index")
                reindex(store, lambda: not self._closing.is_set() and may())
                if leases.left:
                    store.note_write()
        except (Stale, NotFound) as error:  # it is gone, or another policy came
            log.debug("indexing %s/%s is left to others: %s", store.database, store.name, error)
            store.note_write()
        except DbError as error:
            log.warning("indexing %s/%s stopped: %s", store.database, store.name, error)

    def serve_loop(self, loop: Any | None) -> None:
        """The calling thread runs this event loop. What begins there goes to the writer together,
        at the end of a turn, or to a database without a thread that waits. None: it ends."""
        self.engine.serve_loop(loop)
        if self._wait is not None:
            self._wait.serve_loop(begins=loop is not None)
        if loop is not None and self.account.meter is not None:
            self.account.meter.serve_loop()

    def close(self) -> None:
        self._closing.set()
        self.scripts.close()
        if self._housekeeper is not None:
            self._housekeeper.close()
        self._indexings.shutdown(wait=True, cancel_futures=True)
        self._scalings.shutdown(wait=True, cancel_futures=True)
        self.regions.close()
        self.shared.close()
        if self.account.meter is not None:
            self.account.meter.close()

    # --- sessions -------------------------------------------------------------------------------

    def knows_session(self, space: int) -> bool:
        """Whether `session_version` reads nothing."""
        return (space, self.engine.lineage) in self._sessions

    def session_version(self, space: int) -> int:
        """Constant while a space lives, and the database: a merge makes a new space, and after a
        failover the numbers of all spaces leap."""
        key = space, self.engine.lineage
        known = self._sessions.get(key)
        if known is None:
            try:
                with self.engine.read(space) as reader:
                    known = unpack_meta(reader.meta).session
            except SpaceGone:
                return -1
            if len(self._sessions) >= STORES_MAX:
                self._sessions.clear()
            self._sessions[key] = known
        return known
