"""A browser on the portal of a real server, and the API beside it to compare with.

Every page that is opened is listened to: a console error, a failed request or one that would leave
the machine is noted in `problems`, and the fixture fails the test that caused it.
"""

from __future__ import annotations

import http.client
import json
import shutil
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request, expect
from tests.support.signed_http import SignedClient

from armillary.testing.process import Server

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_OPTIONS = ("--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb")
WAIT_MS = 120_000.0  # for anything at all: the machine may be busy
expect.set_options(timeout=WAIT_MS)


def chromium_path() -> str | None:
    return next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


class Portal:
    """One browser window. `size` is that of the window, in pixels."""

    def __init__(
        self, server: Server, browser: Browser, size: tuple[int, int] = (1280, 800), **options: Any
    ) -> None:
        address = urlsplit(server.endpoint)
        assert address.port is not None
        self.server = server
        self.port = address.port
        self.root = server.portal.partition("?")[0]
        self.problems: list[str] = []
        self.api = SignedClient(self.port)
        viewport = {"width": size[0], "height": size[1]}
        # A click on what still moves goes to where it was.
        options = {"reduced_motion": "reduce"} | options
        self._window = browser.new_context(viewport=viewport, **options)  # type: ignore[arg-type]
        self._window.set_default_timeout(WAIT_MS)
        self.page: Page = self._window.new_page()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        self.page.on("request", self._asked)

    def open(self, path: str = "/") -> Page:
        """With the link first, as a user does; then any page."""
        if not self.page.url.startswith(self.root):
            self.page.goto(self.server.portal)
            self.settle()
        if path != "/" or not self.page.url.endswith("/_portal/"):
            self.page.goto(self.root + path)
            self.settle()
        return self.page

    def settle(self) -> None:
        """Until the page talks to its process: before that, clicks go nowhere."""
        self.page.wait_for_function("() => window.socket && window.socket.connected")

    def see(self, testid: str) -> Locator:
        return self.page.get_by_test_id(testid)

    def text(self, testid: str) -> str:
        return self.see(testid).inner_text()

    def number(self, testid: str) -> float:
        """The number that a text of the page begins with: `1,234.5 RU` is 1234.5."""
        return float(self.text(testid).replace(",", "").split()[0])

    def control(self, path: str, method: str = "GET", body: Any = None) -> Any:
        """What `/_armillary` says."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            headers = {"authorization": f"Bearer {self.server.key}"}
            raw = None if body is None else json.dumps(body)
            connection.request(method, f"/_armillary/{path}", raw, headers)
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status < 300, text
            return json.loads(text)
        finally:
            connection.close()

    def make_container(
        self, database: str, container: str, path: str = "/pk", throughput: int = 400
    ) -> None:
        found = self.api.ask("POST", "/dbs", {"id": database})
        assert found.status in (201, 409), found.body
        key = {"paths": [path], "kind": "Hash", "version": 2}
        body = {"id": container, "partitionKey": key}
        offer = {"x-ms-offer-throughput": str(throughput)}
        found = self.api.ask("POST", f"/dbs/{database}/colls", body, offer)
        assert found.status == 201, found.body

    def close(self) -> None:
        self.api.close()
        self._window.close()

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console {message.type}: {message.text}")

    def _asked(self, request: Request) -> None:
        here = request.url.startswith((f"http://127.0.0.1:{self.port}/", "data:", "blob:"))
        if not here and not request.url.startswith(f"ws://127.0.0.1:{self.port}/"):
            self.problems.append(f"a request left the machine: {request.url}")
