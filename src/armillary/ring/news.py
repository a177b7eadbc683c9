"""What happened to the ranges of a container between two looks at it."""

from __future__ import annotations

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
        told.append(f"{kind} done: {', '.join(parents)} → {', '.join(children)}")
    known = {move.parents for move in before.moves}
    for move in now.moves:
        if move.parents not in known:
            coming = ", ".join(child.id for child in move.children)
            told.append(f"{move.kind} begun: {', '.join(move.parents)} → {coming}")
    return told
