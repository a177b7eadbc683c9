"""`armillary partitions`: the physical partitions of a container in the terminal, once or live."""

from __future__ import annotations

import typer

from armillary.commands.errors import one_of, reporting_errors

INTERVAL_SECONDS_MIN = 0.2
DATA = ".armillary"


def add_commands(app: typer.Typer) -> None:
    app.command()(partitions)


def partitions(
    source: str = typer.Argument(
        None,
        help="A data folder, 'postgresql://…', or a server: address or connection.",
        show_default=DATA,
    ),
    data: str = typer.Option(None, "--data", help="The same, as other commands take it."),
    database: str = typer.Option(None, help="Not needed when there is only one."),
    container: str = typer.Option(None, help="Not needed when there is only one."),
    watch: bool = typer.Option(False, "--watch", "-w", help="Draw again until Ctrl-C."),
    every: float = typer.Option(1.0, min=INTERVAL_SECONDS_MIN, help="Seconds between two looks."),
    rows: int = typer.Option(40, min=1, help="Partitions shown; of more, the hottest."),
    json: bool = typer.Option(False, "--json", help="As JSON; with --watch an object per line."),
) -> None:
    """Show how a container is spread: ranges, storage, RU/s, 429s, heaviest keys, splits.

    Examples:
      armillary partitions --database shop --container orders
      armillary partitions --data http://localhost:8081 --watch
      armillary partitions "AccountEndpoint=http://localhost:8081/;AccountKey=…;" --json
    """
    from armillary.commands.partitions.watch import show_once, watch_on
    from armillary.commands.sources import heat_of

    with (
        reporting_errors(json, "Stopped."),
        heat_of(one_of(source, data) or DATA, database, container) as heat,
    ):
        if watch:
            watch_on(heat, every, rows, as_json=json)
        else:
            show_once(heat, rows, as_json=json)
