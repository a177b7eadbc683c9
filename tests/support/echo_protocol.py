"""A small stream protocol: each line that comes goes back. `slow` is answered in a thread, `now`
without an event if nothing else came with it, `quit` ends the connection, `bug` is one; `wait` is
answered when any client has said `go`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from armillary.api.core.streams import Answer, Event, Hangup, Later, Peer, Quick, Send, Work


class EchoSession:
    def __init__(self, peer: Peer, gone_on: threading.Event) -> None:
        self._peer = peer
        self._gone_on = gone_on
        self._rest = b""

    @property
    def busy(self) -> bool:
        return bool(self._rest)

    @property
    def held_bytes(self) -> int:
        return len(self._rest)

    def at_once(self, data: bytes) -> bytes | None:
        is_whole = not self._rest and data.count(b"\n") == 1 and data.endswith(b"\n")
        return data if is_whole and data.startswith(b"now ") else None

    def receive(self, data: bytes) -> Sequence[Event]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [self._event(line) for line in lines]

    def _event(self, line: bytes) -> Event:
        def slowly(send: Send) -> None:
            for piece in line.split():
                send(piece + b"\n")

        def much(send: Send) -> None:
            for _ in range(200):
                send(b"x" * 65_536)

        def wait(send: Send) -> None:
            if not self._gone_on.is_set():
                raise Later(0.005)
            send(b"went on\n")

        match line.split(b" ")[0]:
            case b"wait":
                return Work(wait)
            case b"go":
                self._gone_on.set()
            case b"slow":
                return Work(slowly, len(line))
            case b"large":
                return Work(much)
            case b"quick":
                return Quick(lambda: line + b"\n", Work(slowly))
            case b"who":
                return Answer(f"{self._peer.secure} {self._peer.server_name}\n".encode())
            case b"bug":
                raise RuntimeError("planted")
            case b"quit":
                return Hangup(b"bye\n")
        return Answer(line + b"\n")

    def tick(self) -> Sequence[Event]:
        return ()

    def close(self) -> None: ...


class EchoStreams:
    def __init__(self) -> None:
        self._gone_on = threading.Event()

    def open(self, peer: Peer) -> EchoSession:
        return EchoSession(peer, self._gone_on)

    def close(self) -> None: ...


def make_streams(gateway: Any, settings: Any) -> EchoStreams:
    return EchoStreams()
