"""`armillary rekey`: a container under another partition key, with progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from armillary.commands.complaints import EXIT_PARTIAL, EXIT_USAGE, Complaint, complaining

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
    data: str = typer.Option(".armillary", "--data", help="The data folder, or 'postgresql://…'."),
    database: str = typer.Option(None, help="Not needed when there is only one."),
    throughput: int = typer.Option(None, min=400, help="RU/s of the new container."),
    json: bool = typer.Option(False, "--json", help="Answer and errors as JSON."),
) -> None:
    """Copy a container into a new one with another partition key, while the old one is used.

    Stopped, the same command goes on where it was. Exit code 3 if some items found no place.

    Examples:
      armillary rekey orders orders-by-customer --key /customerId
      armillary rekey events events2 --key /tenant --key /user --throughput 4000
      armillary rekey readings spread --synthetic @key.json
    """
    from armillary.commands.query.asking import only, open_data

    with complaining(json, STOPPED):
        options = _key_options(key, synthetic)
        with open_data(data) as account:
            home = account.database(only(database, account.databases(), "database"))
            with _bar(json) as shown:
                done = home.rekey(source, target, throughput=throughput, progress=shown, **options)
        left = [{"id": one.id, "key": one.key, "why": one.why} for one in done.left]
        if json:
            facts = {
                "source_items": done.source_items,
                "target_items": done.target_items,
                "verified": done.verified,
                "left": left,
            }
            typer.echo(orjson.dumps(facts).decode())
        else:
            sure = "verified" if done.verified else "not verified: the source is being written"
            typer.echo(
                f"{target} has {done.target_items:,} of {done.source_items:,} items ({sure})."
            )
        if left:
            lines = [f"  {one['id']}: {one['why']}" for one in left[:LEFT_SHOWN]]
            more = [f"  and {len(left) - LEFT_SHOWN:,} more"] * (len(left) > LEFT_SHOWN)
            told = [f"{len(left):,} items found no place under the new key:", *lines, *more]
            raise Complaint("\n".join(told), EXIT_PARTIAL)


def _key_options(paths: list[str], synthetic: str | None) -> dict[str, Any]:
    if synthetic is None and not paths:
        raise Complaint("Say the new key with --key or --synthetic.", EXIT_USAGE)
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
            raise Complaint(f"--synthetic is not valid JSON: {error}.", EXIT_USAGE) from error
    return found


@contextmanager
def _bar(json: bool) -> Iterator[Callable[[Any], None]]:
    console = Console(stderr=True)
    if json or not console.is_terminal:
        yield lambda progress: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("create", total=None)
        yield lambda now: bar.update(
            task, description=now.phase, completed=now.copied, total=now.source_items
        )
