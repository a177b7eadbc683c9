"""One client: bytes to the reader, requests to the service, answers in order.

    data ──▶ RequestReader ──▶ Pipeline ──▶ answered here, or in a thread ──▶ one write

A client that does not take its answers stops our reading (`pause_writing`), and nothing more is
started for it. Whatever we wait for has a deadline, by phase: a head or a body that trickles in
does not move it.
"""

from __future__ import annotations

import asyncio
import math
import time
from functools import partial
from typing import cast

from armillary.api.http.encoding import encode
from armillary.api.http.messages import Request, Response, Streaming, Waiting
from armillary.errors import DataDamaged
from armillary.server.http.answers import CONTINUE_BYTES, Stamp, refuses, says, stream_head
from armillary.server.http.event_streams import Stream
from armillary.server.http.hub import BUG_TEXT, Hub, log
from armillary.server.http.pipeline import Pipeline, Slot
from armillary.server.http.templates import END, TEMPLATES_OF_CONNECTION_MAX, Template
from armillary.server.http.wire import Continue, Event, Incoming, Refusal, RequestReader
from armillary.server.portal.door import PortalDoor, is_portal

CLOSING = b"\r\nConnection: close\r\n\r\n"  # in the place of the last line end of a head
#: In the place of a request that a fast path took and no parser has read: it changes something, so
#: that it runs alone.
UNREAD = Incoming(Request("POST", "", {}), True, False)
IDLE, HEAD, BODY, BUSY, WRITE, LINGER = range(6)


class Connection(asyncio.Protocol):
    def __init__(self, hub: Hub, *, secure: bool) -> None:
        bounds = hub.bounds
        self._hub = hub
        self._pool = hub.pool
        self._loop_time = hub.loop.time
        self._bounds = bounds
        self._reader = RequestReader(bounds, secure=secure)
        self._pipeline = Pipeline(bounds.parallel)
        self._secure = secure
        self._stopwatch = time.perf_counter if hub.observer is None else hub.observer.stopwatch
        # For the requests that have templates, which all name one scheme and host.
        self._stamp = Stamp(self._stopwatch) if hub.service.says_where else None
        self._origin = b""
        self._transport: asyncio.Transport | None = None
        self._writing_paused = False
        self._reading_paused = False
        self._hanging_up = False  # close as soon as every answer is out
        self._stream: Stream | None = None  # the last answer, which has no end
        self._refusal: Response | None = None  # the last answer, when the others are out
        self._pump_planned = False
        self._unsent_bytes = 0
        self._held_bytes = 0  # of a body that is coming in
        self._screened = False  # that its sender may send it
        self._address = ""
        self._gathered = b""  # read in this turn of the loop, and not taken in yet
        self._head = b""  # of the request whose body is to come, if that is all that came
        self._templates: tuple[Template, ...] = ()  # of requests that were quick
        self._templates_left = TEMPLATES_OF_CONNECTION_MAX
        self._phase = IDLE
        self.deadline = math.inf
        # Forever for a request under way: the API bounds its own time.
        self._seconds = (
            bounds.idle_s,
            bounds.head_s,
            bounds.body_s,
            math.inf,
            bounds.write_s,
            bounds.linger_s,
        )

    # --- called by the transport ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(self._bounds.write_buffer_bytes)
        peer = self._transport.get_extra_info("peername")
        self._address = str(peer[0]) if isinstance(peer, tuple) else ""
        self._hub.pool.enter(self)
        self._set_deadline()
        if self._hub.draining:
            self.drain()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._gathered = b""
        if self._stream is not None:
            self._stream.stop()
        self._give_up()
        self._pipeline.forget_waiting()
        self._reader.close()
        self._hold(0)
        self._hub.pool.leave(self)

    def data_received(self, data: bytes) -> None:
        self._pool.arrivals += 1
        if self._gathered:
            self.receive_gathered()
        elif self._phase == IDLE and self._templates:
            if len(self._pool.peers) > 1:
                self._gathered = data
                self._pool.gather(self)
                return
            if self._answer_known(data):
                return
        self._receive(data)

    def receive_gathered(self) -> None:
        data, self._gathered = self._gathered, b""
        if data and not self._answer_known(data):
            self._receive(data)

    def _receive(self, data: bytes) -> None:
        phase = self._phase
        if phase == LINGER:
            return
        events = self._reader.receive(data)
        if events and self._stamp is not None:
            began = self._stopwatch()
            for event in events:
                if type(event) is Incoming:
                    event.began = began
        whole = data if phase == IDLE else self._head + data if self._head else b""
        self._head = data if phase == IDLE and not events and data.endswith(END) else b""
        if len(events) == 1 and not len(self._pipeline):
            if phase == BODY and whole and self._answer_joined(whole, events[0]):
                return
            # The bytes of the request, if nothing came before them.
            if self._answer_at_once(events[0], whole):
                return
        for event in events:
            self._take(event)
        if not events and self._hub.portal is not None and self._stream_in(self._hub.portal):
            return
        if self._reader.body_bytes != self._held_bytes:
            self._hold(self._reader.body_bytes)
        self._pump()
        if events and self._phase != LINGER:
            self._phase = -1  # a new request: its deadlines begin now
        self._set_deadline()

    def eof_received(self) -> bool:
        self.receive_gathered()
        if self._phase == LINGER or not len(self._pipeline):
            return False
        self._hanging_up = True
        self._give_up()  # nearly every client that ends its side has left
        # Answers under way still go out; TLS has no half-closed state to do it in.
        return not self._secure

    def _give_up(self) -> None:
        """The client does not wait for what is under way. What runs in a thread has a budget."""
        for request in self._pipeline.running_requests():
            if request.budget is not None:
                request.budget.cancel()

    def pause_writing(self) -> None:
        self._writing_paused = True
        self._set_reading()
        self._set_deadline()

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._pump()
        self._set_deadline()

    # --- requests -------------------------------------------------------------------------------

    def _answer_known(self, data: bytes) -> bool:
        """HOT: a request like one before; nothing is under way. Numbers in bench/http_cost.py."""
        hub, transport = self._hub, self._transport
        if self._pool.parting or transport is None:
            return False
        began = self._stopwatch()
        for match, answer_of, waits in self._templates:
            groups = match(data)
            if groups is None:
                continue
            if waits and not hub.pool.has_room(len(data)):
                return False
            try:
                answer = answer_of(self._last_lines(groups[0], began), *groups)
            except DataDamaged:
                return False  # the general path says so in the words of the protocol
            except Exception:  # noqa: BLE001 - as in Hub._bug
                log.exception("a bug: %r", data[:200])
                date = hub.dates.at(int(time.time()))
                answer = encode(says(500, BUG_TEXT), date, old=False)
            if answer is None:
                return False
            if isinstance(answer, bytes):
                transport.write(answer)
                if hub.observer is not None:
                    hub.note_bytes(data, answer, began)
            else:
                self._wait(answer, data, began)
            return True
        return False

    def _answer_joined(self, whole: bytes, event: Event) -> bool:
        """A request whose body came after its head, as most HTTP libraries send it. The parser has
        read it by now, which costs less than the general path does."""
        if type(event) is not Incoming or self._writing_paused or not self._answer_known(whole):
            return False
        if not len(self._pipeline):
            self._phase = -1
            self._set_deadline()
        return True

    def _wait(self, waiting: Waiting, data: bytes, began: float) -> None:
        """HOT: it has begun; whatever comes meanwhile goes into the pipeline behind it."""
        slot = self._pipeline.begin(UNREAD)
        slot.sample = data
        self._hub.wait_for(waiting, len(data), partial(self._waited, slot, waiting, began))
        self._phase = BUSY
        self.deadline = math.inf

    def _waited(self, slot: Slot, waiting: Waiting, began: float) -> None:
        hub, data = self._hub, slot.sample
        target_at = data.index(b" ") + 1
        target = data[target_at : data.index(b" ", target_at)]
        try:
            answer = waiting.finish(bytes(self._last_lines(target, began)))
        except Exception:  # noqa: BLE001 - as in Hub._bug
            log.exception("a bug: %r", data[:200])
            answer = encode(says(500, BUG_TEXT), hub.dates.at(int(time.time())), old=False)
        if answer is None:
            (event,) = RequestReader(self._bounds, secure=self._secure).receive(data)
            if not isinstance(event, Incoming):  # a template takes less than the parser does
                log.error("a bug: the parser refuses what a template took: %r", event)
                self._answered_later(slot, says(500, BUG_TEXT))
                return
            event.began = began
            slot.incoming, slot.sample = event, b""
            hub.otherwise(waiting, event.request, partial(self._answered_later, slot))
            return
        if hub.observer is not None:
            hub.note_bytes(data, answer, began)
        transport = self._transport
        if transport is None:
            return  # the client went away
        if self._pool.parting and self._pipeline.is_last(slot):
            answer = answer.replace(b"\r\n\r\n", CLOSING, 1)
        for ready in self._pipeline.finish(slot, answer):
            transport.write(ready)
        is_plain = not (
            len(self._pipeline)
            or self._reading_paused
            or self._hanging_up
            or self._pool.parting
            or self._refusal is not None
        )
        if is_plain and self._phase == BUSY and not self._reader.in_request:
            self._phase = IDLE  # until the deadline that `_last_lines` has set
            return
        if not is_plain and not self._pump_planned:
            self._pump()
        self._set_deadline()

    def _last_lines(self, target: bytes, began: float) -> bytes | Stamp:
        """HOT: what the server adds to an answer from bytes to bytes. The host is part of a
        template, so it is the one of the request that the template was made of."""
        now, stamp = self._loop_time(), self._stamp
        self.deadline = now + self._bounds.idle_s
        date_line = self._pool.dates.bytes_now(now)
        if stamp is None:
            return date_line
        stamp.target, stamp.began, stamp.date_line = target, began, date_line
        return stamp

    def _keep_template(self, data: bytes, incoming: Incoming, response: Response) -> None:
        """Each connection tries a few times: a client may have no template, or many. Only from what
        was answered well: a template costs more than to refuse a stranger."""
        if not data or not self._templates_left or not 200 <= response.status < 300:
            return
        template = self._hub.find_template(data, incoming.request)
        if template is not None:
            self._templates_left -= 1
            if template not in self._templates:
                origin = _origin(incoming.request)
                if self._origin not in (b"", origin):
                    return  # a client with two names for us: the second takes the general path
                self._origin = origin
                if self._stamp is not None:
                    self._stamp = Stamp(self._stopwatch, origin)
                self._templates += (template,)

    def _answer_at_once(self, event: Event, whole: bytes) -> bool:
        """HOT: the usual case, without the pipeline: one request, quick, nothing before it."""
        hub = self._hub
        transport = self._transport
        if (
            type(event) is not Incoming
            or not event.keep_alive
            or self._writing_paused
            or self._pool.parting
            or transport is None
        ):
            return False
        response = hub.answer_here(event.request)
        if response is None:
            self._pipeline.add(event)
            slot = self._pipeline.start()
            assert slot is not None
            if len(whole) <= self._bounds.template_request_bytes:
                slot.sample = whole
            self._later(slot)
        else:
            transport.write(self._encode(response, event, False))
            self._keep_template(whole, event, response)
        if self._reader.body_bytes != self._held_bytes:
            self._hold(self._reader.body_bytes)
        self._phase = -1
        self._set_deadline()
        return True

    def _later(self, slot: Slot) -> None:
        request = slot.incoming.request
        if self._hub.portal is not None and is_portal(request.target):
            self._visit_portal(self._hub.portal, slot)
        else:
            self._hub.answer_later(request, partial(self._answered_later, slot))

    def _visit_portal(self, door: PortalDoor, slot: Slot) -> None:
        refusal = door.answer(slot.incoming.request)
        if refusal is None and not self._pipeline.is_only(slot):
            refusal = says(503, "A request to the portal needs a connection without others.")
        if refusal is not None:
            self._hub.loop.call_soon(self._answered_later, slot, refusal)
        else:
            self._splice(door, slot.incoming.request, 0)

    def _stream_in(self, door: PortalDoor) -> bool:
        """A large body for the portal does not wait here until it is whole."""
        found = None if len(self._pipeline) else self._reader.unfinished()
        if found is None or self._transport is None:
            return False
        refusal = self._hub.hosts.refuses(found[0].headers["host"])
        answer = door.answer(found[0]) if refusal is None else says(403, refusal)
        if answer is None:
            self._splice(door, *found)
            return True
        self._reader.close()
        self._refusal = answer
        return False

    def _splice(self, door: PortalDoor, request: Request, rest_bytes: int) -> None:
        from armillary.server.portal.splice import Spliced  # few servers are ever asked for it

        transport, self._transport = self._transport, None
        assert transport is not None
        self.connection_lost(None)
        back = partial(Connection, self._hub, secure=self._secure)
        Spliced(self._hub, door, transport, secure=self._secure, back=back).begin(
            request, rest_bytes
        )

    def _take(self, event: Event) -> None:
        match event:
            case Incoming():
                self._pipeline.add(event)
            case Continue():
                # With answers still to come the client has not asked for it yet: it knows to
                # send after a while.
                if not len(self._pipeline):
                    self._write(CONTINUE_BYTES)
            case Refusal():
                self._refusal = refuses(event)

    def _pump(self) -> None:
        """Start what may start."""
        pipeline = self._pipeline
        budget = self._bounds.inline
        while self._transport is not None and not self._writing_paused and self._stream is None:
            if budget == 0:
                self._pump_soon()
                break
            slot = pipeline.start()
            if slot is None:
                break
            request = slot.incoming.request
            response = self._hub.answer_here(request)
            if response is None:
                self._later(slot)
            else:
                budget -= 1
                self._answered(slot, response)
        self._set_reading()
        if not len(pipeline):
            self._all_answered()

    def _pump_soon(self) -> None:
        """Other connections first."""
        if not self._pump_planned:
            self._pump_planned = True
            self._hub.loop.call_soon(self._pump_planned_now)

    def _pump_planned_now(self) -> None:
        self._pump_planned = False
        self._pump()
        self._set_deadline()

    def _answered_later(self, slot: Slot, response: Response) -> None:
        if isinstance(response, Streaming) and self._transport is not None:
            if self._pipeline.is_only(slot) and self._hub.may_stream():
                # Its slot is never finished, so that nothing comes after it.
                self._write(stream_head(response, self._hub.dates.at(int(time.time()))))
                self._stream = Stream(self._hub, response.more, self._send_piece)
                return
            response = says(503, "Too many streams; each needs a connection of its own.")
        self._answered(slot, response)
        if not self._pump_planned:
            self._pump()
            self._set_deadline()

    def _answered(self, slot: Slot, response: Response) -> None:
        if self._transport is None:
            return  # the client went away
        incoming = slot.incoming
        self._keep_template(slot.sample, incoming, response)
        closing = not incoming.keep_alive or (self._pool.parting and self._pipeline.is_last(slot))
        if not incoming.keep_alive:
            self._hanging_up = True
        for answer in self._pipeline.finish(slot, self._encode(response, incoming, closing)):
            self._write(answer)

    def _encode(self, response: Response, incoming: Incoming, closing: bool) -> bytes:
        date = self._hub.dates.at(int(time.time()))
        head = incoming.request.method == "HEAD"
        lines, request = date, incoming.request
        if self._stamp is not None:
            stamp = Stamp(self._stopwatch, _origin(request), date.encode())
            stamp.target, stamp.began = request.target.encode("latin-1"), incoming.began
            lines = bytes(stamp).decode("latin-1")
        try:
            return encode(response, lines, head=head, closing=closing, old=incoming.old)
        except ValueError:  # and UnicodeEncodeError
            log.exception("a bug: headers of %s", incoming.request.target)
            ours = says(500, BUG_TEXT)
            return encode(ours, date, head=head, closing=closing, old=incoming.old)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _send_piece(self, piece: bytes) -> None:
        if not self._writing_paused:  # a client that does not read misses what happens meanwhile
            self._write(piece)

    def _all_answered(self) -> None:
        transport = self._transport
        if transport is None:
            return
        if self._refusal is not None:
            date = self._hub.dates.at(int(time.time()))
            transport.write(encode(self._refusal, date, closing=True, old=False))
            self._refusal = None
            self._linger(transport)
        elif self._phase != LINGER and (
            self._hanging_up or (self._pool.parting and not self._reader.in_request)
        ):
            transport.close()

    def _linger(self, transport: asyncio.Transport) -> None:
        """Closing with unread bytes resets the connection, and the client may lose the answer that
        says why. So say that we are done and go on reading for a moment."""
        self._phase = LINGER
        self.deadline = self._hub.loop.time() + self._bounds.linger_s
        self._set_reading()
        if transport.can_write_eof():
            transport.write_eof()

    # --- bounds ---------------------------------------------------------------------------------

    def _set_reading(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        full = len(self._pipeline) >= self._bounds.pipeline or self._refusal is not None
        pause = self._phase != LINGER and (self._writing_paused or full)
        if pause != self._reading_paused:
            self._reading_paused = pause
            if pause:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _hold(self, body_bytes: int) -> None:
        self._held_bytes = body_bytes
        if not body_bytes:
            self._screened = False
        elif not self._screened and body_bytes > self._bounds.screened_bytes:
            self._screened = True
            request = self._reader.begun()
            refusal = None if request is None else self._hub.screen(request)
            if refusal is not None:
                self._stop_reading(refusal)
        self._hub.pool.receiving.hold(self, self._address, self._held_bytes, self._hub.loop.time())

    def give_up_body(self) -> None:
        self._stop_reading(says(503, "Too much is coming in at once. Try again in a moment."))
        self._hub.pool.receiving.hold(self, self._address, 0, self._hub.loop.time())
        self._hub.loop.call_soon(self._pump_planned_now)

    def _stop_reading(self, refusal: Response) -> None:
        """The last answer of this connection; what is left of the request is not kept."""
        self._reader.close()
        self._held_bytes = 0
        if self._refusal is None:
            self._refusal = refusal

    def _set_deadline(self) -> None:
        if self._phase == LINGER:
            return
        if self._writing_paused:
            phase = WRITE
        elif len(self._pipeline):
            phase = BUSY
        elif self._reader.in_body:
            phase = BODY
        else:
            phase = HEAD if self._reader.in_request else IDLE
        if phase != self._phase or self.deadline == math.inf:
            self._phase = phase
            self.deadline = self._hub.loop.time() + self._seconds[phase]
            if phase == WRITE and self._transport is not None:
                self._unsent_bytes = self._transport.get_write_buffer_size()

    def expire(self, now: float) -> None:
        if self._transport is None or self._gathered:
            return
        if self._phase == WRITE:
            unsent = self._transport.get_write_buffer_size()
            if unsent < self._unsent_bytes:  # slow, but alive
                self._unsent_bytes = unsent
                self.deadline = now + self._bounds.write_s
                return
        if self._phase == IDLE:
            self._transport.close()  # politely: TLS says goodbye
        else:
            self.abort()

    def drain(self) -> None:
        self.receive_gathered()
        if self._transport is None:
            return
        if self._stream is not None:
            self._transport.close()
        if not len(self._pipeline) and not self._reader.in_request and self._phase != LINGER:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _origin(request: Request) -> bytes:
    scheme = "https" if request.secure else "http"
    return f"{scheme}://{request.headers.get('host', '')}".encode("latin-1")
