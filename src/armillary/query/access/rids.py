"""Rids that accesses find in one snapshot: ascending, each once.

Entries of one term are in rid order already and are streamed. Others are collected and sorted, if
there are not too many. Several accesses of one filter are intersected: sets when they were
collected; streams by leaps, where each in turn is asked for the first rid that the others may
still have.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, TypeAlias

from armillary.query.access.lookups import Access, Both, Either, JointLookup, Lookup, Unplaced
from armillary.store.index.plan import path_hash
from armillary.store.rows import layout

if TYPE_CHECKING:
    from armillary.query.run.items import StoreView

Way: TypeAlias = Access | JointLookup
#: Rids from a given one on.
Run: TypeAlias = Callable[[bytes], Iterator[bytes]]

RID_BYTES: Final = 8
MANY: Final = 20_000  # entries that are collected and sorted for one page
WORTH_IT: Final = 4  # entries that are read rather than one item loaded and looked at
FEWEST: Final = 8  # items: not worth looking for them elsewhere
STEPS: Final = 16  # entries that are passed over before it pays to seek


def count(view: StoreView, access: Way, bound: int) -> int:
    """Entries to be read, at most `bound`."""
    match access:
        case Lookup() | JointLookup():
            return sum(1 for _ in islice(_rows(view, access), bound))
        case Either(parts):
            total = 0
            for part in parts:
                total += count(view, part, bound - total)
                if total >= bound:
                    break
            return total
        case Both(parts):
            return min(count(view, part, bound) for part in parts)
        case Unplaced():
            raise AssertionError("what is wanted becomes ranges in `usable`")


class Gathering:
    """Entries of one way, read as far as a bound and then further: none is read twice to find out
    how many there are.
    """

    __slots__ = ("_rids", "_rows", "_view", "is_done", "read", "way")

    def __init__(self, view: StoreView, way: Way) -> None:
        self.way = way
        self.read = 0
        self.is_done = False
        self._view = view
        self._rids: list[bytes] = []
        self._rows = _all_rows(view, way)

    def go_on(self, bound: int) -> None:
        """Until `bound` entries have been read, or all."""
        if self.is_done:
            return
        if self._rows is None:
            self.read = count(self._view, self.way, bound)
        else:
            some = list(islice(self._rows, bound - self.read))
            self.read += len(some)
            self._rids += [key[-RID_BYTES:] for key, _ in self._view.inside(some)]
        self.is_done = self.read < bound

    def spread(self) -> int:
        """Of entries of one term, how many rids lie between the first and the last that was
        read."""
        if not self._rids or len(_prefixes(self.way)) != 1:
            return 0
        return int.from_bytes(self._rids[-1], "big") - int.from_bytes(self._rids[0], "big")

    def found(self) -> set[bytes]:
        """The rids, when it is done."""
        return set(self._rids) if self._rows is not None else _collect(self._view, self.way)


def _all_rows(view: StoreView, way: Way) -> Iterator[tuple[bytes, bytes]] | None:
    """The entries of a way; None when not all of them have to be read."""
    match way:
        case Lookup() | JointLookup():
            return _rows(view, way)
        case Either(parts):
            rows = [_all_rows(view, part) for part in parts]
            known = [each for each in rows if each is not None]
            return chain.from_iterable(known) if len(known) == len(rows) else None
        case _:
            return None


def is_stream(access: Way) -> bool:
    match access:
        case Lookup() | JointLookup():
            return access.is_points
        case Either(parts):
            return all(isinstance(part, Lookup) and part.is_points for part in parts)
        case _:
            return False


def found_by_all(view: StoreView, ways: Sequence[Way], start: bytes) -> Iterable[bytes]:
    """The rids from `start` on that each of the ways finds; the first finds the fewest."""
    if all(map(is_stream, ways)):
        return _common([_run_of(view, way) for way in ways], start)
    found = _collect(view, ways[0])
    for way in ways[1:]:
        found &= _collect(view, way)
    return sorted(rid for rid in found if rid >= start)


def count_exactly(view: StoreView, access: Access, most: int) -> int | None:
    """How many items an exact access finds; None when that would be too many rids to keep."""
    ways: tuple[Access, ...] = access.parts if isinstance(access, Both) else (access,)
    if all(map(is_stream, ways)):
        return sum(1 for _ in found_by_all(view, ways, b""))
    found = _exactly(view, access, most)
    return None if found is None else len(found)


def _exactly(view: StoreView, access: Access, most: int) -> set[bytes] | None:
    if isinstance(access, Lookup | Unplaced):
        return _collect(view, access) if count(view, access, most) < most else None
    found: set[bytes] | None = None
    for part in access.parts:
        more = _exactly(view, part, most)
        if more is None:
            return None
        if found is None:
            found = more
        elif isinstance(access, Both):
            found &= more
        else:
            found |= more
    return found


# --- streams --------------------------------------------------------------------------------------


def _run_of(view: StoreView, way: Way) -> Run:
    """Rids under the terms of a way."""
    prefixes = _prefixes(way)

    def run(start: bytes) -> Iterator[bytes]:
        runs = [_under(view, prefix, start) for prefix in prefixes]
        return runs[0] if len(runs) == 1 else _each_once(heapq.merge(*runs))

    return run


def _prefixes(way: Way) -> list[bytes]:
    match way:
        case JointLookup():
            return [start for start, _ in way.ranges]
        case Lookup():
            prefix = way.kind + path_hash(way.path)
            return [prefix + start for start, _ in way.ranges]
        case Either(parts):
            return [prefix for part in parts for prefix in _prefixes(part)]
        case _:
            raise AssertionError("only terms are streamed")


def _under(view: StoreView, prefix: bytes, start: bytes) -> Iterator[bytes]:
    rows = view.entries(prefix + start, layout.after(prefix))
    return (key[-RID_BYTES:] for key, _ in view.inside(rows))


def _each_once(ascending: Iterable[bytes]) -> Iterator[bytes]:
    last = b""
    for rid in ascending:
        if rid != last:
            yield rid
            last = rid


def _common(runs: Sequence[Run], start: bytes) -> Iterator[bytes]:
    if len(runs) == 1:
        return runs[0](start)
    return _leaping(runs, start)


def _leaping(runs: Sequence[Run], start: bytes) -> Iterator[bytes]:
    """What all runs have: the one that is behind goes on to where the others are, step by step
    when that is near, else by a new seek.
    """
    streams = [run(start) for run in runs]
    wanted, agreeing = start, 0
    number = -1
    while True:
        number = (number + 1) % len(runs)
        found = next((rid for rid in islice(streams[number], STEPS) if rid >= wanted), None)
        if found is None:
            streams[number] = runs[number](wanted)
            found = next(streams[number], None)
            if found is None:
                return
        agreeing = agreeing + 1 if found == wanted else 1
        wanted = found
        if agreeing == len(runs):
            yield wanted
            wanted, agreeing = wanted + b"\x00", 0


# --- sets -----------------------------------------------------------------------------------------


def _collect(view: StoreView, access: Way) -> set[bytes]:
    match access:
        case Lookup() | JointLookup():
            return {key[-RID_BYTES:] for key, _ in view.inside(_rows(view, access))}
        case Either(parts):
            return set().union(*(_collect(view, part) for part in parts))
        case Both(parts):
            return _smallest_of(view, parts)
        case Unplaced():
            raise AssertionError("what is wanted becomes ranges in `usable`")


def _smallest_of(view: StoreView, parts: Sequence[Access]) -> set[bytes]:
    """What the smallest part finds, without what others that are not much larger don't find."""
    counted = sorted((count(view, part, MANY), number) for number, part in enumerate(parts))
    found = _collect(view, parts[counted[0][1]])
    for entries, number in counted[1:]:
        if len(found) < FEWEST or entries >= min(MANY, WORTH_IT * len(found)):
            break
        found &= _collect(view, parts[number])
    return found


def _rows(view: StoreView, lookup: Lookup | JointLookup) -> Iterator[tuple[bytes, bytes]]:
    prefix = b""
    if isinstance(lookup, Lookup):
        prefix = lookup.kind + path_hash(lookup.path)
    for start, end in lookup.ranges:
        yield from view.entries(prefix + start, prefix + end)


def entries_of(view: StoreView, lookup: Lookup | JointLookup) -> Iterator[bytes]:
    """The keys of the entries that belong to items of the view."""
    return (key for key, _ in view.inside(_rows(view, lookup)))
