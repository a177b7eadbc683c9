"""One data set, written through the Table API: read by SQL with its types, seen on the partition
page, advised on, browsed and edited by plain names; and its hot PartitionKey is refused while the
others go on. Without this test a table could be a container in name only."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableClient, TableServiceClient
from playwright.sync_api import expect
from tests.support.portal import Portal
from tests.support.waiting import until

from armillary.testing.process import Server, start_server

BASE = "dbs/TablesDB/colls/readings"
OTHERS_OFF = ("--table-port", "0", "--mongo-port", "off", "--gremlin-port", "off")
OPTIONS = ("--partition-bytes", "200KB", "--partition-ru", "1000", *OTHERS_OFF)
CITIES = [f"city{number}" for number in range(12)]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with start_server(enforce=True, options=OPTIONS) as server:
        yield server


@pytest.fixture
def table(portal: Portal) -> Iterator[TableClient]:
    text = portal.server.table_connection_string
    with TableServiceClient.from_connection_string(text, retry_total=50) as service:
        made = service.create_table("readings", headers={"x-ms-offer-throughput": "3000"})
        for number, city in enumerate(CITIES):
            rows = [
                {"PartitionKey": city, "RowKey": f"r{row}", "celsius": number + row / 2, "row": row}
                for row in range(10)
            ]
            made.submit_transaction([("create", row) for row in rows])
        yield made


def test_a_table_is_a_container_on_every_page(portal: Portal, table: TableClient) -> None:
    # SQL, with the types of the values
    text = 'SELECT VALUE c FROM c WHERE c["$pk"] = "city3" AND c.row["$v"] = 4'
    headers = {
        "content-type": "application/query+json",
        "x-ms-documentdb-isquery": "true",
        "x-ms-documentdb-partitionkey": '["city3"]',
    }
    found = portal.api.ask("POST", f"/{BASE}/docs", {"query": text}, headers)
    (item,) = json.loads(found.body)["Documents"]
    assert item["celsius"] == {"$t": 1, "$v": 5}
    assert item["row"] == {"$t": 16, "$v": 4}

    # the partition page: every physical partition, every item, keys by their plain values
    lines = portal.control(f"{BASE}/partitions")["partitions"]
    assert len(lines) >= 3
    portal.open("/partitions?db=TablesDB&c=readings")
    expect(portal.see("ring").locator("g.partition")).to_have_count(len(lines))
    expect(portal.see("items")).to_have_text("120")
    expect(portal.see("keys")).to_contain_text("city3")
    expect(portal.see("keys")).not_to_contain_text("$pk")

    # the advisor, as people call it
    command = [sys.executable, "-m", "armillary", "advise", portal.server.connection_string]
    more = ["--database", "TablesDB", "--container", "readings", "--json", "--no-replay"]
    done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert "/PartitionKey" in done.stdout
    assert "$pk" not in done.stdout

    # and on its page, where the current key is one that the entities have
    portal.open("/advisor?db=TablesDB&c=readings")
    portal.page.get_by_role("button", name="Advise").click()
    expect(portal.see("recommended")).to_be_visible()
    report = portal.page.frame_locator("iframe[title=Report]").locator("body")
    expect(report).to_contain_text("/PartitionKey")
    expect(report).not_to_contain_text("$pk")


def test_entities_are_browsed_and_edited_by_their_plain_names(
    portal: Portal, table: TableClient
) -> None:
    entity = {"PartitionKey": "rome", "RowKey": "one", "id": "mine", "large": 5}
    table.upsert_entity(entity)
    page = portal.open("/?db=TablesDB&c=readings")
    expect(page.get_by_text("/PartitionKey", exact=True)).to_be_visible()
    expect(page.get_by_text("$pk")).to_have_count(0)
    page.get_by_label("Filter").fill('c["$pk"] = "rome"')
    page.get_by_role("button", name="Find").click()
    page.get_by_role("link", name="one", exact=True).click()
    expect(portal.see("item-title")).to_have_text("one")
    editor = page.locator(".cm-content").first
    expect(editor).to_contain_text('"PartitionKey": "rome"')
    expect(editor).to_contain_text('"id": "mine"')
    expect(editor).not_to_contain_text("$t")
    editor.click()
    page.keyboard.press("Control+a")
    changed = {**entity, "large@odata.type": "Edm.Int64", "large": str(2**60)}
    page.keyboard.insert_text(json.dumps(changed))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved for")).to_be_visible()
    found = table.get_entity("rome", "one")
    assert (found["id"], found["large"].value) == ("mine", 2**60)


def test_a_hot_key_is_refused_and_seen_while_others_go_on(
    portal: Portal, table: TableClient
) -> None:
    def write(key: str, row: int) -> int:
        try:
            table.upsert_entity(
                {"PartitionKey": key, "RowKey": str(row), "text": "x" * 5000}, retry_total=0
            )
        except HttpResponseError as error:
            return int(error.status_code or 0)
        return 204

    refused = False
    others: list[int] = []
    for round_ in range(40):
        with ThreadPoolExecutor(8) as pool:
            told = list(pool.map(lambda row: write("hot", row), range(100)))
        assert set(told) <= {204, 429}
        refused = refused or 429 in told
        others += [write(city, round_) for city in CITIES]
        if refused and 204 in others:
            break
    assert refused
    assert 204 in others
    portal.open("/partitions?db=TablesDB&c=readings")
    expect(portal.see("refused")).not_to_have_text("0")
    expect(portal.see("keys")).to_contain_text("hot")
    until(lambda: portal.see("ring").locator('g.partition[data-throttled="0"]').count() > 0)
