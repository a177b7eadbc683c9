"""`armillary query`: its options. What it does is in `shell.py`."""

from __future__ import annotations

import typer

from armillary.commands.errors import one_of, reporting_errors

DATA = ".armillary"

PARAMETERS = typer.Option((), "--parameter", "-p", help="name=value, as JSON or text; repeatable.")


def add_commands(app: typer.Typer) -> None:
    app.command()(query)


def query(
    source: str = typer.Argument(
        None,
        help="The data folder, 'postgresql://…', or a server: address or connection string.",
        show_default=DATA,
    ),
    sql: str = typer.Argument(None, help="The query. Without it: from the terminal, or a pipe."),
    data: str = typer.Option(None, "--data", help="The source, as other commands take it."),
    database: str = typer.Option(None, help="Not needed when there is only one."),
    container: str = typer.Option(None, help="Not needed when there is only one."),
    partition_key: str = typer.Option(None, help="Ask one key: text, or JSON (an array for more)."),
    parameter: list[str] = PARAMETERS,
    max_items: int = typer.Option(None, min=1, help="Rows at most; tables stop at 100."),
    json: bool = typer.Option(False, "--json", help="Rows, charge and plan, and errors, as JSON."),
    csv: bool = typer.Option(False, "--csv", help="Rows as CSV."),
) -> None:
    """Run a query over a data folder or a server and show rows, charge and plan.

    Without a text it asks for one, with completion and history. Exit code 1 if the query is wrong.

    Examples:
      armillary query .armillary "SELECT * FROM c WHERE c.total > 20" --container orders
      armillary query "SELECT VALUE COUNT(1) FROM c" --data http://localhost:8081 --json
      armillary query .armillary --parameter city=Oslo < report.sql
    """
    from armillary.commands.query.shell import run_shell

    with reporting_errors(json):
        place, text = place_and_text(source, sql, data)
    run_shell(
        place,
        text,
        database=database,
        container=container,
        partition_key=partition_key,
        parameters=parameter,
        max_items=max_items,
        form="json" if json else "csv" if csv else "table",
    )


def place_and_text(source: str | None, sql: str | None, data: str | None) -> tuple[str, str | None]:
    """What two arguments and `--data` mean: one argument is the query when the place is said by
    `--data`, or when it is plainly a query."""
    if source is not None and sql is None and (data is not None or _is_query(source)):
        source, sql = None, source
    return one_of(source, data) or DATA, sql


def _is_query(text: str) -> bool:
    words = text.split(maxsplit=1)
    return len(words) > 1 and words[0].upper() == "SELECT"
