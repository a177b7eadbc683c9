"""Physical partitions through the controls. Without these tests the report could disagree with the
catalog, or an operation could be lost between the one who began it and the one who asks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from tests.support.nosql import Api, document, pk
from tests.support.nosql import api as made

BASE = "/_armillary/dbs/d/colls/c"


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
    return found


def ended(api: Api, accepted: Any) -> dict[str, Any]:
    def look() -> Any:
        found = document(api.ask("GET", f"/_armillary/operations/{accepted['operation']}"))
        return found if found["status"] != "running" else None

    found: dict[str, Any] = until(look)
    return found


def fill(api: Api, count: int = 40) -> None:
    for number in range(count):
        item = {"id": str(number), "pk": f"k{number % 10}", "text": "x" * 50}
        assert api.ask("POST", "/dbs/d/colls/c/docs", item, pk(item["pk"])).status == 201


def test_the_report_has_exactly_the_agreed_members(api: Api) -> None:
    fill(api)
    report = document(api.ask("GET", f"{BASE}/partitions"))
    assert list(report) == ["container", "throughput", "partitions", "top_keys"]
    (only,) = report["partitions"]
    assert list(only) == [
        *("id", "min", "max", "parents", "status", "bytes", "items", "ru_per_s"),
        *("consumed_ru_last_s", "normalized_ru", "throttled_last_min"),
    ]
    assert (report["container"], report["throughput"]) == ("c", 400)
    assert (only["id"], only["min"], only["max"], only["items"]) == ("0", "", "FF", 40)
    assert only["bytes"] > 40 * 50
    assert {json.dumps(one["key"]) for one in report["top_keys"]} == {
        f'["k{number}"]' for number in range(10)
    }
    assert sum(one["bytes"] for one in report["top_keys"]) <= only["bytes"]


def test_a_split_is_accepted_and_its_operation_ends(api: Api) -> None:
    fill(api)
    response = api.ask("POST", f"{BASE}/split", {"id": "0"})
    assert response.status == 202
    accepted = document(response)
    assert response.headers["Location"] == f"/_armillary/operations/{accepted['operation']}"
    became = ended(api, accepted)
    assert became["status"] == "succeeded"
    assert (became["kind"], became["parents"], became["children"]) == ("split", ["0"], ["1", "2"])
    lines = document(api.ask("GET", f"{BASE}/partitions"))["partitions"]
    assert [(one["id"], one["parents"]) for one in lines] == [("1", ["0"]), ("2", ["0"])]
    assert sum(one["items"] for one in lines) == 40


def test_a_split_takes_the_point_that_is_given(api: Api) -> None:
    accepted = document(api.ask("POST", f"{BASE}/split", {"id": "0", "at": "1fffffff"}))
    assert ended(api, accepted)["status"] == "succeeded"
    lines = document(api.ask("GET", f"{BASE}/partitions"))["partitions"]
    assert [(one["min"], one["max"]) for one in lines] == [("", "1FFFFFFF"), ("1FFFFFFF", "FF")]


def test_neighbours_merge_and_an_earlier_operation_keeps_its_end() -> None:
    with made(partitions=4) as api:
        fill(api)
        first = document(api.ask("POST", f"{BASE}/merge", {"ids": ["2", "1"]}))
        assert ended(api, first)["children"] == ["4"]
        second = document(api.ask("POST", f"{BASE}/merge", {"ids": ["0", "4"]}))
        assert ended(api, second)["children"] == ["5"]
        # Range 4 has gone since; what became of 1 and 2 is still known.
        assert ended(api, first)["status"] == "succeeded"
        lines = document(api.ask("GET", f"{BASE}/partitions"))["partitions"]
        assert [one["id"] for one in lines] == ["5", "3"]
        assert sum(one["items"] for one in lines) == 40


def test_shares_of_single_partitions() -> None:
    """6,000 RU/s over two; {0: 5,000, 1: 20,000} splits the second: 5,000, 10,000, 10,000."""
    with made(partitions=2) as api:
        fill(api)
        [offer] = document(api.ask("GET", "/offers"))["Offers"]
        offer["content"]["offerThroughput"] = 6_000
        assert api.ask("PUT", f"/offers/{offer['_rid']}", offer).status == 200
        answer = api.ask("PUT", f"{BASE}/shares", {"shares": {"0": 5_000, "1": 20_000}})
        assert document(answer) == {
            "throughput": 15_000,
            "shares": {"0": 5_000, "1": 10_000},
            "pending": True,
        }

        def lines() -> Any:
            found = document(api.ask("GET", f"{BASE}/partitions"))
            return found if found["throughput"] == 25_000 else None

        found = until(lines)
        assert [one["id"] for one in found["partitions"]] == ["0", "2", "3"]
        [offer] = document(api.ask("GET", "/offers"))["Offers"]
        offer["content"]["offerThroughput"] = 30_000
        assert api.ask("PUT", f"/offers/{offer['_rid']}", offer).status == 400, "shares are set"
        even = document(api.ask("PUT", f"{BASE}/shares", {"shares": {}}))
        assert not even["pending"]
        assert set(even["shares"].values()) == {25_000 / 3}
        assert api.ask("PUT", f"/offers/{offer['_rid']}", offer).status == 200
        bad: list[Any] = [{}, {"shares": []}, {"shares": {"0": "5"}}, {"shares": {"x": 500}}]
        for body in bad:
            assert api.ask("PUT", f"{BASE}/shares", body).status == 400, body
        assert api.ask("PUT", f"{BASE}/shares", {"shares": {"9": 500}}).status in (400, 404)


def test_what_can_not_be_done_is_refused_at_once(api: Api) -> None:
    for target, body, status in [
        ("split", {"id": "7"}, 404),
        ("split", {"id": 0}, 400),
        ("split", {}, 400),
        ("split", {"id": "0", "at": "zz"}, 400),
        ("split", {"id": "0", "at": "FF"}, 400),
        ("split", {"id": "0", "where": "20"}, 400),
        ("split", {"id": "0"}, 400),  # nothing in it that could be halved
        ("merge", {"ids": ["0"]}, 400),
        ("merge", {"ids": ["0", "0"]}, 400),
        ("merge", {"ids": ["0", "1"]}, 404),
        ("merge", [], 400),
    ]:
        response = api.ask("POST", f"{BASE}/{target}", body)
        assert response.status == status, (target, body, response.body)
        assert set(document(response)) == {"code", "message"}


def test_unknown_operations_and_containers_are_not_found(api: Api) -> None:
    for target in (
        "operations/1",
        "operations/split.AAAAAAAAAAA.0",
        "dbs/d/colls/other/partitions",
        "dbs/other/colls/c/partitions",
        "nothing",
    ):
        assert api.ask("GET", f"/_armillary/{target}").status == 404, target
    assert api.ask("DELETE", "/_armillary/account").status == 405


def test_the_account_lists_what_there_is(api: Api) -> None:
    fill(api, 3)
    found = document(api.ask("GET", "/_armillary/account"))
    (database,) = found["databases"]
    (container,) = database["containers"]
    assert (database["id"], database["throughput"]) == ("d", None)
    assert container["bytes"] > 0
    assert container | {"bytes": 0} == {
        "id": "c",
        "partition_key": ["/pk"],
        "synthetic_key": None,
        "throughput": {"kind": "manual", "ru": 400},
        "shared_throughput": None,
        "partitions": 1,
        "items": 3,
        "bytes": 0,
    }
