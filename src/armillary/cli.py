"""The command line. Each command is a thin shell over the public functions.

Commands import what they need themselves, so that each is quick to start.
"""

import sys
from pathlib import Path
from typing import Any

import orjson
import typer
from typer.core import TyperCommand

from armillary.commands import cluster, operate, rekey, resources, scripts
from armillary.commands.advise import command as advise
from armillary.commands.check import command as check
from armillary.commands.demo import command as demo
from armillary.commands.errors import (
    EXIT_USAGE,
    CommandError,
    as_json_line,
    one_of,
    reporting_errors,
)
from armillary.commands.help_text import help_of
from armillary.commands.partitions import command as partitions
from armillary.commands.query import command as query
from armillary.commands.replay import command as replay
from armillary.commands.simulate import command as simulate
from armillary.version import VERSION

#: Everything that typer rejects by itself; only some of it has a public name there.
WRONG_CALL: type[typer.BadParameter] = typer.BadParameter.__mro__[2]  # ClickException
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
    """A partitioned, multi-model database that speaks the Azure Cosmos DB protocols.

    Examples:
      armillary demo
      armillary serve
      armillary --install-completion
    """


DATA = typer.Option(Path(".armillary"), "--data", help="The data folder of the server.")
CONFIG = typer.Argument(Path("armillary.toml"), help="Where to write it.")
EXPORT = typer.Option(None, help="Copy the certificate (without its key) to this file.")
JSON = typer.Option(False, "--json", help="Answer and errors as JSON.")
HOSTS = typer.Option((), "--allow-host", help="Another name the server answers to; repeatable.")


class Serve(TyperCommand):
    """Knows its options only when a shell asks for them."""

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        from armillary.server.command import parser

        # The kind of item that the shells' scripts understand has no public name either.
        kind = type(ctx.parent.command.shell_complete(ctx.parent, "")[0])
        names = [name for one in parser()._actions for name in one.option_strings]
        wanted = incomplete.startswith("-")
        return [kind(name) for name in names if wanted and name.startswith(incomplete)]


# Its options are in server/command.py, which also says why; `python -m armillary serve` goes there
# without coming by here.
@app.command(
    cls=Serve,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def serve(context: typer.Context) -> None:
    """Serve NoSQL, Table, MongoDB and Gremlin, each at its port, until SIGTERM or Ctrl-C."""
    from armillary.server.command import main as run

    raise typer.Exit(run(context.args))


@app.command()
def cert(
    data: Path = DATA,
    export: Path = EXPORT,
    pem: bool = typer.Option(False, "--pem", help="Print the certificate and nothing else."),
    allow_host: list[str] = HOSTS,
    json: bool = JSON,
) -> None:
    """Show the certificate of the server, export it, and say how to trust it.

    Examples:
      armillary cert
      armillary cert --export armillary.pem
      armillary cert --pem | openssl x509 -noout -text
    """
    from armillary.server import tls
    from armillary.server.trust import trust_text

    with reporting_errors(json):
        if not data.is_dir():
            raise CommandError(
                f"There is no data folder {data} here, so no server uses a certificate in it. Run "
                "this where 'armillary serve' was started, or say --data FOLDER.",
                EXIT_USAGE,
            )
        certificate = tls.ensure(data, tls.names_for(allow_host))
        text = certificate.cert_pem.read_text("utf-8")
        if export is not None:
            export.write_text(text, "utf-8")
        path = (export or certificate.cert_pem).resolve()
        if json:
            typer.echo(orjson.dumps({"path": str(path), "pem": text}))
        else:
            typer.echo(text.rstrip() if pem else trust_text(path))


@app.command()
def init(
    file: Path = CONFIG,
    force: bool = typer.Option(False, "--force", help="Write over a file that is there."),
    json: bool = JSON,
) -> None:
    """Write a commented armillary.toml: settings, databases and containers.

    Examples:
      armillary init && armillary serve
    """
    from armillary.declare.toml_text import starter_text

    with reporting_errors(json):
        if file.exists() and not force:
            raise CommandError(f"{file} is there already; --force writes over it.", EXIT_USAGE)
        file.write_text(starter_text(), "utf-8")
        said = f"Wrote {file}. 'armillary serve' reads it when started here."
        typer.echo(orjson.dumps({"file": str(file.resolve())}) if json else said)


@app.command()
def definitions(
    source: str = typer.Argument(
        None, help="The data folder, or 'postgresql://…'.", show_default=".armillary"
    ),
    data: str = typer.Option(None, "--data", help="The same, as other commands take it."),
    bicep: bool = typer.Option(False, "--bicep", help="As Bicep, for the cloud."),
    json: bool = JSON,
) -> None:
    """Print the databases and containers of an account as TOML for armillary.toml, or as Bicep.

    A server may be running on the folder.

    Examples:
      armillary definitions > armillary.toml
      armillary definitions --bicep > cosmos.bicep
    """
    from armillary.declare.bicep import bicep_text
    from armillary.declare.describing import describe_address
    from armillary.declare.toml_text import databases_text

    with reporting_errors(json):
        found = describe_address(one_of(source, data) or ".armillary")
        text = bicep_text(found) if bicep else databases_text(found)
        if json:
            typer.echo(orjson.dumps({"bicep" if bicep else "toml": text}))
        else:
            typer.echo(text, nl=False)


for group in (
    query,
    partitions,
    operate,
    cluster,
    rekey,
    demo,
    simulate,
    advise,
    replay,
    check,
    scripts,
    resources,
):
    group.add_commands(app)
for one in app.registered_commands:
    assert one.callback is not None
    one.help = help_of(one.callback)


def main() -> None:
    """What typer itself finds wrong (an unknown option, a number that is none) is printed as JSON
    too when that was asked for. Exit code 2, as always for a wrong call."""
    if "--json" not in sys.argv[1:]:
        app()
        return
    try:
        code = app(standalone_mode=False)
    except WRONG_CALL as error:
        print(as_json_line(error.format_message(), EXIT_USAGE), file=sys.stderr)
        code = EXIT_USAGE
    sys.exit(code)
