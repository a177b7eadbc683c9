"""Faults strike what they name, as often as they say. Without these tests a client's retries could
be tested against answers that never come."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.support.nosql import Api, document, pk

from armillary.api.core import faults
from armillary.store.catalog.controls import SharedControls

DOCS = "/dbs/d/colls/c/docs"
FAULTS = "/_armillary/faults"


def put(api: Api, *given: dict[str, Any]) -> None:
    response = api.ask("PUT", FAULTS, list(given))
    assert response.status == 200, response.body


def create(api: Api, id: str, **headers: str) -> Any:
    return api.ask("POST", DOCS, {"id": id, "pk": "a"}, pk("a") | headers)


def test_a_fault_strikes_as_often_as_it_says(api: Api) -> None:
    put(api, {"match": {"operation": "create"}, "effect": "429", "value": 250, "times": 2})
    for _ in range(2):
        refused = create(api, "1")
        assert refused.status == 429
        assert refused.headers["x-ms-retry-after-ms"] == "250"
    assert create(api, "1").status == 201
    assert document(api.ask("GET", FAULTS)) == []


@pytest.mark.parametrize(
    ("effect", "value", "status", "sub_status"),
    [("429", None, 429, "3200"), ("410", None, 410, "1002"), ("410", 1007, 410, "1007")],
)
def test_each_effect_has_its_status(
    api: Api, effect: str, value: int | None, status: int, sub_status: str
) -> None:
    put(api, {"effect": effect} | ({} if value is None else {"value": value}))
    refused = create(api, "1")
    assert (refused.status, refused.headers["x-ms-substatus"]) == (status, sub_status)
    put(api)
    assert create(api, "1").status == 201


def test_point_reads_meet_faults_too(api: Api) -> None:
    """They have a fast path of their own, which must not be taken meanwhile."""
    assert create(api, "1").status == 201
    headers = pk("a") | {"x-ms-activity-id": "x"}
    assert api.ask("GET", f"{DOCS}/1", headers=headers).status == 200
    put(api, {"match": {"operation": "read"}, "effect": "503"})
    assert api.ask("GET", f"{DOCS}/1", headers=headers).status == 503
    put(api)
    assert api.ask("GET", f"{DOCS}/1", headers=headers).status == 200


@pytest.mark.parametrize(
    ("match", "struck"),
    [
        ({}, True),
        ({"container": "c"}, True),
        ({"container": "d/c"}, True),
        ({"container": "other/c"}, False),
        ({"operation": "upsert"}, False),
        ({"operation": "create", "container": "x"}, False),
    ],
)
def test_a_fault_strikes_only_what_it_matches(
    api: Api, match: dict[str, str], struck: bool
) -> None:
    put(api, {"match": match, "effect": "503"})
    assert (create(api, "1").status == 503) is struck


def test_every_operation_of_items_has_its_name(api: Api) -> None:
    is_query = {"x-ms-documentdb-isquery": "true", "content-type": "application/query+json"}
    batch = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
    for operation, method, target, headers in [
        ("create", "POST", DOCS, {}),
        ("upsert", "POST", DOCS, {"x-ms-documentdb-is-upsert": "true"}),
        ("query", "POST", DOCS, is_query),
        ("batch", "POST", DOCS, batch),
        ("read_feed", "GET", DOCS, {}),
        ("change_feed", "GET", DOCS, {"a-im": "Incremental feed"}),
        ("replace", "PUT", f"{DOCS}/1", {}),
        ("patch", "PATCH", f"{DOCS}/1", {}),
        ("delete", "DELETE", f"{DOCS}/1", {}),
        ("metadata", "GET", "/dbs", {}),
    ]:
        put(api, {"match": {"operation": operation}, "effect": "503"})
        assert api.ask(method, target, {}, pk("a") | headers).status == 503, operation


def test_strangers_use_no_fault_up(api: Api) -> None:
    put(api, {"effect": "503", "times": 1})
    assert api.send("GET", "/dbs", {}).status == 401
    assert api.ask("GET", "/dbs").status == 503
    assert api.ask("GET", "/dbs").status == 200


def test_a_delay_waits_and_goes_on(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(faults.strike, "__defaults__", (waited.append,))
    put(api, {"effect": "delay", "value": 1500, "times": 1})
    assert create(api, "1").status == 201
    assert waited == [1.5]


def test_many_at_once_use_up_exactly_what_there_is(api: Api) -> None:
    put(api, {"effect": "503", "times": 7})
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda: statuses.append(api.ask("GET", "/dbs").status))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] * 13 + [503] * 7


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        [{"effect": "404"}],
        [{"effect": "delay"}],
        [{"effect": "delay", "value": 60_001}],
        [{"effect": "410", "value": 5}],
        [{"effect": "503", "times": 0}],
        [{"effect": "503", "match": {"operation": "insert"}}],
        [{"effect": "503", "match": {"container": 5}}],
        [{"effect": "503", "match": []}],
        [{"effect": "503", "often": 1}],
        ["503"],
        [{"effect": "503"}] * 101,
    ],
)
def test_wrong_faults_are_refused_and_change_nothing(api: Api, wrong: Any) -> None:
    put(api, {"effect": "503", "match": {"operation": "query"}})
    assert api.ask("PUT", FAULTS, wrong).status == 400
    assert len(document(api.ask("GET", FAULTS))) == 1


def test_servers_without_common_cells_find_a_change_by_looking(api: Api) -> None:
    """As servers on one PostgreSQL do."""
    other = SharedControls(api.engine, polls=True)
    put(api, {"effect": "503"})
    assert other.cells[0] == 0
    other._looked_at = -1e9
    other.poll()
    assert other.faults()[0].effect == "503"


# --- the clock ------------------------------------------------------------------------------------


def test_an_advanced_clock_lets_items_expire_and_signatures_hold(api: Api) -> None:
    item = {"id": "1", "pk": "a", "ttl": 60}
    definition = document(api.ask("GET", "/dbs/d/colls/c")) | {"defaultTtl": -1}
    assert api.ask("PUT", "/dbs/d/colls/c", definition).status == 200
    assert api.ask("POST", DOCS, item, pk("a")).status == 201
    before = document(api.ask("GET", "/_armillary/clock"))
    after = document(api.ask("POST", "/_armillary/clock", {"advance_ms": 86_400_000}))
    assert after == {
        "now_ms": before["now_ms"] + 86_400_000,
        "ahead_ms": 86_400_000,
        "stopped": False,
    }
    assert api.ask("GET", f"{DOCS}/1", headers=pk("a")).status == 404


def test_conditions_and_lists_see_the_advanced_clock(api: Api) -> None:
    """Items, patch conditions and queries over databases have to agree on what time it is."""
    now_ms = document(api.ask("GET", "/_armillary/clock"))["now_ms"]
    later = f"GetCurrentTimestamp() > {now_ms + 3_600_000}"
    assert api.ask("POST", "/dbs/d/colls/c/docs", {"id": "1", "pk": "a"}, pk("a")).status == 201
    change = {
        "operations": [{"op": "set", "path": "/n", "value": 1}],
        "condition": f"from c where {later}",
    }
    asked = {"query": f"SELECT * FROM root r WHERE {later}"}
    as_query = {"content-type": "application/query+json", "x-ms-documentdb-isquery": "True"}
    for wanted, found in ((412, 0), (200, 1)):
        patched = api.ask("PATCH", "/dbs/d/colls/c/docs/1", change, pk("a"))
        assert patched.status == wanted
        listed = document(api.ask("POST", "/dbs", asked, as_query))
        assert listed["_count"] == found
        api.ask("POST", "/_armillary/clock", {"advance_ms": 7_200_000})


@pytest.mark.parametrize("wrong", [None, {"advance_ms": -1}, {"advance_ms": 1.5}, {"ms": 1}, []])
def test_the_clock_goes_forward_only(api: Api, wrong: Any) -> None:
    assert api.ask("POST", "/_armillary/clock", wrong).status == 400
    assert document(api.ask("GET", "/_armillary/clock"))["ahead_ms"] == 0


def test_a_stopped_clock_moves_only_when_told(api: Api) -> None:
    """Tests of budgets send requests into one second, however long these take."""
    clock = "/_armillary/clock"
    stopped = document(api.ask("POST", clock, {"stopped": True}))
    assert stopped["stopped"] is True
    api.clock.advance(5)
    assert document(api.ask("GET", clock))["now_ms"] == stopped["now_ms"]
    after = document(api.ask("POST", clock, {"advance_ms": 300}))
    assert after == {"now_ms": stopped["now_ms"] + 300, "ahead_ms": 300, "stopped": True}
    api.clock.advance(5)
    going = document(api.ask("POST", clock, {"stopped": False}))
    assert going["now_ms"] == stopped["now_ms"] + 10_300, "as if it had never stood still"
    api.clock.advance(1)
    assert document(api.ask("GET", clock))["now_ms"] == going["now_ms"] + 1_000


def test_a_clock_that_goes_on_does_not_go_back(api: Api) -> None:
    clock = "/_armillary/clock"
    api.ask("POST", clock, {"stopped": True})
    far = document(api.ask("POST", clock, {"advance_ms": 60_000}))["now_ms"]
    assert document(api.ask("POST", clock, {"stopped": False}))["now_ms"] >= far
    assert api.ask("POST", clock, {"stopped": 1}).status == 400
    assert api.ask("POST", clock, {}).status == 400


def test_the_clock_has_an_end(api: Api) -> None:
    assert api.ask("POST", "/_armillary/clock", {"advance_ms": 10**15}).status == 400
