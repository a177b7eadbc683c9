"""The commands of an operator: backup, restore, compact, doctor, export, import.

Each works on a data folder (or PostgreSQL) without a server; all but `compact` also while one is
running. Export and import also go through a server, ours or a Cosmos DB account. What they do is in
`operate/`.
"""

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from armillary.commands.errors import (
    EXIT_FAILED,
    EXIT_PARTIAL,
    EXIT_USAGE,
    CommandError,
    reporting_errors,
)
from armillary.ring.words import plural
from armillary.units import bytes_text

if TYPE_CHECKING:
    from armillary.account import Writer
    from armillary.container import Container
    from armillary.errors import BadInput
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
EXPORT_TARGET = typer.Argument(
    help="The file to write: JSON Lines, .csv, .gz of both, .parquet; .bson of a collection."
)
IMPORT_SOURCE = typer.Argument(help="JSON Lines, a JSON array, CSV, .bson; .gz of each; .parquet.")
CONTAINER = typer.Option(None, help="Not needed when there is only one.")
GRAPH = typer.Option(
    False, "--graph", help="A graph: CSV with ~id, ~label, ~from, ~to; or GraphSON lines."
)
EXPORTED_GRAPH = typer.Option(
    False, "--graph", help="A graph: as GraphSON lines, or with .csv as vertices and edges."
)
VERTICES = typer.Option(None, help="With --graph: the CSV file of the vertices that edges join.")

#: A file of this size is worth a second process: one prepares, the other writes.
WRITER_PROCESS_BYTES = 8_000_000

BAR_COLUMNS = (
    TextColumn("items"),
    BarColumn(),
    MofNCompleteColumn(),
    TextColumn("{task.fields[rate]}"),
    TimeElapsedColumn(),
    TextColumn("left"),
    TimeRemainingColumn(),
)


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

    with reporting_errors(json):
        count = run(data, target)
        _say(
            json,
            f"{target} has a copy of {data}: {bytes_text(count)}.",
            bytes=count,
            target=str(target),
        )


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

    with reporting_errors(json):
        count = run(source, data)
        _say(
            json,
            f"{data} is the account of {source}: {bytes_text(count)}.",
            bytes=count,
            data=str(data),
        )


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

    with reporting_errors(json):
        count = mark_restored(data)
        text = f"{data}: {count} physical partitions go on above all that was given out."
        _say(json, text, partitions=count)


def compact(data: Path = FOLDER, json: bool = JSON) -> None:
    """Give the space of deleted items back to the disk. No server may be running on the folder.

    Examples:
      armillary compact --data .armillary
    """
    from armillary.operate.copies import compact_folder

    with reporting_errors(json):
        before, after = compact_folder(data)
        text = f"{data}: {bytes_text(before)} before, {bytes_text(after)} now."
        _say(json, text, bytes_before=before, bytes_after=after)


def doctor(data: str = DATA, json: bool = JSON) -> None:
    """Check everything: folder, catalog, and every row of every container against its items.

    It changes nothing. Exit code 1 if something is wrong.

    Examples:
      armillary doctor
      armillary doctor --data backups/monday --json
    """
    from armillary.operate.doctor import examine

    with reporting_errors(json):
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
    graph: bool = EXPORTED_GRAPH,
    json: bool = JSON,
) -> None:
    """Write the items of a container to a file. Stopped, the same command goes on where it was.

    Examples:
      armillary export orders.jsonl --database shop --container orders
      armillary export orders.parquet --data "AccountEndpoint=https://…;AccountKey=…;"
      armillary export people.json --graph
      armillary export people.bson --database shop --container people
    """
    from armillary.encoding.documents import SYSTEM_PROPERTIES
    from armillary.operate.exporting import export_items

    with _items(data, database, container, json) as source:
        finish = None
        if graph:
            from armillary.api.gremlin.graph.file_writing import GraphFileWriter
            from armillary.store.catalog.graphs import graph_key

            finish = GraphFileWriter(graph_key(source.partition_key)).finish
        hidden = getattr(source, "hidden", SYSTEM_PROPERTIES)
        if is_bson(target) and hidden is SYSTEM_PROPERTIES:
            raise CommandError(
                "Only the documents of a MongoDB collection are written as BSON.", EXIT_USAGE
            )
        with _bar(json, source) as shown:
            done = export_items(
                source, target, system=system, hidden=hidden, progress=shown, finish=finish
            )
        text = f"{target}: {done.items:,} items, {bytes_text(done.bytes)}."
        _say(json, text, items=done.items, bytes=done.bytes, resumed=done.resumed)


def import_(
    source: Path = IMPORT_SOURCE,
    data: str = ANYWHERE,
    database: str = DATABASE,
    container: str = CONTAINER,
    graph: bool = GRAPH,
    vertices: Path = VERTICES,
    types: str = typer.Option("", help="Of columns of a CSV file: zip=text,price=number."),
    json: bool = JSON,
) -> None:
    """Put the items of a file into a container. Stopped, the same command goes on where it was.

    Items with the id and key of one that is there take its place. Exit code 3 if some were refused.

    Examples:
      armillary import orders.csv --database shop --container orders
      armillary import orders.jsonl --data http://localhost:8081
      armillary import places.csv --types zip=text
      armillary import dump/shop/people.bson --database shop --container people
      armillary import people.csv --graph
      armillary import knows.csv --graph --vertices people.csv
    """
    from armillary.declare.item_files import parse_types, read_entries
    from armillary.operate.importing import import_items

    large = source.is_file() and source.stat().st_size >= WRITER_PROCESS_BYTES
    opened = _items(data, database, container, json, "process" if large else "thread")
    with opened as target:
        entries: Callable[[Path], Iterator[dict[str, Any] | BadInput]]
        entries = functools.partial(read_entries, types=parse_types(types))
        if is_bson(source):
            from armillary.operate.documents import Documents, read_bson

            if not isinstance(target, Documents):
                raise CommandError(
                    "A file of BSON goes into a MongoDB collection only.", EXIT_USAGE
                )
            entries = read_bson
        if graph:
            from armillary.api.gremlin.graph.files import GraphFile
            from armillary.store.catalog.graphs import graph_key

            file = GraphFile(graph_key(target.partition_key), vertices, parse_types(types))
            entries = file.documents
        with _bar(json) as shown:
            total = getattr(shown, "total", _ignore)
            if graph and total is not _ignore:
                total(file.count(source))
            done = import_items(target, source, progress=shown, total=total, entries=entries)
        refusals = [{"item": one.number, "why": one.why} for one in done.refusals]
        text = f"Imported {plural(done.items, 'item')} from {source}."
        _say(json, text, items=done.items, refused=done.refused, refusals=refusals)
        if done.refused:
            shown_lines = [f"  item {one.number}: {one.why}" for one in done.refusals]
            more = done.refused - len(shown_lines)
            tail = [f"  and {more:,} more"] * (more > 0)
            verb = "was" if done.refused == 1 else "were"
            lines = [f"{plural(done.refused, 'item')} {verb} refused:", *shown_lines, *tail]
            raise CommandError("\n".join(lines), EXIT_PARTIAL)


# --- parts ----------------------------------------------------------------------------------------


@contextmanager
def _items(
    data: str,
    database: str | None,
    container: str | None,
    json: bool,
    writer: "Writer" = "thread",
) -> Iterator["Items"]:
    from armillary.commands.query.asking import find_container, open_data
    from armillary.commands.remote import Remote, is_remote
    from armillary.commands.remote_items import RemoteItems
    from armillary.commands.sources import pick
    from armillary.operate.entities import Entities
    from armillary.operate.ports import LocalItems
    from armillary.store.catalog.definitions import is_collection
    from armillary.store.catalog.tables import TABLES_DB, is_table

    with reporting_errors(json, "Stopped. The same command goes on where it was."):
        if is_remote(data):
            with Remote(data) as remote:
                names = pick(remote, database, container)
            with RemoteItems(data, *names) as there:
                if is_collection(there.definition):
                    raise CommandError(
                        "A MongoDB collection is exported and imported from its data folder or "
                        "PostgreSQL; through a server, mongodump and mongorestore do it.",
                        EXIT_USAGE,
                    )
                yield Entities(there) if names[0] == TABLES_DB else there
            return
        with open_data(data, writer) as account:
            found = find_container(account, database, container)
            here = LocalItems(found)
            if is_collection(found.properties()):
                yield _documents(here, found)
            else:
                yield Entities(here) if is_table(found.properties()) else here


def _documents(items: "Items", container: "Container") -> "Items":
    from armillary.api.mongo.language import PLAIN
    from armillary.api.mongo.match.compiled import compile_filter
    from armillary.operate.documents import Documents
    from armillary.store.catalog.collections import shape_of
    from armillary.store.catalog.definitions import parse_container

    own = {name: one for name, one in container.properties().items() if name[:1] != "_"}
    shape = shape_of(parse_container(own), lambda query: compile_filter(query, PLAIN))
    return Documents(items, shape, lambda: int(time.time()))


def is_bson(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(".bson")


@contextmanager
def _bar(json: bool, source: "Items | None" = None) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, on standard error; it appears only there."""
    console = Console(stderr=True)
    if json or not console.is_terminal:
        yield lambda items: None
        return
    total = None if source is None else source.count()
    with Progress(*BAR_COLUMNS, console=console) as bar:
        yield _Shown(bar, bar.add_task("", total=total, rate=""))


class _Shown:
    """How far it is. The rate counts from the first call: what an earlier run did is not work."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar = bar
        self._task = task
        self._first: tuple[int, float] | None = None

    def __call__(self, items: int) -> None:
        now = self._bar.get_time()
        if self._first is None:
            self._first = items, now
        first, began = self._first
        rate = f"{(items - first) / (now - began):,.0f}/s" if now > began else ""
        self._bar.update(self._task, completed=items, rate=rate)

    def total(self, items: int) -> None:
        self._bar.update(self._task, total=items)


def _ignore(items: int) -> None:
    """Nothing is shown."""


def _say(as_json: bool, text: str, **facts: Any) -> None:
    typer.echo(orjson.dumps(facts).decode() if as_json else text)
