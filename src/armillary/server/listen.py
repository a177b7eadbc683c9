"""Accepting, for every protocol: telling TLS from plain bytes on one port.

    accept ──▶ look at the first bytes, without taking them (MSG_PEEK)
                 16 03 0x …   a TLS hello: the transport does TLS     ──▶ endpoint, secure
                 else         plain                                   ──▶ endpoint

The look happens before the transport is made, so that TLS is the transport's business alone. It
waits for the bytes without blocking other clients, and not for ever. One byte is not enough: a
MongoDB message of 278 bytes begins with 16 too.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable

from armillary.server.endpoints import Endpoint
from armillary.server.pool import Pool

log = logging.getLogger("armillary.server")

#: Asked at the first TLS hello: on the very first start the certificate may still be in the making.
TlsSource = Callable[[], Awaitable[ssl.SSLContext]]

TLS_HELLO_BYTES = 5  # type, version, length of the first record
TLS_RECORD_BYTES_MAX = 16_384 + 2_048
ACCEPTS_MAX = 64  # per turn of the loop
OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
OUT_OF_FILES_SECONDS = 0.25
TLS_GOODBYE_SECONDS = 1.0


class Acceptor:
    """Accepts from the sockets of one port and connects what comes to its endpoint."""

    def __init__(
        self, pool: Pool, endpoint: Endpoint, sockets: list[socket.socket], tls: TlsSource | None
    ) -> None:
        self.pool = pool
        self._endpoint = endpoint
        self._tls = tls
        self._sockets = sockets
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        for listener in sockets:
            pool.loop.add_reader(listener, self._accept, listener)

    def close(self) -> None:
        """No more clients, but those in the backlog are accepted."""
        self._closed = True
        for listener in self._sockets:
            self.pool.loop.remove_reader(listener)
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
        if self.pool.is_full():
            log.warning("a connection was refused: there are %d", len(self.pool.peers))
            client.close()
            return True
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        Handshake(self, client)
        return True

    def _rest(self, listener: socket.socket) -> None:
        """The listener stays readable; without a rest we would spin."""
        self.pool.loop.remove_reader(listener)
        self.pool.loop.call_later(OUT_OF_FILES_SECONDS, self._resume, listener)

    def _resume(self, listener: socket.socket) -> None:
        if not self._closed:
            self.pool.loop.add_reader(listener, self._accept, listener)

    def connect(self, client: socket.socket, *, secure: bool) -> None:
        task = self.pool.loop.create_task(self._connect(client, secure))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, client: socket.socket, secure: bool) -> None:
        try:
            if secure and self._tls is None:
                raise ConnectionRefusedError("this server speaks no TLS")
            context = await self._tls() if secure and self._tls is not None else None
            make = await self._endpoint.connect(client, secure=secure)
            await self.pool.loop.connect_accepted_socket(
                make,
                client,
                ssl=context,
                ssl_handshake_timeout=self.pool.bounds.handshake_s if secure else None,
                # A client that keeps its connection idle does not answer our goodbye.
                ssl_shutdown_timeout=TLS_GOODBYE_SECONDS if secure else None,
            )
        except (OSError, TimeoutError) as error:  # ssl.SSLError is an OSError
            log.debug("a connection came to nothing: %s", error)
            client.close()
        except Exception:
            log.exception("a protocol could not be loaded")
            client.close()


class Handshake:
    """An accepted socket that has not sent anything yet."""

    def __init__(self, acceptor: Acceptor, client: socket.socket) -> None:
        self._acceptor = acceptor
        self._client = client
        pool = acceptor.pool
        self.deadline = pool.loop.time() + pool.bounds.first_byte_s
        self._waits_for_rest = False
        self._gone = False
        self._look()
        if not self._gone:
            pool.loop.add_reader(client, self._look)
            pool.enter(self)

    def _look(self) -> None:
        try:
            first = self._client.recv(TLS_HELLO_BYTES, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            first = b""
        secure = is_tls(first)
        if secure is None and not self._waits_for_rest:
            self._wait_for_rest()
            return
        self._leave()
        if first and secure is not None:
            self._low_water(1)
            self._acceptor.connect(self._client, secure=secure)
        else:
            self._client.close()  # ended before it said what it is

    def _wait_for_rest(self) -> None:
        """What is there stays readable, so a plain reader would spin: wake up when a whole record
        header is there, or the end."""
        self._waits_for_rest = True
        self._low_water(TLS_HELLO_BYTES)
        pool = self._acceptor.pool
        self.deadline = min(self.deadline, pool.loop.time() + pool.bounds.handshake_s)

    def _low_water(self, count: int) -> None:
        if self._waits_for_rest:
            self._client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)

    def _leave(self) -> None:
        self._gone = True
        self._acceptor.pool.loop.remove_reader(self._client)
        self._acceptor.pool.leave(self)

    def expire(self, now: float) -> None:
        self.abort()

    def drain(self) -> None:
        self.abort()

    def abort(self) -> None:
        self._leave()
        self._client.close()


def is_tls(first: bytes) -> bool | None:
    """Whether a stream that begins so is TLS; None: too little of it is known."""
    begin = b"\x16\x03"
    if not first or first[:2] != begin[: len(first[:2])]:
        return False
    if len(first) < TLS_HELLO_BYTES:
        return None if len(first) < 3 or 1 <= first[2] <= 4 else False
    return 1 <= first[2] <= 4 and 0 < int.from_bytes(first[3:5], "big") <= TLS_RECORD_BYTES_MAX
