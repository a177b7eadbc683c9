"""Where the measures of `armillary check` come from, and how its answer is printed.

a server        GET …/usage of every container, or of one
a data folder   the same from the counters of the processes that serve it
a trace         replayed under one partition key by the rules of the product
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import typer

from armillary.account import open_account
from armillary.commands.errors import EXIT_USAGE, CommandError
from armillary.commands.remote import Remote, is_remote, path_of
from armillary.encoding.paths import Path as ItemPath
from armillary.encoding.paths import format_path
from armillary.engine.opening import is_there
from armillary.errors import BadInput, NotFound
from armillary.operate.checking import Finding, Measure, Measures, Thresholds, check, measures_of
from armillary.sim.quantities import parse_bytes, parse_count, parse_share

if TYPE_CHECKING:
    from armillary.advisor.workload.operations import TimedOperation

ALL_HOLD = "All assertions hold."


@dataclass(frozen=True, slots=True)
class Subject:
    source: str | None
    database: str | None
    container: str | None
    trace: Path | None
    key: str | None
    throughput: str | None
    partitions: int | None


def thresholds_of(
    *,
    max_key_share: str | None,
    max_key_bytes: str | None,
    max_fanout: float | None,
    max_ru: float | None,
    max_429_share: str | None,
    max_normalized_ru: str | None,
    max_partition_skew: float | None,
) -> Thresholds:
    found = Thresholds(
        max_key_share=_share(max_key_share, "--max-key-share"),
        max_key_bytes=_bytes(max_key_bytes, "--max-key-bytes"),
        max_fanout=max_fanout,
        max_ru=max_ru,
        max_429_share=_share(max_429_share, "--max-429-share"),
        max_normalized_ru=_percent(max_normalized_ru, "--max-normalized-ru"),
        max_partition_skew=max_partition_skew,
    )
    if not found.given:
        raise BadInput("Nothing is asserted: give at least one --max-… option.")
    return found


def _share(text: str | None, name: str) -> float | None:
    return None if text is None else parse_share(text, name)


def _bytes(text: str | None, name: str) -> float | None:
    return None if text is None else parse_bytes(text, name)


def _percent(text: str | None, name: str) -> float | None:
    """`90%`, `0.9` or `90`."""
    if text is None:
        return None
    value = parse_count(text.removesuffix("%").strip(), name)
    return value if text.strip().endswith("%") or value > 1 else 100 * value


def ask(subject: Subject, wanted: Thresholds, min_requests: int, *, as_json: bool) -> bool:
    """Whether everything holds; the answer is printed."""
    findings: list[Finding] = []
    requests = 0
    for measures in measured(subject):
        requests += measures.requests
        findings += check(measures, wanted)
    enough = requests >= min_requests
    holds = enough and all(one.holds for one in findings)
    seen = (
        f"{requests:,} requests were counted, at least {min_requests:,} have to be. "
        "With throughput.enforce = off a server counts nothing."
    )
    if as_json:
        answer = {
            "holds": holds,
            "requests": requests,
            "enough_requests": enough,
            "findings": [one.as_json() for one in findings],
        }
        typer.echo(orjson.dumps(answer).decode())
        return holds
    for one in findings:
        typer.echo(str(one))
    if not enough:
        typer.echo(f"BAD  {seen}")
    broken = sum(not one.holds for one in findings) + (not enough)
    typer.echo(ALL_HOLD if holds else f"{broken} of {len(findings) + (not enough)} do not hold.")
    return holds


def measured(subject: Subject) -> Iterator[Measures]:
    if subject.trace is not None:
        if subject.source is not None:
            raise BadInput("Give a trace or a server, not both.")
        yield _of_trace(subject)
        return
    if subject.key is not None or subject.throughput is not None or subject.partitions is not None:
        raise BadInput("--key, --throughput and --partitions belong to a --trace.")
    source = subject.source or ".armillary"
    yield from _of_server(source, subject) if is_remote(source) else _of_folder(source, subject)


def _of_server(source: str, subject: Subject) -> Iterator[Measures]:
    with Remote(source) as remote:
        account = remote.control("GET", "account")
        names = [
            (database["id"], container["id"])
            for database in account["databases"]
            for container in database["containers"]
        ]
        for database, container in _chosen(names, subject):
            path = path_of("dbs", database, "colls", container)
            yield measures_of(remote.control("GET", f"{path}/usage"))


def _of_folder(source: str, subject: Subject) -> Iterator[Measures]:
    if not is_there(source):
        raise CommandError(f"There is no data folder at {source}.", EXIT_USAGE)
    # `report`: the counters of a server that runs on the folder are read, nothing is refused.
    with open_account(source, housekeeping=False, enforce="report") as account:
        names = [
            (database, container)
            for database in account.databases()
            for container in account.database(database).containers()
        ]
        for database, container in _chosen(names, subject):
            found = account.database(database).container(container)
            yield measures_of(asdict(found.usage()))


def _chosen(names: list[tuple[str, str]], subject: Subject) -> list[tuple[str, str]]:
    found = [
        (database, container)
        for database, container in names
        if subject.database in (None, database) and subject.container in (None, container)
    ]
    if not found:
        wanted = "/".join(name for name in (subject.database, subject.container) if name)
        raise NotFound(f"There is no container {wanted}." if wanted else "There are no containers.")
    return found


# --- traces ---------------------------------------------------------------------------------------


def _knows(operation: TimedOperation, path: ItemPath) -> bool:
    if path in operation.fields or any(path in item for item in operation.items):
        return True
    query = operation.template if operation.kind == "query" else None
    return query is not None and query.values_of(path) is not None


def _of_trace(subject: Subject) -> Measures:
    from armillary.advisor.keys.candidates import parse_candidate
    from armillary.advisor.replay.comparison import ReplayOptions, replay_candidates
    from armillary.advisor.workload.traces import read_trace

    assert subject.trace is not None
    if subject.key is None:
        raise BadInput("A trace does not say what the partition key is: give --key.")
    if subject.throughput is None:
        raise BadInput("A trace does not say what the container may spend: give --throughput.")
    ru = parse_count(subject.throughput, "--throughput")
    trace = read_trace(subject.trace)
    for problem in trace.problems:
        typer.echo(problem, err=True)
    if not trace.operations:
        raise BadInput(f"{subject.trace} has no operations.")
    candidate = parse_candidate(subject.key)
    for path in candidate.made_of:
        # Without this, a key that is misspelt would have no hot values and pass.
        if path != ("id",) and not any(_knows(one, path) for one in trace.operations):
            raise BadInput(f"No operation of {subject.trace} knows {format_path(path)}.")
    options = ReplayOptions(throughput=ru, partitions=subject.partitions)
    comparison = replay_candidates([candidate], trace.played(), None, options)
    found = comparison.replays[0]
    for text in found.skipped:
        typer.echo(text, err=True)
    widest = max(found.fan_out, key=lambda one: one.ranges_max, default=None)
    busiest = max(found.partitions, key=lambda one: one.peak_percent)
    fullest = max(found.partitions, key=lambda one: one.bytes)
    sent = found.operations + found.throttled - found.failed
    dearest = max(
        (one for one in trace.operations if one.charge_ru is not None),
        key=lambda one: one.charge_ru or 0.0,
        default=None,
    )
    mean = max(found.fan_out, key=lambda one: one.ru_mean, default=None)
    values = {
        "max_key_share": Measure(found.top_keys[0].share, f"key {found.top_keys[0].key}")
        if found.top_keys
        else Measure(0.0, "no keys"),
        "max_key_bytes": Measure(found.large_keys[0].amount, f"key {found.large_keys[0].key}")
        if found.large_keys
        else Measure(0.0, "no writes"),
        "max_fanout": Measure(0.0, "no operations")
        if widest is None
        else Measure(float(widest.ranges_max), widest.name),
        "max_429_share": Measure(
            found.throttled_share, f"{found.throttled:,.0f} of {sent:,.0f} requests, retries too"
        ),
        "max_normalized_ru": Measure(busiest.peak_percent, f"partition {busiest.id}"),
        "max_partition_skew": Measure(found.storage_skew, f"partition {fullest.id}"),
    }
    if dearest is not None:
        values["max_ru"] = Measure(dearest.charge_ru or 0.0, f"{dearest.kind} as it was measured")
    elif mean is not None:
        values["max_ru"] = Measure(mean.ru_mean, f"{mean.name}, by the formula")
    return Measures(f"{subject.trace.name} under {found.key}", len(trace.operations), values)
