"""A bucket computed in the wrong zone, or one too few in an interval, hides items from reads."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary.errors import BadInput
from armillary.keys.buckets import BUCKETS, bucket_of, instant_of, instants_between


@pytest.mark.parametrize(
    ("bucket", "text"),
    [
        ("year", "2026"),
        ("month", "2026-04"),
        ("day", "2026-04-09"),
        ("hour", "2026-04-09T13"),
        ("minute", "2026-04-09T13:05"),
    ],
)
@pytest.mark.parametrize(
    ("value", "unit"),
    [
        ("2026-04-09T13:05:59Z", "iso"),
        ("2026-04-09T13:05:59.1234567Z", "iso"),
        ("2026-04-09T13:05:59", "iso"),
        ("2026-04-09 13:05:59+00:00", "iso"),
        ("2026-04-09T15:05:59+02:00", "iso"),
        ("2026-04-08T23:05:59-14:00", "iso"),
        (1775739959, "seconds"),
        (1775739959.9, "seconds"),
        (1775739959999, "milliseconds"),
        (datetime(2026, 4, 9, 13, 5), "iso"),
        (datetime(2026, 4, 9, 15, 5, tzinfo=timezone(timedelta(hours=2))), "seconds"),
    ],
)
def test_every_bucket_of_every_unit(value: Any, unit: str, bucket: str, text: str) -> None:
    assert bucket_of(instant_of(value, unit, "/ts"), bucket) == text


@pytest.mark.parametrize(
    ("value", "unit", "bucket", "text"),
    [
        ("2018-08-09", "iso", "hour", "2018-08-09T00"),
        ("0999-01-01", "iso", "year", "0999"),
        ("2026-01-01T00:30:00+01:00", "iso", "year", "2025"),
        (-1, "seconds", "day", "1969-12-31"),
        (-1, "milliseconds", "minute", "1969-12-31T23:59"),
        (-0.5, "seconds", "day", "1969-12-31"),
        (0, "milliseconds", "minute", "1970-01-01T00:00"),
        (59_999.9, "milliseconds", "minute", "1970-01-01T00:00"),
        ("2024-02-29", "iso", "day", "2024-02-29"),
    ],
)
def test_edges_of_buckets(value: Any, unit: str, bucket: str, text: str) -> None:
    assert bucket_of(instant_of(value, unit, "/ts"), bucket) == text


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        ("2026-04", "iso"),
        ("yesterday", "iso"),
        ("2026-02-30", "iso"),
        ("0001-01-01T00:00:00+10:00", "iso"),
        (1775739959, "iso"),
        (None, "iso"),
        ("1775739959", "seconds"),
        (True, "seconds"),
        (float("nan"), "seconds"),
        (float("inf"), "seconds"),
        (10**18, "seconds"),
        ([], "milliseconds"),
    ],
)
def test_what_is_no_instant_is_refused_by_name(value: Any, unit: str) -> None:
    with pytest.raises(BadInput, match=r"^'/ts' is "):
        instant_of(value, unit, "/ts")


@pytest.mark.parametrize(
    ("start", "end", "bucket", "texts"),
    [
        ("2026-11-30", "2027-02-01", "month", ["2026-11", "2026-12", "2027-01", "2027-02"]),
        ("2023-12-31T23:59:59", "2026-01-01", "year", ["2023", "2024", "2025", "2026"]),
        ("2024-02-28T12:00", "2024-03-01", "day", ["2024-02-28", "2024-02-29", "2024-03-01"]),
        ("2026-04-09T23:10", "2026-04-10T00:00", "hour", ["2026-04-09T23", "2026-04-10T00"]),
        ("2026-04-09T23:59", "2026-04-09T23:59:59", "minute", ["2026-04-09T23:59"]),
        ("9999-11-01", "9999-12-31T23:59:59", "month", ["9999-11", "9999-12"]),
        ("9999-12-31", "9999-12-31T23:59:59", "day", ["9999-12-31"]),
        ("9998-01-01", "9999-12-31", "year", ["9998", "9999"]),
    ],
)
def test_an_interval_has_every_bucket_it_touches(
    start: str, end: str, bucket: str, texts: list[str]
) -> None:
    first, last = (instant_of(text, "iso", "/ts") for text in (start, end))
    assert [bucket_of(each, bucket) for each in instants_between(first, last, bucket)] == texts


INSTANTS = st.datetimes(datetime(2019, 12, 1), datetime(2020, 3, 15), timezones=st.just(UTC))


@given(
    three=st.tuples(INSTANTS, INSTANTS, INSTANTS).map(sorted),
    bucket=st.sampled_from(["day", "month", "year"]),
)
def test_an_instant_inside_is_in_a_bucket_of_the_interval(
    three: list[datetime], bucket: str
) -> None:
    start, inside, end = three
    found = [bucket_of(instant, bucket) for instant in instants_between(start, end, bucket)]
    assert bucket_of(inside, bucket) in found
    assert found == sorted(set(found))


def test_finer_buckets_have_longer_texts() -> None:
    assert list(BUCKETS.values()) == sorted(BUCKETS.values())
