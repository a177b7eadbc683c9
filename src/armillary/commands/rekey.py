"""`armillary rekey`: a container under another partition key, with progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from armillary.commands.errors import EXIT_PARTIAL, EXIT_USAGE, CommandError, reporting_errors
from armillary.commands.remote import is_remote
from armillary.ring.words import plural

STOPPED = "Stopped. The same command goes on where it was."
LEFT_SHOWN = 10


def add_commands(app: typer.Typer) -> None:
    app.command()(rekey)


def rekey(
    source: str = typer.Argument(help="The container to copy; it is only read."),
    target: str = typer.Argument(help="The new container."),
    key: list[str] = typer.Option((), "--key", "-k", help="A path; repeat it for levels."),  # noqa: B008
    synthetic: str = typer.Option(
        None, help="A synthetic key: JSON, or @file with it. See docs/synthetic-keys.md."
    ),
    data: str = typer.Option(
        ".armillary",
        "--data",
        help="The data folder, 'postgresql://…', or the address of a server.",
    ),
    database: str = typer.Option(None, help="Not needed when there is only one."),
    throughput: int = typer.Option(None, min=400, help="RU/s of the new container."),
    cut_over: bool = typer.Option(
        False,
        "--cut-over",
        help="When the copy has caught up, close the old container for writing and compare both.",
    ),
    json: bool = typer.Option(False, "--json", help="Answer and errors as JSON."),
) -> None:
    """Copy a container into a new one with another partition key, while the old one is used.

    Changes are followed until the copy has caught up. With --cut-over the old container is then
    closed for writing, the last changes are brought over, and counts and a checksum per logical
    partition are compared: nothing is lost. Without it, stop writing first.

    Stopped or killed, the same command goes on where it was. Exit code 3 if some items found no
    place or the two sides differ.

    Examples:
      armillary rekey orders orders-by-customer --key /customerId
      armillary rekey orders orders2 --key /customerId --cut-over --data http://localhost:8081
      armillary rekey events events2 --key /tenant --key /user --throughput 4000
      armillary rekey readings spread --synthetic @key.json
    """
    with reporting_errors(json, STOPPED):
        options = _key_options(key, synthetic)
        with _bar(json, ", ".join(key)) as shown:
            move = _by_server if is_remote(data) else _in_folder
            facts = move(data, database, source, target, options, throughput, cut_over, shown)
        typer.echo(
            orjson.dumps(facts).decode() if json else "\n".join(outcome_lines(target, facts))
        )
        if facts["left"] or (cut_over and not facts["verified"]):
            raise CommandError("\n".join(_left(facts, source)), EXIT_PARTIAL)


Shown: TypeAlias = Callable[[str, int, int, int], None]
"""Is given phase, items copied, items of the source, and copied items without the new key."""


def _in_folder(
    data: str,
    database: str | None,
    source: str,
    target: str,
    options: dict[str, Any],
    throughput: int | None,
    cut_over: bool,
    shown: Shown,
) -> dict[str, Any]:
    from armillary.commands.query.asking import only, open_data

    with open_data(data) as account:
        home = account.database(only(database, account.databases(), "database"))
        only(source, home.containers(), "container", f"{home.id}/")
        done = home.rekey(
            source,
            target,
            throughput=throughput,
            cut_over=cut_over,
            progress=lambda now: shown(now.phase, now.copied, now.source_items, now.keyless),
            **options,
        )
    return {
        "source_items": done.source_items,
        "target_items": done.target_items,
        "verified": done.verified,
        "closed": done.closed,
        "without_key": done.keyless,
        "logical_partitions": done.logical_partitions,
        "different": done.different,
        "left": [{"id": one.id, "key": one.key, "why": one.why} for one in done.left],
    }


def _by_server(
    data: str,
    database: str | None,
    source: str,
    target: str,
    options: dict[str, Any],
    throughput: int | None,
    cut_over: bool,
    shown: Shown,
) -> dict[str, Any]:
    """A server takes some steps per request, by its own limits and budgets."""
    from armillary.account import keys_of
    from armillary.commands.remote import Remote, path_of
    from armillary.commands.sources import pick

    keys = keys_of(options.get("partition_key"), options.get("synthetic_key"))
    body = {"target": target, "cut_over": cut_over, **keys}
    if throughput is not None:
        body["throughput"] = throughput
    with Remote(data) as server:
        home, _ = pick(server, database, source)
        path = path_of("dbs", home, "colls", source, "rekey")
        while True:
            now = server.control("POST", path, body)
            if now["report"] is not None:
                report: dict[str, Any] = now["report"]
                return report
            shown(now["phase"], now["copied"], now["source_items"], now["without_key"])


def outcome_lines(target: str, facts: dict[str, Any]) -> list[str]:
    """The result, for people."""
    count, items = facts["target_items"], facts["source_items"]
    if facts["verified"]:
        sure = "verified"
    elif facts["different"]:
        sure = f"{plural(facts['different'], 'logical partition')} differ"
    else:
        sure = "not verified: the source is being written to"
    lines = [f"{target} has {count:,} of {plural(items, 'item')} ({sure})."]
    if facts["closed"] and facts["verified"]:
        partitions = facts["logical_partitions"]
        compared = f"{plural(partitions, 'logical partition')} compared by checksum. "
        lines.append(
            f"{compared if partitions else ''}The old container is closed for writing: point your "
            f"application to {target}."
        )
    elif facts["verified"]:
        lines.append(
            "What is written to the old container from now on is not in it; --cut-over closes it "
            "before the last look."
        )
    if facts["without_key"] and facts["without_key"] >= count:
        lines.append("Warning: no item has the new key. All are in one logical partition.")
    elif facts["without_key"]:
        lines.append(f"Warning: {plural(facts['without_key'], 'item')} without the new key.")
    return lines


def _left(facts: dict[str, Any], source: str) -> list[str]:
    left = facts["left"]
    if not left:
        return [f"{source} is open for writing again: the two sides differ."]
    lines = [f"  {one['id']}: {one['why']}" for one in left[:LEFT_SHOWN]]
    more = [f"  and {len(left) - LEFT_SHOWN:,} more"] * (len(left) > LEFT_SHOWN)
    return [f"{plural(len(left), 'item')} found no place under the new key:", *lines, *more]


def _key_options(paths: list[str], synthetic: str | None) -> dict[str, Any]:
    if synthetic is None and not paths:
        raise CommandError("Say the new key with --key or --synthetic.", EXIT_USAGE)
    found: dict[str, Any] = {}
    if paths:
        found["partition_key"] = paths[0] if len(paths) == 1 else paths
    if synthetic is not None:
        text = synthetic
        if text.startswith("@"):
            text = Path(text[1:]).read_text("utf-8")
        try:
            found["synthetic_key"] = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise CommandError(f"--synthetic is not valid JSON: {error}.", EXIT_USAGE) from error
    return found


@contextmanager
def _bar(json: bool, key: str) -> Iterator[Shown]:
    console = Console(stderr=True)
    warned = False

    def warn(copied: int, keyless: int) -> None:
        """While there is time to stop: after the first items, not at the end."""
        nonlocal warned
        if not json and not warned and copied and keyless >= copied:
            warned = True
            console.print(f"Warning: none of the first {plural(copied, 'item')} has {key}.")

    if json or not console.is_terminal:
        yield lambda phase, copied, items, keyless: warn(copied, keyless)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("create", total=None)

        def update(phase: str, copied: int, items: int, keyless: int) -> None:
            warn(copied, keyless)
            bar.update(task, description=phase, completed=copied, total=items)

        yield update
