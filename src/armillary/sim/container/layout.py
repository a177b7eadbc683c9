"""The ranges of a simulated container: bounds on the ring, ids, ancestors.

    edges      0 ──────┬──────┬───────────┬────── 2^62      n + 1 places
    ordinals      0        3        4          2            n ids, never used twice

A split or a merge makes a new layout; nothing is changed in place. Where a range is cut is the
product's rule (`cutting.byte_median`): at half of the bytes, never through a key. `table()` is the
same as the product's ranges, which checks that they tile the ring.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from armillary.encoding.hashing import even_bounds
from armillary.errors import NotSplittable
from armillary.partition.provisioning import cutting
from armillary.partition.provisioning.merging import Merge
from armillary.partition.provisioning.scaling import Split
from armillary.partition.ranges import Range, RangeTable, range_table
from armillary.sim.container.placing import (
    DEFINITION,
    RING,
    Floats,
    Ints,
    Places,
    bound_of,
    place_of,
)
from armillary.sim.container.population import Population

CUT_PIECES = 64  # of the lighter keys of a range, when it is cut


@dataclass(frozen=True)
class Layout:
    population: Population
    edges: Places
    ordinals: Ints
    next_ordinal: int
    parents: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        at = self.edges
        assert (int(at[0]), int(at[-1])) == (0, RING), "ranges reach from end to end"
        assert np.all(at[1:] > at[:-1]), "ranges are in order"

    def __len__(self) -> int:
        return len(self.ordinals)

    def index(self) -> dict[int, int]:
        return {int(ordinal): i for i, ordinal in enumerate(self.ordinals)}

    # --- what lies in each range ------------------------------------------------------------------

    def owners(self) -> Ints:
        return self.population.owners(self.edges)

    def tail(self, measure: str) -> Floats:
        return self.population.tail(self.edges, measure)

    def sums(self, measure: str, heavy: Floats, factor: float, owners: Ints) -> Floats:
        """Each range: its part of `factor` by the lighter keys, and its heavy keys as given."""
        own = np.bincount(owners, weights=heavy, minlength=len(self))
        return np.asarray(self.tail(measure) * factor + own, np.float64)

    # --- splits and merges ------------------------------------------------------------------------

    def cut(self, i: int, tail_bytes: float, heavy_bytes: Floats, owners: Ints) -> int:
        """Where the range at this index is cut in two: at half of its bytes. `NotSplittable` when
        one key holds all of them.
        """
        start, end = int(self.edges[i]), int(self.edges[i + 1])
        mine = np.flatnonzero(owners == i)
        heavy_places = self.population.heavy_places[mine]
        even = self.population.pieces(start, end, CUT_PIECES)
        # A piece ends where a heavy key begins, so that no cut can count the mass behind it.
        pieces = np.union1d(even, heavy_places)
        sizes = self.population.tail(pieces, "bytes")
        total = float(sizes.sum())
        sizes = sizes * (tail_bytes / total if total > 0 else 0.0)
        np.add.at(sizes, np.searchsorted(pieces, heavy_places), heavy_bytes[mine])
        known = [
            (bound_of(int(at)), float(size))
            for at, size in zip(pieces[:-1], sizes, strict=True)
            if size > 0
        ]
        at_place = place_of(cutting.byte_median(known))
        if not start < at_place < end:
            raise NotSplittable
        return at_place

    def split(self, cuts: Sequence[tuple[Split, int]]) -> "Layout":
        """All at once: (which becomes which, where it is cut)."""
        by_parent = {split.parent: (split, at) for split, at in cuts}
        edges: list[int] = []
        ordinals: list[int] = []
        parents = dict(self.parents)
        for i, ordinal in enumerate(map(int, self.ordinals)):
            edges.append(int(self.edges[i]))
            found = by_parent.pop(ordinal, None)
            if found is None:
                ordinals.append(ordinal)
                continue
            split, at = found
            ordinals += split.children
            edges.append(at)
            ancestry = (*parents.pop(ordinal, ()), ordinal)
            parents |= dict.fromkeys(split.children, ancestry)
        assert not by_parent, f"no such ranges: {list(by_parent)}"
        highest = max([self.next_ordinal, *(1 + max(split.children) for split, _ in cuts)])
        return self._with(edges, ordinals, highest, parents)

    def merge(self, merges: Sequence[Merge]) -> "Layout":
        target = {source: one for one in merges for source in one.sources}
        edges: list[int] = []
        ordinals: list[int] = []
        parents = dict(self.parents)
        for i, ordinal in enumerate(map(int, self.ordinals)):
            one = target.get(ordinal)
            if one is not None:
                parents[one.target] = (
                    *parents.get(one.target, ()),
                    *parents.pop(ordinal, ()),
                    ordinal,
                )
                if ordinals and ordinals[-1] == one.target:
                    continue
            edges.append(int(self.edges[i]))
            ordinals.append(ordinal if one is None else one.target)
        highest = max([self.next_ordinal, *(1 + one.target for one in merges)])
        return self._with(edges, ordinals, highest, parents)

    def _with(
        self,
        edges: Sequence[int],
        ordinals: Sequence[int],
        next_ordinal: int,
        parents: Mapping[int, tuple[int, ...]],
    ) -> "Layout":
        return replace(
            self,
            edges=np.array([*edges, RING], np.uint64),
            ordinals=np.array(ordinals, np.int64),
            next_ordinal=next_ordinal,
            parents=parents,
        )

    def table(self) -> RangeTable:
        bounds = [bound_of(int(edge)) for edge in self.edges]
        ids = [int(ordinal) for ordinal in self.ordinals]
        return range_table(
            [
                Range(one, 1 + one, bounds[i], bounds[i + 1], 1, self.parents.get(one, ()))
                for i, one in enumerate(ids)
            ]
        )


def even_layout(population: Population, count: int) -> Layout:
    """Of a new container."""
    bounds = [place_of(bound) for bound in even_bounds(DEFINITION, count)]
    edges = np.array([0, *bounds, RING], np.uint64)
    return Layout(population, edges, np.arange(count, dtype=np.int64), count)


def spread(values: Floats) -> tuple[float, float]:
    """(max / mean, coefficient of variation)."""
    mean = float(values.mean())
    if mean <= 0:
        return 1.0, 0.0
    return float(values.max()) / mean, float(values.std()) / mean
