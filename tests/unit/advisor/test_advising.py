"""Parts of an advice that no scenario shows alone: stopping early, places on the ring, time."""

from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest
from tests.support.advice import advised, surveyed

from armillary.advisor.advice.ring import place, skew
from armillary.advisor.data.sampled import Sampled
from armillary.advisor.data.survey import survey
from armillary.advisor.data.timing import find_times
from armillary.advisor.keys.candidates import parse_candidate
from armillary.advisor.reading.frames import Reading
from armillary.encoding.hashing import even_bounds
from armillary.errors import BadInput
from armillary.partition.ranges import even_ranges, range_table

ITEMS = [
    {"id": str(n), "t": f"t{n % 40}", "u": n % 7, "at": 1_767_225_600 + n * 60, "day": "2026-01-01"}
    for n in range(800)
]


def test_ctrl_c_leaves_an_answer_about_what_was_read() -> None:
    reading = Reading()

    def frames() -> Iterator[pl.DataFrame]:
        yield from reading.items(ITEMS[:500], "it")
        raise KeyboardInterrupt

    found = survey(frames(), reading)
    assert (found.items, found.stopped) == (500, True)


def test_ctrl_c_before_anything_is_no_answer() -> None:
    def stop() -> pl.DataFrame:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        survey((stop() for _ in range(1)), Reading())


@pytest.mark.parametrize("key", ["/t", "/u", '/t+"-"+/u', '/day+"."+hash(/t,9)', "/id"])
def test_keys_are_in_the_ranges_where_the_product_puts_them(key: str) -> None:
    candidate = parse_candidate(key)
    sampled = Sampled(surveyed(ITEMS))
    keys = sampled.keys(candidate)
    counts = keys.weights(np.ones(sampled.rows))
    loads = place(sampled, keys, counts, growing=False).per_range(counts, 6)
    table = range_table(even_ranges(even_bounds(candidate.definition, 6), range(1, 7)))
    expected = [0] * 6
    for item in ITEMS:
        expected[table.find(candidate.epk(candidate.values(item))).ordinal] += 1
    assert loads.tolist() == pytest.approx(expected)


def test_no_split_divides_a_key_and_none_is_lost() -> None:
    items = [{"id": str(n), "t": "big" if n % 2 else f"t{n}", "u": n} for n in range(600)]
    sampled = Sampled(surveyed(items))
    for key, fits in (("/t,/u", True), ("/t,/id", True), ("/t", False)):
        keys = sampled.keys(parse_candidate(key))
        counts = keys.weights(np.ones(sampled.rows))
        loads = place(sampled, keys, counts, growing=False).per_range(counts, 4)
        assert loads.sum() == pytest.approx(600)
        assert (skew(loads) < 1.1) == fits


def test_time_is_found_by_values_and_not_by_names() -> None:
    clock = find_times(Sampled(surveyed(ITEMS)))
    assert clock.axis is not None
    assert (clock.axis.path, clock.axis.unit, clock.axis.tick) == (("at",), "seconds", 60.0)
    assert set(clock.times) == {("at",), ("day",)}
    born = [{"id": str(n), "born": f"{1930 + n * 7 % 80}-03-0{1 + n % 9}"} for n in range(300)]
    assert find_times(Sampled(surveyed(born))).axis is None


def test_a_property_that_changes_between_versions_is_rejected() -> None:
    items = [
        {"id": f"i{n % 300}", "owner": f"o{n % 300 % 90}", "state": f"s{n % 45 + n // 300}"}
        for n in range(900)
    ]
    advice = advised(items)
    state, owner = advice.of("/state"), advice.of("/owner")
    assert state is not None
    assert owner is not None
    assert "changing" in state.judgement.failed
    assert "changing" not in owner.judgement.failed


def test_items_without_any_scalar_have_no_key() -> None:
    with pytest.raises(BadInput, match="could be a key"):
        advised([{"list": [1]}, {"list": []}])


def test_without_a_workload_one_is_assumed_and_said() -> None:
    advice = advised(ITEMS)
    assert advice.workload.assumed
    assert advice.recommended.judgement.passes
