"""A proxy that holds every byte back for a while: a server far away, on this machine."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue


@contextmanager
def delayed(port: int, seconds: float) -> Iterator[int]:
    """A port of 127.0.0.1 that leads to `port`; each way takes `seconds`."""
    listener = socket.create_server(("127.0.0.1", 0))
    sockets: list[socket.socket] = [listener]

    def accept() -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", port))
                sockets.extend((near, far))
                for source, target in ((near, far), (far, near)):
                    _pipe(source, target, seconds)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        for one in sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def _pipe(source: socket.socket, target: socket.socket, seconds: float) -> None:
    pieces: SimpleQueue[tuple[float, bytes]] = SimpleQueue()

    def receive() -> None:
        data = b"more"
        while data:
            try:
                data = source.recv(65536)
            except OSError:
                data = b""
            pieces.put((time.monotonic() + seconds, data))

    def send() -> None:
        with suppress(OSError):
            while True:
                due, data = pieces.get()
                time.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(data)

    for work in (receive, send):
        threading.Thread(target=work, daemon=True).start()
