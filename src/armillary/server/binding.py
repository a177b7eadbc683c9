"""Sockets of a server: binding them, and saying whose port is taken."""

from __future__ import annotations

import errno
import socket
import sys

BACKLOG = 4096
NO_IPV6 = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
ATTEMPTS_MAX = 20
CAN_BALANCE = sys.platform.startswith("linux")  # elsewhere SO_REUSEPORT does not spread the load


class PortBusy(Exception):
    """Somebody listens there already. The text says what to do."""


def bind(
    host: str, port: int, *, shared: bool = False, listen: bool = True, flag: str = "--port"
) -> list[socket.socket]:
    """Sockets on `host`; on both loopbacks if it is the usual one, because `localhost` means
    either. Port 0 picks a free one. `shared` lets others of us bind the same port as well; without
    `listen` the port is only held. `flag` chooses another one, for the message."""
    attempts = ATTEMPTS_MAX if port == 0 else 1
    for attempt in range(attempts):
        first = _bind_one(host, port, shared, listen, flag)
        chosen = first.getsockname()[1]
        if host not in ("127.0.0.1", "localhost"):
            return [first]
        try:
            return [first, _bind_one("::1", chosen, shared, listen, flag)]
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


def _bind_one(host: str, port: int, shared: bool, listen: bool, flag: str) -> socket.socket:
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
                f"another port: armillary serve {flag} {port + 1 if port < 65535 else 0} "
                "(0 picks a free one)."
            ) from error
        raise
    return listener


def check_free(host: str, port: int, flag: str = "--port") -> int:
    """The port, chosen if it was 0. Bound alone for a moment: a shared binding works next to
    another server of the same user, and the two would take turns answering."""
    sockets = bind(host, port, flag=flag)
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
