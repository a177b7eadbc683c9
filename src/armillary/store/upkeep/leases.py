"""Background work under leases: one row of the catalog for each job, with an epoch and an expiry.

    round ──may("expiry")?──▶ free, expired or ours  → a write of one row, then the work
                              held by another        → no; the round ends with `left`
          ──may("expiry")?──▶ ours, a third is over  → renewed; lost → no
          ──end───────────────▶ everything it held is free again

A job is asked for only when there is something to do, so an idle account writes nothing. Who does
it longer than a lease lasts asks again between two pieces of work.

A lease saves double work; it protects nothing by itself. A holder that slept through its expiry may
still be in the middle of a piece. What it writes is refused or harmless where it is written: splits
and merges by the epoch of the move, offers by their version, bills by the epoch of the lease in the
same transaction; the pieces of expiry, trimming and indexing may be done twice.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Final, NamedTuple

import msgspec

from armillary.encoding.records import decoder
from armillary.engine.base import CATALOG_SPACE, Command, Engine, Handler, Reader, Writer, always
from armillary.limits import LEASE_MS
from armillary.partition import leases
from armillary.partition.leases import Lease
from armillary.store.rows.layout import after

LEASE: Final = b"\xa1"

#: What is done in the background, and by one process at a time.
JOBS: Final[dict[str, str]] = {
    "round": "looking at every container, of all servers on a database",
    "spaces": "dropping what a crash left without an owner",
    "takeover": "splits and merges whose runner sends no heartbeat",
    "scaling": "splits of full partitions, changes of throughput, merges",
    "expiry": "removing items past their time to live",
    "log": "forgetting old versions past their retention",
    "index": "index entries after a change of policy",
    "autoscale": "billing the hours of autoscale",
}


decode_lease = decoder(Lease)


def lease_key(job: str) -> bytes:
    return LEASE + job.encode()


def read_lease(reader: Reader, job: str) -> Lease:
    row = reader.get(lease_key(job))
    return Lease() if row is None else decode_lease(row)


def list_leases(reader: Reader) -> dict[str, Lease]:
    """Those that were ever held, by job."""
    rows = reader.scan(LEASE, after(LEASE))
    return {key[1:].decode(): decode_lease(row) for key, row in rows}


# --- commands -------------------------------------------------------------------------------------


class Ask(NamedTuple):
    job: str
    owner: str
    epoch: int
    """Of the lease that is to be renewed; 0: to be had."""
    now_ms: int
    lease_ms: int


def take(tx: Writer, data: Ask) -> tuple[int, int] | None:
    """(epoch, expires_ms), or None when another has it."""
    ask = Ask(*data)
    lease = read_lease(tx, ask.job)
    if ask.epoch:
        given = leases.renew(lease, ask.owner, ask.epoch, ask.now_ms, ask.lease_ms)
    else:
        given = leases.acquire(lease, ask.owner, ask.now_ms, ask.lease_ms)
    if given is None:
        return None
    tx.put(lease_key(ask.job), msgspec.json.encode(given))
    return given.epoch, given.expires_ms


def release(tx: Writer, data: tuple[str, list[tuple[str, int]]]) -> None:
    """`owner` lets go of these (job, epoch). What it lost meanwhile stays with the other."""
    owner, held = data
    for job, epoch in held:
        free = leases.release(read_lease(tx, job), owner, epoch)
        if free is not None:
            tx.put(lease_key(job), msgspec.json.encode(free))


#: Without a lease nothing is swept, so they are taken on a full store too.
HANDLERS: dict[str, Handler] = {
    "leases.take": Handler(take, frees=always),
    "leases.release": Handler(release, frees=always),
}


# --- a round of work ------------------------------------------------------------------------------


class Round:
    """The leases of one runner for one round of work. Each has a name of its own: two threads of a
    process are as strange to each other as two servers."""

    def __init__(self, engine: Engine, owner: str, *, lease_ms: int = LEASE_MS) -> None:
        self.owner = owner
        self.left = False
        """Something was to be done that another does, or will have to be asked for again."""
        self._engine = engine
        self._lease_ms = lease_ms
        self._held: dict[str, Lease] = {}

    def __enter__(self) -> "Round":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def may(self, job: str) -> bool:
        """Whether to do the next piece of a job that is due. False: somebody else does."""
        assert job in JOBS, job
        now_ms = self._engine.now_ms()
        held = self._held.get(job)
        if held is not None and not leases.renew_due(held, now_ms, self._lease_ms):
            return True
        if held is None and self._is_taken(job, now_ms):
            self.left = True
            return False
        epoch = 0 if held is None else held.epoch
        ask = Ask(job, self.owner, epoch, now_ms, self._lease_ms)
        given = self._engine.run(CATALOG_SPACE, Command("leases.take", ask))
        if given is None:
            self._held.pop(job, None)
            self.left = True
            return False
        self._held[job] = Lease(self.owner, *given)
        return True

    def gate(self, job: str) -> Callable[[], bool]:
        return lambda: self.may(job)

    def epoch(self, job: str) -> int:
        """Of a lease that is held: goes with what is written under it."""
        return self._held[job].epoch

    def close(self) -> None:
        """Let others go on at once. A process that dies here is waited for until its leases end."""
        held = [(job, lease.epoch) for job, lease in self._held.items()]
        if held:
            self._held.clear()
            self._engine.run(CATALOG_SPACE, Command("leases.release", (self.owner, held)))

    def _is_taken(self, job: str, now_ms: int) -> bool:
        """A look, so that waiting for another writes nothing."""
        with self._engine.read(CATALOG_SPACE) as reader:
            lease = read_lease(reader, job)
        return leases.acquire(lease, self.owner, now_ms, self._lease_ms) is None
