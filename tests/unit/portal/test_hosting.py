"""The portal's process from inside: whom it lets in, and when it ends by itself."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.types import Message, Receive, Scope, Send

from armillary.portal.hosting import Guarded, end_when_idle


async def inner(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"page"})


def answers(kind: str, *headers: tuple[bytes, bytes]) -> list[Message]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    scope = {"type": kind, "headers": list(headers)}
    asyncio.run(Guarded(inner, "secret")(scope, receive, send))
    return sent


def test_only_what_came_through_the_server_gets_in() -> None:
    assert answers("http")[0]["status"] == 403
    assert answers("http", (b"x-armillary-portal", b"guess"))[0]["status"] == 403
    assert answers("websocket")[0]["type"] == "websocket.close"
    start, body = answers("http", (b"x-armillary-portal", b"secret"))
    assert (start["status"], body["body"]) == (200, b"page")


def test_pages_may_load_nothing_from_elsewhere_nor_be_framed() -> None:
    headers = dict(answers("http", (b"x-armillary-portal", b"secret"))[0]["headers"])
    policy = headers[b"content-security-policy"].decode()
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'self'" in policy
    assert "http:" not in policy
    assert "*" not in policy


@pytest.mark.timeout(60)
def test_it_ends_without_visitors_and_not_before() -> None:
    state = SimpleNamespace(connections={"a tab"})
    server = SimpleNamespace(should_exit=False, server_state=state)

    async def run() -> None:
        ending = asyncio.ensure_future(end_when_idle(cast(Any, server), 0.02))
        for _ in range(20):
            await asyncio.sleep(0.005)
            assert not server.should_exit
        state.connections.clear()
        await ending

    asyncio.run(run())
    assert server.should_exit
