"""What the portal costs the server, and how it feels while the server is busy.

    idle    memory of a server whose portal nobody has opened; CPU of the server, and of the process
            of the portal, while a browser watches the partitions of a container in which nothing
            happens: 1 partition, then 200
    busy    wrk asks at full rate (nine point reads, one upsert) with the page open: how often its
            numbers change, how long a click and a change of pages take, connections lost

    python -m bench.portal --save        about four minutes; Linux with Chromium and wrk

Server, portal, browser and wrk share the machine: with two cores the busy numbers are those of a
laptop that does everything at once. Results go to bench/results/portal.jsonl.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from bench.http_drive import send_for
from bench.http_servers import Running, family
from bench.report import Report, folder
from bench.start import cpu_s, pss_mb
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.support.portal import CHROMIUM_OPTIONS, Portal, chromium_path

import armillary
from armillary.testing.process import Server, start_server
from bench import http_requests as made

PARTITIONS = (1, 200)
ITEMS = 4_000
SETTLE_S = 15.0
WATCH_S = 30.0
BUSY_S = 50
ROUNDS = 5
PAGE = f"/partitions?db={made.DATABASE}&c={made.CONTAINER}"
NUMBERS = """() => {
  window.changes = [];
  const seen = document.querySelector('[data-testid=used-ru]');
  new MutationObserver(() => window.changes.push(performance.now()))
    .observe(seen, {childList: true, characterData: true, subtree: true});
}"""


def fill(data: Path, partitions: int) -> None:
    with armillary.open(data, housekeeping=False, partition_ru=1_000_000_000) as account:
        container = account.create_database(made.DATABASE).create_container(
            made.CONTAINER, "/pk", throughput=1_000_000, physical_partitions=partitions
        )
        todo = list(made.items(ITEMS))
        for start in range(0, ITEMS, 500):
            container.bulk(("create", (one,)) for one in todo[start : start + 500])


@contextmanager
def serving(place: Path, partitions: int) -> Iterator[Server]:
    data = place / f"data-{partitions}"
    fill(data, partitions)
    with start_server(data=data, enforce=True, options=("--partition-ru", "1000000000")) as server:
        yield server


def data_mb(pid: int) -> float:
    """Pages of the data file that are mapped: the system takes them back when it needs them."""
    found, inside = 0.0, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if "-" in line.split(" ", 1)[0]:
            inside = line.endswith("data.mdb")
        elif inside and line.startswith("Pss:"):
            found += int(line.split()[1]) / 1024
    return found


def is_portal(pid: int) -> bool:
    return b"armillary.portal" in Path(f"/proc/{pid}/cmdline").read_bytes()


def cpu_of(server: Server) -> tuple[float, float]:
    """(the server, the portal's process), in seconds so far."""
    all_of = family(server.process.pid)
    portal = [pid for pid in all_of if is_portal(pid)]
    return sum(cpu_s(pid) for pid in all_of if pid not in portal), sum(map(cpu_s, portal))


def idle(report: Report, server: Server, portal: Portal, partitions: int) -> None:
    time.sleep(3)
    quiet = family(server.process.pid)
    report.line("idle memory, portal not opened", sum(map(pss_mb, quiet)), unit="MB",
                data_file=round(sum(map(data_mb, quiet)), 1), partitions=partitions)  # fmt: skip
    open_partitions(portal)
    time.sleep(SETTLE_S)
    before = cpu_of(server)
    time.sleep(WATCH_S)
    after = cpu_of(server)
    for name, used in zip(("server", "portal"), map(_percent, before, after), strict=True):
        report.line(f"CPU of the {name}, an idle container watched", used, unit="% core",
                    partitions=partitions)  # fmt: skip


def _percent(before: float, after: float) -> float:
    return 100 * (after - before) / WATCH_S


def open_partitions(portal: Portal) -> None:
    portal.open(PAGE)
    expect(portal.see("ring").locator("svg")).to_be_visible()


def busy(report: Report, server: Server, portal: Portal, partitions: int, place: Path) -> None:
    port = urlsplit(server.endpoint).port
    assert port is not None
    requests = made.mixed(port, ITEMS, 0)
    page = portal.page
    sockets: list[str] = []
    page.on("websocket", lambda one: sockets.append(one.url))
    found: dict[str, int] = {}
    running = Running("ours", port, server.process.pid)
    load = threading.Thread(target=lambda: found.update(send_for(running, requests, place, BUSY_S)))
    load.start()
    time.sleep(2)
    # Numbers, without touching anything.
    page.evaluate(NUMBERS)
    page.wait_for_timeout(12_000)
    changes = page.evaluate("window.changes")
    clicks = [_click(page) for _ in range(ROUNDS)]
    lost = len(sockets)
    turns = [_turn(portal) for _ in range(3)]
    still_loaded = load.is_alive()
    load.join()
    gaps = [(right - left) / 1000 for left, right in pairwise(changes)]
    facts: dict[str, Any] = {
        "partitions": partitions,
        "connections_lost": lost,
        "under_load": still_loaded,
    }
    rate = found["requests"] / found["duration_us"] * 1e6
    report.line("requests meanwhile", rate, failures=found["failures"] + found["broken"], **facts)
    report.line("seconds between two updates", median(gaps), unit="s", longest=max(gaps), **facts)
    report.line("click to dialog", median(clicks), unit="ms", longest=max(clicks), **facts)
    report.line("click to another page with its items", median(one for one, _ in turns),
                unit="ms", longest=max(one for one, _ in turns), **facts)  # fmt: skip
    report.line("click to the partitions with their ring", median(two for _, two in turns),
                unit="ms", longest=max(two for _, two in turns), **facts)  # fmt: skip


def _click(page: Page) -> float:
    began = time.perf_counter()
    page.get_by_role("button", name="Scale throughput").click()
    page.get_by_role("heading", name="Scale throughput").wait_for()
    took = time.perf_counter() - began
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("heading", name="Scale throughput").wait_for(state="detached")
    return took * 1000


def _turn(portal: Portal) -> tuple[float, float]:
    """To the explorer and back."""
    page = portal.page
    began = time.perf_counter()
    page.get_by_role("link", name="Explorer").click()
    page.locator(".a-item-link").first.wait_for()
    between = time.perf_counter()
    page.get_by_role("link", name="Partitions").click()
    portal.see("ring").locator("svg").wait_for()
    return (between - began) * 1000, (time.perf_counter() - between) * 1000


def measure(report: Report, browser: Browser, place: Path, partitions: int) -> None:
    with serving(place, partitions) as server:
        portal = Portal(server, browser)
        idle(report, server, portal, partitions)
        busy(report, server, portal, partitions, place)
        for problem in portal.problems:
            report.note(f"  {problem}")
        portal.close()


def main() -> None:
    report = Report("portal")
    path = chromium_path()
    if path is None:
        raise SystemExit("there is no Chromium; see tools/browser.sh")
    with folder() as place, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(CHROMIUM_OPTIONS))
        for partitions in PARTITIONS:
            measure(report, browser, place, partitions)
        browser.close()


if __name__ == "__main__":
    main()
