"""Where an account is: the one place that reads the text of an address.

    ":memory:"          everything gone at the end
    "postgresql://…"    PostgreSQL, shared by many servers
    anything else       a folder

What follows from it (engine, ledger, statistics, fast paths, polling) is asked of the value.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from armillary.errors import BadInput

MEMORY: Final = ":memory:"
POSTGRES_SCHEMES: Final = ("postgresql://", "postgres://")

Kind: TypeAlias = Literal["memory", "folder", "postgres"]


@dataclass(frozen=True, slots=True)
class Address:
    kind: Kind
    text: str

    @property
    def folder(self) -> Path | None:
        """The data folder, if it is one."""
        return Path(self.text) if self.kind == "folder" else None

    @property
    def is_local(self) -> bool:
        """The data is on this machine: a point read takes microseconds and never waits."""
        return self.kind != "postgres"

    @property
    def shown(self) -> str:
        """For people: without the password of a URL, a folder whole."""
        if self.kind == "memory":
            return "in memory: gone when the server stops"
        if self.kind == "folder":
            return str(Path(self.text).resolve())
        return without_password(self.text)


def parse_address(given: str | Path) -> Address:
    text = str(given)
    if text == MEMORY:
        return Address("memory", text)
    if isinstance(given, str) and text.startswith(POSTGRES_SCHEMES):
        return Address("postgres", text)
    if isinstance(given, str) and "://" in text:
        scheme = text.partition("://")[0]
        if scheme.lower() in ("http", "https"):
            raise BadInput(
                f"{text} is a server. This needs the data itself: give the folder, or "
                "postgresql://…, that it runs on."
            )
        raise BadInput(f"{scheme}:// is no engine. Give a folder, :memory: or postgresql://…")
    return Address("folder", text)


def without_password(text: str) -> str:
    if "://" not in text or "@" not in text:
        return text
    scheme, _, rest = text.partition("://")
    return f"{scheme}://…@{rest.rpartition('@')[2]}"
