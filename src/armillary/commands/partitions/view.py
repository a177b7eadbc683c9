"""The ring of a container in a terminal.

    ▕███▓▓▓░░░░▓▓▓███▏   the ring, unrolled: a cell for each part of the hashes, coloured by heat
    partitions           storage against the size where they split, RU/s, 429s
    keys                 share of the request units, bytes against the limit of one key
    news                 the latest splits and merges

The terminal's link to the picture of the same numbers is `…/ring.svg` of a server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.style import Style
from rich.table import Table
from rich.text import Text

from armillary.ring.model import Arc, Ring
from armillary.ring.style import heat_colour, heat_step
from armillary.ring.svg import storage_scale
from armillary.ring.words import amount, cut, plural, rate, share
from armillary.units import bytes_text

STRIP_CELLS: Final = 72
BAR_CELLS: Final = 18
WIDE: Final = 100
"""Columns that a terminal needs for everything."""
NARROW: Final = 76
"""With fewer, budgets have no place either."""
KEYS_SHOWN: Final = 8
EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def draw(ring: Ring, news: Sequence[str], rows: int, width: int = WIDE) -> RenderableType:
    """In a narrow terminal without what can be read from the rest."""
    wide = width >= WIDE
    cells = min(STRIP_CELLS, max(20, width - 6))
    parts: list[RenderableType] = [
        _strip(ring, cells, wide),
        Text(),
        _partitions(ring, rows, width),
    ]
    if len(ring.arcs) > rows:
        parts.append(Text(f"the {rows} hottest of {len(ring.arcs)} partitions", style="dim"))
    if ring.keys:
        parts += [Text(), _keys(ring)]
    if news or ring.moves:
        parts += [Text(), _news(ring, news)]
    if not wide:
        parts += [Text(), _totals(ring)]
    name = f"{cut(ring.database, 40)}/{cut(ring.container, 40)}"
    title = Text.assemble((name, "bold"), f"  {' / '.join(ring.partition_key)}")
    return Panel(
        Group(*parts),
        title=title,
        title_align="left",
        subtitle=_totals(ring) if wide else None,
        subtitle_align="right",
        expand=False,
    )


def bar(part: float, cells: int) -> str:
    """Eighths of a block, so that small differences show; what is there is never nothing."""
    eighths = round(8 * cells * min(1.0, max(0.0, part)))
    if part > 0:
        eighths = max(1, eighths)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (EIGHTHS[rest] if rest else "")


def _totals(ring: Ring) -> Text:
    budget = "unlimited" if ring.throughput is None else f"{ring.throughput:,}"
    said = [
        plural(len(ring.arcs), "partition"),
        plural(ring.items, "item"),
        bytes_text(ring.bytes),
        f"{rate(ring.used_ru)} of {budget} RU/s",
        f"{amount(ring.refused)} × 429",
    ]
    return Text(" · ".join(said))


def _strip(ring: Ring, cells: int, wide: bool) -> Text:
    text = Text("▕", style="dim")
    at = 0
    for cell in range(cells):
        middle = (cell + 0.5) / cells
        while at + 1 < len(ring.arcs) and ring.arcs[at].end <= middle:
            at += 1
        first = ring.arcs[at].start > (cell - 0.5) / cells
        text.append("▌" if first and cell else "█", _colour(ring.arcs[at]))
    return text.append("▏", "dim").append("  hashes, coloured by heat" if wide else "", "dim")


def _colour(one: Arc) -> Style:
    return Style(color=heat_colour(heat_step(one.normalised), "dark"))


def _partitions(ring: Ring, rows: int, width: int) -> Table:
    wide = width >= WIDE
    scale, is_limit = storage_scale(ring)
    against = f"of {bytes_text(scale)}" if is_limit else ""
    bar_cells = BAR_CELLS if wide else BAR_CELLS // 2
    table = Table(box=None, padding=(0, 1), header_style="dim", pad_edge=False)
    table.add_column("partition" if wide else "id", justify="right", no_wrap=True)
    if wide:
        table.add_column("of the ring", justify="right")
    table.add_column(f"stored {against}" if wide else "stored", min_width=bar_cells, no_wrap=True)
    for name in ("", "items", "RU/s", "busiest", "429"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for one in _shown(ring, rows):
        hot = one.normalised >= 90
        has_budget = width >= NARROW and one.ru_per_s is not None
        budget = f" / {rate(one.ru_per_s or 0)}" if has_budget else ""
        table.add_row(
            one.id,
            *([share(one.end - one.start)] if wide else []),
            Text(bar(one.bytes / scale if scale else 0, bar_cells), style="steel_blue1"),
            bytes_text(one.bytes),
            amount(one.items),
            f"{rate(one.used_ru)}{budget}",
            Text(f"{one.normalised:.0f} %", style="bold dark_orange" if hot else ""),
            Text(amount(one.refused), style="bold magenta" if one.refused else "dim"),
            Text("" if one.status == "online" else one.status, style="green"),
        )
    return table


def _shown(ring: Ring, rows: int) -> Sequence[Arc]:
    if len(ring.arcs) <= rows:
        return ring.arcs
    hottest = sorted(ring.arcs, key=lambda one: (-one.normalised, -one.bytes))[:rows]
    return sorted(hottest, key=lambda one: one.start)


def _keys(ring: Ring) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="dim", pad_edge=False)
    table.add_column("heaviest keys")
    table.add_column("of all RU", justify="right")
    table.add_column("stored", justify="right")
    table.add_column(f"of {bytes_text(ring.logical_bytes)}", justify="right")
    table.add_column("partition", justify="right")
    for one in ring.keys[:KEYS_SHOWN]:
        full = one.bytes / ring.logical_bytes
        table.add_row(
            Text(cut(one.label, 40)),
            share(one.ru_share),
            bytes_text(one.bytes),
            Text(share(full), style="bold dark_orange" if full >= 0.7 else ""),
            one.partition,
        )
    return table


def _news(ring: Ring, news: Sequence[str]) -> Text:
    lines = [Text(one) for one in news]
    for move in ring.moves:
        children = ", ".join(child.id for child in move.children)
        text = f"now       {move.kind} of {', '.join(move.parents)} into {children}"
        lines.append(Text(text, style="green"))
    return Text("\n").join(lines)
