"""The command line. Each command is a thin shell over the public functions."""

import typer

from armillary import __version__

app = typer.Typer(no_args_is_help=True, add_completion=False)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"armillary {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True),
) -> None:
    """A partitioned, multi-model database that speaks the Azure Cosmos DB protocols."""


def main() -> None:
    app()
