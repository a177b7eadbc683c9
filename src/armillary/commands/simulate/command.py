"""`armillary simulate`: its options. What it does is in `sim/`."""

from pathlib import Path
from typing import Any

import typer

from armillary.commands.errors import reporting_errors

SCENARIO = typer.Argument(None, help="A TOML or JSON file with a scenario.")
NAMED = typer.Option(
    None,
    "--scenario",
    help="reference, hot-key, black-friday, region-loss, growth, bad-key or expiry.",
)
EVENTS = typer.Option(None, "--events", help="What happens and when, as JSON Lines.")
HTML = typer.Option(None, "--html", help="Write one page with plots.")
LOG = typer.Option(None, "--log", help="Write the event log as JSON Lines.")


def add_commands(app: typer.Typer) -> None:
    app.command()(simulate)


def simulate(
    file: Path = SCENARIO,
    scenario: str = NAMED,
    storage: str = typer.Option(None, help="At the beginning: 100TB."),
    throughput: str = typer.Option(None, help="RU/s, the maximum with --autoscale: 10M."),
    autoscale: bool = typer.Option(None, help="Autoscale throughput, or manual."),
    keys: str = typer.Option(None, help="Partition key values: 1e9."),
    skew: str = typer.Option(None, help="Of request units: uniform, zipf:1.0 or hot:0.01."),
    bytes_skew: str = typer.Option(None, help="Of bytes, if it differs."),
    partitions: str = typer.Option(None, help="At the beginning; else as the rules give."),
    days: str = typer.Option(None, help="How long: 30."),
    growth: str = typer.Option(None, help="1TB/day, 2%/day, to:100TB or exp:100TB."),
    ttl: str = typer.Option(None, help="Items expire after this: 30d."),
    demand: str = typer.Option(None, help="What clients ask for: RU/s, or 70% of the throughput."),
    daily: str = typer.Option(None, help="How far that swings in a day: 50%."),
    mix: str = typer.Option(None, help="Operations: read=70%,create=20%,replace=10%,query=0%."),
    item: str = typer.Option(None, help="Size of an item: 1KB."),
    regions: str = typer.Option(None, help="How many, or their names: east,west."),
    burst: bool = typer.Option(None, help="Burst capacity."),
    windows: str = typer.Option(None, help="How many times to look second by second."),
    window: str = typer.Option(None, help="How long each time: 60s."),
    seed: str = typer.Option(None, help="The same seed gives the same result."),
    events: Path = EVENTS,
    html: Path = HTML,
    log: Path = LOG,
    json: bool = typer.Option(False, "--json", help="Answer and errors as JSON."),
) -> None:
    """Simulate a container of any size: growth, splits, throttling, hot keys, cost.

    Examples:
      armillary simulate --scenario black-friday
      armillary simulate --storage 100TB --throughput 10M --keys 1e9 --skew zipf:0.8
    """
    options = {
        "storage": storage,
        "throughput": throughput,
        "autoscale": autoscale,
        "keys": keys,
        "skew": skew,
        "bytes_skew": bytes_skew,
        "partitions": partitions,
        "days": days,
        "growth": growth,
        "ttl": ttl,
        "demand": demand,
        "daily": daily,
        "regions": regions,
        "burst": burst,
        "windows": windows,
        "window": window,
        "seed": seed,
    }
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    work = {"mix": mix, "item": item}
    with reporting_errors(json):
        from armillary.commands.simulate.report import run_simulation

        run_simulation(
            file,
            scenario,
            given,
            {name: value for name, value in work.items() if value is not None},
            events,
            html=html,
            log=log,
            as_json=json,
        )
