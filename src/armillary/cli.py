"""The command line. Each command is a thin shell over the public functions.

Commands import what they need themselves, so that each is quick to start.
"""

from pathlib import Path

import typer

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
    from rich.console import Console

    from armillary.demo import run_demo

    run_demo(Console(), items)


DATA = typer.Option(Path(".armillary"), "--data", help="The data folder; made if it is new.")
EXPORT = typer.Option(None, help="Copy the certificate (without its key) to this file.")
HOSTS = typer.Option((), "--allow-host", help="Another name the server answers to; repeatable.")


# Its options are in server/command.py, which also says why; `python -m armillary serve` goes there
# without coming by here.
@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def serve(context: typer.Context) -> None:
    """Serve the NoSQL API over HTTP and HTTPS on one port, until SIGTERM or Ctrl-C."""
    from armillary.server.command import main as run

    raise typer.Exit(run(context.args))


@app.command()
def cert(
    data: Path = DATA,
    export: Path = EXPORT,
    pem: bool = typer.Option(False, "--pem", help="Print the certificate and nothing else."),
    allow_host: list[str] = HOSTS,
) -> None:
    """Show the certificate of the server, export it, and say how to trust it."""
    from armillary.server import tls
    from armillary.server.trust import trust_text

    certificate = tls.ensure(data, tls.names_for(allow_host))
    text = certificate.cert_pem.read_text("utf-8")
    if export is not None:
        export.write_text(text, "utf-8")
    typer.echo(text.rstrip() if pem else trust_text((export or certificate.cert_pem).resolve()))


def main() -> None:
    app()
