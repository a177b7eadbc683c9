"""One client of a stream protocol: bytes to its session, events run in order, bytes back.

    data ──▶ Session.receive ──▶ [events] ──▶ Answer, Quick: here · Work: a thread · Begun: a future

One event at a time. A client that does not take its answers stops our reading and makes the thread
that answers it wait; one that has sent enough for now is not read either. Each phase has its
deadline.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections import deque
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

from armillary.api.core.streams import (
    Answer,
    Begun,
    ClientGone,
    Event,
    Hangup,
    Later,
    Peer,
    Quick,
    Session,
    StreamService,
    Unintelligible,
    Work,
)
from armillary.budget import unbounded
from armillary.server.pool import Pool
from armillary.turns import waiting

log = logging.getLogger("armillary.server")

EVENTS_MAX: Final = 16
"""That wait before we stop reading."""
UNSENT_BYTES_MAX: Final = 1024 * 1024
"""That a thread may be ahead of the socket."""
QUICK_MAX: Final = 64
QUICK_SECONDS: Final = 0.002
"""In one turn of the loop; other connections come first then."""


class StreamConnection(asyncio.Protocol):
    def __init__(self, pool: Pool, service: StreamService, peer: Peer) -> None:
        self._pool = pool
        self._service = service
        self._peer = peer
        self._session: Session | None = None
        self._transport: asyncio.Transport | None = None
        self._events: deque[Event] = deque()
        self._running: Event | None = None
        self._pumping = False
        self._planned = False
        self._hanging_up = False
        self._reading_paused = False
        self._address = ""
        self._holds = False
        self._gathered = b""  # read in this turn of the loop, and not taken in yet
        self._is_quick = False
        """Whether what came last was answered at once."""
        # Shared with the thread that answers.
        self._outlet = threading.Condition()
        self._writing_paused = False
        self._unsent_bytes = 0
        self._gone = False
        self.deadline = math.inf

    # --- called by the transport ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(self._pool.bounds.write_buffer_bytes)
        who = transport.get_extra_info("peername")
        self._address = str(who[0]) if isinstance(who, tuple) else ""
        tls = transport.get_extra_info("ssl_object")
        peer = replace(self._peer, server_name=getattr(tls, "asked_name", None))
        try:
            self._session = self._service.open(peer)
        except Exception:
            log.exception("a bug: a session could not be opened")
            self._transport.abort()
        self._pool.enter(self)
        self._set_deadline()
        if self._pool.draining:
            self.drain()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._gathered = b""
        self._events.clear()
        self._hold(0)
        with self._outlet:
            self._gone = True
            self._outlet.notify_all()
        if self._session is not None:
            self._guarded(self._session.close)
        self._pool.leave(self)

    def data_received(self, data: bytes) -> None:
        self._pool.arrivals += 1
        if self._gathered:
            self.receive_gathered()
        elif self._is_quick and len(self._pool.peers) > 1:
            self._gathered = data
            self._pool.gather(self)
            return
        self._receive(data)

    def receive_gathered(self) -> None:
        data, self._gathered = self._gathered, b""
        if data:
            self._receive(data)

    def _receive(self, data: bytes) -> None:
        session = self._session
        if session is None or self._hanging_up:
            return
        if self._running is None and not self._events and not self._writing_paused:
            try:
                answer = session.at_once(data)
            except Exception:
                log.exception("a bug: a session of %s", type(session).__name__)
                self._hang_up()
                return
            self._is_quick = answer is not None
            if answer is not None:
                self._write(answer)
                if self._writing_paused or self._pool.draining:
                    self._pump()
                else:  # nothing waits and nothing is under way: what `_pump` would come to
                    self.deadline = self._pool.loop.time() + self._pool.bounds.stream_idle_s
                return
        events = self._guarded(partial(session.receive, data))
        self._hold(session.held_bytes)
        self._take(events)

    def _hold(self, size: int) -> None:
        """What it has sent of a message: the room for that is shared, also by those who have not
        logged in."""
        if size or self._holds:
            self._holds = size > 0
            self._pool.receiving.hold(self, self._address, size, self._pool.loop.time())

    def give_up_body(self) -> None:
        self._hold(0)
        log.debug("a connection was closed for what it holds: too much is coming in")
        self._hang_up()

    def eof_received(self) -> bool:
        self.receive_gathered()
        return False

    def pause_writing(self) -> None:
        with self._outlet:
            self._writing_paused = True
        self._set_reading()
        self._set_deadline()

    def resume_writing(self) -> None:
        with self._outlet:
            self._writing_paused = False
            self._outlet.notify_all()
        self._pump()

    # --- events ---------------------------------------------------------------------------------

    def _take(self, events: Any) -> None:
        if events is None:  # a bug, which is in the log
            self._hang_up()
            return
        self._events.extend(events)
        self._pump()

    def _guarded(self, call: Any) -> Any:
        """A session answers whatever a client sends, so an exception is a mistake of ours."""
        try:
            return call()
        except Exception:
            log.exception("a bug: a session of %s", type(self._session).__name__)
            return None

    def _pump(self) -> None:
        """Run what may run. Not from inside itself."""
        if self._pumping:
            return
        self._pumping = True
        budget, until = QUICK_MAX, math.inf
        if len(self._events) > 1:
            until = self._pool.loop.time() + QUICK_SECONDS
        while self._events and self._running is None and self._transport is not None:
            if self._writing_paused or self._hanging_up:
                break
            if budget == 0:
                self._pump_soon()
                break
            budget -= 1
            event = self._events.popleft()
            self._run(event)
            if type(event) is Quick and self._events and self._pool.loop.time() >= until:
                budget = 0
        self._pumping = False
        if self._pool.draining and self._running is None and not self._events:
            self._hang_up()
        self._set_reading()
        self._set_deadline()

    def _pump_soon(self) -> None:
        if not self._planned:
            self._planned = True
            self._pool.loop.call_soon(self._pump_planned)

    def _pump_planned(self) -> None:
        self._planned = False
        self._pump()

    def _run(self, event: Event) -> None:
        match event:
            case Answer(data):
                self._write(data)
            case Quick(run, otherwise):
                self._ended_here(self._guarded(run), otherwise)
            case Begun(future, _, _):
                self._running = event
                future.add_done_callback(partial(self._told, event))
            case Work():
                self._begin(event)
            case Hangup(data):
                if data:
                    self._write(data)
                self._hang_up()

    def _begin(self, work: Work) -> None:
        self._running = work
        self._pool.begin_wait(work.size)
        if work.lane:
            budget = work.budget or unbounded()
            self._pool.long_work.submit(work.lane, budget, partial(self._work, work))
            return
        try:
            self._pool.threads.submit(self._work, work)
        except RuntimeError:  # the server has ended meanwhile
            self._pool.end_wait(work.size)
            self._hang_up()

    def _work(self, work: Work) -> None:
        """In a thread."""
        failed = False
        try:
            work.run(self._send)
        except ClientGone:
            pass
        except Unintelligible:
            failed = True
        except Later as later:
            with suppress(RuntimeError):
                self._pool.loop.call_soon_threadsafe(self._put_off, work, later.seconds)
            return
        except Exception:
            log.exception("a bug: a request of %s", type(self._session).__name__)
            failed = True
        # Long work does not hold up the end of the server, so the loop may be gone.
        with suppress(RuntimeError):
            self._pool.loop.call_soon_threadsafe(self._worked, work, failed)

    def _worked(self, work: Work, failed: bool) -> None:
        self._pool.end_wait(work.size)
        self._running = None
        if failed:
            self._hang_up()
        self._pump()

    def _put_off(self, work: Work, seconds: float) -> None:
        """It is still what this client waits for, and nothing else of it runs meanwhile."""
        self._pool.end_wait(work.size)
        self._pool.loop.call_later(seconds, self._go_on, work)

    def _go_on(self, work: Work) -> None:
        if self._pool.draining:  # who waits for something may wait for minutes
            self._hang_up()
        elif self._transport is not None:
            self._begin(work)

    def _told(self, event: Begun, future: Any) -> None:
        """In the thread that knows it first."""
        self._pool.call_soon(partial(self._finish, event))

    def _finish(self, event: Begun) -> None:
        self._running = None
        self._ended_here(self._guarded(event.finish), event.otherwise)
        self._pump()

    def _ended_here(self, data: bytes | None, otherwise: Work) -> None:
        if self._transport is None:
            return
        if data is None:
            self._begin(otherwise)
        else:
            self._write(data)

    # --- bytes out ------------------------------------------------------------------------------

    def _write(self, data: bytes) -> None:
        if self._transport is not None and data:
            self._transport.write(data)

    def _send(self, data: bytes) -> None:
        """From the thread of a `Work`."""
        if not self._can_send():
            with waiting(), self._outlet:  # the turn comes back without the lock: the loop needs it
                self._outlet.wait_for(self._can_send)
        with self._outlet:
            self._outlet.wait_for(self._can_send)
            if self._gone:
                raise ClientGone
            self._unsent_bytes += len(data)
        try:
            self._pool.loop.call_soon_threadsafe(self._sent, data)
        except RuntimeError as error:  # the server has ended meanwhile
            raise ClientGone from error

    def _can_send(self) -> bool:
        """Or find out that nobody is there."""
        paused = self._writing_paused or self._unsent_bytes > UNSENT_BYTES_MAX
        return self._gone or not paused

    def _sent(self, data: bytes) -> None:
        self._write(data)
        with self._outlet:
            self._unsent_bytes -= len(data)
            self._outlet.notify_all()

    # --- the end --------------------------------------------------------------------------------

    def _hang_up(self) -> None:
        self._hanging_up = True
        self._events.clear()
        if self._transport is not None:
            self._transport.close()

    def expire(self, now: float) -> None:
        if self._session is not None and not self._hanging_up:
            events = self._guarded(self._session.tick)
            if events:
                self._take(events)
                return
        log.debug("a connection was silent for too long")
        self.abort()

    def drain(self) -> None:
        if self._running is None and not self._events:
            self._hang_up()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # --- deadlines ------------------------------------------------------------------------------

    def _set_reading(self) -> None:
        transport = self._transport
        pause = self._writing_paused or len(self._events) >= EVENTS_MAX
        if transport is None or transport.is_closing() or pause is self._reading_paused:
            return
        self._reading_paused = pause
        if pause:
            transport.pause_reading()
        else:
            transport.resume_reading()

    def _set_deadline(self) -> None:
        bounds, now = self._pool.bounds, self._pool.loop.time()
        if self._hanging_up:
            self.deadline = now + bounds.linger_s
        elif self._writing_paused:
            self.deadline = now + bounds.write_s
        elif self._running is not None:
            self.deadline = math.inf
        elif self._session is not None and self._session.busy:
            self.deadline = now + bounds.body_s
        else:
            self.deadline = now + bounds.stream_idle_s
