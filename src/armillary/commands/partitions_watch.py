"""The loop of `armillary partitions --watch`: look, compare with the last look, draw."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import orjson
import typer
from rich.console import Console
from rich.live import Live

from armillary.commands.partitions_view import draw
from armillary.ring.model import Ring, read

NEWS_KEPT: Final = 6


def show_once(heat: Callable[[], Mapping[str, Any]], rows: int, *, as_json: bool) -> None:
    report = heat()
    if as_json:
        typer.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())
    else:
        Console().print(draw(read(report), (), rows))


def watch_on(
    heat: Callable[[], Mapping[str, Any]], every: float, rows: int, *, as_json: bool
) -> None:
    """Until Ctrl-C."""
    with suppress(KeyboardInterrupt):
        if as_json:
            while True:
                typer.echo(orjson.dumps(heat()).decode())
                time.sleep(every)
        news: deque[str] = deque(maxlen=NEWS_KEPT)
        before: Ring | None = None
        with Live(console=Console(), auto_refresh=False, screen=False) as live:
            while True:
                report = heat()
                now = read(report)
                at = datetime.fromtimestamp(report["now_s"], UTC).strftime("%H:%M:%S")
                news.extend(f"{at}  {one}" for one in news_of(before, now))
                live.update(draw(now, tuple(news), rows), refresh=True)
                before = now
                time.sleep(every)


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
