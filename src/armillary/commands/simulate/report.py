"""Runs a simulation with a bar, and shows it: in the terminal, as JSON, as a page, as a log."""

from collections.abc import Mapping
from pathlib import Path

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from armillary.commands.errors import EXIT_PARTIAL
from armillary.errors import BadInput
from armillary.sim.arithmetic import Arithmetic, arithmetic
from armillary.sim.quantities import show_count
from armillary.sim.report.page import page
from armillary.sim.report.result import Result, as_json
from armillary.sim.run import Simulation
from armillary.sim.scenario import DAY, Scenario, apply, read_events, read_file
from armillary.sim.scenarios import named
from armillary.units import bytes_text


def run_simulation(
    file: Path | None,
    name: str | None,
    options: Mapping[str, object],
    workload: Mapping[str, object],
    events: Path | None,
    *,
    html: Path | None,
    log: Path | None,
    as_json: bool,
) -> None:
    scenario = _scenario(file, name, options, workload, events)
    result = _run(scenario, quiet=as_json)
    last = result.hours[-1] if result.hours else None
    stored = max(scenario.storage, last.bytes if last else 0.0)
    ru = max(scenario.throughput, last.throughput if last else 0.0)
    facts = arithmetic(stored, int(ru), of=scenario.limits)
    if html is not None and last is not None:
        html.write_text(page(result, facts), "utf-8")
    if log is not None:
        log.write_bytes(b"".join(orjson.dumps(event) + b"\n" for event in result.log))
    if as_json:
        typer.echo(_json(result, facts))
    else:
        show(Console(), result, facts)
    if result.stopped_at is not None:
        raise typer.Exit(EXIT_PARTIAL)


def _scenario(
    file: Path | None,
    name: str | None,
    options: Mapping[str, object],
    workload: Mapping[str, object],
    events: Path | None,
) -> Scenario:
    """A named one, under what a file says, under the options."""
    base = named(name) if name is not None else Scenario()
    given: dict[str, object] = {} if file is None else read_file(file)
    if file is not None:
        given.setdefault("name", file.stem)
    given |= options
    if workload:
        table = given.get("workload", {})
        if not isinstance(table, Mapping):
            raise BadInput("workload has to be a table.")
        given["workload"] = {**table, **workload}
    if events is not None:
        own = given.get("events", [])
        if not isinstance(own, list):
            raise BadInput("events has to be a list.")
        given["events"] = [*own, *read_events(events)]
    return apply(base, given)


def _run(scenario: Scenario, *, quiet: bool) -> Result:
    """Ctrl-C ends it with what there is."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("day {task.completed:.0f} of {task.total:g}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    )
    simulation = Simulation(scenario)
    with bar:
        task = bar.add_task("", total=scenario.days)
        try:
            for t in simulation.steps():
                bar.update(task, completed=t / DAY)
        except KeyboardInterrupt:
            typer.echo(
                f"Stopped on day {simulation.now / DAY:.1f}; this is what came out.", err=True
            )
    return simulation.finish()


def _json(result: Result, facts: Arithmetic) -> str:
    text = orjson.dumps(
        {**as_json(result), "arithmetic": facts.as_json()},
        option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS,
    )
    return text.decode()


# --- the terminal ---------------------------------------------------------------------------------


def show(console: Console, result: Result, facts: Arithmetic) -> None:
    scenario = result.scenario
    console.print(f"[bold]{scenario.name}[/]  {scenario.about}")
    if not result.hours:
        console.print("Nothing was simulated.")
        return
    console.print(_numbers(result))
    console.print(_course(result))
    if result.windows:
        console.print(_windows(result))
    for text in result.hot[:3]:
        console.print(f"[dark_orange]{text}[/]")
    for alarm in result.alarms[:5]:
        limit = "is full: writes are refused (403)" if alarm.kind == "full" else "is filling up"
        console.print(f"[dark_orange]{alarm.key}[/] {limit}: {bytes_text(alarm.bytes)}, {alarm.at}")
    console.print(_facts(facts))


def _numbers(result: Result) -> Table:
    last, first = result.hours[-1], result.hours[0]
    worst = result.worst
    keys = ", ".join(f"{n} {kind}" for kind, n in result.alarm_keys.items() if n) or "none"
    table = Table.grid(padding=(0, 2))
    rows = [
        ("physical partitions", f"{first.partitions:,} → {last.partitions:,}"),
        ("stored", f"{bytes_text(first.bytes)} → {bytes_text(last.bytes)}"),
        ("throughput", f"{show_count(first.throughput)} → {show_count(last.throughput)} RU/s"),
        ("of a partition", f"{last.range_ru:,.0f} RU/s"),
        ("splits", f"{result.splits:,}, {bytes_text(result.bytes_moved)} rewritten"),
        ("mean fill", f"{result.fill_mean:.1%}"),
        ("fullest ÷ mean", f"{last.phi_bytes:.3f} bytes (CV {last.bytes_cv:.3f}), "
                           f"{last.phi_ru:.3f} RU (CV {last.ru_cv:.3f})"),
        ("heaviest key", f"{result.top_share:.3%} of RU: the container can use "
                         f"{show_count(result.top_key_ru)} RU/s"),
        ("worst window", f"{worst.refused_share:.2%} refused, p99 {worst.latency_ms(0.99):,.0f} ms"
                         if worst else "–"),
        ("keys at their size", keys),
        ("refused writes", f"{bytes_text(result.refused_bytes)} to full keys, "
                           f"{show_count(result.unavailable_writes)} while no region took them"),
        ("cost", f"${result.cost:,.0f} in all, ${last.cost_ru + last.cost_storage:,.2f} in the "
                 "last hour"),
    ]  # fmt: skip
    for name, text in rows:
        table.add_row(f"[dim]{name}[/]", text)
    return table


def _course(result: Result) -> Table:
    """A dozen moments."""
    table = Table(
        "day", "N", "bytes", "RU/s", "φ bytes", "φ RU", "refused", "splits", "$/h", box=None
    )
    for column in table.columns:
        column.justify = "right"
    series = result.series(12)
    for i, t in enumerate(series["t"]):
        hours = max(1.0, (t - (series["t"][i - 1] if i else 0.0)) / 3600)
        table.add_row(
            f"{t / DAY:.1f}",
            f"{series['partitions'][i]:,}",
            bytes_text(series["bytes"][i]),
            show_count(series["throughput"][i]),
            f"{series['phi_bytes'][i]:.3f}",
            f"{series['phi_ru'][i]:.3f}",
            f"{series['refused'][i]:.2%}",
            f"{series['splits'][i]:,}",
            f"{(series['cost_ru'][i] + series['cost_storage'][i]) / hours:,.2f}",
        )
    return table


def _windows(result: Result) -> Table:
    table = Table(
        "day", "region", "429", "retries", "given up", "p50 ms", "p99 ms", "key", box=None
    )
    for one in result.windows[:20]:
        key = [
            f"key {k + 1}: {share:.0%} of them"
            for k, share, _ in one.key_refused[:1]
            if share > 0.01
        ]
        table.add_row(
            f"{one.start_s / DAY:.2f}",
            one.region,
            f"{one.refused_share:.2%}",
            f"{one.retries:,}",
            f"{sum(one.failed):,}",
            f"{one.latency_ms(0.5):,.1f}",
            f"{one.latency_ms(0.99):,.1f}",
            *key,
        )
    return table


def _facts(facts: Arithmetic) -> str:
    return (
        f"[dim]By the rules: {facts.partitions:,} partitions ({facts.partitions_by_ru:,} for RU/s, "
        f"{facts.partitions_by_bytes:,} for bytes; {facts.partitions_with_room:,} filled to 80 %), "
        f"at least {show_count(facts.minimum_manual)} RU/s manual or "
        f"{show_count(facts.minimum_autoscale)} autoscale, {show_count(facts.fanout_ru)} RU for an "
        f"empty query over all of them, ${facts.hour_dollars:,.2f} an hour and "
        f"${facts.storage_month_dollars:,.0f} a month for storage.[/]"
    )
