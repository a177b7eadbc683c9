"""Turns into points: a place on the ring is a number from 0 to 1, clockwise from the top."""

from __future__ import annotations

from math import cos, pi, sin

WHOLE = 0.99995
"""A turn that is as good as closed. SVG draws nothing from a point to itself."""


def point(x: float, y: float, radius: float, turn: float) -> tuple[float, float]:
    angle = 2 * pi * turn
    return x + radius * sin(angle), y - radius * cos(angle)


def sector(
    x: float, y: float, inner: float, outer: float, start: float, end: float, gap: float = 0.0
) -> str:
    """The path of a piece of a band. `gap` is the width left free alongside its neighbours: half at
    each end, and never more than a fifth of a narrow piece."""
    start, end = narrowed(start, end, inner, gap)
    if end - start >= WHOLE:
        return _band(x, y, inner, outer)
    large = int(end - start > 0.5)
    (ax, ay), (bx, by) = point(x, y, outer, start), point(x, y, outer, end)
    (cx, cy), (dx, dy) = point(x, y, inner, end), point(x, y, inner, start)
    return (
        f"M{ax:.1f} {ay:.1f}A{outer:.1f} {outer:.1f} 0 {large} 1 {bx:.1f} {by:.1f}"
        f"L{cx:.1f} {cy:.1f}A{inner:.1f} {inner:.1f} 0 {large} 0 {dx:.1f} {dy:.1f}Z"
    )


def arc(x: float, y: float, radius: float, start: float, end: float, gap: float = 0.0) -> str:
    """The path of a line along the ring."""
    start, end = narrowed(start, end, radius, gap)
    end = min(end, start + WHOLE)
    large = int(end - start > 0.5)
    (ax, ay), (bx, by) = point(x, y, radius, start), point(x, y, radius, end)
    return f"M{ax:.1f} {ay:.1f}A{radius:.1f} {radius:.1f} 0 {large} 1 {bx:.1f} {by:.1f}"


def narrowed(start: float, end: float, radius: float, gap: float) -> tuple[float, float]:
    half = min(gap / (2 * pi * radius), (end - start) / 5) / 2
    return start + half, end - half


def spread(turns: list[float], apart: float) -> list[float]:
    """Marks that would lie over each other, moved apart as little as need be; their order stays.
    When there is no room for all, they stand at equal distances."""
    if len(turns) * apart >= 1:
        apart = 1 / max(1, len(turns))
    order = sorted(range(len(turns)), key=lambda i: turns[i])
    groups: list[tuple[float, list[int]]] = []  # middle of a group of touching marks, its members
    for i in order:
        groups.append((turns[i], [i]))
        while len(groups) > 1:
            (left, lefts), (right, rights) = groups[-2:]
            if right - left >= apart * (len(lefts) + len(rights)) / 2:
                break
            count = len(lefts) + len(rights)
            middle = (left * len(lefts) + right * len(rights)) / count
            groups[-2:] = [(middle, lefts + rights)]
    found = list(turns)
    for middle, members in groups:
        for at, i in enumerate(members):
            found[i] = middle + apart * (at - (len(members) - 1) / 2)
    return found


def _band(x: float, y: float, inner: float, outer: float) -> str:
    circles = (
        f"M{x:.1f} {y - r:.1f}A{r:.1f} {r:.1f} 0 1 {sweep} {x:.1f} {y + r:.1f}"
        f"A{r:.1f} {r:.1f} 0 1 {sweep} {x:.1f} {y - r:.1f}Z"
        for r, sweep in ((outer, 1), (inner, 0))
    )
    return "".join(circles)
