"""Charts alongside the ring: a column for each physical partition, and heat over time.

    columns   │    ┌┐ ┄┄┄┄ limit        heat map   partition 0 ░░▒▓██
              │ ┌┐ ││ ┌┐                           partition 1 ░░░░░░
              └─┴┴─┴┴─┴┴──                                     5 min ago … now

Pure functions, as all of `ring`. Colours are those of the page (`style.page_css`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Final

from armillary.ring.style import heat_step
from armillary.ring.words import cut, rate

WIDTH: Final = 420
HEIGHT: Final = 230
LEFT: Final = 52.0
RIGHT: Final = 416.0
TOP: Final = 22.0
BOTTOM: Final = 204.0
LABEL_WIDTH: Final = 24.0


@dataclass(frozen=True, slots=True)
class Column:
    id: str
    value: float
    limit: float | None
    label: str
    kind: str
    """The class of its colour."""


def columns_svg(
    title: str,
    columns: Sequence[Column],
    text: Callable[[float], str],
    limit_text: str = "",
) -> str:
    """Limits are shown once they are near: else every column would be a line on the floor."""
    highest = max((one.value for one in columns), default=0.0)
    limit = max((one.limit or 0.0 for one in columns), default=0.0)
    with_limit = 0 < limit <= 20 * highest
    top = nice_above(max(highest, limit if with_limit else 0.0))
    width = (RIGHT - LEFT) / max(1, len(columns))
    parts = [*_frame(title, top, text, with_scale=highest > 0)]
    every = label_every(len(columns), width)
    for n, one in enumerate(columns):
        parts += _column(one, n, width, top, with_limit, with_label=n % every == 0)
    if with_limit and limit_text:
        # Above everything: at the line itself a column could lie under it.
        shown = escape(f"┄ {limit_text}")
        parts.append(f'<text class="tiny end dim" x="{RIGHT}" y="{TOP - 8}">{shown}</text>')
    parts.append("</svg>")
    return "".join(parts)


def nice_above(value: float) -> float:
    """The next of 1, 2, 5, 10, …: the end of an axis."""
    if value <= 0:
        return 1.0
    step = 1.0
    while step < value:
        step *= 10
    while step / 10 >= value:
        step /= 10
    return next(part * step for part in (0.1, 0.2, 0.5, 1.0) if part * step >= value)


def label_every(count: int, width: float) -> int:
    steps = (factor * tens for tens in (1, 10, 100, 1000) for factor in (1, 2, 5))
    return next((step for step in steps if step * width >= LABEL_WIDTH), max(1, count))


def _frame(
    title: str, top: float, text: Callable[[float], str], *, with_scale: bool
) -> Iterator[str]:
    """Without a scale where there is nothing to measure."""
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="a-ring" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img"><title>{escape(title)}</title>'
    )
    for part in (0.0, 0.5, 1.0) if with_scale else (0.0,):
        y = _y(top * part, top)
        yield f'<path class="rule" d="M{LEFT} {y:.1f}H{RIGHT}"/>'
        label = escape(text(top * part))
        yield f'<text class="tiny end dim" x="{LEFT - 6}" y="{y + 3.5:.1f}">{label}</text>'


def _column(
    one: Column, n: int, width: float, top: float, with_limit: bool, *, with_label: bool
) -> Iterator[str]:
    gap = min(6.0, width * 0.18)
    x, wide = LEFT + n * width + gap / 2, min(width - gap, 64.0)
    x += (width - gap - wide) / 2
    y = _y(one.value, top)
    if one.value > 0:
        y = min(y, BOTTOM - 1.5)
    yield f'<g class="column" data-id="{escape(one.id)}"><title>{escape(one.label)}</title>'
    yield f'<path class="track" d="M{x:.1f} {TOP}h{wide:.1f}V{BOTTOM}h-{wide:.1f}Z"/>'
    yield f'<path class="{one.kind}" d="M{x:.1f} {y:.1f}h{wide:.1f}V{BOTTOM}h-{wide:.1f}Z"/>'
    if with_limit and one.limit:
        at = _y(one.limit, top)
        yield f'<path class="limit-line" d="M{x - gap / 2:.1f} {at:.1f}h{wide + gap:.1f}"/>'
    if with_label:
        middle = x + wide / 2
        text = escape(cut(one.id, 6))
        yield f'<text class="tiny mid dim" x="{middle:.1f}" y="{BOTTOM + 15}">{text}</text>'
    yield "</g>"


def _y(value: float, top: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * min(1.0, value / top)


# --- heat over time -------------------------------------------------------------------------------


def heatmap_svg(
    title: str,
    rows: Sequence[tuple[str, Sequence[float]]],
    budgets: Mapping[str, float | None],
    seconds: int,
) -> str:
    """`rows`: partition and its RU/s in equal bins up to now. Drawn in units of bins and rows, as
    strokes over a cold ground: neighbouring cells of one colour are one stroke, and all of a colour
    are one path. It is sent every few seconds, and 200 busy partitions are 12,000 cells.
    """
    bins = max((len(series) for _, series in rows), default=0) or 1
    row_height = (BOTTOM - TOP) / max(1, len(rows))
    gap = min(2.0, row_height * 0.12)
    cell = (RIGHT - LEFT) / bins
    strokes: dict[int, list[str]] = {0: [f"M0 {n}h{bins}" for n in range(len(rows))]}
    labels = []
    every = label_every(len(rows), row_height * LABEL_WIDTH / 11)
    for n, (id, series) in enumerate(rows):
        budget = budgets.get(id)
        steps = [heat_step(100 * ru / budget) if budget else int(ru > 0) for ru in series]
        at = bins - len(steps)
        for step, run in groupby(steps):
            length = len(list(run))
            if step:
                strokes.setdefault(step, []).append(f"M{at} {n}h{length}")
            at += length
        if n % every == 0:
            y = TOP + (n + 0.5) * row_height + 3.5
            labels.append(
                f'<text class="tiny end dim" x="{LEFT - 6}" y="{y:.1f}">{escape(cut(id, 8))}</text>'
            )
    drawn = "".join(
        f'<path class="s{step}" d="{"".join(strokes[step])}"/>' for step in sorted(strokes)
    )
    ground = f"translate({LEFT} {TOP + row_height / 2:.3f}) scale({cell:.4f} {row_height:.4f})"
    drawn = f'<g transform="{ground}" stroke-width="{1 - gap / row_height:.3f}">{drawn}</g>'
    ago = f"{seconds // 60} min ago" if seconds >= 120 else f"{seconds} s ago"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="a-ring" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img"><title>{escape(title)}</title>{drawn}{"".join(labels)}'
        f'<text class="tiny dim" x="{LEFT}" y="{BOTTOM + 15}">{ago}</text>'
        f'<text class="tiny end dim" x="{RIGHT}" y="{BOTTOM + 15}">now</text></svg>'
    )


def _box(x: float, y: float, wide: float, high: float) -> str:
    return f"M{x:.1f} {y:.1f}h{wide:.1f}v{high:.1f}h-{wide:.1f}z"


# --- requests over time ---------------------------------------------------------------------------


def traffic_svg(seconds: Sequence[tuple[int, int]]) -> str:
    """Requests that were done, and on top of them those refused, second by second up to now."""
    top = nice_above(max((done + refused for done, refused in seconds), default=0))
    width = (RIGHT - LEFT) / max(1, len(seconds))
    done_path, refused_path = [], []
    for n, (done, refused) in enumerate(seconds):
        x, wide = LEFT + n * width, width * 0.8
        low, high = _y(done, top), _y(done + refused, top)
        if done:
            done_path.append(_box(x, low, wide, BOTTOM - low))
        if refused:
            refused_path.append(_box(x, high, wide, low - high))
    title = "Requests per second: done, and refused with 429"
    parts = [*_frame(title, top, rate, with_scale=any(map(any, seconds)))]
    parts.append(f'<path class="store" d="{"".join(done_path)}"/>')
    parts.append(f'<path class="refused" d="{"".join(refused_path)}"/>')
    y = BOTTOM + 15
    parts.append(f'<text class="tiny dim" x="{LEFT}" y="{y}">{len(seconds)} s ago</text>')
    parts.append(f'<text class="tiny end dim" x="{RIGHT}" y="{y}">now</text>')
    middle = (LEFT + RIGHT) / 2
    parts.append(f'<rect class="store" x="{middle - 90}" y="{y - 8}" width="10" height="10"/>')
    parts.append(f'<text class="tiny dim" x="{middle - 76}" y="{y}">done</text>')
    parts.append(f'<rect class="refused" x="{middle - 20}" y="{y - 8}" width="10" height="10"/>')
    parts.append(f'<text class="tiny dim" x="{middle - 6}" y="{y}">refused with 429</text></svg>')
    return "".join(parts)
