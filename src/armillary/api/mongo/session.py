"""One client: bytes in, events out. Frames are taken apart here; commands run in threads, point
finds and small inserts on the event loop (`fast/`)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from armillary.api.core.streams import (
    Answer,
    ClientGone,
    Event,
    Hangup,
    Later,
    Peer,
    Quick,
    Send,
    Unintelligible,
    Work,
)
from armillary.api.mongo.call import Attempt, Client
from armillary.api.mongo.commands.table import INLINE
from armillary.api.mongo.errors import MongoError, failed
from armillary.api.mongo.fast.finds import Finds
from armillary.api.mongo.fast.inserts import insert_event
from armillary.api.mongo.length import lane_of
from armillary.api.mongo.wire.frames import Frame, FrameReader, ProtocolError, pack
from armillary.api.mongo.wire.messages import Request, is_large, parse, reply_bytes
from armillary.budget import Budget
from armillary.encoding.bson.pieces import decode_in_pieces
from armillary.encoding.bson.values import Document
from armillary.errors import Abandoned, BadInput
from armillary.limits import MONGO_LOGIN_BYTES_MAX, MONGO_MESSAGE_BYTES_MAX

if TYPE_CHECKING:
    from armillary.api.mongo.service import Service

LARGE_LANE: Final = "large commands"


def goes_on(request: Request, reply: Document) -> bool:
    """Whether a getMore of an exhaust cursor is followed by the next by itself. One that found
    nothing yet, of a change stream, is not: the client may wait no longer."""
    if request.name != "getMore" or reply.get("ok") != 1.0:
        return False
    cursor = reply["cursor"]
    return bool(cursor["id"] and cursor["nextBatch"])


class MongoSession:
    def __init__(self, service: Service, peer: Peer, number: int) -> None:
        self._service = service
        self._client = Client(peer, number)
        self._frames = FrameReader(MONGO_LOGIN_BYTES_MAX)
        self._replies = itertools.count(1)
        self._finds = Finds(service, self._client, self._replies)
        self._ended = False
        self._budgets: set[Budget] = set()
        """Of commands that wait or run."""

    @property
    def busy(self) -> bool:
        return self._frames.has_part

    @property
    def held_bytes(self) -> int:
        return self._frames.held_bytes

    def at_once(self, data: bytes) -> bytes | None:
        if self._ended or self._frames.has_part:
            return None
        return self._finds.answer(data)

    def receive(self, data: bytes) -> Sequence[Event]:
        if self._ended:
            return ()
        if self._frames.bytes_max < MONGO_MESSAGE_BYTES_MAX and self._is_trusted:
            self._frames.bytes_max = MONGO_MESSAGE_BYTES_MAX
        try:
            frames = self._frames.receive(data)
        except ProtocolError:
            return [self._hang_up()]
        events: list[Event] = []
        for frame in frames:
            event = self._event(frame)
            if event is not None:
                events.append(event)
            if isinstance(event, Hangup):
                break
        return events

    @property
    def _is_trusted(self) -> bool:
        """Who has not logged in has little to say."""
        return self._client.may_write is not None or not self._service.settings.require_login

    def tick(self) -> Sequence[Event]:
        return ()

    def close(self) -> None:
        self._ended = True
        self._client.gone = True
        for budget in tuple(self._budgets):
            budget.cancel()

    def _hang_up(self) -> Hangup:
        self._ended = True
        return Hangup()

    def _event(self, frame: Frame) -> Event | None:
        if is_large(frame):
            return self._large(frame)
        try:
            request = parse(frame, self._frames.bytes_max)
        except ProtocolError:
            return self._hang_up()
        except BadInput as error:  # the frame is sound: the connection stays
            return Answer(self._refusal(frame, error))
        if request.name in INLINE and request.wants_reply:
            return Answer(self._reply(request, Attempt()))
        attempt = Attempt()
        run = partial(self._run, request, attempt)
        work = Work(run, len(frame.body), lane_of(request), attempt.budget)
        if request.name == "find" and self._finds.learn(request):
            data = pack(frame.request_id, 0, frame.opcode, frame.body)
            return Quick(lambda: self._finds.answer(data), work)
        event = insert_event(self._service, self._client, request, work, self._replies)
        if event is None:
            self._budgets.add(attempt.budget)
        return event or work

    def _refusal(self, frame: Frame, error: BadInput) -> bytes:
        broken = Request(frame.request_id, {}, b"")
        return reply_bytes(broken, MongoError(22, error.message).reply(), next(self._replies))

    def _large(self, frame: Frame) -> Work:
        """It is taken apart in a thread, where others have their turn meanwhile."""
        attempt = Attempt()
        self._budgets.add(attempt.budget)
        run = partial(self._run_large, [frame], attempt)
        return Work(run, len(frame.body), LARGE_LANE, attempt.budget)

    def _run_large(self, held: list[Frame | Request], attempt: Attempt, send: Send) -> None:
        """`held`: the frame, then the request in its place: it may be put off and run again."""
        request = held[0]
        if isinstance(request, Frame):
            frame, in_pieces = request, partial(decode_in_pieces, look=attempt.budget.check)
            try:
                held[0] = request = parse(frame, self._frames.bytes_max, in_pieces)
            except ProtocolError as error:
                self._ended = True
                raise Unintelligible from error
            except Abandoned as error:
                raise ClientGone from error
            except BadInput as error:
                self._budgets.discard(attempt.budget)
                send(self._refusal(frame, error))
                return
            del frame  # its bytes are many
        self._run(request, attempt, send)

    def _run(self, request: Request, attempt: Attempt, send: Send) -> None:
        self._budgets.add(attempt.budget)
        if self._client.gone:
            raise ClientGone
        reply = self._service.run(self._client, request, attempt)
        number = next(self._replies)
        more = request.exhaust and goes_on(request, reply)
        data = self._bytes(request, reply, number, more)
        self._budgets.discard(attempt.budget)
        if request.wants_reply:
            send(data)
        if more:  # the next batch, as the answer to this one; others have their turn before
            request.request_id, attempt.began = number, None
            raise Later(0.0)

    def _reply(self, request: Request, attempt: Attempt) -> bytes:
        reply = self._service.run(self._client, request, attempt)
        return self._bytes(request, reply, next(self._replies))

    @staticmethod
    def _bytes(request: Request, reply: Document, number: int, more: bool = False) -> bytes:
        try:
            return reply_bytes(request, reply, number, more)
        except RecursionError:
            too_deep = MongoError(15, "The reply would be nested too deeply.").reply()
            return reply_bytes(request, too_deep, number)
        except Exception:  # noqa: BLE001 - logged there
            return reply_bytes(request, failed(request.name), number)
