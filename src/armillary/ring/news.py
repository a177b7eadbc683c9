"""What happened to the ranges of a container: between two looks at it, and before the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from armillary.ring.model import Ring


def news_of(before: Ring | None, now: Ring) -> list[str]:
    """What became of the ranges between two looks, and what began."""
    if before is None:
        return []
    told = []
    there = {one.id for one in now.arcs}
    gone = {one.id for one in before.arcs} - there
    heirs: dict[tuple[str, ...], list[str]] = {}
    for one in now.arcs:
        parents = tuple(parent for parent in one.parents if parent in gone)
        if parents:
            heirs.setdefault(parents, []).append(one.id)
    for parents, children in heirs.items():
        kind = "split" if len(parents) == 1 else "merge"
        told.append(_done(kind, parents, children))
    known = {move.parents for move in before.moves}
    for move in now.moves:
        if move.parents not in known:
            coming = ", ".join(child.id for child in move.children)
            told.append(f"{move.kind} begun: {', '.join(move.parents)} → {coming}")
    return told


def news_in(report: Mapping[str, Any], before: Ring | None, now: Ring) -> list[str]:
    """The same with their times, from a heat report; at the first look what the catalog remembers
    of earlier."""
    now_s = report["now_s"]
    if before is not None:
        return [f"{time_text(now_s, now_s)}  {one}" for one in news_of(before, now)]
    return [
        f"{time_text(one['at_s'], now_s)}  {_done(one['kind'], one['parents'], one['children'])}"
        for one in report["past"]
    ]


def time_text(at_s: int, now_s: int) -> str:
    """UTC; with the day, if that is another one."""
    at, now = (datetime.fromtimestamp(one, UTC) for one in (at_s, now_s))
    return at.strftime("%H:%M:%S" if at.date() == now.date() else "%Y-%m-%d %H:%M")


def _done(kind: str, parents: Sequence[str], children: Sequence[str]) -> str:
    return f"{kind} done: {', '.join(parents)} → {', '.join(children)}"
