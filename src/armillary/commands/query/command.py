"""`armillary query`: its options. What it does is in `query_shell.py`."""

import typer

PARAMETERS = typer.Option((), "--parameter", "-p", help="name=value, as JSON or text; repeatable.")


def add_commands(app: typer.Typer) -> None:
    app.command()(query)


def query(
    data: str = typer.Argument(
        help="The data folder, 'postgresql://…', or a server: address or connection string."
    ),
    sql: str = typer.Argument(None, help="The query. Without it: from the terminal, or a pipe."),
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
      armillary query http://localhost:8081 "SELECT VALUE COUNT(1) FROM c" --json
      armillary query .armillary --parameter city=Oslo < report.sql
    """
    from armillary.commands.query.shell import run_shell

    run_shell(
        data,
        sql,
        database=database,
        container=container,
        partition_key=partition_key,
        parameters=parameter,
        max_items=max_items,
        form="json" if json else "csv" if csv else "table",
    )
