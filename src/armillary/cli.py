"""The command line. Each command is a thin shell over the public functions.

Commands import what they need themselves: `serve` has to be up in less than a second.
"""

import os
import sys
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
KEY_FILE = typer.Option(None, help="A file with the keys, one per line, in base64.")
EXPORT = typer.Option(None, help="Copy the certificate (without its key) to this file.")
HOSTS = typer.Option((), "--allow-host", help="Another name the server answers to; repeatable.")


@app.command()
def serve(
    data: Path = DATA,
    engine: str = typer.Option(
        None, help="A folder, ':memory:' or 'postgresql://…'. Without it, the data folder."
    ),
    host: str = typer.Option("127.0.0.1", help="The address to listen on."),
    port: int = typer.Option(8081, min=0, max=65_535, help="0 picks a free one."),
    workers: str = typer.Option("1", help="How many processes; 'auto' is one per core."),
    key_file: Path = KEY_FILE,
    allow_host: list[str] = HOSTS,
) -> None:
    """Serve the NoSQL API over HTTP and HTTPS on one port, until SIGTERM or Ctrl-C."""
    from armillary.errors import BadInput
    from armillary.server.plan import make_plan
    from armillary.server.run import EXIT_USAGE, run

    try:
        plan = make_plan(
            environ=os.environ,
            data=data,
            engine=engine,
            host=host,
            port=port,
            workers=workers,
            key_file=key_file,
            allow_hosts=tuple(allow_host),
        )
    except BadInput as error:
        _complain(str(error))
        raise typer.Exit(EXIT_USAGE) from error
    raise typer.Exit(run(plan, _say, _complain))


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
    _say(text.rstrip() if pem else trust_text((export or certificate.cert_pem).resolve()))


def _say(line: str) -> None:
    """At once, also into a pipe: somebody waits for `ready`."""
    print(line, flush=True)


def _complain(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    app()
