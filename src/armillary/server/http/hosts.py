"""Which Host headers a server on loopback answers.

The emulator key is public, so a web page could sign requests. The browser's one guard is the
origin, and DNS rebinding moves that: evil.example answers with 127.0.0.1, and the page talks to us
under its own name. The Host header still says evil.example, so we look there. A server on another
address has a key of its own and is reached under names we can't know: it does not check.
"""

import re
from collections.abc import Iterable

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]", "host.docker.internal")
KEPT_MAX = 256
HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")


class HostCheck:
    def __init__(self, extra: Iterable[str] = (), *, enforce: bool = True) -> None:
        self._allowed = frozenset(name.lower() for name in (*LOCAL_NAMES, *extra))
        self._enforce = enforce
        self._known: set[str] = set()

    def refuses(self, host: str) -> str | None:
        """Why not, or None."""
        if not self._enforce or host in self._known:
            return None
        if name_of(host) not in self._allowed:
            return (
                f"This server listens on loopback and answers only to {', '.join(LOCAL_NAMES)} "
                "(a guard against web pages of others). Start it with --allow-host NAME to let "
                f"it answer to {name_of(host)[:100]!r}."
            )
        if len(self._known) < KEPT_MAX:
            self._known.add(host)
        return None


def name_of(host: str) -> str:
    """`LocalHost:8081` → `localhost`, `[::1]:8081` → `[::1]`. What is not a name and a port, and
    nothing else, is returned as it is: no name is called so."""
    found = HOST.fullmatch(host)
    return host if found is None else found[1].lower()


def is_loopback(address: str) -> bool:
    return address in ("localhost", "::1") or address.startswith("127.")
