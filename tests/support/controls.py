"""The controls of a running server, asked with the key itself. Each request has its own connection,
so that with several workers any of them may answer."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from typing import Any

from tests.support.signed_http import Reply

from armillary.api.core.settings import EMULATOR_KEY


class ControlClient:
    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, method: str, path: str, body: Any = None) -> Reply:
        """`path`: after /_armillary/"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            raw = None if body is None else json.dumps(body).encode()
            headers = {"Authorization": f"Bearer {EMULATOR_KEY}"}
            connection.request(method, f"/_armillary/{path}", raw, headers)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read())
        finally:
            connection.close()

    def ended(self, operation: str, seconds: float = 60.0) -> dict[str, Any]:
        def look() -> Any:
            found = self.ask("GET", f"operations/{operation}").json()
            return None if found["status"] == "running" else found

        found: dict[str, Any] = until(look, seconds)
        return found


class EventReader:
    """Server-sent events, one after the other. Ready once the server has looked for the first
    time: what happens from then on is reported."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def __enter__(self) -> EventReader:
        headers = {"Authorization": f"Bearer {EMULATOR_KEY}"}
        self._connection.request("GET", "/_armillary/events", headers=headers)
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200
        assert self._answer.getheader("Content-Type") == "text/event-stream"
        while self._answer.readline() != b": watching\n":
            pass
        return self

    def __exit__(self, *exc: object) -> None:
        self._answer.close()
        self._connection.close()

    def next(self) -> tuple[str, dict[str, Any]]:
        name = ""
        while line := self._answer.readline().decode():
            if line.startswith("event: "):
                name = line.removeprefix("event: ").rstrip()
            elif line.startswith("data: "):
                return name, json.loads(line.removeprefix("data: "))
        raise AssertionError("the stream has ended")


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
    return found
