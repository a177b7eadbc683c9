"""The partitions page in a real browser, against a server that splits early. Without these tests a
split could happen unseen, or a page could show other numbers than the server has."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.support.portal import WAIT_MS, Portal
from tests.support.waiting import until
from tools.partition_scenes import make, readings

from armillary.testing.process import Server, start_server

BASE = "dbs/d/colls/c"
OPTIONS = ("--partition-bytes", "100KB", "--partition-ru", "1000", "--logical-bytes", "20MB")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with start_server(enforce=True, options=OPTIONS) as server:
        yield server


def partitions(portal: Portal) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = portal.control(f"{BASE}/partitions")["partitions"]
    return found


#: What ring, table and columns show, all of it at one moment.
DRAWN = """() => {
  const part = name => document.querySelector(`[data-testid="${name}"]`)
  const all = (name, what) => [...(part(name)?.querySelectorAll(what) ?? [])]
  const text = one => one?.textContent.trim()
  return {
    arcs: all("ring", "g.partition").map(
      one => [one.dataset.id, one.dataset.items, one.dataset.bytes]).sort(),
    rows: all("partitions", "tr[data-id]").map(
      one => [one.dataset.id, text(one.querySelector('[data-name="items"]'))]).sort(),
    columns: all("storage", "g.column").length,
    count: text(part("partition-count")),
    items: text(part("items")),
  }
}"""


def compare(portal: Portal) -> list[str]:
    """Until ring, table and columns show what the server has; the ids then. Both are looked at
    again and again: splits may still be under way."""
    deadline = time.monotonic() + WAIT_MS / 1000
    while True:
        lines = partitions(portal)
        wanted = {
            "arcs": sorted([one["id"], str(one["items"]), str(one["bytes"])] for one in lines),
            "rows": sorted([one["id"], f"{one['items']:,}"] for one in lines),
            "columns": len(lines),
            "count": f"{len(lines):,}",
            "items": f"{sum(one['items'] for one in lines):,}",
        }
        drawn = portal.page.evaluate(DRAWN)
        if drawn == wanted:
            return [one["id"] for one in lines]
        assert time.monotonic() < deadline, (drawn, wanted)
        portal.page.wait_for_timeout(100)


def test_a_hot_key_is_refused_and_splits_its_partition_before_your_eyes(portal: Portal) -> None:
    make(portal, "d", "c", "/tenant", 400)
    page = portal.open("/load?db=d&c=c")
    page.evaluate("() => { window.notReloaded = true }")
    ring = portal.see("ring")
    expect(ring.locator("g.partition")).to_have_count(1)
    page.get_by_label("Bytes per item").fill("10000")  # so that few are enough, on any machine
    portal.see("load-turn").click()
    refused = ring.locator('g.partition:not([data-throttled="0"])')
    expect(refused.first).to_be_attached()
    expect(portal.see("load-refused")).not_to_have_text("0")
    # It came from partition 0, which has gone from the ring.
    expect(ring.locator('g.partition[data-id="0"]')).to_have_count(0)
    expect(ring.locator("path.past").first).to_be_attached()
    portal.see("load-turn").click()
    assert page.evaluate("() => window.notReloaded")
    assert all("0" in one["parents"] for one in partitions(portal))
    page.get_by_role("link", name="Partitions").click()
    portal.settle()
    expect(portal.see("used-ru")).to_have_text("0")
    compare(portal)
    # Which it is depends on how far the splits came: each heir counts anew.
    row = portal.see("keys").locator("tbody tr").first

    def is_the_heaviest() -> bool:
        key = portal.control("dbs/d/colls/c/partitions")["top_keys"][0]["key"][0]
        return key in row.inner_text()

    until(is_the_heaviest)


def test_split_merge_and_scale_by_hand(portal: Portal) -> None:
    make(portal, "d", "c", "/deviceId", 1000)
    readings(portal, BASE, "deviceId", 60)
    page = portal.open("/partitions?db=d&c=c")
    (first, *_) = before = compare(portal)
    page.get_by_role("button", name="Split a partition").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("At the hash").fill("zz")
    dialog.get_by_role("button", name="Split").click()
    expect(dialog.get_by_test_id("error")).to_contain_text("hexadecimal")
    dialog.get_by_label("At the hash").fill("")
    dialog.get_by_role("button", name="Split").click()
    expect(dialog).to_have_count(0)
    expect(portal.see("partition-count")).to_have_text(str(len(before) + 1))
    expect(portal.see("news")).to_contain_text("split done")
    after = compare(portal)

    page.get_by_role("button", name="Merge neighbours").click()
    page.get_by_role("dialog").get_by_role("button", name="Merge").click()
    expect(portal.see("partition-count")).to_have_text(str(len(before)))
    expect(portal.see("news")).to_contain_text("merge done")
    assert set(compare(portal)) != set(after)
    assert first is not None

    page.get_by_role("button", name="Scale throughput").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("RU/s").fill("1")
    dialog.get_by_role("button", name="Scale").click()
    expect(dialog.get_by_test_id("error")).to_be_visible()
    dialog.get_by_label("RU/s").fill("1500")
    dialog.get_by_role("button", name="Scale").click()
    expect(dialog).to_have_count(0)
    expect(portal.see("ring")).to_contain_text("1,500")
    assert portal.control(f"{BASE}/partitions")["throughput"] == 1500


def test_one_empty_partition_and_no_neighbour(portal: Portal) -> None:
    make(portal, "d", "c", "/deviceId", 400)
    page = portal.open("/partitions?db=d&c=c")
    assert compare(portal) == ["0"]
    expect(portal.see("keys")).to_contain_text("No partition key has items")
    page.get_by_role("button", name="Merge neighbours").click()
    expect(page.get_by_text("it has no neighbour to merge with")).to_be_visible()
