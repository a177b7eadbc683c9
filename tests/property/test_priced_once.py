"""One number for one request: what the header says is what the budget loses and what statistics
count, for every operation, profile, consistency level and path through the server. Without this a
Strong read was billed 2 RU and spent 1, and `profile = "classic"` did not reach queries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest
from tests.property.test_hot_reads import raw, short
from tests.support.nosql import Api, pk

from armillary.api.core.settings import GatewaySettings
from armillary.partition.budgets.ledger import Allowance, LocalLedger
from armillary.partition.request_units import PROFILES
from armillary.store.throughput.meter import Meter

DOCS = "/dbs/d/colls/c/docs"
QUERY = {"x-ms-documentdb-isquery": "True", "content-type": "application/query+json"}
LEVELS = ("Session", "Strong", "BoundedStaleness", "Eventual")
FEED = {"a-im": "Incremental Feed"}
BATCH = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
PATCH = {"operations": [{"op": "set", "path": "/n", "value": 5}]}

#: Name, method, path, body, headers.
OPERATIONS: tuple[tuple[str, str, str, Any, dict[str, str]], ...] = (
    ("read", "GET", f"{DOCS}/i1", None, pk("k")),
    ("read a large one", "GET", f"{DOCS}/large", None, pk("k")),
    ("read nothing", "GET", f"{DOCS}/none", None, pk("k")),
    ("not modified", "GET", f"{DOCS}/i1", None, pk("k") | {"if-none-match": "*"}),
    ("not modified, large", "GET", f"{DOCS}/large", None, pk("k") | {"if-none-match": "*"}),
    ("create", "POST", DOCS, {"id": "new", "pk": "k", "a": [1, 2, {"b": "c"}]}, pk("k")),
    ("conflict", "POST", DOCS, {"id": "i1", "pk": "k"}, pk("k")),
    (
        "upsert",
        "POST",
        DOCS,
        {"id": "i2", "pk": "k", "x": 1},
        pk("k") | {"x-ms-documentdb-is-upsert": "True"},
    ),
    ("replace", "PUT", f"{DOCS}/i3", {"id": "i3", "pk": "k", "y": "z" * 3_000}, pk("k")),
    ("patch", "PATCH", f"{DOCS}/i4", PATCH, pk("k")),
    ("delete", "DELETE", f"{DOCS}/i5", None, pk("k")),
    ("list", "GET", DOCS, None, {"x-ms-max-item-count": "5"}),
    ("list of a key", "GET", DOCS, None, pk("k")),
    ("feed", "GET", DOCS, None, FEED),
    ("query", "POST", DOCS, {"query": "SELECT * FROM c WHERE c.n > 3"}, QUERY | pk("k")),
    ("scan", "POST", DOCS, {"query": "SELECT VALUE UPPER(c.id) FROM c"}, QUERY | pk("k")),
    ("count", "POST", DOCS, {"query": "SELECT VALUE COUNT(1) FROM c"}, QUERY | pk("k")),
    (
        "batch",
        "POST",
        DOCS,
        [{"operationType": "Create", "resourceBody": {"id": f"b{n}", "pk": "k"}} for n in range(3)],
        BATCH | pk("k"),
    ),
)


class Spent(LocalLedger):
    """A ledger that remembers what was taken from all budgets together."""

    def __init__(self) -> None:
        super().__init__("on")
        self.ru = 0.0

    def charge(self, allowance: Allowance, ru: float, now_ms: int) -> None:
        self.ru += ru
        super().charge(allowance, ru, now_ms)


@contextmanager
def metered(profile: str, level: str) -> Iterator[tuple[Api, Spent, Meter]]:
    api = Api(GatewaySettings(consistency=level))
    ledger = Spent()
    meter = Meter(api.engine, ledger, enforce="on")
    api.shut()
    api.account.meter, api.account.profile = meter, PROFILES[profile]
    api.open()
    try:
        api.account.create_database("d")
        body = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
        api.account.create_container("d", body, throughput=("manual", 10_000))
        for number in range(12):
            api.item({"id": f"i{number}", "pk": "k", "n": number, "text": "x" * 200 * number})
        api.item({"id": "large", "pk": "k", "text": "x" * 90_000})
        yield api, ledger, meter
    finally:
        api.close()


def counted(api: Api, meter: Meter) -> float:
    state = api.gateway.container("d", "c").state
    return sum(heat.ru_total for heat in meter.heat(state).values())


@pytest.mark.parametrize(("profile", "level"), list(product(PROFILES, LEVELS)))
def test_header_budget_and_statistics_agree(profile: str, level: str) -> None:
    with metered(profile, level) as (api, ledger, meter):
        for name, method, target, body, headers in OPERATIONS:
            api.clock.advance(2)
            before, statistics = ledger.ru, counted(api, meter)
            response = api.ask(method, target, body, headers)
            told = float(response.headers["x-ms-request-charge"])
            assert response.status < 500, response.body
            assert told > 0, name
            assert ledger.ru - before == pytest.approx(told, abs=0.006), name
            assert counted(api, meter) - statistics == pytest.approx(told, abs=0.006), name


@pytest.mark.parametrize(("profile", "level"), list(product(PROFILES, LEVELS)))
def test_the_fast_path_of_reads_says_and_takes_the_same(profile: str, level: str) -> None:
    with metered(profile, level) as (api, ledger, meter):
        for item in ("i1", "i9", "large"):
            target = f"{DOCS}/{item}"
            headers = api.signed("GET", target) | pk("k")
            api.ask("GET", target, None, pk("k"))  # the container is known from now on
            before, statistics = ledger.ru, counted(api, meter)
            general = float(api.ask("GET", target, None, pk("k")).headers["x-ms-request-charge"])
            spent, shown = ledger.ru - before, counted(api, meter) - statistics
            answer = short(api, raw(target, headers))
            assert answer is not None, "it took the fast path"
            found = re.search(rb"x-ms-request-charge: ([0-9.]+)", answer)
            assert found is not None
            assert float(found[1]) == general
            assert ledger.ru - before == pytest.approx(2 * spent, abs=1e-9)
            assert counted(api, meter) - statistics == pytest.approx(2 * shown, abs=1e-9)


def test_strong_reads_cost_double_and_writes_do_not() -> None:
    told = {}
    for level in ("Session", "Strong"):
        with metered("default", level) as (api, _, _):
            read = api.ask("GET", f"{DOCS}/i1", None, pk("k"))
            made = api.ask("POST", DOCS, {"id": "n", "pk": "k"}, pk("k"))
            query = api.ask("POST", DOCS, {"query": "SELECT * FROM c"}, QUERY | pk("k"))
            told[level] = [float(one.headers["x-ms-request-charge"]) for one in (read, made, query)]
    assert told["Strong"][0] == 2 * told["Session"][0]
    assert told["Strong"][1] == told["Session"][1]
    assert told["Strong"][2] == pytest.approx(2 * told["Session"][2], abs=0.02)


def test_the_profile_reaches_queries() -> None:
    told = {}
    for profile in PROFILES:
        with metered(profile, "Session") as (api, _, _):
            response = api.ask("POST", DOCS, {"query": "SELECT * FROM c"}, QUERY | pk("k"))
            assert json.loads(response.body)["_count"] == 13
            told[profile] = float(response.headers["x-ms-request-charge"])
    assert told["classic"] > told["default"]
