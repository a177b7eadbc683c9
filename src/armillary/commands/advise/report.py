"""The answer of `armillary advise` in a terminal: the verdict, and below it what it rests on."""

import json
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from armillary.advisor.page.words import money, number, percent, seconds
from armillary.advisor.replay.result import Comparison
from armillary.advisor.replay.verdicts import LOST, full_in, lost
from armillary.ring.words import plural
from armillary.units import bytes_text

ROWS_MAX: Final = 8
WIDE: Final = 100
#: Two numbers of two origins: what shares say of all keys, and what the replay of some needed.
NEEDED: Final = "≈RU/s: estimated from shares; RU/s: enough in the replay"
VERDICT_COLOURS: Final = {"recommended": "green", "acceptable": "yellow", "rejected": "red"}


def show(
    console: Console,
    answer: dict[str, Any],
    comparison: Comparison | None = None,
    *,
    rows: int = ROWS_MAX,
) -> None:
    title, *lines = answer["verdict"]
    console.print(Text(title, style="bold"))
    for line in lines:
        console.print(Padding(Text(f"· {line}"), (0, 0, 0, 2)))
    console.print()
    console.print(_head(answer))
    console.print(_table(answer, rows, wide=console.width >= WIDE))
    if comparison is not None:
        console.print(_replay(comparison, answer, wide=console.width >= WIDE))
        console.print(Text(f"{LOST}. {NEEDED}.", style="dim"))
    console.print(_recommendation(answer))
    for one in answer["patterns"]:
        console.print(Text.assemble((f"Pattern: {one['name']}. ", "bold"), one["seen"]))
        console.print(Text(f"  {one['advice']}"))
    _others(console, answer, rows)
    if answer["notes"]:
        console.print(Text("Notes", style="bold"))
        for note in answer["notes"]:
            console.print(Text(f"  · {note}"))


def _head(answer: dict[str, Any]) -> Text:
    given = answer["inputs"]
    assumed = " (assumed)" if given["workload"]["assumed"] else ""
    return Text(
        f"{plural(given['items'], 'item')}, {bytes_text(given['bytes'])}, "
        f"{given['item_bytes']:,.0f} bytes each. Judged at {given['partitions_judged']} physical "
        f"partitions, {given['throughput_ru']:,.0f} RU/s, {bytes_text(given['storage_bytes'])}; "
        f"{given['workload']['rate']:,.0f} operations/s{assumed}."
    )


def _table(answer: dict[str, Any], rows: int, *, wide: bool) -> Table:
    # In 80 columns every number has its place, and the key is folded.
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", justify="right", min_width=2)
    table.add_column("key", overflow="fold", min_width=24 if wide else 12)
    table.add_column("verdict", min_width=11)
    for name in ("score", "values", "φ", "heat", "cross", "≈RU/s", *(["$/month"] if wide else [])):
        table.add_column(name, justify="right", min_width=max(5, len(name)))
    for one in _chosen(answer, rows):
        m, colour = one["measures"], VERDICT_COLOURS[one["verdict"]]
        table.add_row(
            str(one["rank"]),
            escape(one["key"]),
            f"[{colour}]{one['verdict']}[/]",
            f"{one['score']:.0f}",
            _count(m["distinct"]),
            f"{m['phi_target']:.2f}",
            f"{100 * m['temporal_heat']:.1f}%",
            f"{100 * m['cross_partition_share']:.0f}%",
            _count(m["ru_needed"]),
            *([_count(m["dollars_month"])] if wide else []),
        )
    return table


def _replay(comparison: Comparison, answer: dict[str, Any], *, wide: bool) -> Table:
    """The same operations under each key, by the rules of the server (`armillary replay`)."""
    verdicts = {one["key"]: one["verdict"] for one in answer["candidates"]}
    title = (
        f"Replayed for {number(comparison.seconds)} s under {number(comparison.throughput)} RU/s"
    )
    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), title=title, title_justify="left"
    )
    table.add_column("key", overflow="fold", min_width=12)
    more = ["$/h"] if wide else []
    for name in ("429s", "lost", "p99", "busiest", "asked", "20 GB", "RU/s", *more):
        table.add_column(name, justify="right", min_width=max(4, len(name)))
    for one in comparison.replays:
        table.add_row(
            Text(one.key, VERDICT_COLOURS[verdicts[one.key]]),
            percent(one.throttled_share),
            lost(one),
            seconds(one.wait_p99_ms),
            f"{one.skew:.2f}×",
            number(one.fan_out_mean),
            full_in(one),
            "none" if one.needed_ru is None else _count(one.needed_ru),
            *([money(one.needed_cost_per_hour)] if wide else []),
        )
    return table


def _count(number: float) -> str:
    """In at most five characters."""
    for unit in ("", "k", "M", "G"):
        if number < 9_999.5 or unit == "G":
            break
        number /= 1_000
    return f"{number:,.0f}{unit}" if unit == "" or number >= 100 else f"{number:.1f}{unit}"


def _chosen(answer: dict[str, Any], rows: int) -> list[dict[str, Any]]:
    """The first ones, and always the baseline, the present key, and plain paths that failed."""
    found = answer["candidates"][:rows]
    always = {"/id", answer["inputs"]["current_key"]}
    rest = answer["candidates"][rows:]
    extra = [one for one in rest if one["key"] in always]
    failed = [one for one in rest if one["kind"] == "path" and one["verdict"] == "rejected"]
    return [*found, *extra, *[one for one in failed if one not in extra][:6]]


def _recommendation(answer: dict[str, Any]) -> RenderableType:
    first = answer["recommended"]
    title = f"{first['key']}  ({first['kind']})"
    if first["verdict"] != "recommended":
        title = f"No key passes every check; the least bad is {title}"
    parts: list[RenderableType] = [Text("Container", style="bold")]
    parts += [Text(json.dumps(first["definition"]))]
    parts += [Text("\nPython", style="bold"), Text(first["python"])]
    if first["function"]:
        parts += [Text("\nThe key in any program", style="bold"), Text(first["function"])]
    parts += [Text("\nFrom another key", style="bold"), Text("\n".join(first["migration"]))]
    return Panel(Group(*parts), title=escape(title), title_align="left", border_style="green")


def _others(console: Console, answer: dict[str, Any], rows: int) -> None:
    """Why not each of the others, and of those that fail, when."""
    console.print(Text("Why not the others", style="bold"))
    for one in _chosen(answer, rows)[1:]:
        when = f" — goes wrong {one['when']}" if "when" in one else ""
        console.print(Text.assemble((f"  {one['key']}", "bold"), f"  {one['verdict']}{when}"))
        for reason in one["reasons"]:
            console.print(Padding(Text(reason), (0, 0, 0, 4)))
        if one.get("cure"):
            console.print(Padding(Text(f"Cure: {one['cure']}"), (0, 0, 0, 4)))
