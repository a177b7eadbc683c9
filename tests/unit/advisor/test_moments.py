"""Without this, new items of a played workload would have the dates of old ones, and a key by date
would look even while in truth all writes of a day go to one key."""

import pytest

from armillary.advisor.data.dates import form_of
from armillary.advisor.data.moments import find_moments, milliseconds, moved
from armillary.advisor.data.sample import sample_of
from armillary.values import JSON

NOW = 1_775_739_959_123.0  # 2026-04-09T13:05:59.123Z


@pytest.mark.parametrize(
    ("like", "written"),
    [
        ("2026-01-31", "2026-04-09"),
        ("2026-01", "2026-04"),
        ("2026-01-31T10:00:00Z", "2026-04-09T13:05:59Z"),
        ("2026-01-31T10:00:00.5Z", "2026-04-09T13:05:59.1Z"),
        ("2026-01-31 10:00", "2026-04-09 13:05"),
        (1_700_000_000, 1_775_739_959),
        (1_700_000_000_000, 1_775_739_959_123),
    ],
)
def test_new_items_have_the_present_in_the_form_of_the_data(like: JSON, written: JSON) -> None:
    before: JSON = like - 60 * 86_400 if isinstance(like, int) else like.replace("2026", "2025")
    sample = sample_of([{"x": before}] * 5 + [{"x": like}] * 5)
    moments = find_moments(sample)
    assert moved({("x",): like}, moments, NOW) == {("x",): written}
    assert moments[("x",)].last_ms == milliseconds(like)


@pytest.mark.parametrize(
    ("earlier", "like", "written"),
    [
        (20_260_130, 20_260_131, 20_260_409),
        ("20260130", "20260131", "20260409"),
        ("202601301000", "202601311000", "202604091305"),
        ("01/30/2026", "01/31/2026", "04/09/2026"),
        ("30.01.2026 10:00", "31.01.2026 10:00", "09.04.2026 13:05"),
        ("2026/01/30", "2026/01/31", "2026/04/09"),
        ("30 Jan 2026", "31 Jan 2026", "09 Apr 2026"),
    ],
)
def test_dates_in_other_forms_are_read_and_written(
    earlier: JSON, like: JSON, written: JSON
) -> None:
    sample = sample_of([{"x": earlier}] * 5 + [{"x": like}] * 5)
    assert moved({("x",): like}, find_moments(sample), NOW) == {("x",): written}


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        (["01/02/2026", "01/03/2026"], "month first"),
        (["01/02/2026", "13/02/2026"], "day first"),
        (["13:05", "13:06:07"], "clock"),
        (["20260230", "20260301"], None),  # February has no thirtieth day
        (["20260301"], None),  # one number proves nothing
        (["C-1", "C-2"], None),
        (["10.1.2.3", "10.1.2.4"], None),
    ],
)
def test_the_form_of_dates_is_that_of_all_values(texts: list[str], name: str | None) -> None:
    found = form_of(texts)
    assert (None if found is None else found.name) == name


@pytest.mark.parametrize(
    "values",
    [
        ["1980-01-01", "1999-05-05", "1970-01-01", "2001-01-01"] * 5,  # born when?
        ["2026-04-09"] * 20,  # one value grows nowhere
        [f"2026-04-{n:02d}" for n in range(20, 1, -1)],  # newest first is not the order of writing
        ["2026-13-01", "x"] * 10,
        [True, False] * 10,
        list(range(20)),
    ],
)
def test_what_is_no_time_of_writing_stays(values: list[JSON]) -> None:
    assert find_moments(sample_of([{"x": value} for value in values])) == {}


def test_paths_that_somebody_knows_are_believed() -> None:
    sample = sample_of([{"at": {"day": "2026-04-09"}}] * 3)
    assert list(find_moments(sample, [("at", "day")])) == [("at", "day")]
