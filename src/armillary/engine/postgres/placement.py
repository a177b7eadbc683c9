"""Which numbers new spaces get on Citus, so that the ranges of a container lie on all workers.

    number of a space ──hash──▶ shard ──catalog of Citus──▶ node

The rows are distributed by the number of their space, so the number is the place: out of more fresh
numbers than are needed, those are taken whose shards balance the container. First over nodes, then
over shards, because a shard is what a rebalancing moves: a container on many shards stays balanced
when a worker is added. Between equals the node and the shard with fewest spaces of all containers.

Pure: `engine.py` asks Citus where each number lies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

CHOICES: Final = 64  # fresh numbers to choose from: two for each of the 32 shards that are usual…
CHOICES_EACH: Final = 4  # …and so many for each new range


class Place(NamedTuple):
    """Where the rows of a space lie, or would."""

    space: int
    shard: int
    node: str


def choices_for(count: int) -> int:
    return CHOICES + CHOICES_EACH * count


def choose(
    fresh: Sequence[Place], count: int, present: Sequence[Place], others: Sequence[Place]
) -> list[int]:
    """`count` of the fresh ones, ascending. `present`: the container has these spaces already;
    `others`: all other containers have those."""
    assert count <= len(fresh)
    own_nodes = Counter(one.node for one in present)
    own_shards = Counter(one.shard for one in present)
    nodes = Counter(one.node for one in others)
    shards = Counter(one.shard for one in others)
    left = list(fresh)
    taken: list[int] = []
    for _ in range(count):
        best = min(
            left,
            key=lambda one: (
                own_nodes[one.node],
                own_shards[one.shard],
                nodes[one.node],
                shards[one.shard],
                one.space,
            ),
        )
        left.remove(best)
        taken.append(best.space)
        own_nodes[best.node] += 1
        own_shards[best.shard] += 1
    return sorted(taken)
