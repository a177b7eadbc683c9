"""`armillary replay`: its options. What it does is in `advisor/replay/comparison.py`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import typer

from armillary.commands.errors import EXIT_USAGE, CommandError, reporting_errors
from armillary.version import install_hint

if TYPE_CHECKING:
    from armillary.advisor.data.sample import Sample
    from armillary.advisor.keys.candidates import Candidate
    from armillary.advisor.replay.comparison import ReplayOptions
    from armillary.advisor.replay.result import Comparison
    from armillary.advisor.workload.playing import Played

NEEDS = f"The replay needs its libraries: {install_hint('advisor')}"

CANDIDATES = typer.Option((), "--candidates", help="Keys; repeat it, or put ';' between them.")
WORKLOAD = typer.Option(None, help="JSON: what the application does how often. DATA is items then.")
HTML = typer.Option(None, help="Also write a page with plots.")


def add_commands(app: typer.Typer) -> None:
    app.command()(replay)


def replay(
    source: str = typer.Argument(
        help="A trace or exported diagnostic logs; with --workload, items: JSON, JSON Lines, CSV…"
    ),
    candidates: list[str] = CANDIDATES,
    workload: Path = WORKLOAD,
    throughput: str = typer.Option(
        None, help="RU/s; '4000,12000@30' changes it after 30 s. Else what the best key needs."
    ),
    autoscale: bool = typer.Option(False, "--autoscale", help="Throughput is its maximum."),
    storage: str = typer.Option(None, help="What the container holds: 500GB."),
    growth: str = typer.Option(None, help="Growth a day: 5GB."),
    ttl: str = typer.Option(None, help="How long items live: 30d."),
    key: str = typer.Option(None, help="The present key: what the keys in logs are values of."),
    partition_ru: int = typer.Option(10_000, help="RU/s that a physical partition serves."),
    partition_bytes: str = typer.Option("50GB", help="Bytes that a physical partition holds."),
    burst: bool = typer.Option(False, "--burst", help="With burst capacity."),
    seconds: float = typer.Option(60.0, min=1, help="How long a workload is played."),
    operations: int = typer.Option(30_000, min=100, help="At most so many of them."),
    retries: int = typer.Option(9, min=0, help="After 429, as the SDK is set."),
    html: Path = HTML,
    seed: int = typer.Option(0, help="The same seed gives the same numbers."),
    json: bool = typer.Option(False, "--json", help="Answer and errors as JSON."),
) -> None:
    """Replay a trace or a workload under several partition keys: 429s, heat, fan-out, cost.

    Examples:
      armillary replay trace.jsonl --candidates '/tenant;/tenant,/user' --throughput 4000
      armillary replay orders.jsonl --workload load.json --candidates '/customer;/id'
    """
    with reporting_errors(json, "Stopped."):
        if find_spec("polars") is None:
            raise CommandError(NEEDS, EXIT_USAGE)
        from armillary.advisor.replay.comparison import replay_candidates
        from armillary.commands.replay.report import say, written

        asked = _candidates(candidates, key)
        options = _options(
            throughput, autoscale, storage, growth, ttl, partition_ru, partition_bytes, burst,
            retries, seed,
        )  # fmt: skip
        notes: list[str] = []
        played, sample = (
            _trace(source, key, notes)
            if workload is None
            else _workload(source, workload, seconds, operations, seed, notes)
        )
        found: Comparison = replay_candidates(asked, played, sample, options)
        if html is not None:
            written(html, found, source, notes, options.limits)
        if json:
            typer.echo(orjson.dumps({**found.as_json(), "notes": notes}).decode())
        else:
            say(found, notes, html)


def _candidates(texts: list[str], key: str | None) -> list[Candidate]:
    from armillary.advisor.keys.candidates import parse_candidates
    from armillary.commands.advise.options import candidate_texts

    found = parse_candidates(candidate_texts([*texts, *([key] if key else [])]))
    if not found:
        raise CommandError(
            "Say which keys to compare: --candidates '/tenant;/tenant,/user'. "
            "'armillary advise' finds them by itself.",
            EXIT_USAGE,
        )
    return found


def _options(
    throughput: str | None,
    autoscale: bool,
    storage: str | None,
    growth: str | None,
    ttl: str | None,
    partition_ru: int,
    partition_bytes: str,
    burst: bool,
    retries: int,
    seed: int,
) -> ReplayOptions:
    from armillary.advisor.replay.comparison import ReplayOptions
    from armillary.commands.advise.options import duration, rate, size
    from armillary.partition.provisioning.partitions import PartitionLimits
    from armillary.partition.retrying import RetryPolicy

    first, _, rest = (throughput or "").partition(",")
    later = []
    for text in filter(None, rest.split(",")):
        ru, _, second = text.partition("@")
        if not second.strip().replace(".", "", 1).isdigit():
            raise CommandError(f"'{text}' is no change of throughput: RU/s@second.", EXIT_USAGE)
        later.append((float(second), rate(ru, "--throughput") or 0.0))
    return ReplayOptions(
        throughput=rate(first or None, "--throughput"),
        changes=tuple(sorted(later)),
        offer="autoscale" if autoscale else "manual",
        limits=PartitionLimits(
            bytes=int(size(partition_bytes, "--partition-bytes") or 0), ru=partition_ru
        ),
        burst=burst,
        retries=RetryPolicy(retries),
        seed=seed,
        storage_bytes=size(storage, "--storage"),
        growth_bytes_per_day=size(growth, "--growth"),
        ttl_s=duration(ttl, "--ttl"),
    )


def _trace(source: str, key: str | None, notes: list[str]) -> tuple[Played, Sample | None]:
    from armillary.advisor.keys.candidates import parse_candidate
    from armillary.advisor.workload.diagnostics import is_log, read_logs
    from armillary.advisor.workload.traces import read_trace

    sample = None
    if is_log(source):
        logs = read_logs([source], parse_candidate(key).paths if key else ())
        found, sample = logs.trace, logs.sample()
    else:
        found = read_trace(source)
    notes += found.problems
    if not found.operations:
        raise CommandError(f"{source} has no operation to replay. {' '.join(notes)}", EXIT_USAGE)
    return found.played(), sample


def _workload(
    source: str, file: Path, seconds: float, operations: int, seed: int, notes: list[str]
) -> tuple[Played, Sample]:
    from armillary.advisor.advice.paging import sample_from
    from armillary.advisor.data.sampled import Sampled
    from armillary.advisor.data.survey import survey
    from armillary.advisor.reading.frames import Reading
    from armillary.advisor.reading.sources import find_sources
    from armillary.advisor.workload.model import read_workload
    from armillary.advisor.workload.playing import play_out

    asked = read_workload(file)
    notes += asked.skipped
    reading = Reading()
    frames = reading.files(find_sources([source]), lambda done: None)
    surveyed = survey(frames, reading, seed=seed)
    notes += reading.notes
    sample = sample_from(Sampled(surveyed, seed))
    played = play_out(asked, sample, seconds=seconds, seed=seed, operations_max=operations)
    return played, sample
