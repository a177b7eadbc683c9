"""`armillary scripts put|run|list|delete`: stored procedures, triggers and functions, of a data
folder or behind a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote

import orjson
import typer

from armillary.commands.errors import EXIT_USAGE, CommandError, reporting_errors
from armillary.commands.help_text import help_of
from armillary.container import Container
from armillary.scripts.scripts import Kind, ScriptResult, check_script

LOG: Final = "x-ms-documentdb-script-log-results"
KINDS: Final[dict[Kind, str]] = {"procedure": "sprocs", "trigger": "triggers", "function": "udfs"}
FEEDS: Final = {
    "sprocs": "StoredProcedures",
    "triggers": "Triggers",
    "udfs": "UserDefinedFunctions",
}
DATA = typer.Option(".armillary", "--data", help="A folder, 'postgresql://…', or a server.")
DATABASE = typer.Option(None, help="Not needed when there is only one.")
CONTAINER = typer.Option(None, help="Not needed when there is only one.")
JSON = typer.Option(False, "--json", help="Answer and errors as JSON.")
KIND = typer.Option("procedure", "--kind", "-k", help="procedure, trigger or function.")


class Shelf(Protocol):
    """The scripts of one container, wherever it is."""

    def put(self, kind: Kind, body: dict[str, Any]) -> None: ...

    def list(self, kind: Kind) -> list[dict[str, Any]]: ...

    def delete(self, kind: Kind, id: str) -> None: ...

    def run(
        self, id: str, partition_key: Any, *arguments: Any, logging: bool = False
    ) -> ScriptResult: ...


def add_commands(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, help="Stored procedures, triggers and functions.")
    for command in (put, run, list_scripts, delete):
        name = command.__name__.removesuffix("_scripts")
        group.command(name, help=help_of(command))(command)
    app.add_typer(group, name="scripts")


def put(
    files: list[Path] = typer.Argument(help="JavaScript; each is named by its file."),  # noqa: B008
    kind: str = KIND,
    id: str = typer.Option(None, help="Another name than that of the file."),
    type: str = typer.Option("Pre", help="Of a trigger: Pre or Post."),
    operation: str = typer.Option("All", help="Of a trigger: All, Create, Replace, …"),
    data: str = DATA,
    database: str = DATABASE,
    container: str = CONTAINER,
    json: bool = JSON,
) -> None:
    """Create scripts, or replace those of the same name.

    Examples:
      armillary scripts put transfer.js
      armillary scripts put tax.js --kind function --data http://localhost:8081
      armillary scripts put check.js --kind trigger --type Pre --operation Create
    """
    with reporting_errors(json):
        if id is not None and len(files) > 1:
            raise CommandError("--id is for one file.", EXIT_USAGE)
        bodies = []
        for file in files:
            body: dict[str, Any] = {"id": id or file.stem, "body": file.read_text("utf-8")}
            if kind == "trigger":
                body |= {"triggerType": type, "triggerOperation": operation}
            check_script(_kind(kind), body)
            bodies.append(body)
        with shelf_of(data, database, container) as shelf:
            for body in bodies:
                shelf.put(_kind(kind), body)
                if not json:
                    typer.echo(f"{kind} {body['id']}: {len(body['body']):,} characters")
        if json:
            typer.echo(orjson.dumps([body["id"] for body in bodies]).decode())


def run(
    id: str = typer.Argument(help="A stored procedure."),
    key: str = typer.Argument(help="The partition key: JSON, or plain text."),
    arguments: list[str] = typer.Argument(None, help="Each JSON, or plain text."),  # noqa: B008
    log: bool = typer.Option(False, "--log", help="Show what it logs."),
    data: str = DATA,
    database: str = DATABASE,
    container: str = CONTAINER,
    json: bool = JSON,
) -> None:
    """Run a stored procedure in one logical partition.

    Examples:
      armillary scripts run transfer ada '"a1"' '"a2"' 12.5
      armillary scripts run count '["tenant", "user"]' --log --data http://localhost:8081
    """
    with reporting_errors(json):
        given = [_value(one) for one in arguments or ()]
        with shelf_of(data, database, container) as shelf:
            result = shelf.run(id, _value(key), *given, logging=log)
        if json:
            facts = {
                "value": result.value,
                "log": result.log,
                "charge_ru": round(result.charge_ru, 2),
            }
            typer.echo(orjson.dumps(facts).decode())
            return
        typer.echo(orjson.dumps(result.value, option=orjson.OPT_INDENT_2).decode())
        if result.log:
            typer.echo(result.log, err=True)
        typer.echo(f"{result.charge_ru:.2f} RU", err=True)


def list_scripts(
    data: str = DATA, database: str = DATABASE, container: str = CONTAINER, json: bool = JSON
) -> None:
    """List the scripts of a container.

    Examples:
      armillary scripts list
      armillary scripts list --data http://localhost:8081 --json
    """
    with reporting_errors(json), shelf_of(data, database, container) as shelf:
        found = {kind: shelf.list(kind) for kind in KINDS}
        if json:
            typer.echo(orjson.dumps(found).decode())
            return
        for kind, bodies in found.items():
            for body in bodies:
                when = ""
                if kind == "trigger":
                    when = f"  {body['triggerType']} {body['triggerOperation']}"
                typer.echo(f"{kind:<10}{body['id']}{when}")


def delete(
    id: str = typer.Argument(help="The script."),
    kind: str = KIND,
    data: str = DATA,
    database: str = DATABASE,
    container: str = CONTAINER,
    json: bool = JSON,
) -> None:
    """Delete a script.

    Examples:
      armillary scripts delete transfer
      armillary scripts delete tax --kind function
    """
    with reporting_errors(json), shelf_of(data, database, container) as shelf:
        shelf.delete(_kind(kind), id)
        if json:
            typer.echo(orjson.dumps({"deleted": id}).decode())


# --- where they are -------------------------------------------------------------------------------


@contextmanager
def shelf_of(data: str, database: str | None, container: str | None) -> Iterator[Shelf]:
    from armillary.commands.query.asking import find_container, open_data
    from armillary.commands.remote import Remote, is_remote, path_of
    from armillary.commands.sources import pick

    if is_remote(data):
        with Remote(data) as remote:
            found, name = pick(remote, database, container)
            yield RemoteShelf(remote, path_of("dbs", found, "colls", name))
        return
    with open_data(data) as account:
        home: Container = find_container(account, database, container)
        yield home.scripts


class RemoteShelf:
    def __init__(self, remote: Any, path: str) -> None:
        self._remote = remote
        self._path = path

    def put(self, kind: Kind, body: dict[str, Any]) -> None:
        feed = f"{self._path}/{KINDS[kind]}"
        if any(one["id"] == body["id"] for one in self.list(kind)):
            self._remote.rest("PUT", f"{feed}/{_quoted(body['id'])}", body)
        else:
            self._remote.rest("POST", feed, body)

    def list(self, kind: Kind) -> list[dict[str, Any]]:
        word = KINDS[kind]
        found: list[dict[str, Any]] = self._remote.rest("GET", f"{self._path}/{word}").body[
            FEEDS[word]
        ]
        return found

    def delete(self, kind: Kind, id: str) -> None:
        self._remote.rest("DELETE", f"{self._path}/{KINDS[kind]}/{_quoted(id)}")

    def run(
        self, id: str, partition_key: Any, *arguments: Any, logging: bool = False
    ) -> ScriptResult:
        key = partition_key if isinstance(partition_key, list) else [partition_key]
        headers = {
            "x-ms-documentdb-partitionkey": orjson.dumps(key).decode(),
            "x-ms-documentdb-script-enable-logging": str(logging).lower(),
        }
        path = f"{self._path}/sprocs/{_quoted(id)}"
        reply = self._remote.rest("POST", path, list(arguments), headers)
        charge = float(reply.headers.get("x-ms-request-charge", 0))
        return ScriptResult(reply.body, unquote(reply.headers.get(LOG, "")), charge)


def _quoted(id: str) -> str:
    from armillary.commands.remote import path_of

    return path_of(id)


def _kind(text: str) -> Kind:
    for kind in KINDS:
        if kind == text:
            return kind
    raise CommandError(f"--kind is one of {', '.join(KINDS)}, not {text!r}.", EXIT_USAGE)


def _value(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
