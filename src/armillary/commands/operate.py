"""The commands of an operator: backup, restore, compact, doctor, export, import.

Each works on a data folder (or PostgreSQL) without a server; all but `compact` also while one is
running. Export and import also go through a server, ours or a Cosmos DB account. What they do is in
`operate/`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from armillary.commands.complaints import EXIT_FAILED, EXIT_PARTIAL, Complaint, complaining

if TYPE_CHECKING:
    from armillary.operate.ports import Items

DATA = typer.Option(".armillary", "--data", help="The data folder, or 'postgresql://…'.")
ANYWHERE = typer.Option(
    ".armillary",
    "--data",
    help="The data folder, 'postgresql://…', an address, or a connection string.",
)
FOLDER = typer.Option(Path(".armillary"), "--data", help="The data folder.")
JSON = typer.Option(False, "--json", help="Answer and errors as JSON.")
DATABASE = typer.Option(None, help="Not needed when there is only one.")
BACKUP_TARGET = typer.Argument(help="A new folder for the copy.")
BACKUP_SOURCE = typer.Argument(help="The folder of a backup; it stays as it is.")
EXPORT_TARGET = typer.Argument(help="The file to write: JSON Lines, .csv, .gz of both, .parquet.")
IMPORT_SOURCE = typer.Argument(help="JSON Lines, a JSON array, CSV; .gz of each; .parquet.")
CONTAINER = typer.Option(None, help="Not needed when there is only one.")
GRAPH = typer.Option(
    False, "--graph", help="A graph: CSV with ~id, ~label, ~from, ~to; or GraphSON lines."
)
VERTICES = typer.Option(None, help="With --graph: the CSV file of the vertices that edges join.")


def add_commands(app: typer.Typer) -> None:
    for command in (backup, restore, restored, compact, doctor, export):
        app.command()(command)
    app.command("import")(import_)


def backup(
    target: Path = BACKUP_TARGET,
    data: str = DATA,
    json: bool = JSON,
) -> None:
    """Copy an account into a new folder while reads and writes go on.

    Examples:
      armillary backup backups/monday
    """
    from armillary.operate.copies import backup as run

    with complaining(json):
        size = run(data, target)
        _say(json, f"{target} has a copy of {data}: {_size(size)}.", bytes=size, target=str(target))


def restore(
    source: Path = BACKUP_SOURCE,
    data: Path = FOLDER,
    json: bool = JSON,
) -> None:
    """Make a new data folder from a backup.

    Examples:
      armillary restore backups/monday --data restored
    """
    from armillary.operate.copies import restore as run

    with complaining(json):
        size = run(source, data)
        _say(json, f"{data} is the account of {source}: {_size(size)}.", bytes=size, data=str(data))


def restored(data: str = DATA, json: bool = JSON) -> None:
    """Say that a database was restored to an earlier moment by tools of its own.

    Clients may know of writes that are not there any more. Session tokens, change feed positions
    and ids of resources go on above all that was given out. Servers may be running. Not needed
    after `armillary restore`, a failover of PostgreSQL, or a restore to another server or another
    moment by PostgreSQL's own recovery: those are noticed. Needed after pg_restore into the same
    server.

    Examples:
      armillary restored --data postgresql://db/armillary
    """
    from armillary.operate.copies import mark_restored

    with complaining(json):
        count = mark_restored(data)
        text = f"{data}: {count} physical partitions go on above all that was given out."
        _say(json, text, partitions=count)


def compact(data: Path = FOLDER, json: bool = JSON) -> None:
    """Give the space of deleted items back to the disk. No server may be running on the folder.

    Examples:
      armillary compact --data .armillary
    """
    from armillary.operate.copies import compact_folder

    with complaining(json):
        before, after = compact_folder(data)
        text = f"{data}: {_size(before)} before, {_size(after)} now."
        _say(json, text, bytes_before=before, bytes_after=after)


def doctor(data: str = DATA, json: bool = JSON) -> None:
    """Check everything: folder, catalog, and every row of every container against its items.

    It changes nothing. Exit code 1 if something is wrong.

    Examples:
      armillary doctor
      armillary doctor --data backups/monday --json
    """
    from armillary.operate.doctor import examine

    with complaining(json):
        findings = []
        for one in examine(data):
            findings.append({"what": one.what, "well": one.well, "text": one.text})
            if not json:
                typer.echo(f"{'ok ' if one.well else 'BAD'}  {one.what}: {one.text}")
        wrong = sum(not one["well"] for one in findings)
        if json:
            typer.echo(orjson.dumps({"well": not wrong, "findings": findings}).decode())
        else:
            typer.echo("All is well." if not wrong else f"{wrong} findings are bad.")
        if wrong:
            raise typer.Exit(EXIT_FAILED)


def export(
    target: Path = EXPORT_TARGET,
    data: str = ANYWHERE,
    database: str = DATABASE,
    container: str = CONTAINER,
    system: bool = typer.Option(False, "--system", help="With _rid, _ts, _etag and the like."),
    json: bool = JSON,
) -> None:
    """Write the items of a container to a file. Stopped, the same command goes on where it was.

    Examples:
      armillary export orders.jsonl --database shop --container orders
      armillary export orders.parquet --data "AccountEndpoint=https://…;AccountKey=…;"
    """
    from armillary.operate.exporting import export_items

    with _items(data, database, container, json) as source, _bar(json, source) as shown:
        done = export_items(source, target, system=system, progress=shown)
        text = f"{target}: {done.items:,} items, {_size(done.bytes)}."
        _say(json, text, items=done.items, bytes=done.bytes, resumed=done.resumed)


def import_(
    source: Path = IMPORT_SOURCE,
    data: str = ANYWHERE,
    database: str = DATABASE,
    container: str = CONTAINER,
    graph: bool = GRAPH,
    vertices: Path = VERTICES,
    json: bool = JSON,
) -> None:
    """Put the items of a file into a container. Stopped, the same command goes on where it was.

    Items with the id and key of one that is there take its place. Exit code 3 if some were refused.

    Examples:
      armillary import orders.csv --database shop --container orders
      armillary import orders.jsonl --data http://localhost:8081
      armillary import people.csv --graph
      armillary import knows.csv --graph --vertices people.csv
    """
    from armillary.declare.item_files import read_entries
    from armillary.operate.importing import import_items

    with _items(data, database, container, json) as target, _bar(json) as shown:
        entries = read_entries
        if graph:
            from armillary.api.gremlin.graph.files import GraphFile
            from armillary.api.gremlin.login import key_name

            entries = GraphFile(key_name(target.partition_key), vertices).documents
        done = import_items(target, source, progress=shown, entries=entries)
        refusals = [{"item": one.number, "why": one.why} for one in done.refusals]
        text = f"{source}: {done.items:,} items are in."
        _say(json, text, items=done.items, refused=done.refused, refusals=refusals)
        if done.refused:
            shown_lines = [f"  item {one.number}: {one.why}" for one in done.refusals]
            more = done.refused - len(shown_lines)
            tail = [f"  and {more:,} more"] * (more > 0)
            lines = [f"{done.refused:,} were refused:", *shown_lines, *tail]
            raise Complaint("\n".join(lines), EXIT_PARTIAL)


# --- parts ----------------------------------------------------------------------------------------


@contextmanager
def _items(data: str, database: str | None, container: str | None, json: bool) -> Iterator["Items"]:
    from armillary.commands.query.asking import find_container, open_data
    from armillary.commands.remote import Remote, is_remote
    from armillary.commands.remote_items import RemoteItems
    from armillary.commands.sources import pick
    from armillary.operate.entities import Entities
    from armillary.operate.ports import LocalItems
    from armillary.store.catalog.tables import TABLES_DB, is_table

    with complaining(json, "Stopped. The same command goes on where it was."):
        if is_remote(data):
            with Remote(data) as remote:
                names = pick(remote, database, container)
            with RemoteItems(data, *names) as there:
                yield Entities(there) if names[0] == TABLES_DB else there
            return
        with open_data(data) as account:
            found = find_container(account, database, container)
            here = LocalItems(found)
            yield Entities(here) if is_table(found.properties()) else here


@contextmanager
def _bar(json: bool, source: "Items | None" = None) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, on standard error; it appears only there."""
    console = Console(stderr=True)
    if json or not console.is_terminal:
        yield lambda items: None
        return
    total = None if source is None else source.count()
    columns = (TextColumn("items"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=total)
        yield lambda items: bar.update(task, completed=items)


def _say(as_json: bool, text: str, **facts: Any) -> None:
    typer.echo(orjson.dumps(facts).decode() if as_json else text)


def _size(count: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:,.0f} bytes" if unit == "bytes" else f"{count:,.1f} {unit}"
