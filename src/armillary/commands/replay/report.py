"""A comparison of keys in the terminal, and as a page."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from armillary.advisor.page.build import PageInput, page
from armillary.advisor.page.words import money, number, percent, seconds
from armillary.advisor.replay.result import Comparison
from armillary.advisor.replay.verdicts import LOST, full_in, lost, verdicts
from armillary.partition.provisioning.partitions import PartitionLimits

COLOURS = {"recommended": "green", "possible": "yellow", "rejected": "red"}
COLUMNS = ("429s", "lost", "p99", "busiest", "asked", "20 GB", "RU/s")
#: Where there is room for them.
COLUMNS_WIDE = ("largest", "$/h")
WIDE = 100


def say(found: Comparison, notes: list[str], html: Path | None) -> None:
    console = Console()
    weight = f", each standing for {number(found.weight)}" if found.weight > 1 else ""
    console.print(
        f"{number(found.operations)} operations in {number(found.seconds)} s{weight}, under "
        f"{number(found.throughput)} RU/s ({found.offer})"
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("key", overflow="fold", min_width=10)
    wide = console.width >= WIDE
    for name in (*COLUMNS, *(COLUMNS_WIDE if wide else ())):
        table.add_column(name, justify="right", min_width=len(name))
    judged = verdicts(found)
    for verdict in judged:
        one = found.of(verdict.key)
        assert one is not None, "every verdict is about a replay"
        table.add_row(
            Text(one.key, COLOURS[verdict.verdict]),
            percent(one.throttled_share),
            lost(one),
            seconds(one.wait_p99_ms),
            f"{one.skew:.2f}×",
            number(one.fan_out_mean),
            full_in(one),
            "none" if one.needed_ru is None else number(one.needed_ru),
            *([f"{one.storage_skew:.2f}×", money(one.needed_cost_per_hour)] if wide else []),
        )
    console.print(table)
    console.print(
        f"429s of all requests; {LOST}; p99: the wait of the slowest; busiest "
        f"{'and largest ' if wide else ''}partition against the mean; partitions asked per "
        f"operation; when the first key is full; RU/s {'and $ per hour ' if wide else ''}that "
        "would be enough."
    )
    for verdict in judged:
        console.print()
        console.print(Text(f"{verdict.key}: {verdict.verdict}", COLOURS[verdict.verdict]))
        for why in verdict.reasons:
            console.print(Text(f"  {why}"))
    for note in notes:
        console.print(Text(f"Note: {note}", "dim"))
    if html is not None:
        console.print(f"\nWrote {html}.")


def written(
    file: Path, found: Comparison, source: str, notes: list[str], limits: PartitionLimits
) -> None:
    given = PageInput(
        found, verdicts(found), "Partition keys, replayed", source, tuple(notes), limits
    )
    file.write_text(page(given), "utf-8")
