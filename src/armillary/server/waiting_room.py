"""What clients hear while the server waits for its database: 503 and a time to come back by HTTP;
`/alive` says yes, `/ready` says no.

Only when that takes a moment: until then connections wait in the socket's queue, and are served as
soon as there is something to serve them.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator, Sequence
from typing import Final

PATIENCE_SECONDS: Final = 1.0
READ_SECONDS: Final = 1.0
HEAD_BYTES_MAX: Final = 16_384

_ALIVE: Final = b'{"status":"alive"}'
_WAITING: Final = b'{"code":"ServiceUnavailable","message":"The server waits for its database."}'


@contextlib.contextmanager
def waiting_room(sockets: Sequence[socket.socket]) -> Iterator[None]:
    """Around the work that may take long. The sockets stay with the caller."""
    done = threading.Event()
    copies = [one.dup() for one in sockets]
    thread = threading.Thread(target=_serve, args=(copies, done), name="waiting", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        for one in copies:
            one.close()


def _serve(sockets: list[socket.socket], done: threading.Event) -> None:
    if done.wait(PATIENCE_SECONDS):
        return
    while not done.is_set():
        readable, _, _ = select.select(sockets, [], [], 0.05)
        for one in readable:
            # Not blocking: another may have taken it.
            with contextlib.suppress(OSError):
                one.setblocking(False)
                client, _ = one.accept()
                with client:
                    _answer(client)


def _answer(client: socket.socket) -> None:
    client.settimeout(READ_SECONDS)
    head = b""
    while b"\r\n\r\n" not in head and len(head) < HEAD_BYTES_MAX:
        data = client.recv(4096)
        if not data:
            return
        head += data
    target = [*head.split(b" ", 2), b"", b""][1]
    status, body = (b"200 OK", _ALIVE)
    if target != b"/alive":
        status, body = (b"503 Service Unavailable", _WAITING)
    client.sendall(
        b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
        b"x-ms-retry-after-ms: 1000\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%b"
        % (status, len(body), body)
    )
    client.shutdown(socket.SHUT_WR)
