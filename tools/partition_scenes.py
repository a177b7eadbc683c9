"""Scenes with partitions: a skewed and an even container, one and two hundred partitions, long
names, and a hot key under load."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from random import Random
from typing import Any
from urllib.parse import quote

from playwright.sync_api import expect
from tests.support.portal import Portal
from tests.support.signed_http import SignedClient

SMALL = ("--partition-bytes", "500KB", "--partition-ru", "500", "--logical-bytes", "4MB")
THROUGHPUT = 2400
PAUSE_SECONDS = 0.004
LOADED = ("--partition-bytes", "400KB", "--partition-ru", "1000", "--logical-bytes", "40MB")
MANY = ("--partition-ru", "100")
COUNTRIES = (("de", 55), ("fr", 20), ("nl", 10), ("at", 8), ("ch", 5), ("be", 2))
LONG = "telemetry-of-every-device-in-every-plant-with-a-name-nobody-wanted-to-shorten"


def put(portal: Portal, path: str, item: dict[str, Any], key: str) -> None:
    header = {"x-ms-documentdb-partitionkey": f'["{key}"]'}
    found = portal.api.ask("POST", f"/{path}/docs", item, header)
    assert found.status in (201, 429), found.body


def make(portal: Portal, database: str, container: str, path: str, ru: int) -> None:
    portal.api.ask("POST", "/dbs", {"id": database})
    body = {
        "id": container,
        "partitionKey": {"paths": [path], "kind": "Hash", "version": 2},
    }
    headers = {"x-ms-offer-throughput": str(ru)}
    found = portal.api.ask("POST", f"/dbs/{database}/colls", body, headers)
    assert found.status == 201, found.body


def readings(portal: Portal, path: str, prop: str, count: int = 600) -> None:
    for number, (country, device) in zip(range(count), _stream(2018), strict=False):
        item = {"id": f"r{number}", "deviceId": device, "country": country, "t": number}
        put(portal, path, item, str(item[prop]))


def open_partitions(portal: Portal, database: str, container: str) -> None:
    portal.open(f"/partitions?db={quote(database)}&c={quote(container)}")
    expect(portal.see("ring").locator("svg")).to_be_visible()


@contextmanager
def writing(portal: Portal, path: str, prop: str) -> Iterator[None]:
    """The same readings go on while the picture is taken, so that it shows a container at work."""
    stop = threading.Event()

    def write() -> None:
        api = SignedClient(portal.port)
        for number, (country, device) in enumerate(_stream(2019)):
            if stop.wait(PAUSE_SECONDS):
                break
            item = {"id": f"w{number}", "deviceId": device, "country": country, "t": number}
            header = {"x-ms-documentdb-partitionkey": f'["{item[prop]}"]'}
            assert api.ask("POST", f"/{path}/docs", item, header).status in (201, 429)
        api.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _stream(seed: int) -> Iterator[tuple[str, str]]:
    random = Random(seed)
    names = [name for name, _ in COUNTRIES]
    weights = [weight for _, weight in COUNTRIES]
    while True:
        yield random.choices(names, weights)[0], f"device-{random.randrange(400):03}"


@contextmanager
def at_work(portal: Portal, container: str, prop: str) -> Iterator[None]:
    make(portal, "telemetry", container, f"/{prop}", THROUGHPUT)
    path = f"dbs/telemetry/colls/{container}"
    readings(portal, path, prop)
    open_partitions(portal, "telemetry", container)
    with writing(portal, path, prop):
        portal.page.wait_for_timeout(12_000)
        yield


def skewed(portal: Portal) -> AbstractContextManager[None]:
    return at_work(portal, "by-country", "country")


def even(portal: Portal) -> AbstractContextManager[None]:
    return at_work(portal, "by-device", "deviceId")


def single(portal: Portal) -> None:
    make(portal, "shop", "orders", "/customerId", 400)
    open_partitions(portal, "shop", "orders")


def many(portal: Portal) -> None:
    make(portal, LONG, LONG, "/deviceId", 12_000)
    readings(portal, f"dbs/{LONG}/colls/{LONG}", "deviceId", 900)
    open_partitions(portal, LONG, LONG)
    portal.page.wait_for_timeout(6000)


def turn_to(portal: Portal, slider: str, shown: str, wanted: int) -> None:
    """A slider by its keys, as who has no mouse; a press that got lost is made again."""
    handle = portal.page.get_by_role("slider", name=slider).locator("[tabindex='0']")
    for _ in range(200):
        now = portal.number(shown)
        if now == wanted:
            return
        handle.press("ArrowRight" if now < wanted else "ArrowLeft")
        for _ in range(60):
            if portal.number(shown) != now:
                break
            portal.page.wait_for_timeout(50)
    raise AssertionError(f"{slider} stays at {portal.number(shown)}")


def hot_load(portal: Portal) -> None:
    make(portal, "shop", "carts", "/tenant", 800)
    page = portal.open("/load?db=shop&c=carts")
    ring = portal.see("ring")
    expect(ring.locator("svg")).to_be_visible()
    page.get_by_label("Bytes per item").fill("10000")  # few requests are enough, on any machine
    portal.see("load-turn").click()
    expect(ring.locator("g.partition").nth(3)).to_be_attached(timeout=120_000)
    expect(ring.locator("path.refused").first).to_be_attached(timeout=120_000)
    page.wait_for_timeout(15_000)
