"""Live load in a real browser. Without these tests its counts could be made up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.support.portal import Portal
from tests.support.waiting import until
from tools.partition_scenes import make, turn_to

from armillary.testing.process import Server, start_server

HEAT = "dbs/d/colls/c/heat"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with start_server(enforce=True) as server:
        yield server


def items(portal: Portal) -> int:
    return int(portal.control(HEAT)["partitions"][0]["items"])


def test_refusals_and_writes_are_those_of_the_server(portal: Portal) -> None:
    make(portal, "d", "c", "/tenant", 400)
    page = portal.open("/load?db=d&c=c")
    expect(portal.see("ring").locator("svg")).to_be_visible()
    page.evaluate("() => { window.notReloaded = true }")
    turn_to(portal, "Requests per second", "load-rate-set", 200)
    turn_to(portal, "Reads, per cent", "load-reads-set", 0)
    # A slow machine sends few requests; each of these costs a whole second's budget.
    page.get_by_label("Bytes per item").fill("80000")
    expect(portal.see("load-notice")).to_contain_text("Start writes items into ")
    portal.see("load-turn").click()
    throttled = portal.see("ring").locator('g.partition[data-id="0"]')
    expect(throttled).not_to_have_attribute("data-throttled", "0")
    portal.see("load-turn").click()
    expect(portal.see("load-turn")).to_contain_text("Start")
    expect(portal.see("load-rate")).to_have_text("0")  # a second without requests
    heat = portal.control(HEAT)["partitions"][0]
    # Requests that were under way at the stop are not counted by the page.
    assert 0 < portal.number("load-refused") <= heat["refused"]
    assert 0 < portal.number("load-done") <= heat["items"]
    assert heat["refused"] - portal.number("load-refused") <= 48
    assert heat["items"] - portal.number("load-done") <= 48
    assert portal.number("load-failed") == 0
    # Those that were under way may still arrive.
    until(lambda: throttled.get_attribute("data-items") == str(items(portal)))
    expect(portal.see("ring").locator("g.key").first).to_be_visible()
    assert page.evaluate("() => window.notReloaded")


def test_wrong_numbers_are_refused_in_the_page(portal: Portal) -> None:
    make(portal, "d", "c", "/tenant", 400)
    page = portal.open("/load?db=d&c=c")
    page.get_by_label("Different keys").fill("0")
    expect(portal.see("error")).to_contain_text("keys is between 1 and 100,000, not 0.")
    page.get_by_label("Different keys").fill("")
    expect(portal.see("error")).to_contain_text("how many keys")
    portal.see("load-turn").click()
    expect(portal.see("load-turn")).to_contain_text("Start")
    assert portal.control(HEAT)["partitions"][0]["items"] == 0


def test_the_load_ends_with_its_page(portal: Portal) -> None:
    make(portal, "d", "c", "/tenant", 400)
    portal.open("/load?db=d&c=c")
    portal.see("load-turn").click()
    expect(portal.see("load-done")).not_to_have_text("0")
    portal.open("/partitions?db=d&c=c")
    expect(portal.see("ring").locator("svg")).to_be_visible()
    # Five seconds without requests: the load does not go on without its page.
    until(lambda: portal.control(HEAT)["partitions"][0]["ru"][-1] == 0)
    assert items(portal) > 0
    until(lambda: portal.text("items") == f"{items(portal):,}")
