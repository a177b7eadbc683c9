"""`armillary advise --graph`: which vertex property should be the partition key of a graph."""

from __future__ import annotations

from pathlib import Path

import orjson
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from armillary.advisor.graphs.advice import GraphAdvice, advise
from armillary.advisor.graphs.elements import GraphData, of_documents, of_files
from armillary.commands.advise.live import is_live, live_items
from armillary.commands.advise.report import VERDICT_COLOURS
from armillary.commands.errors import EXIT_USAGE, CommandError


def advise_graph(
    data: list[str], database: str | None, container: str | None, *, as_json: bool
) -> None:
    if not data:
        raise CommandError(
            "Say which graph: files, a data folder, a connection string.", EXIT_USAGE
        )
    found, current = _read(data, database, container)
    advice = advise(found, current=current)
    if as_json:
        typer.echo(orjson.dumps(advice.as_json(), option=orjson.OPT_INDENT_2).decode())
    else:
        show(Console(), advice)


def _read(
    data: list[str], database: str | None, container: str | None
) -> tuple[GraphData, str | None]:
    """The graph, and the key that it has if it is a container."""
    if len(data) == 1 and is_live(data[0]):
        with live_items(data[0], database, container) as (items, key):
            name = "" if key is None else key.paths[0][0]
            return of_documents(items, name), name
    missing = [one for one in data if not Path(one).is_file()]
    if missing:
        raise CommandError(f"There is no file {missing[0]}.", EXIT_USAGE)
    return of_files(map(Path, data)), None


def show(console: Console, advice: GraphAdvice) -> None:
    console.print(
        f"{advice.vertices:,} vertices, {advice.edges:,} edges. Judged at {advice.partitions} "
        "physical partitions."
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("key", overflow="fold", min_width=12)
    table.add_column("verdict", min_width=11)
    for name in ("values", "largest", "φ", "cross", "hop"):
        table.add_column(name, justify="right", min_width=max(5, len(name)))
    for one in advice.keys:
        colour = VERDICT_COLOURS[one.verdict]
        table.add_row(
            escape(f"/{one.key}"),
            f"[{colour}]{one.verdict}[/]",
            f"{one.values:,}",
            f"{one.largest:.1%}",
            f"{one.skew:.2f}",
            f"{one.crossing:.0%}",
            f"{one.hop:.1f}",
        )
    console.print(table)
    for one in advice.keys:
        console.print(Text.assemble((f"/{one.key}", "bold"), f": {'; '.join(one.reasons)}."))
    for name, why in advice.unfit.items():
        console.print(Text(f"/{name} can't be a key: {why}."))
    for note in advice.notes:
        console.print(Text(f"  · {note}"))
