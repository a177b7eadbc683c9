"""Is there a database to write to, and is it still the same one? One per process and address.

    READY ──probe fails, or answers read-only──▶ AWAY ──a host answers──▶ MOVED? ──▶ READY
      │                                           ▲                         │
      └──another timeline or system identifier────┴──── the store has gone on above it

A probe goes out each second (half as often while there are no requests). When it fails, every
connection of the process is severed, those in use too, and requests are refused at once with a time
to come back; then all hosts of the address are tried side by side, several times a second, so that
neither a hanging host nor a growing pause stands between a promotion and its first request.

A database that answers under another identity was restored or promoted, and may lack the last
writes that clients have seen. Before anybody uses it the *follower* (the engine, and the store
above it) goes on above all numbers that were given out; until that is done, `check` refuses.
An older timeline than the one last used is a former primary that came back: it is not used.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from armillary.engine.health import PoolCounts
from armillary.engine.postgres.address import Address
from armillary.engine.postgres.connection import (
    Answer,
    Connection,
    Identity,
    each_host,
    is_full,
    open_connection,
    who,
)
from armillary.engine.postgres.pool import Pool
from armillary.errors import DbError, NotSupported, Unavailable
from armillary.limits import (
    POSTGRES_IDLE_PROBE_SECONDS,
    POSTGRES_PROBE_DEADLINE_SECONDS,
    POSTGRES_PROBE_SECONDS,
    POSTGRES_SEARCH_SECONDS,
)

log = logging.getLogger("armillary.postgres")

RETRY_AFTER_MS = 500
GRACE_SECONDS = 0.1  # between the first host that answers and the choice among those that do
POSITIONS_MAX = 600  # probes that are remembered: ten minutes
IDLE_AFTER_SECONDS = 5.0  # without a request; then there are fewer probes
BUSY_AFTER_SECONDS = 1.0  # of requests; a round of housekeeping is shorter


class State(Enum):
    AWAY = "away"
    MOVED = "moved"
    READY = "ready"


@dataclass(frozen=True, slots=True)
class Health:
    """For metrics and readiness."""

    state: State
    reason: str
    identity: Identity | None
    outages: int
    severed: int
    probe_ms: float
    refusals: int = 0

    @property
    def timeline(self) -> int | None:
        return None if self.identity is None else self.identity.timeline

    @property
    def trouble(self) -> str:
        """Empty when requests can be served."""
        return "" if self.state is State.READY else f"database {self.state.value}: {self.reason}"


@dataclass(frozen=True, slots=True)
class _Found:
    host: int
    connection: Connection
    answer: Answer
    at: float
    """When it answered. Of an earlier search: what it said may not hold any more."""


Follower = Callable[[Identity], None]
"""Called in the supervisor's thread when the identity is new to it; raises when it is not done."""


class Supervisor:
    _shared: ClassVar[dict[str, Supervisor]] = {}
    _registry: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def of(cls, address: Address, wait_s: float | None) -> Supervisor:
        """The one of this process for this address, once there is a database. `release` it."""
        with cls._registry:
            found = cls._shared.get(address.url)
            if found is None:
                found = cls._shared[address.url] = cls(address)
            found._users += 1
        try:
            found.wait(wait_s)
        except BaseException:
            found.release()
            raise
        return found

    def __init__(self, address: Address) -> None:
        self._address = address
        self._users = 0
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._state = State.AWAY
        self._reason = "not reached yet"
        self._identity: Identity | None = None
        self._generation = 0
        self._hosts = list(each_host(address.conninfo(None)))
        self._host = 0
        self._pools: list[Pool] = []
        self._followers: list[Follower] = []
        self._clocks: list[Callable[[int, float, float], None]] = []
        self._measured: tuple[int, float, float] | None = None
        self._probe: Connection | None = None
        self._trying: set[int] = set()
        self._reports: queue.SimpleQueue[tuple[int, _Found | None]] = queue.SimpleQueue()
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._inside = threading.local()
        self._asked_at = self._asked_since = time.monotonic()
        #: (when asked, identity, position in the WAL) of the last probes, the newest last.
        self._positions: deque[tuple[float, Identity, int]] = deque(maxlen=POSITIONS_MAX)
        self._outages = self._severed = self._refusals = 0
        self._probe_ms = 0.0
        self._refusal: NotSupported | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._watch, name="postgres-probe", daemon=True)
        self._thread.start()

    # --- asking -------------------------------------------------------------------------------

    def check(self) -> int:
        """The generation of connections that may be used now; raises when there is no database."""
        now = time.monotonic()
        if now - self._asked_at > IDLE_AFTER_SECONDS:
            self._asked_since = now
        self._asked_at = now
        if self._state is State.READY or getattr(self._inside, "follower", False):
            return self._generation
        if self._refusal is not None:
            raise self._refusal
        self._refusals += 1
        raise Unavailable(
            f"The database is out of reach: {self._reason}", retry_after_ms=RETRY_AFTER_MS
        )

    def wait(self, seconds: float | None) -> None:
        """Until there is a database; raises when it took too long."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._state is State.READY or self._refusal is not None or self._stopping,
                seconds,
            )
        self.check()

    def suspect(self) -> None:
        """A connection broke: look now, not with the next second."""
        if self._wakes.empty():
            self._wakes.put(None)

    @property
    def identity(self) -> Identity | None:
        return self._identity

    @property
    def conninfo(self) -> str:
        """Of the host that is the primary, or was last."""
        return self._hosts[self._host]

    @property
    def shown_host(self) -> str:
        given = conninfo_to_dict(self.conninfo)
        host = given.get("host") or given.get("hostaddr") or "local socket"
        return f"{host}:{given.get('port') or 5432}"

    def covered_since(self, wal: int) -> float | None:
        """Until which moment (`time.monotonic`) a copy that has replayed up to `wal` has everything
        that was acknowledged; None: it lacks what was there at the first probe."""
        for at, identity, position in reversed(self._positions.copy()):
            if identity != self._identity:
                return None
            if position <= wal:
                return at
        return None

    def health(self) -> Health:
        with self._lock:
            return Health(
                self._state,
                self._reason,
                self._identity,
                self._outages,
                self._severed,
                self._probe_ms,
                self._refusals,
            )

    def counts(self) -> list[PoolCounts]:
        with self._lock:
            pools = list(self._pools)
        return [pool.counts() for pool in pools]

    # --- what depends on it ---------------------------------------------------------------------

    def pool(
        self, name: str, size_max: int, conninfo: str, deadline_s: float, wait_s: float
    ) -> Pool:
        """Connections to the host that the supervisor found, with the settings of `conninfo`."""
        hosts = list(each_host(conninfo))

        def connect() -> Connection:
            connection = open_connection(hosts[self._host], deadline_s)
            try:
                self._admit(who(connection))
            except BaseException:
                connection.close()
                raise
            return connection

        pool = Pool(name, size_max, wait_s, connect, self.check, self.suspect)
        with self._lock:
            self._pools.append(pool)
        return pool

    def forget(self, pool: Pool) -> None:
        pool.close()
        with self._lock:
            self._pools.remove(pool)

    def follow(self, follower: Follower) -> None:
        with self._lock:
            self._followers.append(follower)

    def unfollow(self, follower: Follower) -> None:
        with self._lock:
            self._followers.remove(follower)

    def set_clock(self, learn: Callable[[int, float, float], None]) -> None:
        """`learn(there_ms, before_s, after_s)` with each probe, and with the last one now."""
        with self._lock:
            self._clocks.append(learn)
        if self._measured is not None:
            learn(*self._measured)

    def unset_clock(self, learn: Callable[[int, float, float], None]) -> None:
        with self._lock:
            self._clocks.remove(learn)

    @contextlib.contextmanager
    def as_follower(self) -> Iterator[None]:
        """What this thread does meanwhile is not refused while the database is being followed."""
        self._inside.follower = True
        try:
            yield
        finally:
            self._inside.follower = False

    def release(self) -> None:
        with self._registry:
            self._users -= 1
            if self._users:
                return
            if self._shared.get(self._address.url) is self:
                del self._shared[self._address.url]
        self._stopping = True
        self.suspect()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _admit(self, answer: Answer) -> None:
        """A new connection of a pool. The first one after a failover notices it here."""
        if answer.read_only or answer.identity != self._identity:
            self.suspect()
            what = "is read-only" if answer.read_only else "is not the one that was probed"
            raise psycopg.OperationalError(f"the database {what}")

    # --- the thread ---------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._stopping:
            try:
                if self._state is State.READY:
                    self._keep()
                else:
                    self._find(POSTGRES_SEARCH_SECONDS)
            except Exception as error:  # without this thread no database is ever found again
                log.exception("a bug: the supervisor of a database")
                self._away(str(error))
            with contextlib.suppress(queue.Empty):
                self._wakes.get(timeout=self._pause_s())
        if self._probe is not None:
            self._probe.close()

    def _pause_s(self) -> float:
        if self._state is not State.READY:
            return POSTGRES_SEARCH_SECONDS
        idle = (
            time.monotonic() - self._asked_at > IDLE_AFTER_SECONDS
            or self._asked_at - self._asked_since < BUSY_AFTER_SECONDS
        )
        return POSTGRES_IDLE_PROBE_SECONDS if idle else POSTGRES_PROBE_SECONDS

    def _keep(self) -> None:
        assert self._probe is not None
        try:
            answer = self._ask(self._probe)
        except (psycopg.Error, DbError) as error:
            self._probe.close()
            # Perhaps only that connection was ended, as an administrator does.
            if not self._find(POSTGRES_PROBE_DEADLINE_SECONDS):
                self._away(str(error))
            return
        if answer.read_only or answer.identity != self._identity:
            self._away("it became read-only" if answer.read_only else "it is another database now")

    def _find(self, seconds: float) -> bool:
        """Try every host for so long, and take the one with the newest timeline."""
        found = self._answers(seconds)
        if not found:
            return False
        found.sort(key=lambda one: one.answer.identity.timeline)
        best = found.pop()
        for other in found:
            other.connection.close()
        same = best.answer.identity == self._identity and best.host == self._host
        if self._state is State.READY and not same:
            self._away("another host has taken over")
        self._probe, self._host = best.connection, best.host
        if self._state is not State.READY:
            self._adopt(best.answer.identity)
        return True

    def _answers(self, seconds: float) -> list[_Found]:
        """Those that can be written to. A host that hangs is not waited for; when it answers in the
        end, a later search has it."""
        if len(self._hosts) == 1:
            one = self._try(0)
            return [] if one is None else [one]
        for at in range(len(self._hosts)):
            if at not in self._trying:
                self._trying.add(at)
                threading.Thread(target=self._report, args=(at,), daemon=True).start()
        found: list[_Found] = []
        deadline = time.monotonic() + seconds
        while self._trying and time.monotonic() < deadline and not self._stopping:
            try:
                at, one = self._reports.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
            self._trying.discard(at)
            if one is None:
                continue
            if time.monotonic() - one.at > POSTGRES_PROBE_SECONDS:
                one.connection.close()
                self._trying.add(at)
                threading.Thread(target=self._report, args=(at,), daemon=True).start()
            else:
                found.append(one)
                # A former primary may be the first to answer: give the others a moment.
                deadline = min(deadline, time.monotonic() + GRACE_SECONDS)
        return found

    def _report(self, at: int) -> None:
        one: _Found | None = None
        try:
            one = self._try(at)
        finally:
            self._reports.put((at, one))

    def _try(self, at: int) -> _Found | None:
        try:
            connection = open_connection(self._hosts[at], POSTGRES_PROBE_DEADLINE_SECONDS)
        except NotSupported as error:
            self._refuse(error)
            return None
        except psycopg.Error as error:
            if is_full(error):
                self._reason = "it accepts no more connections"
            elif self._state is not State.READY:
                self._reason = str(error).strip().splitlines()[0] if str(error).strip() else "lost"
            return None
        try:
            answer = self._ask(connection)
            known = self._identity
            if answer.read_only:
                self._reason = "it is read-only (a standby?)"
            elif (
                known is not None
                and known.system_id == answer.identity.system_id
                and known.timeline > answer.identity.timeline
            ):
                self._reason = "a former primary answers"
            else:
                return _Found(at, connection, answer, time.monotonic())
        except NotSupported as error:
            self._refuse(error)
        except psycopg.Error as error:
            self._reason = str(error)
        connection.close()
        return None

    def _refuse(self, error: NotSupported) -> None:
        with self._changed:
            self._refusal = error
            self._changed.notify_all()

    def _ask(self, connection: Connection) -> Answer:
        before = time.monotonic()
        answer = who(connection)
        after = time.monotonic()
        self._probe_ms = (after - before) * 1000
        self._measured = answer.clock_ms, before, after
        if not answer.read_only:
            self._positions.append((before, answer.identity, answer.wal))
        for learn in list(self._clocks):
            learn(*self._measured)
        return answer

    def _away(self, reason: str) -> None:
        with self._changed:
            was_ready = self._state is State.READY
            self._state, self._reason = State.AWAY, reason
            self._generation += 1
            if was_ready:
                self._outages += 1
            pools = list(self._pools)
        if was_ready:
            log.warning("the database is out of reach: %s", reason)
        if self._probe is not None:
            self._probe.close()
        for pool in pools:
            self._severed += pool.counts().open
            pool.sever()
        self.suspect()  # look for another at once

    def _adopt(self, identity: Identity) -> None:
        """Only the followers use it until they are done."""
        with self._changed:
            self._state, self._reason = State.MOVED, "the store is made ready for it"
            before, self._identity = self._identity, identity
            followers = list(self._followers)
        try:
            with self.as_follower():
                for follower in followers:
                    follower(identity)
        except (DbError, psycopg.Error) as error:
            log.warning("the database is back, and was lost again: %s", error)
            self._identity = before
            self._away(str(error))
            return
        with self._changed:
            self._state, self._reason, self._refusal = State.READY, "", None
            self._changed.notify_all()
        log.info("the database answers: system %s, timeline %s", *_pair(identity))


def _pair(identity: Identity) -> tuple[int, int]:
    return identity.system_id, identity.timeline
