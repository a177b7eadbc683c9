"""The closed forms of the partitioning reference, section 8.3, through the simulator's own keys
and the real hash. Without them its unevenness could be anything.
"""

import math
from statistics import fmean

import numpy as np
import pytest

from armillary.encoding.hashing import epk
from armillary.encoding.partition_key import parse_definition
from armillary.errors import BadInput
from armillary.sim.container.layout import Layout, even_layout, spread
from armillary.sim.container.placing import Floats, place_of
from armillary.sim.container.population import Skew, parse_skew, populate, shares

#: keys, ranges, seeds to average over, max/mean as published, CV as published, empty ranges
TABLE = [
    (400, 10, 150, 1.249, 0.146, None),
    (400, 100, 60, 2.459, 0.496, 1.8),
    (1_000, 100, 60, 1.877, 0.314, None),
    (10_000, 100, 20, 1.260, 0.099, None),
    (100_000, 100, 30, 1.079, 0.031, None),
    (2_000, 2_000, 20, 5.89, 1.00, 735.6),
    (100_000, 2_000, 10, 1.520, 0.142, None),
    (1_000_000, 2_000, 5, 1.157, 0.045, None),
    (10_000_000, 2_000, 4, 1.050, 0.014, None),
]


def keys_by_range(keys: int, ranges: int, seed: int) -> Floats:
    layout = even_layout(populate(keys, Skew(), seed=seed), ranges)
    return layout.sums("bytes", layout.population.bytes.heavy, 1.0, layout.owners()) * keys


@pytest.mark.parametrize(("keys", "ranges", "seeds", "ratio", "cv", "empty"), TABLE)
def test_table_8_3(
    keys: int, ranges: int, seeds: int, ratio: float, cv: float, empty: float | None
) -> None:
    found = [keys_by_range(keys, ranges, seed) for seed in range(seeds)]
    ratios, cvs = zip(*(spread(one) for one in found), strict=True)
    formula = 1 + math.sqrt(2 * ranges * math.log(ranges) / keys)
    if keys >= 10 * ranges:
        assert 0.90 <= fmean(ratios) / formula <= 1.00
    assert fmean(cvs) == pytest.approx(math.sqrt((ranges - 1) / keys), rel=0.05)
    assert fmean(ratios) == pytest.approx(ratio, rel=0.04)
    assert fmean(cvs) == pytest.approx(cv, rel=0.05)
    if empty is not None:
        holes = fmean(int(np.sum(one == 0)) for one in found)
        assert holes == pytest.approx(empty, abs=4 * math.sqrt(empty / seeds))


def test_more_keys_than_are_hashed_are_as_uneven_as_their_number_says() -> None:
    found = [spread(keys_by_range(50_000_000, 2_000, seed)) for seed in range(4)]
    assert fmean(cv for _, cv in found) == pytest.approx(math.sqrt(1999 / 5e7), rel=0.05)
    formula = 1 + math.sqrt(2 * 2_000 * math.log(2_000) / 5e7)
    assert 0.90 <= fmean(ratio for ratio, _ in found) / formula <= 1.00


@pytest.mark.parametrize(
    ("keys", "exponent", "top", "ceiling"),
    [
        (10**6, 0.5, 0.0005, 20.0e6),
        (10**6, 0.8, 0.0134, 748e3),
        (10**6, 0.99, 0.0650, 154e3),
        (10**6, 1.0, 0.0695, 144e3),
        (10**6, 1.2, 0.1895, 53e3),
        (10**7, 0.8, 0.0083, 1.21e6),
        (10**7, 1.0, 0.0599, 167e3),
    ],
)
def test_the_heaviest_key_of_zipf(keys: int, exponent: float, top: float, ceiling: float) -> None:
    found = shares(Skew(exponent=exponent), keys, 10_000)
    assert found.heavy[0] == pytest.approx(top, abs=0.00006)
    assert 10_000 / found.heavy[0] == pytest.approx(ceiling, rel=0.01)
    assert found.heavy.sum() + found.rest == pytest.approx(1.0)


@pytest.mark.parametrize("text", ["uniform", "zipf:1.1", "hot:0.2", "hot:0.01x5"])
@pytest.mark.parametrize("keys", [7, 20_000, 20_000_000])
def test_shares_are_a_whole(text: str, keys: int) -> None:
    population = populate(keys, parse_skew(text), seed=3)
    for measure in (population.ru, population.bytes):
        assert measure.heavy.sum() + measure.cells.sum() == pytest.approx(1.0)
    assert str(parse_skew(text)) == text


def test_the_documents_suffixes_fall_where_the_documents_say() -> None:
    """400 suffixes of one date over 4 and 10 ranges: partitioning 6.3."""
    definition = parse_definition({"paths": ["/pk"], "kind": "Hash", "version": 2})
    places = [place_of(epk((f"2018-08-09.{n}",), definition)) for n in range(1, 401)]

    def counts(ranges: int) -> list[int]:
        layout: Layout = even_layout(populate(1, Skew(), seed=0), ranges)
        owner = np.searchsorted(layout.edges, np.array(places, np.uint64), side="right") - 1
        return [int(count) for count in np.bincount(owner, minlength=ranges)]

    assert counts(4) == [101, 102, 95, 102]
    assert max(counts(10)) / 40 == pytest.approx(1.28, abs=0.006)
    assert counts(100).count(0) == 2


@pytest.mark.parametrize("text", ["", "zip:1", "hot", "hot:2", "hot:0.5x3", "zipf:9", "uniform:1"])
def test_a_skew_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_skew(text)
