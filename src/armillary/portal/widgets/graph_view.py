"""A graph as a picture: vertices on a circle, those of one physical partition side by side and in
one colour, so that edges which cross partitions are seen. Plain data in, SVG out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

SIZE: Final = 640
RADIUS: Final = 225
DOT: Final = 9
COLOURS: Final = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bb8800", "#777777",
)  # fmt: skip
LABEL_MAX: Final = 12  # characters; there is no room for more between circle and border
LABELS_MAX: Final = 60
"""With more vertices their ids would cover each other; the pointer shows them."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """How many edges leave their physical partition."""

    edges: int
    crossing: int

    @property
    def share(self) -> float:
        return self.crossing / self.edges if self.edges else 0.0


def _at(vertex: Mapping[str, Any]) -> tuple[str, str]:
    return (repr(vertex["key"]), vertex["id"])


def crossing(vertices: Sequence[Mapping[str, Any]], edges: Sequence[Mapping[str, Any]]) -> Crossing:
    partitions = {_at(one): one["partition"] for one in vertices}
    ends = [(partitions.get(_at(one["from"])), partitions.get(_at(one["to"]))) for one in edges]
    known = [pair for pair in ends if None not in pair]
    return Crossing(len(known), sum(start != end for start, end in known))


def colours(vertices: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Physical partition → colour."""
    found = sorted({str(one["partition"]) for one in vertices}, key=lambda one: (len(one), one))
    return {one: COLOURS[at % len(COLOURS)] for at, one in enumerate(found)}


def graph_svg(vertices: Sequence[Mapping[str, Any]], edges: Sequence[Mapping[str, Any]]) -> str:
    ordered = sorted(
        vertices, key=lambda one: (len(str(one["partition"])), str(one["partition"]), *_at(one))
    )
    palette = colours(vertices)
    places = {}
    middle = SIZE / 2
    for number, one in enumerate(ordered):
        angle = 2 * math.pi * number / max(1, len(ordered)) - math.pi / 2
        places[_at(one)] = (middle + RADIUS * math.cos(angle), middle + RADIUS * math.sin(angle))
    partitions = {_at(one): one["partition"] for one in vertices}
    parts = [
        f'<svg viewBox="0 0 {SIZE} {SIZE}" role="img" aria-label="{len(vertices)} vertices, '
        f'{len(edges)} edges" style="width: 100%; max-height: min(70vh, 640px)">',
        '<defs><marker id="end" viewBox="0 0 8 8" refX="14" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#888"/></marker></defs>',
    ]
    for edge in edges:
        start, end = _at(edge["from"]), _at(edge["to"])
        if start not in places or end not in places:
            continue
        parts.append(_line(edge, places[start], places[end], partitions[start] != partitions[end]))
    for one in ordered:
        parts.append(_dot(one, places[_at(one)], palette, len(ordered) <= LABELS_MAX))
    return "".join((*parts, "</svg>"))


Point = tuple[float, float]


def _line(edge: Mapping[str, Any], start: Point, end: Point, crosses: bool) -> str:
    """Bent towards the middle, so that two edges between the same vertices are seen."""
    middle = SIZE / 2
    bent = [(a + b) / 2 * 0.7 + middle * 0.3 for a, b in zip(start, end, strict=True)]
    style = 'stroke="#cc3311" stroke-dasharray="5 4"' if crosses else 'stroke="#888"'
    title = escape(f"{edge['from']['id']} {edge['label']} {edge['to']['id']}")
    return (
        f'<path d="M{start[0]:.1f} {start[1]:.1f}Q{bent[0]:.1f} {bent[1]:.1f} {end[0]:.1f} '
        f'{end[1]:.1f}" fill="none" {style} stroke-width="1.5" marker-end="url(#end)">'
        f"<title>{title}</title></path>"
    )


def _dot(one: Mapping[str, Any], at: Point, palette: Mapping[str, str], labelled: bool) -> str:
    colour = palette[str(one["partition"])]
    title = escape(f"{one['label']} {one['id']}, key {one['key']}, partition {one['partition']}")
    dot = (
        f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{DOT}" fill="{colour}">'
        f"<title>{title}</title></circle>"
    )
    if not labelled:
        return dot
    # Away from the middle: texts side by side would cover each other at the top and the bottom.
    right = at[0] >= SIZE / 2
    degrees = math.degrees(math.atan2(at[1] - SIZE / 2, at[0] - SIZE / 2)) + (0 if right else 180)
    x = at[0] + (DOT + 4 if right else -DOT - 4)
    anchor = "start" if right else "end"
    return dot + (
        f'<text x="{x:.1f}" y="{at[1] + 4:.1f}" text-anchor="{anchor}" font-size="12" '
        f'fill="currentColor" transform="rotate({degrees:.1f} {at[0]:.1f} {at[1]:.1f})">'
        f"{escape(one['id'][:LABEL_MAX])}</text>"
    )
