"""Rings to draw."""

from __future__ import annotations

from armillary.ring.model import Arc, Ring


def arcs(count: int) -> tuple[Arc, ...]:
    return tuple(
        Arc(
            id=str(n),
            start=n / count,
            end=(n + 1) / count,
            bytes=1_000_000 + 37_000 * (n % 13),
            items=100 + n,
            ru_per_s=10_000 / count,
            used_ru=n % 7,
            normalised=float(n * 17 % 101),
            refused=n % 3,
            status="online",
            parents=(),
        )
        for n in range(count)
    )


def ring(made: tuple[Arc, ...]) -> Ring:
    return Ring(
        database="shop",
        container="orders",
        partition_key=("/customerId",),
        throughput=10_000,
        partition_bytes=50 * 10**9,
        logical_bytes=20 * 10**9,
        arcs=made,
    )
