"""The command line. Each command is a thin shell over the public functions."""

import typer
from rich.console import Console

from armillary.version import VERSION

app = typer.Typer(no_args_is_help=True, add_completion=False)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"armillary {VERSION}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and end."
    ),
) -> None:
    """A partitioned, multi-model database that speaks the Azure Cosmos DB protocols."""


@app.command()
def demo(
    items: int = typer.Option(4_000, min=100, max=200_000, help="How many readings to write."),
) -> None:
    """Fill containers under three partition keys and draw how the data spreads."""
    from armillary.demo import run_demo

    run_demo(Console(), items)


def main() -> None:
    app()
