"""Without these, a split could lose bytes or cut a key in two."""

import numpy as np
import pytest

from armillary.errors import NotSplittable
from armillary.partition.provisioning.merging import Merge
from armillary.partition.provisioning.scaling import Split
from armillary.sim.container.layout import Layout, even_layout
from armillary.sim.container.placing import Floats
from armillary.sim.container.population import Skew, populate


def sizes(layout: Layout, total: float = 1000.0) -> Floats:
    heavy = layout.population.bytes.heavy * total
    return layout.sums("bytes", heavy, total, layout.owners())


@pytest.mark.parametrize("keys", [50, 30_000, 10**8])
@pytest.mark.parametrize("skew", [Skew(), Skew(exponent=1.0)])
def test_splits_and_merges_keep_every_byte_and_tile_the_ring(keys: int, skew: Skew) -> None:
    layout = even_layout(populate(keys, skew, seed=5), 4)
    for _ in range(3):
        cuts = []
        following = layout.next_ordinal
        heavy = layout.population.bytes.heavy * 1000
        for i, ordinal in enumerate(layout.ordinals):
            try:
                at = layout.cut(i, float(layout.tail("bytes")[i]) * 1000, heavy, layout.owners())
            except NotSplittable:
                continue
            cuts.append((Split(int(ordinal), (following, following + 1)), at))
            following += 2
        layout = layout.split(cuts)
        assert sizes(layout).sum() == pytest.approx(1000.0)
        assert len(layout.table().ranges) == len(layout)
    a, b = (int(ordinal) for ordinal in layout.ordinals[1:3])
    merged = layout.merge([Merge((a, b), layout.next_ordinal, 0)])
    assert len(merged.table().ranges) == len(layout) - 1
    assert sizes(merged).sum() == pytest.approx(1000.0)
    assert {a, b} <= set(merged.table().ranges[1].parents)


def test_a_cut_halves_the_bytes_and_leaves_keys_whole() -> None:
    layout = even_layout(populate(10**8, Skew(), seed=1), 1)
    at = layout.cut(0, 1000.0, layout.population.bytes.heavy, layout.owners())
    halves = sizes(layout.split([(Split(0, (1, 2)), at)]))
    assert halves == pytest.approx([500.0, 500.0], rel=1e-4)


def test_one_key_is_never_cut() -> None:
    layout = even_layout(populate(1, Skew(), seed=1), 1)
    with pytest.raises(NotSplittable):
        layout.cut(0, 0.0, np.array([1000.0]), layout.owners())
