"""Splits and merges as they are told. Without it one could go by unseen."""

from __future__ import annotations

from dataclasses import replace

from tests.support.rings import arcs, ring

from armillary.ring.model import Move, Piece
from armillary.ring.news import news_in, news_of


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


def test_the_first_look_tells_what_was_before() -> None:
    """Who opens the page after a split sees it too."""
    now = ring(arcs(3))
    day_s = 86_400
    past = [
        {"kind": "merge", "parents": ["1", "2"], "children": ["3"], "at_s": 60},
        {"kind": "split", "parents": ["0"], "children": ["4", "5"], "at_s": day_s + 61},
    ]
    report = {"now_s": day_s + 120, "past": past}
    assert news_in(report, None, now) == [
        "1970-01-01 00:01  merge done: 1, 2 → 3",
        "00:01:01  split done: 0 → 4, 5",
    ]
    assert news_in(report, now, now) == []
