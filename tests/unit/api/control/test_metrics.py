"""Metrics as a scraper reads them. Without these tests a name or a label could go, and dashboards
would stay empty without an error anywhere."""

from __future__ import annotations

import re

import pytest
from tests.support.nosql import Api, document, pk

from armillary.api.control import engine_metrics
from armillary.api.control.metrics import FAMILIES, Sample, exposition
from armillary.api.core.settings import EMULATOR_KEY
from armillary.engine.address import parse_address
from armillary.partition.budgets.opening import open_ledger
from armillary.store.throughput.meter import Meter

LINE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\.)*",?)*)\})? (\S+)')


@pytest.fixture
def metered(api: Api) -> Api:
    """With a meter, as a server has one."""
    api.shut()
    api.account.meter = Meter(
        api.engine, open_ledger(parse_address(":memory:"), "on"), enforce="on"
    )
    api.open()
    return api


def scrape(api: Api, target: str = "/metrics") -> dict[tuple[str, str], float]:
    response = api.send("GET", target, {"authorization": f"Bearer {EMULATOR_KEY}"})
    assert response.status == 200
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    found: dict[tuple[str, str], float] = {}
    for line in response.body.decode().splitlines():
        if not line.startswith("#"):
            parts = LINE.fullmatch(line)
            assert parts is not None, line
            found[parts[1], parts[2] or ""] = float(parts[3])
    return found


def test_what_was_done_is_counted(metered: Api) -> None:
    api = metered
    for number in range(3):
        item = {"id": str(number), "pk": "a"}
        assert api.ask("POST", "/dbs/d/colls/c/docs", item, pk("a")).status == 201
    assert api.ask("GET", "/dbs/d").status == 200
    assert api.ask("GET", "/dbs/nothing").status == 404
    found = scrape(api)
    whose = 'DatabaseName="d",CollectionName="c",Region="South Central US"'
    requests = f'{whose},PartitionKeyRangeId="0",OperationType="create",StatusCode="201"'
    assert found["TotalRequests", requests] == 3
    assert found["TotalRequestUnits", f'{whose},PartitionKeyRangeId="0"'] > 3
    assert found["DocumentCount", whose] == 3
    assert found["ProvisionedThroughput", whose] == 400
    assert found["PhysicalPartitionThroughputInfo", f'{whose},PhysicalPartitionId="0"'] == 400
    assert found["MetadataRequests", 'StatusCode="200"'] == 1
    assert found["MetadataRequests", 'StatusCode="404"'] == 1
    assert found["ServiceAvailability", ""] == 100
    of_autoscale = {"AutoscaleMaxThroughput", "AutoscaledRU"}
    of_databases = set(engine_metrics.FAMILIES)  # see test_postgres.py
    assert set(FAMILIES) - {name for name, _ in found} == of_autoscale | of_databases
    assert scrape(api, "/_armillary/metrics") == found
    report = document(api.ask("GET", "/_armillary/dbs/d/colls/c/partitions"))
    assert report["top_keys"][0] | {"bytes": 0} == {"key": ["a"], "ru_share": 1.0, "bytes": 0}
    assert report["partitions"][0]["ru_per_s"] == 400


def test_autoscale_tells_what_it_is_at(metered: Api) -> None:
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
    most = {"x-ms-cosmos-offer-autopilot-settings": '{"maxThroughput": 4000}'}
    made = metered.ask("POST", "/dbs/d/colls", {"id": "auto", "partitionKey": key}, most)
    assert made.status == 201
    whose = 'DatabaseName="d",CollectionName="auto",Region="South Central US"'
    found = scrape(metered)
    assert found["AutoscaleMaxThroughput", whose] == 4_000
    assert found["AutoscaledRU", whose] == 400, "idle: a tenth of the maximum"


def test_names_of_users_can_not_break_the_format() -> None:
    text = exposition([Sample("DocumentCount", 1, (("CollectionName", 'a"b\\c\nd'),))])
    assert text.splitlines()[2] == 'DocumentCount{CollectionName="a\\"b\\\\c\\nd"} 1'
