"""The loop of `armillary partitions --watch`: look, compare with the last look, draw."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import orjson
import typer
from rich.console import Console
from rich.live import Live

from armillary.commands.partitions.view import draw
from armillary.ring.model import read
from armillary.ring.news import News

NEWS_KEPT: Final = 6


def show_once(heat: Callable[[], Mapping[str, Any]], rows: int, *, as_json: bool) -> None:
    report = heat()
    if as_json:
        typer.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())
    else:
        ring, console = read(report), Console()
        news = News().take(report)[-NEWS_KEPT:]
        console.print(draw(ring, news, rows, console.width))


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
        teller = News()
        console = Console()
        with Live(console=console, auto_refresh=False, screen=False) as live:
            while True:
                report = heat()
                now = read(report)
                news.extend(teller.take(report))
                live.update(draw(now, tuple(news), rows, console.width), refresh=True)
                time.sleep(every)
