"""The process: a web server on the socket it was given, until there were no visitors for a while.

It ends with its standard input, which the server holds open; and by itself after so many seconds
without an open connection. Requests that did not come through the server are refused.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import uvicorn
from fastapi import FastAPI
from nicegui import app as nicegui_app
from nicegui import binding, ui
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from armillary.portal.data.client import Client
from armillary.portal.widgets.frame import add_pages
from armillary.portal.widgets.theme import FAVICON
from armillary.server.portal.door import SECRET_HEADER

GRACE_SECONDS: Final = 1
END_SECONDS: Final = 5.0
KEEP_ALIVE_SECONDS: Final = 75
#: The pages' own scripts are compiled in the browser, hence 'unsafe-eval'; nothing is fetched from
#: elsewhere, and no other site may show us in a frame.
POLICY: Final = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' ws: wss:; "
    "frame-src 'self' data: blob:; frame-ancestors 'self'; form-action 'self'; base-uri 'self'"
)

log = logging.getLogger("armillary.portal")


@dataclass(frozen=True, slots=True)
class Told:
    """What the server says to its portal."""

    endpoint: str
    key: str = field(repr=False)
    secret: str = field(repr=False)
    idle_seconds: float
    listener: socket.socket


def told_from(document: Mapping[str, Any]) -> Told:
    if sys.platform == "win32":
        listener = socket.fromshare(bytes.fromhex(document["shared"]))
    else:
        listener = socket.socket(fileno=document["fd"])
    return Told(
        document["endpoint"],
        document["key"],
        document["secret"],
        float(document["idle_seconds"]),
        listener,
    )


def host(told: Told) -> None:
    """Serve until asked to end."""
    logging.basicConfig(format="%(levelname)s portal: %(message)s")
    # Ten milliseconds, as it is, are none of the user's business on a busy machine.
    binding.MAX_PROPAGATION_TIME = 1.0
    client = Client(told.endpoint, told.key)
    add_pages(client)
    inner = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    ui.run_with(
        inner,
        title="Armillary",
        favicon=FAVICON,
        dark=None,
        language="en-US",
        reconnect_timeout=30.0,
        show_welcome_message=False,
    )
    config = uvicorn.Config(
        Guarded(inner, told.secret),
        loop="asyncio",
        log_level="warning",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
    )
    server = uvicorn.Server(config)
    nicegui_app.on_startup(lambda: end_when_idle(server, told.idle_seconds))
    nicegui_app.on_shutdown(client.close)
    threading.Thread(target=_end_with_stdin, args=(server,), daemon=True).start()
    server.run(sockets=[told.listener])


class Guarded:
    """Lets in what came through the server, and says what the browser may load."""

    def __init__(self, app: ASGIApp, secret: str) -> None:
        self.app = app
        self._name = SECRET_HEADER.encode()
        self._secret = secret.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(self._name, b"")
        if not hmac.compare_digest(given, self._secret):
            if scope["type"] == "http":
                await send({"type": "http.response.start", "status": 403, "headers": []})
                await send({"type": "http.response.body", "body": b""})
            else:
                await send({"type": "websocket.close", "code": 1008})
            return

        async def send_more(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    (b"content-security-policy", POLICY.encode()),
                    (b"referrer-policy", b"no-referrer"),
                    (b"x-content-type-options", b"nosniff"),
                ]
            await send(message)

        await self.app(scope, receive, send_more)


async def end_when_idle(server: uvicorn.Server, idle_seconds: float) -> None:
    last = time.monotonic()
    while not server.should_exit:
        await asyncio.sleep(min(idle_seconds / 10, 30.0))
        now = time.monotonic()
        if server.server_state.connections:
            last = now
        elif now - last >= idle_seconds:
            server.should_exit = True


def _end_with_stdin(server: uvicorn.Server) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    server.should_exit = True
    time.sleep(END_SECONDS)  # a page that does not end must not keep us
    os._exit(0)
