"""What was written is where a read looks for it, for any specification and any item."""

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from armillary.encoding.paths import extract
from armillary.keys import SyntheticKey
from armillary.keys.views import put

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("ab-.1\\é😀", max_size=6)
)
TIMES = st.integers(0, 4_000_000_000_000)
PLAIN = ["/a", "/b", "/o/c"]
PARTS = st.lists(
    st.sampled_from(PLAIN)
    | st.sampled_from(["year", "month", "day", "hour", "minute"]).map(
        lambda bucket: {"path": "/ts", "bucket": bucket, "unit": "milliseconds"}
    ),
    min_size=1,
    max_size=4,
)
SUFFIXES = st.none() | st.one_of(
    st.fixed_dictionaries({"kind": st.just("random"), "k": st.integers(1, 40)}),
    st.fixed_dictionaries(
        {
            "kind": st.just("computed"),
            "k": st.integers(1, 40),
            "source": st.sampled_from(["/a", "/vin"]),
        }
    ),
)


@st.composite
def keys(draw: st.DrawFn) -> SyntheticKey:
    spec: dict[str, Any] = {
        "version": 1,
        "path": draw(st.sampled_from(["/pk", "/o/k"])),
        "parts": draw(PARTS),
        "separator": draw(st.sampled_from(["-", ".", "--", "1", "a"])),
        "escape": draw(st.booleans()),
    }
    suffix = draw(SUFFIXES)
    return SyntheticKey.from_json(spec if suffix is None else spec | {"suffix": suffix})


ITEMS = st.fixed_dictionaries(
    {
        "a": SCALARS,
        "b": SCALARS,
        "vin": SCALARS,
        "ts": TIMES,
        "o": st.fixed_dictionaries({"c": SCALARS}),
    }
)


@given(key=keys(), item=ITEMS, seed=st.integers(0, 99))
def test_a_written_key_is_a_candidate_and_fits(
    key: SyntheticKey, item: dict[str, Any], seed: int
) -> None:
    value = key.value_for(item, Random(seed))
    found = key.candidates(item)
    assert value in found
    assert value in key.group(item)
    assert len(set(found)) == len(found) == (key.k if key.is_random else 1)
    assert all(key.fits(item, candidate) for candidate in found)


@given(key=keys(), item=ITEMS, seed=st.integers(0, 99))
def test_an_applied_key_fits_and_is_kept(
    key: SyntheticKey, item: dict[str, Any], seed: int
) -> None:
    written = key.apply(item, Random(seed))
    value = extract(written, key.path)
    assert key.fits(item, value)
    assert key.apply(written) == written
    assert key.apply(item, stored=value) == written
    assert key.candidates(written) == [value]


@given(key=keys(), item=ITEMS, other=ITEMS, seed=st.integers(0, 99))
def test_reads_with_less_knowledge_find_it_too(
    key: SyntheticKey, item: dict[str, Any], other: dict[str, Any], seed: int
) -> None:
    value = key.value_for(item, Random(seed))
    without_source = {name: value for name, value in item.items() if name != "vin"}
    assert value in key.candidates(without_source)
    without_a = {name: value for name, value in item.items() if name != "a"}
    assert value in key.candidates(without_a, among={"/a": [other["a"], item["a"]]})
    without_time = {name: value for name, value in item.items() if name != "ts"}
    day_ms = 86_400_000
    around = (item["ts"] - day_ms, item["ts"] + day_ms)
    if 3000 * key.k < 100_000:
        assert value in key.candidates(without_time, between=around)


@given(key=keys())
def test_a_specification_reads_back(key: SyntheticKey) -> None:
    assert SyntheticKey.from_json(key.to_json()) == key


@given(item=ITEMS, value=SCALARS)
def test_put_changes_one_path_of_a_copy(item: dict[str, Any], value: Any) -> None:
    before = {**item, "o": dict(item["o"])}
    result = put(item, ("o", "x"), value)
    assert item == before
    assert result == {**item, "o": {**item["o"], "x": value}}
