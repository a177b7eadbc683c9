"""A connection of a browser, joined to one of the portal's process.

    browser ══ transport ── Spliced ── PortalRequests ──▶ Upstream ══ portal process
            ◀════════════════ answers, byte by byte ═════════════

The first request under /_portal is read by `Connection`, which then hands its transport over. A
later request for something else goes back to a `Connection` (browsers send one only after the
answer to the one before, so nothing can overtake). Either side that does not read stops the other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from armillary.api.http.encoding import encode
from armillary.api.http.messages import Request, Response
from armillary.limits import PORTAL_QUIET_SECONDS
from armillary.server.http.hub import Hub, log
from armillary.server.portal.door import NO_ANSWER, PortalDoor, page
from armillary.server.portal.requests import PortalRequests

#: Makes the protocol that takes the transport back.
GoBack = Callable[[], asyncio.Protocol]


class Spliced(asyncio.Protocol):
    """The browser's side."""

    def __init__(
        self,
        hub: Hub,
        door: PortalDoor,
        transport: asyncio.Transport,
        *,
        secure: bool,
        back: GoBack,
    ) -> None:
        self._hub = hub
        self._door = door
        self._transport: asyncio.Transport | None = transport
        self._back = back
        self._requests = PortalRequests(
            door.answer, secret=door.secret, secure=secure, head_bytes_max=hub.bounds.head_bytes
        )
        self._upstream: asyncio.Transport | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._answered = False
        self.deadline = hub.loop.time() + PORTAL_QUIET_SECONDS

    def begin(self, request: Request, rest_bytes: int = 0) -> None:
        """Takes the transport over."""
        assert self._transport is not None
        self._transport.set_protocol(self)
        self._transport.pause_reading()
        self._hub.pool.enter(self)
        first = self._requests.begin(request, rest_bytes)
        self._connecting = self._hub.loop.create_task(self._connect(first))

    async def _connect(self, first: bytes) -> None:
        address = self._door.address
        loop = self._hub.loop
        try:
            if isinstance(address, str):
                made = await loop.create_unix_connection(lambda: Upstream(self), address)
            else:
                made = await loop.create_connection(lambda: Upstream(self), *address)
        except OSError as error:
            log.warning("the portal can't be reached: %s", error)
            self._end_with(page(502, *NO_ANSWER))
            return
        upstream = made[0]
        if self._transport is None:
            upstream.abort()
            return
        self._upstream = upstream
        upstream.write(first)
        self._transport.resume_reading()

    # --- called by the browser's transport ------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self._moved()
        if self._upstream is None or self._transport is None:
            return
        out = self._requests.receive(data)
        if out:
            self._upstream.write(out)
        if self._requests.refusal is not None:
            self._end_with(self._requests.refusal)
        elif self._requests.leaving is not None:
            self._leave(self._requests.leaving)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._hub.pool.leave(self)
        self._drop_upstream()

    def pause_writing(self) -> None:
        if self._upstream is not None:
            self._upstream.pause_reading()

    def resume_writing(self) -> None:
        if self._upstream is not None:
            self._upstream.resume_reading()

    # --- called by the other side ---------------------------------------------------------------

    def pass_answer(self, data: bytes) -> None:
        self._moved()
        if self._transport is not None:
            self._answered = True
            self._transport.write(data)

    def hold(self, full: bool) -> None:
        if self._transport is not None and not self._transport.is_closing():
            if full:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def upstream_ended(self) -> None:
        self._upstream = None
        if self._answered:
            self._close()
        else:
            self._end_with(page(502, *NO_ANSWER))

    # --- the end --------------------------------------------------------------------------------

    def _moved(self) -> None:
        self.deadline = self._hub.loop.time() + PORTAL_QUIET_SECONDS

    def _end_with(self, response: Response) -> None:
        if self._transport is not None:
            date = self._hub.dates.at(int(time.time()))
            self._transport.write(encode(response, date, closing=True, old=False))
        self._close()

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        self._drop_upstream()

    def _drop_upstream(self) -> None:
        if self._connecting is not None and not self._connecting.done():
            self._connecting.cancel()
        if self._upstream is not None:
            self._upstream.abort()
            self._upstream = None

    def _leave(self, data: bytes) -> None:
        transport = self._transport
        assert transport is not None
        self._transport = None
        self._hub.pool.leave(self)
        self._drop_upstream()
        connection = self._back()
        transport.set_protocol(connection)
        connection.connection_made(transport)
        connection.data_received(data)

    def expire(self, now: float) -> None:
        self._close()

    def drain(self) -> None:
        self._close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class Upstream(asyncio.Protocol):
    """The portal's side."""

    def __init__(self, spliced: Spliced) -> None:
        self._spliced = spliced

    def data_received(self, data: bytes) -> None:
        self._spliced.pass_answer(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._spliced.upstream_ended()

    def pause_writing(self) -> None:
        self._spliced.hold(True)

    def resume_writing(self) -> None:
        self._spliced.hold(False)
