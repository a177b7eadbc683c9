"""Consumption of the last minutes, kept from look to look: the server sends only new bins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

BINS: Final = 60


class Bins:
    """A row of `BINS` numbers for each physical partition that is there, the newest last."""

    def __init__(self) -> None:
        self._end_s = 0
        self.step_s = 5
        self._rows: dict[str, list[float]] = {}

    @property
    def since_s(self) -> int:
        """What to ask for next."""
        return self._end_s

    @property
    def seconds(self) -> int:
        return BINS * self.step_s

    def add(self, report: Mapping[str, Any]) -> None:
        self.step_s = report["step_s"]
        partitions = report["partitions"]
        count = max((len(one["ru"]) for one in partitions), default=0)
        end_s = report["first_s"] + count * self.step_s
        passed = (end_s - self._end_s) // self.step_s if self._end_s else BINS
        rows = {}
        for one in partitions:
            # Bins that were not asked for in time were not seen: they count as empty.
            known = self._rows.get(one["id"], [])
            row = known + [0.0] * max(0, passed - count) + one["ru"][max(0, count - passed) :]
            rows[one["id"]] = ([0.0] * BINS + row)[-BINS:]
        self._rows = rows
        self._end_s = max(self._end_s, end_s)

    def row(self, id: str) -> list[float]:
        return self._rows.get(id, [0.0] * BINS)
