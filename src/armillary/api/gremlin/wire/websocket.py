"""One WebSocket connection without its socket: bytes in, messages out, and back.

    bytes ─▶ receive ─▶ messages            answer(message) ─▶ bytes

The protocol itself is `websockets`' (RFC 6455, permessage-deflate). Threads that answer and the
event loop that receives share it under a lock; what is sent is always whole frames.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from websockets.exceptions import InvalidState
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import CONNECTING, OPEN
from websockets.server import ServerProtocol

from armillary.limits import GREMLIN_MESSAGE_BYTES_MAX

HANDSHAKE_BYTES_MAX: Final = 16 * 1024
OWN_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]", "host.docker.internal"})
WELCOME: Final = (
    "This is the Gremlin endpoint. Connect by WebSocket, with the user "
    "/dbs/<database>/colls/<graph> and an account key as password.\n"
)


@dataclass(frozen=True, slots=True)
class Message:
    data: bytes
    is_text: bool


class WebSocket:
    def __init__(self, origins: tuple[str, ...] = ()) -> None:
        """`origins`: web pages that may connect; `*` is any. Programs send none."""
        self._protocol = ServerProtocol(
            # Windows of 15 bits: netty compresses with smaller ones only where jzlib is installed.
            extensions=[ServerPerMessageDeflateFactory()],
            max_size=GREMLIN_MESSAGE_BYTES_MAX,
        )
        self._origins = origins
        self._lock = threading.Lock()
        self._parts: list[bytes] = []
        self._part_bytes = 0
        self._is_text = False
        self._handshake_bytes = 0
        self.closed = False
        """Nothing more will be read: say the last words and hang up."""

    @property
    def busy(self) -> bool:
        return self._protocol.state is CONNECTING or bool(self._parts)

    @property
    def held_bytes(self) -> int:
        return len(self._protocol.reader.buffer) + self._part_bytes

    def receive(self, data: bytes) -> tuple[list[Message], bytes]:
        """(whole messages, bytes to send)"""
        with self._lock:
            protocol = self._protocol
            if protocol.state is CONNECTING:
                self._handshake_bytes += len(data)
                if self._handshake_bytes > HANDSHAKE_BYTES_MAX:
                    self.closed = True
                    return [], b""
            protocol.receive_data(data)
            messages: list[Message] = []
            for event in protocol.events_received():
                if isinstance(event, Request):
                    self._shake(event)
                elif isinstance(event, Frame):
                    self._take(event, messages)
            out = b"".join(protocol.data_to_send())
            if protocol.state not in (CONNECTING, OPEN) or protocol.handshake_exc is not None:
                self.closed = True
            return messages, out

    def _shake(self, request: Request) -> None:
        protocol = self._protocol
        origin = request.headers.get("Origin")
        if not self._may_connect(origin, request.headers.get("Host", "")):
            response = protocol.reject(HTTPStatus.FORBIDDEN, "This web page may not connect.\n")
        elif request.headers.get("Upgrade") is None:
            response = protocol.reject(HTTPStatus.UPGRADE_REQUIRED, WELCOME)
        else:
            response = protocol.accept(request)
        protocol.send_response(response)
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            self.closed = True

    def _may_connect(self, origin: str | None, host: str) -> bool:
        """Programs send no origin, except netty's (Java's driver), which sends our own address. A
        page has another one; by a name that is not of this machine it could pretend (rebinding)."""
        if origin is None or {origin, "*"} & set(self._origins):
            return True
        place = origin.partition("://")[2]
        return _name(place) in OWN_NAMES and _name(place) == _name(host)

    def _take(self, frame: Frame, messages: list[Message]) -> None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._parts, self._part_bytes = [], 0
            self._is_text = frame.opcode is Opcode.TEXT
        elif frame.opcode is not Opcode.CONT:
            return
        self._parts.append(bytes(frame.data))
        self._part_bytes += len(frame.data)
        if frame.fin:
            messages.append(Message(b"".join(self._parts), self._is_text))
            self._parts, self._part_bytes = [], 0

    def frame(self, data: bytes) -> bytes:
        """A binary message for the client; nothing when it has left."""
        with self._lock:
            if self._protocol.state is not OPEN:
                return b""
            self._protocol.send_binary(data)
            return b"".join(self._protocol.data_to_send())

    def ping(self) -> bytes:
        """Nothing unless the connection is open."""
        with self._lock:
            if self._protocol.state is not OPEN:
                return b""
            self._protocol.send_ping(b"")
            return b"".join(self._protocol.data_to_send())

    def goodbye(self, reason: str) -> bytes:
        with self._lock:
            try:
                self._protocol.send_close(CloseCode.GOING_AWAY, reason)
            except InvalidState:
                return b""
            return b"".join(self._protocol.data_to_send())


def _name(place: str) -> str:
    """`localhost:8901` and `localhost` are both localhost; `[::1]:8901` is `[::1]`."""
    head, _, port = place.rpartition(":")
    return head if head and port.isdigit() else place
