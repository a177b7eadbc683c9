"""Requests signed with the emulator's key over one kept connection: a client so light that sixteen
of them and a server fit on a small machine. It neither retries nor hides anything."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

from tests.support.nosql import pk, signature

from armillary.api.core.settings import EMULATOR_KEY


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class SignedClient:
    def __init__(self, port: int, *, timeout_s: float = 60.0) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)

    def ask(
        self, method: str, target: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        segments = [one for one in target.split("/") if one]
        is_feed = len(segments) % 2 == 1
        kind = segments[-1] if is_feed else segments[-2]
        link = "/".join(segments[:-1] if is_feed else segments)
        date = formatdate(usegmt=True)
        own = {
            "x-ms-date": date,
            "x-ms-version": "2020-07-15",
            "authorization": signature(EMULATOR_KEY, method, kind, link, date),
        }
        raw = None if body is None else json.dumps(body).encode()
        self._connection.request(method, target, raw, own | (headers or {}))
        response = self._connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, found, response.read())

    def create(self, container: str, item: dict[str, Any]) -> Reply:
        """`container`: as in a path, `dbs/d/colls/c`. The key is the property `pk`."""
        return self.ask("POST", f"/{container}/docs", item, pk(item["pk"]))

    def read(self, container: str, id: str, key: str) -> Reply:
        return self.ask("GET", f"/{container}/docs/{id}", None, pk(key))

    def batch(self, container: str, key: str, operations: list[dict[str, Any]]) -> Reply:
        flags = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
        return self.ask("POST", f"/{container}/docs", operations, pk(key) | flags)

    def close(self) -> None:
        self._connection.close()
