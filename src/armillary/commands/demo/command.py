"""`armillary demo`: its options. What it does is in `demo_live.py` (a server and its pages) and
`demonstration.py` (the terminal alone)."""

import orjson
import typer

from armillary.commands.errors import reporting_errors


def add_commands(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    server: str | None = typer.Argument(
        None, help="A running server: address or connection string. Default: starts its own server."
    ),
    items: int = typer.Option(
        None, min=100, max=200_000, help="Readings to write first (4,000; live 600)."
    ),
    seconds: float = typer.Option(
        300.0, min=0, help="How long to write on, to watch it; 0 ends after the first readings."
    ),
    terminal: bool = typer.Option(False, "--terminal", help="Draw in the terminal: no server."),
    browser: bool = typer.Option(True, "--browser/--no-browser", help="Open the page."),
    json: bool = typer.Option(False, "--json", help="Results as JSON, nothing else."),
) -> None:
    """Watch one data set under a bad and a good partition key, side by side.

    Starts a server whose partitions are small, fills two containers, goes on writing, and opens the
    page that shows their partitions. Ends with Ctrl-C. Without the portal extra it draws in the
    terminal.

    Examples:
      armillary demo
      armillary demo http://localhost:8081 --seconds 60 --no-browser
      armillary demo --terminal
    """
    from importlib.util import find_spec

    from rich.console import Console

    with reporting_errors(json):
        if terminal or (server is None and find_spec("nicegui") is None):
            from armillary.commands.demo.terminal import READINGS, run_demo

            facts = run_demo(Console(quiet=json), items or READINGS)
            if json:
                typer.echo(orjson.dumps(facts))
            return
        from armillary.commands.demo.live import READINGS_LIVE, run_live

        run_live(server, items or READINGS_LIVE, seconds, browser=browser, as_json=json)
