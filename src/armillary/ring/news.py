"""What happened to the ranges of a container, reported once each: what the catalog remembers of
earlier at the first look, then what began and what is over, from look to look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any


class News:
    """Range ids are never used twice: the children of a move tell it from every other one."""

    def __init__(self) -> None:
        self._told: set[tuple[str, ...]] = set()
        self._begun: set[tuple[str, ...]] = set()
        self._is_first = True

    def take(self, report: Mapping[str, Any]) -> list[str]:
        """Lines with their times, from a heat report, oldest first."""
        now_s = report["now_s"]
        lines = []
        for one in report["past"]:
            if _add(self._told, one["children"]):
                lines.append(f"{time_text(one['at_s'], now_s)}  {_line(one['kind'], 'done', one)}")
        for one in report["moves"]:
            move = one | {"children": [child["id"] for child in one["children"]]}
            # At the first look its beginning is not known.
            if _add(self._begun, move["children"]) and not self._is_first:
                lines.append(f"{time_text(now_s, now_s)}  {_line(one['kind'], 'begun', move)}")
        self._is_first = False
        return lines


def time_text(at_s: int, now_s: int) -> str:
    """UTC; with the day, if that is another one."""
    at, now = (datetime.fromtimestamp(one, UTC) for one in (at_s, now_s))
    return at.strftime("%H:%M:%S" if at.date() == now.date() else "%Y-%m-%d %H:%M")


def _add(known: set[tuple[str, ...]], children: Sequence[str]) -> bool:
    """Whether it is new."""
    before = len(known)
    known.add(tuple(children))
    return len(known) > before


def _line(kind: str, what: str, move: Mapping[str, Any]) -> str:
    return f"{kind} {what}: {', '.join(move['parents'])} → {', '.join(move['children'])}"
