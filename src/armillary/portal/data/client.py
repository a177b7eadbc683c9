"""The server, as any client sees it: signed requests of the NoSQL API, and the controls.

    await client.control("GET", "account")                        ─▶ JSON
    await client.rest("POST", "dbs/shop/colls/orders/docs", item) ─▶ Reply: status, headers, JSON

Whatever the server refuses is raised as `Refused`, with its status, its code and its text; a server
that can't be reached is `Refused` with status 0. Paths are names joined by slashes, percent-encoded
with `path_of` where they come from a user.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import httpx
import orjson

from armillary.api.core.client_signing import signed_headers
from armillary.api.core.signing import Signer

TIMEOUT_SECONDS: Final = 65.0
CONNECTIONS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: httpx.Headers
    body: Any
    """JSON, or None where there is none."""
    seconds: float

    @property
    def charge_ru(self) -> float:
        return float(self.headers.get("x-ms-request-charge", 0))


class Refused(Exception):
    """What the server said no to. The text is for people."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str]) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers
        self.sub_status = int(headers.get("x-ms-substatus", 0))


class Client:
    """Close it."""

    def __init__(self, endpoint: str, key: str) -> None:
        self.endpoint = endpoint.rstrip("/")
        self._key = key
        self._signer = Signer(key)
        self._http: httpx.AsyncClient | None = None
        self._is_closed = False

    async def close(self) -> None:
        self._is_closed = True
        if self._http is not None:
            await self._http.aclose()

    async def control(self, method: str, path: str, body: Any = None) -> Any:
        """Something under `/_armillary/`, as JSON."""
        return (await self._send(method, f"/_armillary/{path}", self._bearer(), body)).body

    async def text(self, path: str) -> str:
        """Something under `/_armillary/` that is not JSON, such as a picture."""
        try:
            found = await self._connections().get(f"/_armillary/{path}", headers=self._bearer())
        except httpx.HTTPError as error:
            raise _unreachable(error) from error
        _check(found)
        return found.text

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[AsyncIterator[str]]:
        """The lines of an answer without an end, such as the events."""
        timeout = httpx.Timeout(TIMEOUT_SECONDS, read=None)
        request = self._connections().stream(
            "GET", f"/_armillary/{path}", headers=self._bearer(), timeout=timeout
        )
        try:
            async with request as found:
                if found.is_error:
                    await found.aread()
                _check(found)
                yield found.aiter_lines()
        except httpx.HTTPError as error:
            raise _unreachable(error) from error

    async def rest(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """A request of the NoSQL API, signed."""
        own = signed_headers(self._signer, method, path)
        return await self._send(method, f"/{path}", own | dict(headers or {}), body)

    def _bearer(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._key}"}

    def _connections(self) -> httpx.AsyncClient:
        if self._is_closed:
            raise Refused(0, "Closed", "The portal is ending.", {})
        # Made inside the loop that uses it.
        if self._http is None:
            limits = httpx.Limits(max_connections=CONNECTIONS_MAX)
            self._http = httpx.AsyncClient(
                base_url=self.endpoint, limits=limits, timeout=TIMEOUT_SECONDS, trust_env=False
            )
        return self._http

    async def _send(self, method: str, target: str, headers: dict[str, str], body: Any) -> Reply:
        content = body if body is None or isinstance(body, bytes) else orjson.dumps(body)
        try:
            found = await self._connections().request(
                method, target, content=content, headers=headers
            )
        except httpx.HTTPError as error:
            raise _unreachable(error) from error
        _check(found)
        parsed = orjson.loads(found.content) if found.content else None
        return Reply(found.status_code, found.headers, parsed, found.elapsed.total_seconds())


def path_of(*names: str) -> str:
    """`path_of("dbs", "my shop")` is `dbs/my%20shop`."""
    return "/".join(quote(name, safe="") for name in names)


def key_header(values: list[Any]) -> dict[str, str]:
    """The partition key of an item, for point operations."""
    return {"x-ms-documentdb-partitionkey": orjson.dumps(values).decode("utf-8")}


def _check(found: httpx.Response) -> None:
    if not found.is_error:
        return
    try:
        document = orjson.loads(found.content)
        code, message = str(document["code"]), str(document["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        code, message = found.reason_phrase, found.text[:500] or found.reason_phrase
    raise Refused(found.status_code, code, message, found.headers)


def _unreachable(error: httpx.HTTPError) -> Refused:
    text = f"The server does not answer ({type(error).__name__})."
    return Refused(0, "Unreachable", text, {})
