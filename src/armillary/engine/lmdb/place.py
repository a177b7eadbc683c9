"""Where the rows of one space lie in the map: a sub-database, and a prefix when it is shared."""

from __future__ import annotations

import struct
from dataclasses import dataclass
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


def tag_of(space: int) -> bytes:
    return NUMBER.pack(space)
