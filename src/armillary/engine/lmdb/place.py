"""Where the rows of one space lie in the map: a sub-database, and a prefix when it is shared."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

NUMBER = struct.Struct(">I")
TAG_BYTES = NUMBER.size


@dataclass(frozen=True, slots=True)
class Place:
    db: Any
    prefix: bytes
    meta_key: bytes
    tag: bytes
    packed: bytes = b""
    """The kinds of rows that lie in runs."""
    sealed: bytes = b""
    """The kinds of rows that carry a checksum."""
    seen: list[tuple[int, bytes]] = field(
        default_factory=lambda: [(0, b"")], compare=False, repr=False
    )
    """One: the number of a snapshot, and the meta row in it without its tag. The next reader mostly
    meets the same snapshot, and need not look for the row. For single reads only: LMDB takes number
    and roots one after the other, so a reader that two commits overtake in between has the number
    of one snapshot and the rows of a later one. Both were there, and no write relies on it."""


def tag_of(space: int) -> bytes:
    return NUMBER.pack(space)
