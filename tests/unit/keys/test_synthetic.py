"""The documents' own examples with their numbers, and the rules of writes and reads."""

import json
from bisect import bisect_right
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from armillary.encoding.hashing import epk, epk_hex, even_bounds
from armillary.encoding.partition_key import parse_definition
from armillary.errors import BadInput, NotTargetable
from armillary.keys import SyntheticKey, computed_suffix
from armillary.keys.text import text_of

DEFINITION = parse_definition({"paths": ["/partitionKey"], "kind": "Hash", "version": 2})
VIN = "1HGCM82633A004352"


def made(*parts: Any, separator: str = "-", **more: Any) -> SyntheticKey:
    spec = {"version": 1, "path": "/partitionKey", "parts": list(parts), "separator": separator}
    return SyntheticKey.from_json(spec | more)


DEVICE = made("/deviceId", "/date")
RANDOM = made("/date", separator=".", suffix={"kind": "random", "k": 400})
COMPUTED = made("/date", separator=".", suffix={"kind": "computed", "k": 400, "source": "/vin"})
MONTHLY = made("/deviceId", {"path": "/ts", "bucket": "month"}, separator=".")


# --- the documents' examples ----------------------------------------------------------------------


def test_device_and_date_concatenated() -> None:
    item = {"deviceId": "abc-123", "date": 2018}
    assert DEVICE.apply(item) == {**item, "partitionKey": "abc-123-2018"}
    assert epk_hex(("abc-123-2018",), DEFINITION) == "31850F1537EA6E0808815BF860BA5C6A"


def test_device_and_date_read_by_either_part() -> None:
    years, devices = [2017, 2018, 2019], ["abc-122", "abc-123"]
    assert DEVICE.candidates({"deviceId": "abc-123"}, among={"/date": years}) == [
        "abc-123-2017",
        "abc-123-2018",
        "abc-123-2019",
    ]
    assert DEVICE.candidates({"date": 2018}, among={"/deviceId": devices}) == [
        "abc-122-2018",
        "abc-123-2018",
    ]
    assert DEVICE.candidates({"deviceId": "abc-123", "date": 2018}) == ["abc-123-2018"]


def spread(values: list[str], ranges: int) -> list[int]:
    bounds = even_bounds(DEFINITION, ranges)
    counts = [0] * ranges
    for value in values:
        counts[bisect_right(bounds, epk((value,), DEFINITION))] += 1
    return counts


def test_400_suffixes_of_a_date_over_the_ranges() -> None:
    group = RANDOM.group({"date": "2018-08-09"})
    assert group == [f"2018-08-09.{number}" for number in range(1, 401)]
    assert epk_hex((group[0],), DEFINITION) == "3D371B52F57CAE29C4D3844FE29CA73B"
    assert spread(group, 4) == [101, 102, 95, 102]
    fullest = {ranges: max(spread(group, ranges)) / (400 / ranges) for ranges in (10, 40, 100)}
    assert fullest == {10: 1.275, 40: 1.70, 100: 2.50}
    assert spread(group, 100).count(0) == 2


def test_a_vin_computes_the_suffix_and_the_read() -> None:
    item = {"id": "1", "date": "2018-08-09", "vin": VIN}
    assert COMPUTED.apply(item)["partitionKey"] == "2018-08-09.363"
    assert COMPUTED.candidates({"date": "2018-08-09", "vin": VIN}) == ["2018-08-09.363"]
    assert COMPUTED.candidates({"date": "2018-08-09"}) == COMPUTED.group(item)
    assert len(COMPUTED.group(item)) == 400


def test_a_random_suffix_hides_where_an_item_is() -> None:
    item = {"id": "1", "date": "2018-08-09", "vin": VIN}
    assert len(RANDOM.candidates(item)) == 400
    written = RANDOM.apply(item, Random(7))
    assert RANDOM.candidates(written) == [written["partitionKey"]]


def test_random_suffixes_reach_every_number_from_1_to_k() -> None:
    key, random = made("/d", suffix={"kind": "random", "k": 5}), Random(1)
    drawn = {key.value_for({"d": "x"}, random) for _ in range(200)}
    assert drawn == {"x-1", "x-2", "x-3", "x-4", "x-5"}


def vectors() -> list[tuple[Any, str, int, int]]:
    """The rows of the table in docs/synthetic-keys.md, so that the document stays true."""
    document = Path(__file__).parents[3] / "docs" / "synthetic-keys.md"
    lines = iter(document.read_text(encoding="utf-8").splitlines())
    head = next(line for line in lines if line.startswith("| source (JSON) |"))
    ks = [int(cell.split("=")[1]) for cell in head.strip("|").split("|")[2:]]
    next(lines)
    rows: list[tuple[Any, str, int, int]] = []
    for line in lines:
        if not line.startswith("|"):
            break
        source, text, *suffixes = (cell.strip() for cell in line.strip("|").split("|"))
        for k, suffix in zip(ks, suffixes, strict=True):
            rows.append((json.loads(source.strip("`")), text.strip("`"), k, int(suffix)))
    return rows


def test_the_documented_vectors_of_the_computed_suffix() -> None:
    rows = vectors()
    assert len(rows) == 30
    for source, text, k, suffix in rows:
        assert (text_of(source, "/s"), computed_suffix(text, k)) == (text, suffix)
        key = made("/d", suffix={"kind": "computed", "k": k, "source": "/s"})
        assert key.value_for({"d": "x", "s": source}) == f"x-{suffix}"


# --- writes ---------------------------------------------------------------------------------------


def test_apply_copies_and_makes_the_objects_on_the_way() -> None:
    key = SyntheticKey.from_json({"version": 1, "path": "/m/k/v", "parts": ["/a", "/m/b"]})
    item = {"a": 1, "m": {"b": True}}
    assert key.apply(item) == {"a": 1, "m": {"b": True, "k": {"v": "1-true"}}}
    assert item == {"a": 1, "m": {"b": True}}


def test_apply_refuses_to_put_a_key_into_a_scalar() -> None:
    key = SyntheticKey.from_json({"version": 1, "path": "/m/k", "parts": ["/a"]})
    with pytest.raises(BadInput, match="'/m' is not an object, so that '/m/k' can't be put into"):
        key.apply({"a": 1, "m": 5})


def test_a_key_that_fits_is_kept() -> None:
    item = {"date": "2018-08-09", "partitionKey": "2018-08-09.17"}
    assert RANDOM.apply(item) == item
    assert (
        DEVICE.apply({"deviceId": "a", "date": 1, "partitionKey": "a-1"})["partitionKey"] == "a-1"
    )


@pytest.mark.parametrize(
    ("key", "item", "expected"),
    [
        (DEVICE, {"deviceId": "a", "date": 1}, "'a-1'"),
        (RANDOM, {"date": "d"}, "'d.1' to 'd.400'"),
        (COMPUTED, {"date": "d", "vin": VIN}, "'d.363'"),
    ],
)
@pytest.mark.parametrize("given", ["a-2", None, 7, "", "d.0", "d.401", ["a-1"]])
def test_a_key_that_does_not_fit_is_refused_with_the_expected_one(
    key: SyntheticKey, item: dict[str, Any], expected: str, given: Any
) -> None:
    with pytest.raises(BadInput) as caught:
        key.apply({**item, "partitionKey": given})
    assert f"'/partitionKey' is {given!r}, but" in caught.value.message
    assert f"make it {expected}." in caught.value.message


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ("d.1", True),
        ("d.400", True),
        ("d.401", False),
        ("d.0", False),
        ("d.01", False),
        ("d.-1", False),
        ("d.+1", False),
        ("d.1 ", False),
        ("d.", False),
        ("d", False),
        ("d.²", False),
        ("d.٣", False),
        ("e.1", False),
        ("xd.1", False),
        ("1", False),
        ("d." + "9" * 5000, False),
        (None, False),
        (1, False),
    ],
)
def test_what_fits_a_random_suffix(value: Any, fits: bool) -> None:
    assert RANDOM.fits({"date": "d"}, value) is fits


def test_a_separator_of_digits_does_not_confuse_a_random_suffix() -> None:
    key = made("/a", separator="1", suffix={"kind": "random", "k": 20})
    assert key.fits({"a": "x"}, "x111")
    assert not key.fits({"a": "x"}, "x1")


def test_a_key_of_a_suffix_alone() -> None:
    key = made(suffix={"kind": "random", "k": 3})
    assert key.group({}) == ["1", "2", "3"]
    assert key.fits({}, "3")
    assert not key.fits({}, "4")
    assert not key.fits({}, "-3")
    by_vin = made(suffix={"kind": "computed", "k": 400, "source": "/vin"})
    assert by_vin.value_for({"vin": VIN}) == "363"


def test_replace_keeps_the_stored_key() -> None:
    assert RANDOM.apply({"date": "d"}, stored="d.17")["partitionKey"] == "d.17"
    assert RANDOM.apply({"date": "d", "partitionKey": "d.17"}, stored="d.17") is not None
    with pytest.raises(BadInput, match=r"'d\.1' to 'd\.400'; the item is stored under 'd\.17'"):
        RANDOM.apply({"date": "d", "partitionKey": "d.18"}, stored="d.17")


def test_replace_of_a_part_is_refused_because_the_key_would_change() -> None:
    with pytest.raises(BadInput, match="make it 'a-2'; the key of a stored item can't change"):
        DEVICE.apply({"deviceId": "a", "date": 2}, stored="a-1")


@pytest.mark.parametrize(
    ("key", "item", "missing"),
    [
        (DEVICE, {"deviceId": "a"}, "/date"),
        (DEVICE, {"date": 1}, "/deviceId"),
        (COMPUTED, {"date": "d"}, "/vin"),
        (MONTHLY, {"deviceId": "a"}, "/ts"),
        (made("/a/b"), {"a": 5}, "/a/b"),
    ],
)
def test_a_key_is_never_made_from_nothing(
    key: SyntheticKey, item: dict[str, Any], missing: str
) -> None:
    with pytest.raises(BadInput) as caught:
        key.apply(item)
    assert f"'{missing}', which the item does not have" in caught.value.message
    assert caught.value.facts["path"] == missing


def test_null_is_a_value_and_objects_are_not() -> None:
    assert DEVICE.value_for({"deviceId": None, "date": 1.5}) == "null-1.5"
    with pytest.raises(BadInput, match="'/date' holds an object"):
        DEVICE.value_for({"deviceId": "a", "date": {"y": 1}})
    with pytest.raises(BadInput, match="'/vin' holds an array"):
        COMPUTED.value_for({"date": "a", "vin": []})


def test_a_key_longer_than_the_server_takes_is_refused() -> None:
    assert len(DEVICE.value_for({"deviceId": "é" * 1023, "date": 1})) == 1025
    with pytest.raises(BadInput, match="would have 2050 bytes; at most 2048"):
        DEVICE.value_for({"deviceId": "é" * 1024, "date": 1})


def test_chance_must_be_passed_in() -> None:
    with pytest.raises(TypeError, match="needs a Random"):
        RANDOM.value_for({"date": "d"})


def test_escape_tells_apart_what_the_separator_joins_alike() -> None:
    left, right = {"deviceId": "abc", "date": "123-2018"}, {"deviceId": "abc-123", "date": "2018"}
    assert DEVICE.value_for(left) == DEVICE.value_for(right) == "abc-123-2018"
    escaping = made("/deviceId", "/date", escape=True)
    assert escaping.value_for(left) == "abc-123\\-2018"
    assert escaping.value_for(right) == "abc\\-123-2018"


# --- reads ----------------------------------------------------------------------------------------


def test_time_buckets_of_an_interval() -> None:
    assert (
        MONTHLY.value_for({"deviceId": "device", "ts": "2026-04-09T13:05:00Z"}) == "device.2026-04"
    )
    interval = ("2026-04-30T23:00:00Z", "2026-06-01")
    expected = ["device.2026-04", "device.2026-05", "device.2026-06"]
    assert MONTHLY.candidates({"deviceId": "device"}, between=interval) == expected
    dates = (datetime(2026, 4, 30, tzinfo=UTC), datetime(2026, 6, 1))
    assert MONTHLY.candidates({"deviceId": "device"}, between=dates) == expected


def test_the_interval_uses_the_unit_of_the_property() -> None:
    key = made({"path": "/ts", "bucket": "day", "unit": "milliseconds"})
    assert key.candidates({}, between=(0, 86_400_000)) == ["1970-01-01", "1970-01-02"]
    with pytest.raises(BadInput, match="must be a number of milliseconds"):
        key.candidates({}, between=("1970-01-01", "1970-01-02"))


def test_two_buckets_of_one_property_go_together() -> None:
    key = made({"path": "/ts", "bucket": "year"}, "/d", {"path": "/ts", "bucket": "month"})
    assert key.candidates({"d": "x"}, between=("2026-12-01", "2027-01-01")) == [
        "2026-x-2026-12",
        "2027-x-2027-01",
    ]


def test_an_interval_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(BadInput, match="The interval of '/ts' ends before it starts"):
        MONTHLY.candidates({"deviceId": "a"}, between=("2026-06-01", "2026-04-01"))


@pytest.mark.parametrize(
    ("key", "known", "more", "missing"),
    [
        (DEVICE, {"date": 2018}, {}, "/deviceId"),
        (COMPUTED, {"vin": VIN}, {}, "/date"),
        (MONTHLY, {"deviceId": "a"}, {}, "/ts"),
        (MONTHLY, {}, {"between": ("2026-01-01", "2026-02-01")}, "/deviceId"),
        (
            made({"path": "/a", "bucket": "day"}, {"path": "/b", "bucket": "day"}),
            {},
            {"between": ("2026-01-01", "2026-02-01")},
            "/a",
        ),
    ],
)
def test_an_unknown_part_means_asking_every_partition(
    key: SyntheticKey, known: dict[str, Any], more: dict[str, Any], missing: str
) -> None:
    for read in (key.candidates, key.group):
        with pytest.raises(NotTargetable) as caught:
            read(known, **more)
        assert caught.value.facts == {"path": missing}


def test_a_listed_source_gives_one_suffix_each() -> None:
    found = COMPUTED.candidates({"date": "d"}, among={"/vin": [VIN, "a", "a"]})
    assert found == ["d.363", "d.202"]


def test_listed_values_are_checked() -> None:
    assert DEVICE.candidates({"date": 1}, among={"/deviceId": []}) == []
    with pytest.raises(BadInput, match="'/date' is both known and listed"):
        DEVICE.candidates({"deviceId": "a", "date": 1}, among={"/date": [2]})
    with pytest.raises(BadInput, match="listed for '/date' must be a list"):
        DEVICE.candidates({"deviceId": "a"}, among={"/date": "2018"})


def test_a_known_key_is_the_one_candidate_if_it_can_be() -> None:
    assert DEVICE.candidates({"partitionKey": "x-1"}) == ["x-1"]
    assert RANDOM.candidates({"date": "d", "partitionKey": "d.3"}) == ["d.3"]
    with pytest.raises(BadInput, match=r"'/partitionKey' is 'e\.3', which no item with these"):
        RANDOM.candidates({"date": "d", "partitionKey": "e.3"})
    with pytest.raises(NotTargetable):
        DEVICE.candidates({"partitionKey": 5})


def test_too_many_candidates_are_refused_before_they_are_made() -> None:
    key = made({"path": "/ts", "bucket": "minute"})
    assert len(key.candidates({}, between=("2026-01-01", "2026-02-01"))) == 31 * 24 * 60 + 1
    with pytest.raises(BadInput, match="More than 100000 partition keys are possible"):
        key.candidates({}, between=("0001-01-01", "9999-01-01"))
    full = made("/d", suffix={"kind": "random", "k": 100_000})
    assert len(full.group({"d": 1})) == 100_000
    with pytest.raises(BadInput, match="More than 100000"):
        full.group({}, among={"/d": [1, 2]})
