"""What the MongoDB API of one server is set to. Plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    account: str = "localhost"
    """The user name of clients."""
    require_login: bool = True
    replica_set: str = "globaldb"
    advertise: str | None = None
    """`host:port` that clients reach us by, when neither TLS nor the socket tells."""
    region: str = "South Central US"
    strict: bool = False
    """Refuse what Azure Cosmos DB refuses: native stages, retryable writes, sorts without index."""
    retry_throttled: bool = False
    """Wait and try again when throttled, instead of telling the client 16500."""
    scram_iterations: int = 4096
