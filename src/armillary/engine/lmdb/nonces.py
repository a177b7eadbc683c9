"""Names of new runs, by chance: no two runs have one, in whatever process they were made.

A commit needs one or two. Asked of the system each time, they cost a call that gives the
interpreter up, for which a commit waits where another thread reads; so many are asked for at once.
A forked child may not use an engine, so no two processes draw from the same ones.
"""

from __future__ import annotations

import os
import threading
from typing import Final

from armillary.engine.runs.writing import NONCE_BYTES

DRAWN_BYTES: Final = 512 * NONCE_BYTES


class Nonces:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._drawn = b""
        self._at = 0

    def __call__(self, size: int) -> bytes:
        with self._lock:
            end = self._at + size
            if end > len(self._drawn):
                self._drawn, self._at, end = os.urandom(DRAWN_BYTES), 0, size
            found = self._drawn[self._at : end]
            self._at = end
        return found


NONCES: Final = Nonces()
