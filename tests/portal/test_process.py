"""The portal's own process behind a real server: one for all workers, replaced when it dies, gone
with its server, and nothing of it in the server itself."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser
from tests.support.portal import WAIT_MS
from tests.support.server_process import ServerProcess, children_of

from armillary.testing.process import Server, start_server

CONNECTED = "() => window.socket && window.socket.connected"
pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")


def until(condition: Callable[[], Any], seconds: float = 90.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
    return found


def portals(server: Server) -> list[int]:
    found = children_of(server.process.pid)
    return [pid for pid, command in found.items() if "armillary.portal" in command]


def visit(server: Server, cookie: str = "") -> tuple[int, str, bytes]:
    """The page of the explorer, or what `?token=` says: status, cookie, body."""
    address = urlsplit(server.portal)
    connection = http.client.HTTPConnection("127.0.0.1", address.port or 0, timeout=90)
    try:
        target = f"{address.path}/" if cookie else f"{address.path}?{address.query}"
        connection.request("GET", target, headers={"cookie": cookie} if cookie else {})
        answer = connection.getresponse()
        kept = answer.getheader("set-cookie", "")
        return answer.status, kept.partition(";")[0], answer.read()
    finally:
        connection.close()


def test_two_workers_share_one_portal_which_is_replaced_and_ends_with_them(tmp_path: Path) -> None:
    with start_server(data=tmp_path / "data", options=["--workers", "2"]) as server:
        status, cookie, _ = visit(server)
        assert (status, portals(server)) == (303, [])
        # Connections spread over the workers; the first of them starts it.
        for _ in range(6):
            status, _, body = visit(server, cookie)
            assert (status, b"Armillary" in body) == (200, True)
            assert len(portals(server)) == 1
        (first,) = portals(server)
        os.kill(first, signal.SIGKILL)
        until(lambda: first not in portals(server))
        assert visit(server, cookie)[0] == 200
        (second,) = portals(server)
        assert second != first
    assert server.process.returncode == 0
    until(lambda: not Path(f"/proc/{second}").exists())


def test_a_browser_that_leaves_is_no_error_in_the_log(browser: Browser, tmp_path: Path) -> None:
    """In the middle of a page, while it is drawn, and with the whole window."""
    off = ["--table-port", "off", "--mongo-port", "off", "--gremlin-port", "off"]
    server = ServerProcess(tmp_path / "data", real=True, options=off)
    try:
        server.wait_until_ready()
        (link,) = [one.split()[-1] for one in server.lines if "/_portal?token=" in one]
        root = link.partition("?")[0]
        for path in ("/query", "/partitions", "/load", "/advisor", "/"):
            window = browser.new_context()
            window.set_default_timeout(WAIT_MS)
            page = window.new_page()
            page.goto(link)
            page.wait_for_function(CONNECTED)  # the first visitor waits for the process
            page.goto(root + path, wait_until="commit")
            page.goto(root + path)
            page.wait_for_function(CONNECTED)
            window.close()
        server.terminate()
        code, _, errors = server.end()
        assert (code, errors) == (0, "")
    finally:
        server.close()


def test_a_server_knows_nothing_of_what_draws_the_pages() -> None:
    code = (
        "import sys, armillary.server.command, armillary.server.process.workers;"
        "import armillary.server.process.backend;"
        "import armillary.server.portal.splice, armillary.api.nosql.service;"
        "print([one for one in ('nicegui', 'fastapi', 'plotly', 'httpx') if one in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
