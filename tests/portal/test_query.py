"""The query page in a real browser: its numbers are those of the API, and a mistake is marked where
it is."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Browser, expect
from tests.support.delaying import delayed
from tests.support.portal import Portal
from tests.support.waiting import until

from armillary.testing.process import Server, start_server

ORDERS = "dbs/shop/colls/orders"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Partitions of 1,000 RU/s, so that a container has several."""
    with start_server(options=["--partition-ru", "1000"]) as server:
        yield server


@pytest.fixture
def filled(portal: Portal) -> Portal:
    portal.make_container("shop", "orders", throughput=4_000)
    for number in range(60):
        item = {"id": f"{number:02}", "pk": f"k{number % 7}", "n": number, "note": '=1+1,"x"'}
        assert portal.api.create(ORDERS, item).status == 201
    return portal


def ask(portal: Portal, text: str) -> None:
    portal.open(f"/query?db=shop&c=orders&q={quote(text)}")
    portal.page.get_by_role("button", name="Run").click()


def said(portal: Portal, text: str) -> Any:
    return portal.control(f"{ORDERS}/query", "POST", {"query": text, "max_items": 100})


def partitions(portal: Portal) -> int:
    return len(portal.control(f"{ORDERS}/partitions")["partitions"])


def test_the_numbers_are_those_of_the_api(filled: Portal) -> None:
    text = "SELECT c.id, c.n FROM c WHERE c.n >= 20 AND c.n < 30 ORDER BY c.n DESC"
    ask(filled, text)
    truth = said(filled, text)
    expect(filled.see("q-rows")).to_have_text("10")
    until(lambda: filled.number("q-charge") == round(truth["charge_ru"], 2))
    read = f"{truth['partitions_read']} of {partitions(filled)}"
    expect(filled.see("q-partitions")).to_have_text(read)
    until(lambda: filled.number("q-loaded") == truth["retrieved_items"])
    expect(filled.see("q-index")).to_have_text(", ".join(truth["index"]["used"]))
    cells = filled.page.locator(".a-rows tbody.q-virtual-scroll__content td")
    expect(cells).to_have_count(20)
    assert cells.all_inner_texts()[::2] == [f"{number:02}" for number in range(29, 19, -1)]
    filled.page.get_by_role("tab", name="JSON").click()
    expect(filled.see("q-json")).to_contain_text("]")
    assert json.loads(filled.text("q-json")) == truth["rows"]
    filled.page.get_by_role("tab", name="Plan and indexes").click()
    assert filled.see("q-plan").text_content() == "\n".join(truth["plan"])


def test_one_partition_key_touches_one_partition(filled: Portal) -> None:
    ask(filled, "SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'k3'")
    count = partitions(filled)
    assert count > 1
    expect(filled.see("q-partitions")).to_have_text(f"1 of {count}")
    expect(filled.page.get_by_role("img", name=f"1 of {count} partitions")).to_be_visible()
    expect(filled.page.locator(".a-strip .touched")).to_have_count(1)


def test_a_mistake_is_marked_at_its_place_and_the_text_stays(filled: Portal) -> None:
    ask(filled, "SELECT * FORM c")
    expect(filled.see("error")).to_contain_text("Line 1, column 10")
    expect(filled.page.locator(".cm-content .a-wrong")).to_have_text("FORM")
    expect(filled.page.locator(".cm-content")).to_have_text("SELECT * FORM c")


def test_wrong_fields_are_named(filled: Portal) -> None:
    page = filled.open("/query?db=shop&c=orders&q=" + quote("SELECT * FROM c"))
    page.get_by_label("Parameters").fill("{least}")
    page.get_by_role("button", name="Run").click()
    expect(filled.see("error")).to_contain_text("not JSON")
    page.get_by_label("Parameters").fill('{"@least": 57}')
    page.get_by_label("Partition key").fill('{"a": 1}')
    page.get_by_role("button", name="Run").click()
    expect(filled.see("error")).to_contain_text("A partition key is")


def test_rows_come_in_pages_and_are_exported_whole(filled: Portal, tmp_path: Path) -> None:
    page = filled.open("/query?db=shop&c=orders&q=" + quote("SELECT * FROM c ORDER BY c.id"))
    page.get_by_label("Rows per page").click()
    page.get_by_role("option", name="25 rows").click()
    page.get_by_role("button", name="Run").click()
    expect(filled.see("q-rows")).to_have_text("25+")
    page.get_by_role("button", name="Load more rows").click()
    expect(filled.see("q-rows")).to_have_text("50+")
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_text("As CSV").click()
    path = tmp_path / "orders.csv"
    download.value.save_as(path)
    rows = list(csv.DictReader(StringIO(path.read_bytes().decode("utf-8"), newline="")))
    assert [one["id"] for one in rows] == [f"{number:02}" for number in range(60)]
    # A spreadsheet would run it otherwise.
    assert {one["note"] for one in rows} == {'\'=1+1,"x"'}
    expect(filled.see("q-rows")).to_have_text("60")


def test_history_brings_a_query_back(filled: Portal) -> None:
    ask(filled, "SELECT VALUE 41 + 1")
    expect(filled.see("q-rows")).to_have_text("1")
    page = filled.open("/query?db=shop&c=orders&q=" + quote("SELECT * FROM c"))
    page.get_by_role("button", name="History").click()
    page.get_by_role("dialog").get_by_text("SELECT VALUE 41 + 1").click()
    expect(page.locator(".cm-content")).to_have_text("SELECT VALUE 41 + 1")


@pytest.fixture(params=[0.0, 0.05], ids=["near", "far"])
def distant(request: pytest.FixtureRequest, server: Server, browser: Browser) -> Iterator[Portal]:
    """A round trip of 100 ms in the second case."""
    port = urlsplit(server.endpoint).port
    assert port is not None
    with delayed(port, request.param) as other:
        moved = replace(
            server,
            endpoint=server.endpoint.replace(f":{port}", f":{other}"),
            portal=server.portal.replace(f":{port}", f":{other}"),
        )
        portal = Portal(moved, browser)
        portal.control("reset", "POST")
        yield portal
        portal.close()
    assert portal.problems == []


@pytest.mark.parametrize("delay_ms", [0, 20])
def test_what_is_typed_is_what_runs(distant: Portal, delay_ms: int) -> None:
    """Every update of the page put the text back to what the server knew of it: 150 ran as 105."""
    distant.make_container("shop", "orders", throughput=4_000)
    page = distant.open("/query?db=shop&c=orders&q=" + quote("SELECT * FORM c"))
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".cm-content .a-wrong")).to_have_text("FORM")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.type("SELECT VALUE 150 + 12345678901 + 0.25", delay=delay_ms)
    page.keyboard.press("Control+Enter")
    expect(distant.see("q-rows")).to_have_text("1")
    expect(page.locator(".cm-content")).to_have_text("SELECT VALUE 150 + 12345678901 + 0.25")
    page.get_by_role("tab", name="JSON").click()
    expect(distant.see("q-json")).to_contain_text("12345679051.25")


def test_the_editor_has_the_focus_and_a_draft_comes_back(filled: Portal) -> None:
    page = filled.open("/query?db=shop&c=orders")
    expect(page.locator(".cm-content")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("SELECT VALUE 7")
    page.wait_for_function("Object.values(localStorage).includes('\"SELECT VALUE 7\"')")
    page.reload()
    filled.settle()
    expect(page.locator(".cm-content")).to_have_text("SELECT VALUE 7")
    expect(page.locator(".cm-content")).to_be_focused()
    page.keyboard.press("Control+Enter")
    expect(filled.see("q-rows")).to_have_text("1")
