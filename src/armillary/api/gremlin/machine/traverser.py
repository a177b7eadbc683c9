"""A traverser: an object, where it came from, how often it stands for the same, and its loops."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec

from armillary.api.gremlin.machine.values import hash_key

NO_LABELS: Final[tuple[str, ...]] = ()
#: (before, object, labels): shared between all traversers that came the same way.
Trail: TypeAlias = tuple[Any, Any, tuple[str, ...]] | None


class Traverser(msgspec.Struct, eq=False, gc=False):
    """HOT: one per result of each step, and in no cycle. `origin` tells the traversers of a child
    traversal apart that runs for many parents at once; see `running.py`. `trail` is None when no
    step of the traversal looks at paths; only then may equal traversers be one with a larger
    `bulk`."""

    object: Any
    trail: Trail = None
    bulk: int = 1
    loops: tuple[int, ...] = ()
    origin: int = 0

    def at(self, object: Any, tracked: bool) -> Traverser:
        """A step further."""
        trail = (self.trail, object, NO_LABELS) if tracked else None
        return Traverser(object, trail, self.bulk, self.loops, self.origin)

    def copy(self, origin: int | None = None) -> Traverser:
        return Traverser(
            self.object,
            self.trail,
            self.bulk,
            self.loops,
            self.origin if origin is None else origin,
        )


def start(object: Any, tracked: bool) -> Traverser:
    """One without a past: the result of a reducing step, a value to project."""
    return Traverser(object, (None, object, NO_LABELS) if tracked else None)


def places(trail: Trail) -> list[tuple[Any, tuple[str, ...]]]:
    """(object, labels) from the first to the last."""
    found: list[tuple[Any, tuple[str, ...]]] = []
    while trail is not None:
        before, object, labels = trail
        found.append((object, labels))
        trail = before
    found.reverse()
    return found


def merged(traversers: list[Traverser]) -> list[Traverser]:
    """Equal traversers become one. Only for those without a trail."""
    if len(traversers) < 2 or traversers[0].trail is not None:
        return traversers
    found: dict[Any, Traverser] = {}
    for one in traversers:
        key = (hash_key(one.object), one.loops, one.origin)
        other = found.get(key)
        if other is None:
            found[key] = one.copy()
        else:
            other.bulk += one.bulk
    return list(found.values())


def each(traversers: list[Traverser]) -> list[Traverser]:
    """One for each of its bulk."""
    if all(one.bulk == 1 for one in traversers):
        return traversers
    found: list[Traverser] = []
    for one in traversers:
        if one.bulk == 1:
            found.append(one)
        else:
            single = one.copy()
            single.bulk = 1
            found.extend([single] * one.bulk)
    return found
