"""What a worker shows to the outside, as plain data that costs no import of a server."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from armillary.server.bounds import Bounds

if TYPE_CHECKING:
    from armillary.server.endpoints import Loader
    from armillary.server.portal.door import PortalDoor


@dataclass(frozen=True, slots=True)
class Front:
    """What the outside sees. Plain data: goes to spawned workers."""

    data: Path
    """Where the certificate is."""
    hosts: tuple[str, ...] = ()
    """Names alongside the usual ones, for the Host check and the certificate."""
    check_hosts: bool = True
    bounds: Bounds = field(default_factory=Bounds)
    portal: PortalDoor | None = None
    leave_s: float = 0.0
    """How long to serve on after the signal to stop, no longer ready."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A port of this worker: its sockets, and what is behind them."""

    name: str
    sockets: list[socket.socket]
    load: Loader
    eager: bool = False
    """Loaded before the server is ready, not for its first client."""
    shows_certificate: bool = False
    """Its connection string names the file of the certificate, which has to be there by then."""

    @property
    def port(self) -> int:
        return int(self.sockets[0].getsockname()[1])
