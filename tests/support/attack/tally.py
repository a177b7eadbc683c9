"""What one attacker sent and heard, and how fast it may send."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

SHOWN_MAX = 8
KEPT_MAX = 400
KEPT_BYTES_MAX = 20_000
NEW_SHARE = 0.3


@dataclass
class Tally:
    sent: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    """By status, or by the code of the protocol."""
    defects: list[str] = field(default_factory=list)
    """Answers that are a mistake of the server, the first with what was sent."""
    silent: list[str] = field(default_factory=list)
    """Requests that were not answered in time, the first with what was sent."""

    def note(self, answer: str, sent: object = None, *, defect: bool = False) -> None:
        self.answers[answer] += 1
        if defect:
            shown = len(self.defects) < SHOWN_MAX
            self.defects.append(f"{answer}: {sent!r}"[:1_500] if shown else answer)

    def note_silent(self, sent: object) -> None:
        self.silent.append(f"{sent!r}"[:1_500] if len(self.silent) < SHOWN_MAX else "")

    def as_json(self) -> dict[str, Any]:
        return {
            "sent": self.sent,
            "answers": dict(self.answers),
            "defects": self.defects,
            "silent": self.silent,
        }


class Pace:
    """So many requests a second, over all connections of a process (none: as fast as it goes), and
    no more after so many seconds."""

    def __init__(self, per_second: float | None, count: int, seconds: float) -> None:
        self._gap = 1 / per_second if per_second else 0.0
        self._next = time.monotonic()
        self._end = self._next + seconds
        self._left = count

    async def take(self, wanted: int = 1) -> int:
        """How many may be sent now; 0: all were."""
        taken = min(wanted, self._left) if time.monotonic() < self._end else 0
        self._left -= taken
        if self._gap and taken:
            self._next = max(self._next, time.monotonic() - 1.0) + taken * self._gap
            await asyncio.sleep(max(0.0, self._next - time.monotonic()))
        return taken


class Again:
    """Makes requests, a part of them from those it made before: one bit of their bodies is another,
    if it `damages`, or nothing. A thousand times as quick, and what follows a request is never the
    same twice."""

    def __init__(self, random: Random, make: Callable[[], bytes], *, damages: bool = True) -> None:
        self._random = random
        self._make = make
        self._damages = damages
        self._made: list[bytes] = []

    def __call__(self) -> bytes:
        random = self._random
        if len(self._made) < KEPT_MAX or random.random() < NEW_SHARE:
            one = self._make()
            if len(one) > KEPT_BYTES_MAX:
                return one
            if len(self._made) < KEPT_MAX:
                self._made.append(one)
            else:
                self._made[random.randrange(KEPT_MAX)] = one
            return one
        one = random.choice(self._made)
        body = one.find(b"\r\n\r\n") + 4
        if self._damages and 4 <= body < len(one) and random.random() < 0.7:
            at = random.randrange(body, len(one))
            return one[:at] + bytes([one[at] ^ 1 << random.randrange(8)]) + one[at + 1 :]
        return one
