"""Transports of azure-core that hand a request to a service in the same process: no sockets.

    CosmosClient ──HttpRequest──▶ send ──Request──▶ NosqlService.handle
                 ◀──HttpResponse──     ◀──Response──

The request is what would go over the wire, signature included. The asynchronous transport answers
on the loop, after giving other tasks a turn: a task that awaits is interleaved as over a network,
and every run the same way.
"""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import urlsplit

from azure.core.exceptions import ServiceRequestError
from azure.core.pipeline.transport import (
    AsyncHttpResponse,
    AsyncHttpTransport,
    HttpRequest,
    HttpResponse,
    HttpTransport,
)
from azure.core.pipeline.transport._base_async import AsyncHttpClientTransportResponse
from azure.core.utils import case_insensitive_dict

from armillary.api.http.messages import Request, Response, Service
from armillary.testing.waits import Pause, answered

BODILESS = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


class Host(Protocol):
    """Where requests go."""

    @property
    def service(self) -> Service | None:
        """None once it is closed."""
        ...

    @property
    def pause(self) -> Pause | None:
        """How its clients wait; None: really."""
        ...


def ask(host: Host, request: HttpRequest) -> Response:
    if host.service is None:
        raise ServiceRequestError("The account of this client is closed: its test has ended.")
    response = host.service.handle(_wire(request))
    answered(response.status, host.pause)
    return response


def _wire(request: HttpRequest) -> Request:
    parts = urlsplit(request.url)
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    headers = {name.lower(): str(value) for name, value in request.headers.items()}
    headers.setdefault("host", parts.netloc)
    return Request(request.method, target, headers, _bytes(request.body), parts.scheme == "https")


def _bytes(body: Any) -> bytes:
    if body is None:
        return b""
    if hasattr(body, "read"):
        body = body.read()
    return body.encode() if isinstance(body, str) else bytes(body)


class _Answer:
    """What both kinds of response have: everything is there from the beginning."""

    status_code: int
    internal_response: Response

    def _fill(self, answer: Response) -> None:
        self.status_code = answer.status
        self.reason = HTTPStatus(answer.status).phrase
        self.headers = case_insensitive_dict(answer.headers)
        if answer.status not in BODILESS:
            self.headers["Content-Length"] = str(len(answer.body))
        self.content_type = self.headers.get("content-type")

    def body(self) -> bytes:
        return b"" if self.status_code in BODILESS else self.internal_response.body


class InProcessResponse(_Answer, HttpResponse):  # type: ignore[misc]
    def __init__(self, request: HttpRequest, answer: Response) -> None:
        HttpResponse.__init__(self, request, answer)
        self._fill(answer)


class AsyncPart(AsyncHttpClientTransportResponse):
    """One answer of several."""

    async def read(self) -> bytes:
        found: bytes = self.body()  # type: ignore[no-untyped-call]
        return found


class AsyncInProcessResponse(_Answer, AsyncHttpResponse):  # type: ignore[misc]
    def __init__(self, request: HttpRequest, answer: Response) -> None:
        AsyncHttpResponse.__init__(self, request, answer)
        self._fill(answer)

    async def load_body(self) -> None:
        """It is there."""

    async def read(self) -> bytes:
        """For transactions of tables, which speak to the newer kind of response."""
        return self.body()

    def _get_raw_parts(self, http_response_type: Any = None) -> Any:
        return super()._get_raw_parts(http_response_type=AsyncPart)


class InProcessTransport(HttpTransport[HttpRequest, InProcessResponse]):
    def __init__(self, host: Host) -> None:
        self._host = host

    def send(self, request: HttpRequest, **kwargs: Any) -> InProcessResponse:
        return InProcessResponse(request, ask(self._host, request))

    def sleep(self, duration: float) -> None:
        (self._host.pause or time.sleep)(duration)

    def open(self) -> None:
        """Nothing to open."""

    def close(self) -> None:
        """Nothing to close: the account outlives its clients."""

    def __exit__(self, *exc: object) -> None:
        self.close()


class AsyncInProcessTransport(AsyncHttpTransport[HttpRequest, AsyncInProcessResponse]):
    def __init__(self, host: Host) -> None:
        self._host = host

    async def send(self, request: HttpRequest, **kwargs: Any) -> AsyncInProcessResponse:
        await asyncio.sleep(0)
        return AsyncInProcessResponse(request, ask(self._host, request))

    async def sleep(self, duration: float) -> None:
        if self._host.pause is None:
            await asyncio.sleep(duration)
        else:
            self._host.pause(duration)
            await asyncio.sleep(0)

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close: the account outlives its clients."""

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
