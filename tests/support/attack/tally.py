"""What one attacker sent and heard, and how fast it may send."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

SHOWN_MAX = 8


@dataclass
class Tally:
    sent: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    """By status, or by the code of the protocol."""
    defects: list[str] = field(default_factory=list)
    """Answers that are a mistake of the server, with what was sent."""
    silent: list[str] = field(default_factory=list)
    """Requests that were not answered in time."""

    def note(self, answer: str, sent: object = None, *, defect: bool = False) -> None:
        self.answers[answer] += 1
        if defect and len(self.defects) < SHOWN_MAX:
            self.defects.append(f"{answer}: {sent!r}"[:1_500])

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
    """So many requests a second, over all connections of a process; none: as fast as it goes."""

    def __init__(self, per_second: float | None, count: int) -> None:
        self._gap = 1 / per_second if per_second else 0.0
        self._next = time.monotonic()
        self._left = count

    async def take(self, wanted: int = 1) -> int:
        """How many may be sent now; 0: all were."""
        taken = min(wanted, self._left)
        self._left -= taken
        if self._gap and taken:
            self._next = max(self._next, time.monotonic() - 1.0) + taken * self._gap
            await asyncio.sleep(max(0.0, self._next - time.monotonic()))
        return taken
