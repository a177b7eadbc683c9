"""Where sample keys land: it must be where the server would put them, or the dialog lies."""

from __future__ import annotations

import pytest
from tests.support.nosql import api as made
from tests.support.nosql import document, pk

from armillary.errors import BadInput
from armillary.portal.data.landing import KeyChoice, generated, land, own


def test_the_counts_are_those_of_a_real_container() -> None:
    items = generated(["/pk"], many=True, count=60)
    with made(partitions=5) as api:
        for item in items:
            assert api.ask("POST", "/dbs/d/colls/c/docs", item, pk(item["pk"])).status == 201
        report = document(api.ask("GET", "/_armillary/dbs/d/colls/c/partitions"))
    landing = land(KeyChoice(("/pk",)), items, 5)
    assert list(landing.counts) == [one["items"] for one in report["partitions"]]


def test_few_values_are_uneven_and_a_number_at_the_end_spreads_them() -> None:
    items = generated(["/country"], many=False)
    for number, item in enumerate(items):
        item["device"] = f"d{number}"
    plain = land(KeyChoice(("/country",)), items, 8)
    spec = {
        "version": 1,
        "path": "/partitionKey",
        "parts": ["/country"],
        "suffix": {"kind": "computed", "k": 100, "source": "/device"},
    }
    spread = land(KeyChoice(("/partitionKey",), spec), items, 8)
    assert plain.keys == 6
    assert plain.largest_share > 0.5
    assert spread.keys > 200
    assert spread.largest_share < 0.25
    assert sum(spread.counts) == len(items)


def test_a_hierarchy_needs_a_value_per_level() -> None:
    items = generated(["/tenant", "/user"], many=True, count=40)
    assert all({"tenant", "user"} <= set(item) for item in items)
    landing = land(KeyChoice(("/tenant", "/user")), items, 4)
    assert (landing.keys, sum(landing.counts)) == (40, 40)
    assert landing.shown[0].key.startswith('["tenant-')


@pytest.mark.parametrize("paths", [("",), ("name",), ("/a", "/b", "/c", "/d")])
def test_a_key_that_could_not_be_is_refused(paths: tuple[str, ...]) -> None:
    with pytest.raises(BadInput):
        land(KeyChoice(paths), [], 2)


def test_own_items_are_read_line_by_line() -> None:
    assert own('{"a": 1}\n\n{"a": 2}') == [{"a": 1}, {"a": 2}]
    for text in ("{", "[1]"):
        with pytest.raises(BadInput, match="Line 1"):
            own(text)


def test_nothing_lands_nowhere() -> None:
    landing = land(KeyChoice(("/pk",)), [], 3)
    assert (landing.counts, landing.largest_share) == ((0, 0, 0), 0.0)
