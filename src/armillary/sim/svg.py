"""Plots as inline SVG: lines, bars, a heat map. Text in, text out; no script and no network.

Colours and fonts come from the style sheet of the page through classes, so that one plot reads well
on light and on dark ground.
"""

import math
from collections.abc import Callable, Sequence
from html import escape

WIDTH, HEIGHT = 720, 240
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 12, 34


def lines(
    x: Sequence[float],
    series: Sequence[tuple[str, Sequence[float]]],
    *,
    x_label: str,
    show: Callable[[float], str],
    from_zero: bool = True,
) -> str:
    """One line per series, with a legend."""
    values = [value for _, ys in series for value in ys] or [0.0]
    low = 0.0 if from_zero else min(values)
    scale_x = _scale(min(x, default=0.0), max(x, default=1.0), LEFT, WIDTH - RIGHT)
    scale_y, ticks = _vertical(low, max(values))
    parts = [_frame(ticks, scale_y, show), _x_axis(x, scale_x, x_label)]
    for number, (name, ys) in enumerate(series):
        points = " ".join(f"{scale_x(a):.1f},{scale_y(b):.1f}" for a, b in zip(x, ys, strict=True))
        parts.append(f'<polyline class="line s{number}" points="{points}"/>')
        parts.append(
            f'<text class="legend s{number}" x="{LEFT + 10 + 150 * number}" y="{TOP + 12}">'
            f"{escape(name)}</text>"
        )
    return _svg(parts)


def bars(
    values: Sequence[float],
    *,
    x_label: str,
    show: Callable[[float], str],
    limit: float | None = None,
) -> str:
    """One bar per value; a line across at the limit."""
    top = max([*values, limit or 0.0, 1e-12])
    scale_y, ticks = _vertical(0.0, top)
    wide = (WIDTH - LEFT - RIGHT) / max(1, len(values))
    parts = [_frame(ticks, scale_y, show)]
    for i, value in enumerate(values):
        y = scale_y(value)
        parts.append(
            f'<rect class="bar" x="{LEFT + i * wide:.2f}" y="{y:.1f}" '
            f'width="{max(0.5, wide - (1 if wide > 3 else 0)):.2f}" '
            f'height="{HEIGHT - BOTTOM - y:.1f}"/>'
        )
    if limit is not None:
        y = scale_y(limit)
        parts.append(f'<line class="limit" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
    parts.append(_caption(x_label))
    return _svg(parts)


def heat(rows: Sequence[Sequence[float]], *, x_label: str, y_label: str) -> str:
    """Columns in time, ranges from top to bottom, 0 to 100 per cent as colour."""
    columns = max(1, len(rows))
    wide = (WIDTH - LEFT - RIGHT) / columns
    high = HEIGHT - TOP - BOTTOM
    parts = []
    for i, row in enumerate(rows):
        tall = high / max(1, len(row))
        for j, value in enumerate(row):
            share = min(1.0, max(0.0, value / 100))
            hue = 220 - 215 * share
            parts.append(
                f'<rect x="{LEFT + i * wide:.2f}" y="{TOP + j * tall:.2f}" width="{wide + 0.3:.2f}"'
                f' height="{tall + 0.3:.2f}" fill="hsl({hue:.0f} 70% {88 - 42 * share:.0f}%)">'
                f"<title>{value:.0f} %</title></rect>"
            )
    parts.append(
        f'<text class="axis" x="{LEFT - 8}" y="{TOP + 10}" text-anchor="end">'
        f"{escape(y_label)}</text>"
    )
    parts.append(_caption(x_label))
    return _svg(parts)


def _svg(parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'preserveAspectRatio="xMidYMid meet">{"".join(parts)}</svg>'
    )


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    span = (high - low) or 1.0
    return lambda value: start + (value - low) / span * (end - start)


def _vertical(low: float, high: float) -> tuple[Callable[[float], float], list[float]]:
    if high <= low:
        high = low + 1.0
    step = _nice((high - low) / 4)
    first = math.floor(low / step)
    last = math.ceil(high / step)
    ticks = [step * i for i in range(first, last + 1)]
    return _scale(ticks[0], ticks[-1], HEIGHT - BOTTOM, TOP), ticks


def _nice(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= step)


def _frame(
    ticks: Sequence[float], scale_y: Callable[[float], float], show: Callable[[float], str]
) -> str:
    return "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{scale_y(t):.1f}" '
        f'y2="{scale_y(t):.1f}"/><text class="axis" x="{LEFT - 8}" y="{scale_y(t) + 4:.1f}" '
        f'text-anchor="end">{escape(show(t))}</text>'
        for t in ticks
    )


def _x_axis(x: Sequence[float], scale_x: Callable[[float], float], label: str) -> str:
    if not x:
        return _caption(label)
    low, high = min(x), max(x)
    step = _nice((high - low) / 6) if high > low else 1.0
    at = [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
    marks = "".join(
        f'<text class="axis" x="{scale_x(value):.1f}" y="{HEIGHT - BOTTOM + 14}" '
        f'text-anchor="middle">{value:g}</text>'
        for value in at
    )
    return marks + _caption(label)


def _caption(label: str) -> str:
    return (
        f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 4}" '
        f'text-anchor="middle">{escape(label)}</text>'
    )
