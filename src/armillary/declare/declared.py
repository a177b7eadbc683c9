"""What a file declares: databases and containers, as plain data that can go to another process.

A container's `body` is the JSON that the NoSQL API takes; the file's names are those of the Python
API. Nothing here touches an account.
"""

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is declared, for the message when it can't be made."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class DeclaredScript:
    kind: Literal["procedure", "trigger", "function"]
    body: dict[str, Any]
    place: Place


@dataclass(frozen=True, slots=True)
class DeclaredContainer:
    id: str
    body: dict[str, Any]
    place: Place
    throughput: int | None = None
    autoscale_max: int | None = None
    physical_partitions: int | None = None
    fixed: bool = False
    seeds: tuple[str, ...] = ()
    """Files with items, put in when the container is new."""
    scripts: tuple[DeclaredScript, ...] = ()
    api: str = "nosql"
    """Whose container it is; the items of a table's seed files are entities in their plain form."""


@dataclass(frozen=True, slots=True)
class DeclaredDatabase:
    id: str
    place: Place
    throughput: int | None = None
    autoscale_max: int | None = None
    containers: tuple[DeclaredContainer, ...] = ()
