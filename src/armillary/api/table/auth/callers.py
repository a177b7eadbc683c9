"""Who asks: the holder of a key, of a shared access signature, or of a token of Entra ID."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from armillary.api.table.auth.sas import Sas


@dataclass(frozen=True, slots=True)
class Caller:
    kind: Literal["key", "sas", "entra"]
    may_write: bool
    sas: Sas | None = None


FULL: Final = Caller("key", True)
READ_ONLY: Final = Caller("key", False)
ENTRA: Final = Caller("entra", True)
