"""Session guarantees: what one client may rely on where reads of others may be stale.

    read your writes      a read is at least as new as the last write of its session
    monotonic reads       … and as the last read of its session
    monotonic writes      writes of a session take effect in the order in which it made them
    writes follow reads   a write comes after what its session had read before

"New" needs an order of the writes of a key: each write says its `version` (its LSN). A read has the
version of the write whose value it found. A write without an answer has none, unless `versions`
says it (from the change feed, say); reads of such values are counted and not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.support.histories.record import DELETE, READ, Operation, Value, by_key

Versions = Mapping[tuple[str, Value], int]
"""Key and value → version of the write."""


@dataclass(frozen=True, slots=True)
class SessionVerdict:
    sessions: int
    reads: int
    writes: int
    unjudged: int
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        result = f"{len(self.violations)} violations" if self.violations else "all guarantees hold"
        return (
            f"{self.sessions} sessions, {self.reads:,} reads and {self.writes:,} writes compared "
            f"with what their session knew, {self.unjudged:,} not judged: {result}"
        )


def check(history: Iterable[Operation], versions: Versions | None = None) -> SessionVerdict:
    operations = list(history)
    sessions = {one.session for one in operations}
    reads = writes = unjudged = 0
    violations: list[str] = []
    for key, of_key in by_key(operations).items():
        known, doubts = _versions(key, of_key, versions or {})
        violations += doubts
        deletes = any(one.kind == DELETE for one in of_key)
        for session in {one.session for one in of_key}:
            own = [one for one in of_key if one.session == session]
            seen_read, seen_write = 0, 0
            for one in sorted(own, key=lambda one: one.invoked):
                if one.returned is None or not one.done:
                    continue  # a refused write says nothing about the order
                if one.kind == READ:
                    found = _version_read(key, one, known, deletes)
                    if found is None:
                        unjudged += 1
                        continue
                    reads += 1
                    if found < seen_write:
                        violations.append(f"read your writes: {one} has {found} < {seen_write}")
                    if found < seen_read:
                        violations.append(f"monotonic reads: {one} has {found} < {seen_read}")
                    seen_read = max(seen_read, found)
                    continue
                if one.version is None:
                    unjudged += 1
                    continue
                writes += 1
                if one.version <= seen_write:
                    violations.append(f"monotonic writes: {one} is {one.version} ≤ {seen_write}")
                if one.version <= seen_read:
                    violations.append(f"writes follow reads: {one} is {one.version} ≤ {seen_read}")
                seen_write = max(seen_write, one.version)
    return SessionVerdict(len(sessions), reads, writes, unjudged, violations)


def _versions(
    key: str, operations: Iterable[Operation], told: Versions
) -> tuple[dict[Value, int], list[str]]:
    """Value → version; and what is wrong with the versions themselves."""
    found: dict[Value, int] = {}
    values: dict[int, Value] = {}
    doubts: list[str] = []
    for one in operations:
        if one.kind in (READ, DELETE) or not one.done:
            continue
        version = told.get((key, one.value), one.version)
        if version is None:
            continue
        if values.setdefault(version, one.value) != one.value:
            doubts.append(f"{key}: {values[version]!r} and {one.value!r} both have {version}")
        found[one.value] = version
    return found, doubts


def _version_read(
    key: str, read: Operation, known: Mapping[Value, int], deletes: bool
) -> int | None:
    if read.value is None:
        return None if deletes else 0  # absent: before every write, unless something deletes
    return known.get(read.value)
