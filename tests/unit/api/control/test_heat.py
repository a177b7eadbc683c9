"""The numbers of a picture. Without these tests it could disagree with the report beside it."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

import pytest
from tests.support.nosql import Api, document, pk
from tests.support.nosql import api as made

from armillary.limits import HEAT_SECONDS, HEAT_STEP_SECONDS
from armillary.partition.budgets.ledger import LocalLedger
from armillary.store.throughput.meter import Meter

BASE = "/_armillary/dbs/d/colls/c"


@pytest.fixture
def api() -> Iterator[Api]:
    with made(partitions=4) as one:
        one.account.meter = Meter(one.engine, LocalLedger("report"), enforce="report")
        yield one


def fill(api: Api, key: str, count: int) -> None:
    for number in range(count):
        item = {"id": f"{key} {number}", "pk": key, "text": "x" * 50}
        assert api.ask("POST", "/dbs/d/colls/c/docs", item, pk(key)).status == 201


def test_heat_and_partitions_tell_the_same(api: Api) -> None:
    fill(api, "hot", 10)
    fill(api, "cold", 2)
    api.clock.advance(2)
    heat = document(api.ask("GET", f"{BASE}/heat"))
    report = document(api.ask("GET", f"{BASE}/partitions"))
    shared = ("id", "parents", "status", "bytes", "items", "ru_per_s", "normalized_ru")
    assert [[one[name] for name in shared] for one in heat["partitions"]] == [
        [one[name] for name in shared] for one in report["partitions"]
    ]
    assert [(one["from"], one["to"]) for one in heat["partitions"]] == [
        pytest.approx((n / 4, (n + 1) / 4)) for n in range(4)
    ]
    assert [(one["key"], one["bytes"]) for one in heat["keys"]] == [
        (one["key"], one["bytes"]) for one in report["top_keys"]
    ]
    for key in heat["keys"]:
        (owner,) = [one for one in heat["partitions"] if one["id"] == key["partition"]]
        assert owner["from"] <= key["at"] < owner["to"]
        assert owner["items"] > 0
    assert heat["moves"] == []


def test_bins_hold_what_was_consumed_and_can_be_asked_for_in_parts(api: Api) -> None:
    fill(api, "hot", 10)
    began_s = api.clock.now_ms() // 1000
    api.clock.advance(2 * HEAT_STEP_SECONDS)
    whole = document(api.ask("GET", f"{BASE}/heat"))
    assert whole["step_s"] == HEAT_STEP_SECONDS
    assert {len(one["ru"]) for one in whole["partitions"]} == {HEAT_SECONDS // HEAT_STEP_SECONDS}
    at = (began_s - whole["first_s"]) // HEAT_STEP_SECONDS
    used = [one["ru"][at] for one in whole["partitions"]]
    assert sorted(used)[:3] == [0.0, 0.0, 0.0]
    assert max(used) * HEAT_STEP_SECONDS > 10 * 5  # a write is 5 RU and more
    later = document(api.ask("GET", f"{BASE}/heat?since={began_s + 1}&keys=off"))
    assert later["first_s"] > began_s
    assert sum(sum(one["ru"]) for one in later["partitions"]) == 0
    assert later["keys"] == []
    last = document(api.ask("GET", f"{BASE}/heat?since={later['now_s'] + 3600}"))
    assert {len(one["ru"]) for one in last["partitions"]} == {0}


def test_the_ring_is_a_picture_of_the_same_numbers(api: Api) -> None:
    fill(api, "hot", 10)
    api.clock.advance(1)
    response = api.ask("GET", f"{BASE}/ring.svg")
    assert response.headers["Content-Type"] == "image/svg+xml"
    root = ElementTree.fromstring(response.body)
    drawn = [one for one in root.iter() if one.get("class") == "partition"]
    report = document(api.ask("GET", f"{BASE}/partitions"))["partitions"]
    assert [(g.get("data-id"), int(g.get("data-items", "-1"))) for g in drawn] == [
        (one["id"], one["items"]) for one in report
    ]
