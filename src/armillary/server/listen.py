"""Sockets: binding them, and telling HTTP from HTTPS on one port.

    accept ──▶ look at the first byte, without taking it (MSG_PEEK)
                 0x16      a TLS hello: the transport does TLS     ──▶ Connection(secure)
                 else      plain HTTP                              ──▶ Connection

The look happens before the transport is made, so that TLS is the transport's business alone. It
waits for the byte without holding up anybody else, and not for ever.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable

from armillary.server.http.connection import Connection
from armillary.server.http.hub import Hub, log

#: Asked at the first TLS hello: on the very first start the certificate may still be in the making.
TlsSource = Callable[[], Awaitable[ssl.SSLContext]]

BACKLOG = 4096
TLS_HELLO = b"\x16"
ACCEPTS_MAX = 64  # per turn of the loop
OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
OUT_OF_FILES_SECONDS = 0.25
NO_IPV6 = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
ATTEMPTS_MAX = 20
CAN_BALANCE = sys.platform.startswith("linux")  # elsewhere SO_REUSEPORT does not spread the load


TLS_GOODBYE_SECONDS = 1.0


class PortBusy(Exception):
    """Somebody listens there already. The text says what to do."""


# --- binding ------------------------------------------------------------------------------------


def bind(host: str, port: int, *, shared: bool = False, listen: bool = True) -> list[socket.socket]:
    """Sockets on `host`; on both loopbacks if it is the usual one, because `localhost` means
    either. Port 0 picks a free one. `shared` lets others of us bind the same port as well; without
    `listen` the port is only held."""
    attempts = ATTEMPTS_MAX if port == 0 else 1
    for attempt in range(attempts):
        first = _bind_one(host, port, shared, listen)
        chosen = first.getsockname()[1]
        if host not in ("127.0.0.1", "localhost"):
            return [first]
        try:
            return [first, _bind_one("::1", chosen, shared, listen)]
        except PortBusy:
            first.close()
            if attempt == attempts - 1:
                raise
        except OSError as error:
            if error.errno in NO_IPV6:
                return [first]
            first.close()
            raise
    raise AssertionError("unreachable")


def _bind_one(host: str, port: int, shared: bool, listen: bool) -> socket.socket:
    if host == "localhost":
        host = "127.0.0.1"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":
            # Without it a restart would wait for old connections to be forgotten.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.setblocking(False)
        listener.bind((host, port))
        if listen:
            listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortBusy(
                f"Port {port} of {host} is in use. Stop the program that listens there, or choose "
                f"another port: armillary serve --port {port + 1 if port < 65535 else 0} "
                "(0 picks a free one)."
            ) from error
        raise
    return listener


def check_free(host: str, port: int) -> int:
    """The port, chosen if it was 0. Bound alone for a moment: a shared binding would succeed beside
    another server of the same user, and the two would take turns answering."""
    sockets = bind(host, port)
    chosen = int(sockets[0].getsockname()[1])
    for one in sockets:
        one.close()
    return chosen


def address_of(sockets: list[socket.socket]) -> str:
    """The URL to print."""
    host, port = sockets[0].getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


# --- accepting ----------------------------------------------------------------------------------


class Doorman:
    """Accepts from sockets and makes connections of what comes."""

    def __init__(self, hub: Hub, sockets: list[socket.socket], tls: TlsSource | None) -> None:
        self.hub = hub
        self._tls = tls
        self._sockets = sockets
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        for listener in sockets:
            hub.loop.add_reader(listener, self._accept, listener)

    def close(self) -> None:
        """No more guests, but those who are at the door come in."""
        self._closed = True
        for listener in self._sockets:
            self.hub.loop.remove_reader(listener)
            while self._accept_one(listener):
                pass
            listener.close()

    async def settle(self, seconds: float) -> None:
        """Wait for handshakes under way."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=seconds)
            for task in late:
                task.cancel()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(ACCEPTS_MAX):
            if not self._accept_one(listener):
                return

    def _accept_one(self, listener: socket.socket) -> bool:
        try:
            client, _ = listener.accept()
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            if error.errno in OUT_OF_FILES and not self._closed:
                log.warning("no connection can be accepted for a moment: %s", error)
                self._rest(listener)
                return False
            return error.errno == errno.ECONNABORTED  # that one left; there may be others
        if self.hub.is_full():
            log.warning("a connection was refused: there are %d", len(self.hub.guests))
            client.close()
            return True
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        Newcomer(self, client)
        return True

    def _rest(self, listener: socket.socket) -> None:
        """The listener stays readable; without a rest we would spin."""
        self.hub.loop.remove_reader(listener)
        self.hub.loop.call_later(OUT_OF_FILES_SECONDS, self._resume, listener)

    def _resume(self, listener: socket.socket) -> None:
        if not self._closed:
            self.hub.loop.add_reader(listener, self._accept, listener)

    def welcome(self, client: socket.socket, *, secure: bool) -> None:
        task = self.hub.loop.create_task(self._connect(client, secure))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, client: socket.socket, secure: bool) -> None:
        try:
            if secure and self._tls is None:
                raise ConnectionRefusedError("this server speaks no TLS")
            context = await self._tls() if secure and self._tls is not None else None
            await self.hub.loop.connect_accepted_socket(
                lambda: Connection(self.hub, secure=secure),
                client,
                ssl=context,
                ssl_handshake_timeout=self.hub.bounds.handshake_s if secure else None,
                # A client that keeps its connection idle does not answer our goodbye.
                ssl_shutdown_timeout=TLS_GOODBYE_SECONDS if secure else None,
            )
        except (OSError, TimeoutError) as error:  # ssl.SSLError is an OSError
            log.debug("a connection came to nothing: %s", error)
            client.close()


class Newcomer:
    """An accepted socket that has not said anything yet."""

    def __init__(self, doorman: Doorman, client: socket.socket) -> None:
        self._doorman = doorman
        self._client = client
        hub = doorman.hub
        self.deadline = hub.loop.time() + hub.bounds.first_byte_s
        self._watched = False
        self._gone = False
        self._look()
        if not self._gone:
            self._watched = True
            hub.loop.add_reader(client, self._look)
            hub.enter(self)

    def _look(self) -> None:
        try:
            first = self._client.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            first = b""
        self._leave()
        if first:
            self._doorman.welcome(self._client, secure=first == TLS_HELLO)
        else:
            self._client.close()

    def _leave(self) -> None:
        self._gone = True
        if self._watched:
            self._doorman.hub.loop.remove_reader(self._client)
            self._doorman.hub.leave(self)

    def expire(self, now: float) -> None:
        self.abort()

    def drain(self) -> None:
        self.abort()

    def abort(self) -> None:
        self._leave()
        self._client.close()
