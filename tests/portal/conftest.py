"""One browser and one server for the tests of a file; every test begins with an empty account."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright
from tests.support.portal import CHROMIUM_OPTIONS, Portal, chromium_path

from armillary.testing.process import Server, start_server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for longer than a file: while the driver lives, a loop is running in this thread, and
    asynchronous tests that come after would fail."""
    path = chromium_path()
    if path is None:
        pytest.skip("there is no Chromium; tools/browser.sh installs it where it may")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(CHROMIUM_OPTIONS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with start_server() as server:
        yield server


@pytest.fixture
def portal(server: Server, browser: Browser) -> Iterator[Portal]:
    portal = Portal(server, browser)
    portal.control("reset", "POST")
    yield portal
    portal.close()
    assert portal.problems == []
