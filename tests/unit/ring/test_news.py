"""Splits and merges as they are told. Without it one could go by unseen."""

from __future__ import annotations

from dataclasses import replace

from tests.support.rings import arcs, ring

from armillary.ring.model import Move, Piece
from armillary.ring.news import news_of


def test_news_tells_what_began_and_what_became_of_it() -> None:
    before = ring(arcs(3))
    move = Move("split", ("1",), (Piece("3", 0.3, 0.4), Piece("4", 0.4, 0.6)))
    during = replace(before, moves=(move,))
    first, old, last = before.arcs
    children = (replace(old, id="3", parents=("1",)), replace(old, id="4", parents=("1",)))
    after = replace(before, arcs=(first, *children, last))
    assert news_of(None, before) == []
    assert news_of(before, during) == ["split begun: 1 → 3, 4"]
    assert news_of(during, after) == ["split done: 1 → 3, 4"]
    assert news_of(after, after) == []
