"""Alongside the ring: its numbers, its heaviest keys, and what the marks mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from armillary.ring.model import HotKey, Ring
from armillary.ring.style import STEPS
from armillary.ring.words import amount, cut, plural, share
from armillary.units import bytes_text

LEFT: Final = 640.0
RIGHT: Final = 930.0
LINE: Final = 22.0


def legend(
    ring: Ring, keys: Sequence[HotKey], scale: tuple[int, bool], height: float
) -> Iterator[str]:
    y = 46.0
    yield _at("head", LEFT, y, plural(len(ring.arcs), "physical partition"))
    y += 12
    for name, value in _facts(ring):
        y += LINE
        yield _at("body dim", LEFT, y, name)
        yield _at("body bold end", RIGHT, y, value)
    y += LINE + 18
    yield from _key_list(keys, ring, y)
    yield from _marks(ring, scale, height - 174)


def _facts(ring: Ring) -> list[tuple[str, str]]:
    facts = [
        ("items", amount(ring.items)),
        ("stored, with indexes", bytes_text(ring.bytes)),
        ("hottest partition", _hottest(ring)),
        ("refused (429), last minutes", amount(ring.refused)),
    ]
    if ring.skew is not None and len(ring.arcs) > 1:
        facts.append(("fullest ÷ mean", f"{ring.skew:.2f}"))
    for move in ring.moves[:2]:
        children = ", ".join(cut(child.id, 6) for child in move.children)
        facts.append((f"{move.kind} under way", f"{', '.join(move.parents)} → {children}"))
    return facts


def _hottest(ring: Ring) -> str:
    one = ring.hottest
    return f"{one.id} at {one.normalised:.0f} %" if one.normalised > 0 else "none"


def _key_list(keys: Sequence[HotKey], ring: Ring, y: float) -> Iterator[str]:
    yield _at("body bold", LEFT, y, "Heaviest keys")
    yield _at("tiny faint end", RIGHT, y, "of all RU · stored")
    if not keys:
        yield _at("small faint", LEFT, y + LINE, "no key stands out")
    for n, one in enumerate(keys, 1):
        y += LINE
        full = one.bytes / ring.logical_bytes
        stored = bytes_text(one.bytes) + (f" ({share(full)})" if full >= 0.05 else "")
        yield f'<circle class="mark" cx="{LEFT + 8}" cy="{y - 4}" r="8"/>'
        yield _at("tiny bold mid on-mark", LEFT + 8, y - 0.5, str(n))
        yield _at("small", LEFT + 24, y, cut(one.label, 20))
        yield _at("small end", RIGHT, y, f"{share(one.ru_share)} · {stored}")


def _marks(ring: Ring, scale: tuple[int, bool], y: float) -> Iterator[str]:
    yield f'<path class="rule" d="M{LEFT} {y}H{RIGHT}"/>'
    y += 26
    width = 140.0 / (STEPS + 1)
    for step in range(STEPS + 1):
        x = LEFT + step * width
        place = f'x="{x:.1f}" y="{y - 9}" width="{width + 0.3:.1f}" height="11"'
        yield f'<rect class="h{step}" {place}/>'
    yield _at("small dim", LEFT + 150, y, "0 – 100 % of the budget")
    y += 16
    yield _at("small dim", LEFT + 150, y, "in its busiest second")
    y += LINE
    whole, is_limit = scale
    yield f'<rect class="track" x="{LEFT}" y="{y - 9}" width="30" height="11"/>'
    yield f'<rect class="store" x="{LEFT}" y="{y - 9}" width="18" height="11"/>'
    if whole:
        text = f"stored; a full bar is {bytes_text(whole)}"
        text += ", where it splits" if is_limit else ", the fullest"
    else:
        text = "stored: nothing yet"
    yield _at("small dim", LEFT + 40, y, text)
    y += LINE
    yield f'<rect class="refused" x="{LEFT}" y="{y - 7}" width="30" height="6"/>'
    yield _at("small dim", LEFT + 40, y, "refused with 429")
    yield f'<path class="past" d="M{LEFT + 160} {y - 4}h30"/>'
    yield _at("small dim", LEFT + 200, y, "earlier ranges")
    y += LINE
    yield f'<path class="move" d="M{LEFT} {y - 4}h30"/>'
    yield _at("small dim", LEFT + 40, y, "being made")
    yield f'<circle class="mark" cx="{LEFT + 182}" cy="{y - 4}" r="7"/>'
    yield _at("small dim", LEFT + 200, y, "heavy key")
    y += LINE
    yield _at("tiny faint", LEFT, y, "Clockwise from the top, by the hash of the partition key.")


def _at(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
