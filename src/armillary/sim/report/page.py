"""The result of a simulation as one HTML page: everything inside, no request to anywhere."""

from collections.abc import Callable
from html import escape
from typing import Any

from armillary.sim import svg
from armillary.sim.arithmetic import Arithmetic
from armillary.sim.container.placing import Floats
from armillary.sim.quantities import show_count
from armillary.sim.report.result import Result
from armillary.sim.scenario import DAY, HOUR
from armillary.units import bytes_text

PLOT_POINTS = 400
BARS_MAX = 400
EVENTS_SHOWN = 200

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --paper: #fff; --faint: #d5dae1; --soft: #667; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ee; --paper: #14181e; --faint: #333b46; --soft: #9aa4b2; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 1180px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin: 0 0 .4rem; }
.about { color: var(--soft); margin-top: .2rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(480px, 1fr)); gap: 1.2rem; }
figure { margin: 0; border: 1px solid var(--faint); border-radius: 8px; padding: .8rem; }
figcaption { font-weight: 600; } figure p { color: var(--soft); margin: .1rem 0 .4rem; }
svg { width: 100%; height: auto; } .axis { fill: var(--soft); font-size: 11px; }
.grid { stroke: var(--faint); } .line { fill: none; stroke-width: 1.8; }
.line.s0 { stroke: #2f6fdb; } .line.s1 { stroke: #d9662b; } .line.s2 { stroke: #2f9e6e; }
.legend { font-size: 12px; } .legend.s0 { fill: #2f6fdb; } .legend.s1 { fill: #d9662b; }
.legend.s2 { fill: #2f9e6e; } .bar { fill: #2f6fdb; }
.limit { stroke: #c2372e; stroke-dasharray: 5; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
td, th { text-align: left; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid var(--faint); }
td.n, th.n { text-align: right; } section { margin-top: 1.6rem; }
"""


def page(result: Result, facts: Arithmetic) -> str:
    scenario = result.scenario
    body = [
        f"<h1>{escape(scenario.name)}</h1><p class=about>{escape(scenario.about)}</p>",
        f"<section>{_summary(result)}</section>",
        f"<section class=plots>{''.join(_plots(result))}</section>",
        f"<section><h2>Looked at second by second</h2>{_windows(result)}</section>",
        f"<section><h2>By the rules</h2>{_facts(facts)}</section>",
        f"<section><h2>Log</h2>{_log(result.log)}</section>",
    ]
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{escape(scenario.name)} – simulation</title><style>{STYLE}</style>"
        f"<body>{''.join(body)}</body></html>"
    )


def _summary(result: Result) -> str:
    last = result.hours[-1]
    worst = result.worst
    rows = [
        ("Physical partitions", f"{last.partitions:,}"),
        ("Stored", bytes_text(last.bytes)),
        (
            "Throughput",
            f"{show_count(last.throughput)} RU/s, {last.range_ru:,.0f} in each partition",
        ),
        ("Splits", f"{result.splits:,}; {bytes_text(result.bytes_moved)} rewritten"),
        ("Mean fill", f"{result.fill_mean:.1%}"),
        ("Fullest by mean", f"{last.phi_bytes:.3f} in bytes, {last.phi_ru:.3f} in request units"),
        ("Heaviest key", f"{result.top_share:.3%}: {show_count(result.top_key_ru)} RU/s at most"),
        ("Worst window", f"{worst.refused_share:.2%} of requests refused" if worst else "none"),
        ("Cost", f"${result.cost:,.0f} in {scenario_days(result)} days"),
    ]
    rows += [("Hot", text) for text in result.hot[:5]]
    rows += [
        (f"{alarm.key} {alarm.kind}", f"{bytes_text(alarm.bytes)} on {alarm.at[:10]}")
        for alarm in result.alarms[:10]
    ]
    return _table(rows)


def scenario_days(result: Result) -> str:
    end = result.scenario.end_s if result.stopped_at is None else result.stopped_at
    return f"{end / DAY:g}"


def _plots(result: Result) -> list[str]:
    series = result.series(PLOT_POINTS)
    days = [t / DAY for t in series["t"]]
    for column in ("cost_ru", "cost_storage"):
        # A point stands for several hours, whose costs are added up.
        ends = zip(series["t"], [0.0, *series["t"]], strict=False)
        spans = [max(1.0, (end - start) / HOUR) for end, start in ends]
        series[column] = [cost / hours for cost, hours in zip(series[column], spans, strict=True)]

    def over_time(*named: tuple[str, str], show: Callable[[float], str]) -> str:
        chosen = [(name, series[column]) for name, column in named]
        return svg.lines(days, chosen, x_label="days", show=show)

    heat = result.heat()[1]
    plots = [
        ("Physical partitions", "", over_time(("N", "partitions"), show=show_count)),
        (
            "Bytes of a partition",
            "the fullest, the mean and the emptiest",
            over_time(
                ("fullest", "bytes_max"),
                ("mean", "bytes_mean"),
                ("least", "bytes_min"),
                show=_short_bytes,
            ),
        ),
        (
            "Request units of a partition",
            "asked for in a second, against what each may spend",
            over_time(
                ("busiest", "ru_max"), ("budget", "range_ru"), ("mean", "ru_mean"), show=show_count
            ),
        ),
        (
            "Fullest by mean",
            "1 is even",
            over_time(("bytes", "phi_bytes"), ("request units", "phi_ru"), show=lambda v: f"{v:g}"),
        ),
        (
            "Refused",
            "share of what is asked for above the budget of its partition, by expectation",
            over_time(("refused", "refused"), show=lambda v: f"{v:.0%}"),
        ),
        ("Splits", "in each interval", over_time(("splits", "splits"), show=show_count)),
        (
            "Cost of an hour",
            "dollars, list price",
            over_time(
                ("throughput", "cost_ru"), ("storage", "cost_storage"), show=lambda v: f"${v:g}"
            ),
        ),
        (
            "Storage per physical partition",
            "at the end, in the order of the hash space",
            svg.bars(
                _thinned(result.last_sizes),
                x_label=f"{len(result.last_sizes):,} partitions",
                show=_short_bytes,
                limit=float(result.scenario.limits.bytes),
            ),
        ),
    ]
    if heat:
        plots.append(
            (
                "Normalised consumption",
                "minutes of the windows from left to right, hash space from top to bottom",
                svg.heat(heat, x_label=f"{len(heat)} minutes", y_label="0–100 %"),
            )
        )
    worst = result.worst
    if worst is not None:
        seconds = [float(i) for i in range(worst.seconds)]
        sent = [float(n) for n in worst.sent]
        plots.append(
            (
                "The worst window",
                f"day {worst.start_s / DAY:.2f}: requests sent and refused, by second",
                svg.lines(
                    seconds,
                    [("sent", sent), ("refused", [float(n) for n in worst.refused])],
                    x_label="seconds",
                    show=show_count,
                ),
            )
        )
    return [
        f"<figure><figcaption>{escape(title)}</figcaption><p>{escape(about)}</p>{plot}</figure>"
        for title, about, plot in plots
    ]


def _short_bytes(size: float) -> str:
    return "0" if not size else bytes_text(size)


def _thinned(values: Floats) -> list[float]:
    """Of too many bars, the highest of each group."""
    step = max(1, -(-len(values) // BARS_MAX))
    return [float(values[i : i + step].max()) for i in range(0, len(values), step)]


def _windows(result: Result) -> str:
    head = "<tr><th>day<th>region<th class=n>429<th class=n>retries<th class=n>given up"
    head += "<th class=n>p50 ms<th class=n>p99 ms<th>most refused"
    rows = []
    for one in result.windows:
        keys = ", ".join(
            f"key {k + 1} {share:.0%}" for k, share, _ in one.key_refused[:3] if share > 0.01
        )
        rows.append(
            f"<tr><td>{one.start_s / DAY:.2f}<td>{escape(one.region)}"
            f"<td class=n>{one.refused_share:.2%}<td class=n>{one.retries:,}"
            f"<td class=n>{sum(one.failed):,}<td class=n>{one.latency_ms(0.5):,.1f}"
            f"<td class=n>{one.latency_ms(0.99):,.1f}<td>{escape(keys)}"
        )
    return f"<table>{head}{''.join(rows)}</table>"


def _facts(facts: Arithmetic) -> str:
    return _table([(name.replace("_", " "), f"{v:,.6g}") for name, v in facts.as_json().items()])


def _log(log: list[dict[str, Any]]) -> str:
    rows = [
        (
            str(event["at"]),
            f"{event['event']}: "
            + ", ".join(f"{k} {v}" for k, v in event.items() if k not in ("t", "at", "event")),
        )
        for event in log[-EVENTS_SHOWN:]
    ]
    more = len(log) - len(rows)
    note = f"<p class=about>{more:,} earlier events are in the log file.</p>" if more > 0 else ""
    return note + _table(rows)


def _table(rows: list[tuple[str, str]]) -> str:
    return "<table>" + "".join(f"<tr><th>{escape(a)}<td>{escape(b)}" for a, b in rows) + "</table>"
