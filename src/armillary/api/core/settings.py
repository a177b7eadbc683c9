"""What the account of one server is set to: keys, and how it presents itself. Plain values; who
starts the server reads them from the environment and from files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from armillary.limits import SCRIPT_CHILDREN, SCRIPT_HEAP_BYTES, SCRIPT_SECONDS

#: Public since the first emulator: only for servers that others can't reach.
EMULATOR_KEY: Final = (
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
)

#: Before a key in a key file: one that reads and queries, and changes nothing.
READ_ONLY: Final = "read-only "


def told_apart(keys: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Keys for everything, and keys for reading, from the lines of a key file."""
    full = tuple(key for key in keys if not key.startswith(READ_ONLY))
    return full, tuple(key.removeprefix(READ_ONLY).strip() for key in keys if key not in full)


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    keys: tuple[str, ...] = (EMULATOR_KEY,)
    """Base64. Any of them signs anything: a primary and a secondary, so that they can be
    changed in turns."""
    read_only_keys: tuple[str, ...] = ()
    accept_entra: bool = False
    """Take bearer tokens of Entra ID. Their signature is not checked, only that they have not
    expired: for development, never on a network."""
    account: str = "armillary"
    """Not `localhost`: a JavaScript client would read the account before every request."""
    login: str = "localhost"
    """The account's name where a client has to say it: Table and MongoDB."""
    logs_requests: bool = False
    """A line in the log for every request (`request_log.py`)."""
    region: str = "South Central US"
    advertise: tuple[str, ...] = ()
    """Addresses that clients are to use, each a region; none: the one they came by."""
    consistency: str = "Session"
    cors_origins: tuple[str, ...] = ()
    """Web pages that may call; `*` is any. None by default: the emulator key is public, so any
    page could sign."""
    trust_forwarded: bool = False
    """Believe X-Forwarded-Host and X-Forwarded-Proto: only behind a proxy that sets them."""
    gateway_merge: bool = False
    """Answer queries over several partitions here instead of leaving the merge to the client."""
    reads_ids_twice: bool = False
    """Take addresses apart as the routing gateway does (`core/paths.py`)."""
    former_ranges_s: int = 0
    """How long queries may begin under the id of a range that was split or merged."""
    quick_reads: bool = True
    """Point reads answer in microseconds: the data is on this machine."""
    loop_reads: bool = False
    """Point reads wait for a database, on the event loop: the data is on one other machine."""
    script_seconds: float = SCRIPT_SECONDS
    script_heap_bytes: int = SCRIPT_HEAP_BYTES
    script_processes: int = SCRIPT_CHILDREN
