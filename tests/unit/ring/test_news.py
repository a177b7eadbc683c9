"""Splits and merges as they are reported. Without it one could go by unseen, or be wrong."""

from __future__ import annotations

from typing import Any

from armillary.ring.news import News

DAY_S = 86_400


def move(parents: list[str], children: list[str]) -> dict[str, Any]:
    return {
        "kind": "split" if len(parents) == 1 else "merge",
        "parents": parents,
        "children": [{"id": one, "from": 0.0, "to": 1.0} for one in children],
    }


def past(at_s: int, parents: list[str], children: list[str]) -> dict[str, Any]:
    return move(parents, children) | {"children": children, "at_s": at_s}


def report(now_s: int, done: Any = (), moves: Any = ()) -> dict[str, Any]:
    return {"now_s": now_s, "past": list(done), "moves": list(moves)}


def test_news_tells_what_began_and_what_became_of_it_once() -> None:
    news = News()
    assert news.take(report(DAY_S)) == []
    during = report(DAY_S + 1, moves=[move(["1"], ["3", "4"])])
    assert news.take(during) == ["00:00:01  split begun: 1 → 3, 4"]
    assert news.take(during) == []
    after = report(DAY_S + 5, [past(DAY_S + 4, ["1"], ["3", "4"])])
    assert news.take(after) == ["00:00:04  split done: 1 → 3, 4"]
    assert news.take(after) == []


def test_two_moves_between_two_looks_are_two() -> None:
    """From the ranges alone it would look as if one had become three."""
    news = News()
    news.take(report(DAY_S))
    done = [past(DAY_S + 1, ["0"], ["1", "2"]), past(DAY_S + 2, ["1"], ["3", "4"])]
    assert news.take(report(DAY_S + 3, done)) == [
        "00:00:01  split done: 0 → 1, 2",
        "00:00:02  split done: 1 → 3, 4",
    ]


def test_the_first_look_tells_what_was_before() -> None:
    """Who opens the page later sees it too. When what is under way began, nobody knows."""
    done = [past(60, ["1", "2"], ["3"]), past(DAY_S + 61, ["0"], ["4", "5"])]
    under_way = [move(["4"], ["6", "7"])]
    assert News().take(report(DAY_S + 120, done, under_way)) == [
        "1970-01-01 00:01  merge done: 1, 2 → 3",
        "00:01:01  split done: 0 → 4, 5",
    ]
