"""What fast paths of all protocols share: texts that clients repeat are looked up, not read again.

HOT: once per request that is answered from bytes to bytes. In doubt the general path decides.
"""

from __future__ import annotations

from typing import Final, TypeVar

from armillary.limits import KB

KEPT_MAX: Final = 4096
BODY_BYTES_MAX: Final = 32 * KB  # of what the loop reads itself: a millisecond at most
DATE: Final = rb"[A-Za-z0-9 ,:]+"

K = TypeVar("K")
V = TypeVar("V")


def keep(table: dict[K, V], key: K, value: V, most: int = KEPT_MAX) -> V:
    if len(table) >= most:
        table.clear()
    table[key] = value
    return value
