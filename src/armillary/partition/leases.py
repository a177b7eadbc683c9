"""Who does the background work: one lease for each kind of it, over all processes and servers.

    free ──acquire──▶ held until expires_ms ──renew──▶ held …      ──release──▶ free
                               └── expired ──acquire by another, epoch + 1

The epoch rises whenever the lease changes hands. It goes with what its holder writes alongside the
lease, and a write with an older epoch is refused: a holder that slept through its own expiry finds
out at its next write, whatever it believes. So expiry only has to be roughly right.

These are decisions over a record. `store/upkeep/leases.py` keeps it in the catalog, by the clock of
the engine, and says what protects the work that is written elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from armillary.limits import LEASE_MS

FREE = ""


@dataclass(frozen=True, slots=True)
class Lease:
    """A row of the catalog. `epoch` 0: it was never held."""

    owner: str = FREE
    epoch: int = 0
    expires_ms: int = 0

    def held(self, now_ms: int) -> bool:
        return self.owner != FREE and now_ms < self.expires_ms


def acquire(lease: Lease, owner: str, now_ms: int, lease_ms: int = LEASE_MS) -> Lease | None:
    """The row to store in place of `lease`, or None when somebody else has it.

    Who has it already only renews it. A process that restarts must call itself something new: its
    former self may still be writing.
    """
    assert owner != FREE, "an owner has a name"
    if lease.owner == owner and lease.held(now_ms):
        return renew(lease, owner, lease.epoch, now_ms, lease_ms)
    if lease.held(now_ms) and not _from_the_future(lease, now_ms, lease_ms):
        return None
    return Lease(owner, lease.epoch + 1, now_ms + lease_ms)


def renew(
    lease: Lease, owner: str, epoch: int, now_ms: int, lease_ms: int = LEASE_MS
) -> Lease | None:
    """The row to store, or None when it is lost: stop the work.

    Also after it expired, as long as it was not taken: the epoch shows that.
    """
    if not holds(lease, owner, epoch):
        return None
    return replace(lease, expires_ms=now_ms + lease_ms)


def release(lease: Lease, owner: str, epoch: int) -> Lease | None:
    """The row to store so that others need not wait, or None when it is not ours. The epoch stays,
    and so what was written under it stays older than the next.
    """
    return Lease(FREE, lease.epoch, 0) if holds(lease, owner, epoch) else None


def holds(lease: Lease, owner: str, epoch: int) -> bool:
    """May a write under this epoch go ahead? To be asked inside the transaction of that write."""
    return lease.owner == owner and lease.epoch == epoch


def renew_due(lease: Lease, now_ms: int, lease_ms: int = LEASE_MS) -> bool:
    """A third of its time is over: early enough that one lost attempt does no harm."""
    return now_ms >= lease.expires_ms - 2 * lease_ms // 3


def _from_the_future(lease: Lease, now_ms: int, lease_ms: int) -> bool:
    """No lease is given for longer than this: the clock was put back since."""
    return lease.expires_ms - now_ms > 2 * lease_ms
