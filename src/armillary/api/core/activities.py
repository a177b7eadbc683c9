"""Ids of requests, for clients that send none: each answer of an HTTP protocol names one."""

from __future__ import annotations

import os
from typing import Final

_LAST_DIGITS: Final = [f"{number:02x}" for number in range(256)]
_made: list[str] = []  # threads take and add whole ones


def new_activity() -> str:
    """A random UUID (version 4). HOT: asking the system costs more than all the rest, so those of a
    batch differ in their last digits only. They are no secrets: every answer shows one."""
    try:
        return _made.pop()
    except IndexError:
        digits = os.urandom(15).hex()
        first = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
        _made.extend([first + last for last in _LAST_DIGITS])
        return new_activity()
