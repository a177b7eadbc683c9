"""The demonstration: the same readings under a bad, a repaired and a good partition key, drawn in
the terminal.

Data is made from a seed, written through the ordinary API into an account in memory, and read back
from the statistics the store keeps. Nothing is computed for show.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress import track
from rich.table import Table
from rich.text import Text

import armillary
from armillary.container import Container
from armillary.units import bytes_text
from armillary.values import JSON

PARTITIONS = 8
READINGS = 4_000
BAR_WIDTH = 40
COUNTRIES = (("de", 55), ("fr", 20), ("nl", 10), ("at", 8), ("ch", 5), ("be", 2))


@dataclass(frozen=True, slots=True)
class Candidate:
    name: str
    options: dict[str, JSON]
    remark: str


CANDIDATES = (
    Candidate(
        "/country",
        {"partition_key": "/country"},
        "six values, one of them popular: most of the data sits on one physical partition",
    ),
    Candidate(
        '/country + "." + hash(/deviceId, 40)',
        {
            "synthetic_key": {
                "version": 1,
                "path": "/partitionKey",
                "parts": ["/country"],
                "separator": ".",
                "suffix": {"kind": "computed", "k": 40, "source": "/deviceId"},
            }
        },
        "a synthetic key: the popular country in forty parts, each found again by the device",
    ),
    Candidate(
        "/deviceId",
        {"partition_key": "/deviceId"},
        "many values, all alike: every partition carries its share",
    ),
)


def readings(count: int, seed: int = 2018) -> Iterator[dict[str, JSON]]:
    random = Random(seed)
    names = [name for name, _ in COUNTRIES]
    weights = [weight for _, weight in COUNTRIES]
    for number in range(count):
        yield {
            "id": f"r{number}",
            "deviceId": f"device-{random.randrange(400):03}",
            "country": random.choices(names, weights)[0],
            "temperature": round(random.gauss(20, 5), 1),
            "at": f"2018-08-{1 + number * 31 // count:02}T{random.randrange(24):02}:00:00Z",
        }


def run_demo(console: Console, count: int = READINGS) -> dict[str, dict[str, JSON]]:
    """What came of each key."""
    facts: dict[str, dict[str, JSON]] = {}
    with armillary.open(":memory:", seed=2018, housekeeping=False) as account:
        database = account.create_database("telemetry")
        for number, candidate in enumerate(CANDIDATES):
            container = database.create_container(
                f"readings-{number}", physical_partitions=PARTITIONS, **candidate.options
            )
            items = list(readings(count))
            for start in track(
                range(0, count, 500), candidate.name, console=console, transient=True
            ):
                container.bulk([("create", (item,)) for item in items[start : start + 500]])
            console.print(draw(container, candidate))
            sizes = [one.size_bytes for one in container.partitions()]
            facts[candidate.name] = {
                "items": count,
                "bytes": sum(sizes),
                "partitions": len(sizes),
                "fullest_by_mean": round(max(sizes) * len(sizes) / sum(sizes), 2),
            }
    return facts


def draw(container: Container, candidate: Candidate) -> RenderableType:
    partitions = container.partitions()
    largest = max(one.size_bytes for one in partitions)
    mean = sum(one.size_bytes for one in partitions) / len(partitions)
    bars = Table.grid(padding=(0, 1))
    for one in partitions:
        hot = one.size_bytes > 1.5 * mean
        bars.add_row(
            Text(one.id, style="dim", justify="right"),
            Text(_bar(one.size_bytes, largest), style="dark_orange" if hot else "steel_blue1"),
            Text(bytes_text(one.size_bytes), justify="right"),
            Text(f"{one.items:,} items", style="dim", justify="right"),
        )
    top = container.logical_partitions(top=3)
    total = sum(one.size_bytes for one in partitions)
    keys = ", ".join(f"{one.key[0]} {one.size_bytes / total:.0%}" for one in top)
    skew = Text.assemble(
        ("fullest ÷ mean  ", "dim"),
        (f"{largest / mean:.2f}", "bold"),
        ("   largest keys  ", "dim"),
        keys,
    )
    return Panel(
        Group(Text(candidate.remark, style="italic"), Text(), bars, Text(), skew),
        title=f"[bold]{candidate.name}",
        title_align="left",
        subtitle=f"{len(partitions)} physical partitions",
        subtitle_align="right",
        width=92,
    )


def _bar(value: float, largest: float) -> str:
    """Eighths of a block, so that small differences show."""
    eighths = round(8 * BAR_WIDTH * value / largest) if largest else 0
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
