"""`armillary check`: assertions for builds, over a server, a data folder or a trace."""

from pathlib import Path

import typer

from armillary.commands.errors import EXIT_FAILED, one_of, reporting_errors

TRACE = typer.Option(None, "--trace", help="Operations as JSON Lines instead of statistics.")


def add_commands(app: typer.Typer) -> None:
    app.command()(check)


def check(
    source: str = typer.Argument(
        None, help="A data folder, or a server: its address or connection string."
    ),
    data: str = typer.Option(None, "--data", help="The same, as other commands take it."),
    database: str = typer.Option(None, help="Only this one."),
    container: str = typer.Option(None, help="Only this one."),
    trace: Path = TRACE,
    key: str = typer.Option(None, help="Of a trace: the partition key, such as /tenantId."),
    throughput: str = typer.Option(None, help="Of a trace: RU/s of the container."),
    partitions: int = typer.Option(None, min=1, help="Of a trace: physical partitions."),
    max_key_share: str = typer.Option(None, help="Of the RU, the heaviest key: 10%."),
    max_key_bytes: str = typer.Option(None, help="The largest key: 14GB."),
    max_fanout: int = typer.Option(None, min=1, help="Physical partitions one query may ask."),
    max_ru: float = typer.Option(None, min=0.0, help="RU of one request."),
    max_429_share: str = typer.Option(None, help="Refused requests: 1%."),
    max_normalized_ru: str = typer.Option(None, help="The busiest partition: 90%."),
    max_partition_skew: float = typer.Option(
        None, min=1.0, help="Bytes of the fullest partition by the mean: 1.5."
    ),
    min_requests: int = typer.Option(
        1, min=0, help="With fewer requests counted in all, the check fails: it saw nothing."
    ),
    json: bool = typer.Option(False, "--json", help="Answer and errors as JSON."),
) -> None:
    """Assert how a partition key behaves; exit code 0 if all holds, 1 if not, 2 for invalid usage.

    Examples:
      armillary check http://localhost:8081 --max-key-share 10% --max-fanout 1
      armillary check --trace ops.jsonl --key /tenantId --throughput 40000 --max-429-share 1%
    """
    with reporting_errors(json):
        from armillary.commands.check.measures import Subject, ask, thresholds_of

        wanted = thresholds_of(
            max_key_share=max_key_share,
            max_key_bytes=max_key_bytes,
            max_fanout=max_fanout,
            max_ru=max_ru,
            max_429_share=max_429_share,
            max_normalized_ru=max_normalized_ru,
            max_partition_skew=max_partition_skew,
        )
        place = one_of(source, data)
        subject = Subject(place, database, container, trace, key, throughput, partitions)
        if not ask(subject, wanted, min_requests, as_json=json):
            raise typer.Exit(EXIT_FAILED)
