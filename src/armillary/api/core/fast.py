"""What fast paths of all protocols share: texts that clients repeat are looked up, not read again.

HOT: once per request that is answered from bytes to bytes. What they do not know is no refusal: the
general path decides.
"""

from __future__ import annotations

import os
from typing import Final, TypeVar

KEPT_MAX: Final = 4096
DATE: Final = rb"[A-Za-z0-9 ,:]+"

K = TypeVar("K")
V = TypeVar("V")


def keep(table: dict[K, V], key: K, value: V) -> V:
    if len(table) >= KEPT_MAX:
        table.clear()
    table[key] = value
    return value


def new_activity() -> str:
    """A random UUID (version 4), in a third of the time that the module takes. HOT."""
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
