"""`armillary advise`: which partition key, from data and workload, with reasons.

What it does is in `advisor/`; here are its options, where data comes from, and the progress bars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import typer
from rich.console import Console

from armillary.commands.errors import EXIT_PARTIAL, EXIT_USAGE, CommandError, reporting_errors
from armillary.version import install_hint

if TYPE_CHECKING:
    from armillary.advisor.advice.advising import Advice
    from armillary.advisor.data.survey import Survey
    from armillary.advisor.keys.candidates import Candidate
    from armillary.advisor.replay.result import Comparison
    from armillary.advisor.workload.model import Workload
    from armillary.advisor.workload.targets import Targets

STOPPED = "Stopped before anything was read."
NEEDS = f"The advisor needs its libraries: {install_hint('advisor')}"


def add_commands(app: typer.Typer) -> None:
    app.command()(advise)


def advise(
    data: list[str] = typer.Argument(  # noqa: B008
        None,
        help="Files or folders (JSON, JSON Lines, CSV, TSV, Parquet; .gz of each), '-' for "
        "standard input, a data folder of ours, or a connection string.",
    ),
    workload: Path = typer.Option(None, help="JSON: what the application does how often."),  # noqa: B008
    trace: str = typer.Option(None, help="JSON Lines: operations with their times."),
    throughput: str = typer.Option(None, help="RU/s to plan for, such as 60000."),
    storage: str = typer.Option(None, help="Data to plan for: 500GB; a bare number is GB."),
    growth: str = typer.Option(None, help="Growth a day: 5GB; a bare number is GB."),
    ttl: str = typer.Option(None, help="How long items live: 30d; a bare number is seconds."),
    regions: int = typer.Option(1, min=1, help="Regions, for the price."),
    strong: bool = typer.Option(False, "--strong", help="Strong or bounded-staleness reads."),
    candidates: list[str] = typer.Option(  # noqa: B008
        (), "--candidates", help="Compare only these; repeat it, or put ';' between them."
    ),
    current: str = typer.Option(None, help="The present key, to compare with."),
    database: str = typer.Option(None, help="Of a live container."),
    container: str = typer.Option(None, help="Of a live container; else its name in the answer."),
    scenario: str = typer.Option(None, help="A worked example instead of data; 'list' names them."),
    html: Path = typer.Option(None, help="Also write a page with plots."),  # noqa: B008
    graph: bool = typer.Option(
        False, "--graph", help="A graph: which vertex property. CSV, GraphSON, or a container."
    ),
    replay: bool = typer.Option(True, help="Play the workload out under the best keys."),
    seed: int = typer.Option(0, help="For the sample and everything else by chance."),
    json: bool = typer.Option(False, "--json", help="Answer and errors as JSON."),
) -> None:
    """Advise on a partition key: your data and workload under every key worth considering.

    Examples:
      armillary advise orders.jsonl --workload workload.json --throughput 40000
      armillary advise data/*.parquet --storage 2TB --growth 5GB --json
      armillary advise --scenario vehicles
      armillary advise --graph people.csv knows.csv
    """
    with reporting_errors(json, STOPPED):
        if find_spec("polars") is None:
            raise CommandError(NEEDS, EXIT_USAGE)
        if graph:
            from armillary.commands.advise.graphs import advise_graph

            advise_graph(list(data or ()), database, container, as_json=json)
            return
        if scenario == "list":
            _list_scenarios()
            return
        run = _Run(json, seed, database, container, replay)
        targets = _targets(throughput, storage, growth, ttl, regions, strong)
        if scenario:
            advice = run.scenario(scenario, targets)
        else:
            wanted = _workload(workload, trace)
            asked = _candidates([*candidates])
            present = next(iter(_candidates([current] if current else [])), None)
            advice = run.data(list(data or ()), wanted, targets, asked, present, trace)
        run.answer(advice, html)


# --- what is asked for ----------------------------------------------------------------------------


def _targets(
    throughput: str | None,
    storage: str | None,
    growth: str | None,
    ttl: str | None,
    regions: int,
    strong: bool,
) -> Targets:
    from armillary.advisor.workload.targets import Targets
    from armillary.commands.advise.options import duration, rate, size

    return Targets(
        rate(throughput, "--throughput"),
        size(storage, "--storage"),
        size(growth, "--growth"),
        duration(ttl, "--ttl"),
        regions,
        strong,
    )


def _candidates(texts: list[str]) -> list[Candidate]:
    from armillary.advisor.keys.candidates import parse_candidates
    from armillary.commands.advise.options import candidate_texts

    return parse_candidates(candidate_texts(texts))


def _workload(file: Path | None, trace: str | None) -> Workload | None:
    from armillary.advisor.workload.model import read_workload
    from armillary.advisor.workload.traced import workload_of
    from armillary.advisor.workload.traces import read_trace

    if file is not None:
        return read_workload(file)
    return None if trace is None else workload_of(read_trace(trace))


def _list_scenarios() -> None:
    from armillary.advisor.workload.scenarios import SCENARIOS

    for one in SCENARIOS.values():
        typer.echo(f"{one.name:10} {one.about}")


# --- running --------------------------------------------------------------------------------------


class _Run:
    """One call: where its items come from, its bars, and how it answers."""

    def __init__(
        self, as_json: bool, seed: int, database: str | None, container: str | None, replay: bool
    ) -> None:
        self.as_json, self.seed, self.replay = as_json, seed, replay
        self.database, self.container = database, container
        self.console = Console()
        self.lesson = ""

    def scenario(self, name: str, targets: Targets) -> Advice:
        from armillary.advisor.data.survey import survey
        from armillary.advisor.reading.frames import Reading
        from armillary.advisor.workload.scenarios import scenario

        chosen = scenario(name)
        self.lesson = chosen.lesson
        if not self.as_json:
            self.console.print(f"[bold]{chosen.name}[/]: {chosen.about}")
        reading = Reading()
        frames = reading.items(chosen.data(self.seed), name)
        found = survey(frames, reading, seed=self.seed)
        given = any((targets.throughput_ru, targets.storage_bytes, targets.growth_bytes_day))
        return self._advised(found, chosen.workload(), targets if given else chosen.targets, [])

    def data(
        self,
        data: list[str],
        workload: Workload | None,
        targets: Targets,
        candidates: list[Candidate],
        current: Candidate | None,
        trace: str | None,
    ) -> Advice:
        from armillary.advisor.advice.advising import wanted_paths
        from armillary.advisor.data.survey import survey
        from armillary.advisor.reading.frames import Reading

        if not data and trace is None:
            raise CommandError("Say what to advise on: files, a data folder, '-'.", EXIT_USAGE)
        reading = Reading()
        wanted = wanted_paths(workload, candidates)
        with self._items(data, trace, reading) as (frames, found_key):
            surveyed = survey(frames, reading, seed=self.seed, wanted=wanted)
        return self._advised(surveyed, workload, targets, candidates, current or found_key)

    def _advised(
        self,
        surveyed: Survey,
        workload: Workload | None,
        targets: Targets,
        candidates: list[Candidate],
        current: Candidate | None = None,
    ) -> Advice:
        from armillary.advisor.advice.advising import advise as run

        with self._bar("candidates") as shown:
            return run(
                surveyed,
                workload,
                targets,
                candidates=candidates,
                current=current,
                seed=self.seed,
                progress=shown,
            )

    @contextmanager
    def _items(
        self, data: list[str], trace: str | None, reading: Any
    ) -> Iterator[tuple[Iterator[Any], Candidate | None]]:
        """Frames of whatever was named, and the key it has if it is a container."""
        from armillary.advisor.reading.sources import find_sources
        from armillary.commands.advise.live import is_live, live_items

        if not data:
            from armillary.advisor.workload.traced import items_of
            from armillary.advisor.workload.traces import read_trace

            yield reading.items(items_of(read_trace(str(trace))), str(trace)), None
        elif len(data) == 1 and is_live(data[0]):
            with live_items(data[0], self.database, self.container) as (items, key):
                yield reading.items(items, "the container"), key
        else:
            sources = find_sources(data)
            total = sum(one.size_bytes for one in sources)
            with self._bar("reading") as shown:
                yield reading.files(sources, lambda done: shown(done, total)), None

    def answer(self, advice: Advice, html: Path | None) -> None:
        from armillary.advisor.advice.answer import as_json
        from armillary.advisor.advice.verdict import settled, verdict_lines

        name = self.container or "items"
        comparison = self._replayed(advice, html is not None)
        advice = settled(advice, comparison)
        answer = {"verdict": verdict_lines(advice, comparison), **as_json(advice, name)}
        if comparison is not None:
            answer["replay"] = comparison.as_json()
        if html is not None and comparison is not None:
            from armillary.advisor.advice.paging import page_of

            html.write_text(page_of(advice, answer, comparison), "utf-8")
        if self.as_json:
            typer.echo(orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode())
        else:
            from armillary.commands.advise.report import show

            show(self.console, answer, comparison)
            if self.lesson:
                self.console.print(f"[bold]Lesson.[/] {self.lesson}")
            if html is not None:
                self.console.print(f"Plots are in {html}.")
        if advice.survey.stopped:
            raise typer.Exit(EXIT_PARTIAL)

    def _replayed(self, advice: Advice, page: bool) -> Comparison | None:
        """The best candidates side by side; a page wants a whole minute of it."""
        if not (self.replay or page):
            return None
        from armillary.advisor.advice.paging import replayed

        return replayed(advice, self.seed, short=not page)

    @contextmanager
    def _bar(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """On a terminal, on standard error; it appears only there."""
        console = Console(stderr=True)
        if self.as_json or not console.is_terminal:
            yield lambda done, total: None
            return
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn(what), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("", total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total or None)
