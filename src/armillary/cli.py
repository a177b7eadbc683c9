"""The command line. Each command is a thin shell over the public functions.

Commands import what they need themselves, so that each is quick to start.
"""

from pathlib import Path

import typer

from armillary.commands import (
    advise,
    check,
    demo,
    operate,
    partitions,
    query,
    rekey,
    replay,
    simulate,
)
from armillary.version import VERSION

app = typer.Typer(no_args_is_help=True, add_completion=True)


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


DATA = typer.Option(Path(".armillary"), "--data", help="The data folder; made if it is new.")
CONFIG = typer.Argument(Path("armillary.toml"), help="Where to write it.")
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


@app.command()
def init(
    file: Path = CONFIG,
    force: bool = typer.Option(False, "--force", help="Write over a file that is there."),
) -> None:
    """Write a commented armillary.toml: settings, databases and containers.

    Example: armillary init && armillary serve
    """
    from armillary.declare.toml_text import starter_text

    if file.exists() and not force:
        typer.echo(f"{file} is there already; --force writes over it.", err=True)
        raise typer.Exit(2)
    file.write_text(starter_text(), "utf-8")
    typer.echo(f"Wrote {file}. 'armillary serve' reads it when started here.")


@app.command()
def definitions(
    data: str = typer.Argument(".armillary", help="The data folder, or 'postgresql://…'."),
    bicep: bool = typer.Option(False, "--bicep", help="As Bicep, for the cloud."),
) -> None:
    """Print the databases and containers of an account as TOML for armillary.toml, or as Bicep.

    A server may be running on the folder. Example: armillary definitions --bicep > cosmos.bicep
    """
    from armillary.declare.bicep import bicep_text
    from armillary.declare.describing import describe_address
    from armillary.declare.toml_text import databases_text
    from armillary.errors import DbError

    try:
        found = describe_address(data)
    except DbError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
    typer.echo(bicep_text(found) if bicep else databases_text(found), nl=False)


for group in (query, partitions, operate, rekey, demo, simulate, advise, replay, check):
    group.add_commands(app)


def main() -> None:
    app()
