"""What one run may use. Tests and settings make smaller ones."""

from __future__ import annotations

from dataclasses import dataclass

from armillary import limits


@dataclass(frozen=True, slots=True)
class Bounds:
    seconds: float = limits.SCRIPT_SECONDS
    """Of wall time for a whole run; then the child is killed and the answer is 408."""
    heap_bytes: int = limits.SCRIPT_HEAP_BYTES
    children: int = limits.SCRIPT_CHILDREN
    """Processes that run scripts at the same time."""
    waiting: int = limits.SCRIPTS_WAITING_MAX
    """Runs that wait for their turn; more are refused."""
    soft_share: float = limits.SCRIPT_SOFT_SHARE
    chain_seconds: float = limits.SCRIPT_CHAIN_SECONDS
    """For how long runs on one key may follow each other on one snapshot."""

    @property
    def soft_seconds(self) -> float:
        """After which operations are no longer accepted, so that a script can end by itself."""
        return self.seconds * self.soft_share

    @property
    def strike_seconds(self) -> float:
        """Of CPU time; a script that uses more again and again is blocked."""
        return self.seconds * limits.SCRIPT_STRIKE_SHARE
