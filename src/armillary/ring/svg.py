"""The ring of a container, drawn.

    outside  ① heavy keys at their places · graduation in hash digits · ranges that are being made
             storage: bars against the size at which a partition splits
             heat: how much of its budget each partition used, coloured, with its id
    inside   refusals (429) · earlier ranges, the latest outermost · the container

Text from users is cut and escaped. Each partition is a group with its numbers as attributes
(`data-id`, `data-bytes`, …) and a title that pointers and screen readers find.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import log10, pi
from typing import Final

from armillary.ring.geometry import arc, point, sector, spread
from armillary.ring.legend import legend
from armillary.ring.model import Arc, HotKey, Ring, ancestors
from armillary.ring.style import Theme, css, heat_step
from armillary.ring.words import amount, cut, plural, rate, share
from armillary.units import bytes_text

WIDTH: Final = 960
HEIGHT: Final = 620
X: Final = 308.0
Y: Final = 310.0

HEAT: Final = (182.0, 214.0)
STORE: Final = (218.0, 252.0)
REFUSED: Final = 177.0
COMING: Final = 257.5
GRADUATION: Final = 264.0
DIGITS: Final = 282.0
KEYS: Final = 292.0
PAST: Final = 164.0
PAST_WITH_IDS: Final = 144.0
PAST_STEP: Final = 7.0
IDS_INSIDE: Final = 157.0
LABEL_WIDTH: Final = 26.0
PAST_ROWS: Final = 5
KEYS_SHOWN: Final = 5
KEY_SHARE_SHOWN: Final = 0.02
"""Of the request units: less is no key to look at."""
NEAR_LIMIT: Final = 0.05
"""Of the limit: below this, bars are drawn against the fullest partition instead."""


def ring_svg(ring: Ring, theme: Theme | None = "auto") -> str:
    """Without a theme it has no colours of its own: the page has them (`style.page_css`)."""
    title = f"Partitions of {ring.database}/{ring.container}"
    ground = ""
    if theme is not None:
        ground = (
            f'<style>{css(theme)}</style><rect class="paper" width="100%" height="100%" rx="12"/>'
        )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="a-ring" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img" aria-labelledby="ring-title ring-desc">'
        f'<title id="ring-title">{_text(title, 120)}</title>'
        f'<desc id="ring-desc">{_text(describe(ring), 600)}</desc>'
        f"{ground}",
        *_graduation(),
        *_partitions(ring),
        *_past(ring),
        *_coming(ring),
        *_keys(shown_keys(ring)),
        *_ids(ring),
        *_middle(ring),
        *legend(ring, shown_keys(ring), storage_scale(ring), HEIGHT),
        "</svg>",
    ]
    return "".join(parts)


def describe(ring: Ring) -> str:
    """The picture in words."""
    hottest = ring.hottest
    said = [
        f"{plural(len(ring.arcs), 'physical partition')} with {plural(ring.items, 'item')}, "
        f"{bytes_text(ring.bytes)}.",
        f"Hottest is partition {hottest.id} at {hottest.normalised:.0f} % of its budget."
        if hottest.normalised > 0
        else "No request units were used in the last two minutes.",
    ]
    if ring.refused:
        said.append(f"{plural(ring.refused, 'request')} refused with 429.")
    for key in shown_keys(ring)[:1]:
        said.append(f"Heaviest key: {key.label}, {share(key.ru_share)} of the request units.")
    for move in ring.moves:
        said.append(f"A {move.kind} of {', '.join(move.parents)} is under way.")
    return " ".join(said)


def shown_keys(ring: Ring) -> list[HotKey]:
    heavy = [one for one in ring.keys if one.ru_share >= KEY_SHARE_SHOWN]
    return heavy[:KEYS_SHOWN]


def storage_scale(ring: Ring) -> tuple[int, bool]:
    """Bytes of a whole bar, and whether that is the size at which a partition splits."""
    fullest = max(one.bytes for one in ring.arcs)
    if fullest >= NEAR_LIMIT * ring.partition_bytes:
        return ring.partition_bytes, True
    return fullest, False


# --- parts ----------------------------------------------------------------------------------------


def _graduation() -> Iterator[str]:
    yield f'<circle class="brass thick" cx="{X}" cy="{Y}" r="{GRADUATION}"/>'
    yield f'<circle class="brass" cx="{X}" cy="{Y}" r="{GRADUATION + 4}" opacity=".6"/>'
    ticks = []
    for n in range(64):
        long = 9 if n % 16 == 0 else 6 if n % 4 == 0 else 4
        (ax, ay), (bx, by) = (point(X, Y, GRADUATION + out, n / 64) for out in (0, long))
        ticks.append(f"M{ax:.1f} {ay:.1f}L{bx:.1f} {by:.1f}")
    yield f'<path class="brass" d="{"".join(ticks)}"/>'
    for n in range(4):
        x, y = point(X, Y, DIGITS, n / 4)
        yield f'<text class="tiny mid faint" x="{x:.1f}" y="{y + 3.5:.1f}">{"0¼½¾"[n]}</text>'


def _partitions(ring: Ring) -> Iterator[str]:
    scale, is_limit = storage_scale(ring)
    gap = 2.5 if len(ring.arcs) > 1 else 0.0
    for one in ring.arcs:
        step = heat_step(one.normalised)
        track = sector(X, Y, *STORE, one.start, one.end, gap)
        yield (
            f'<g class="partition" data-id="{escape(one.id)}" data-bytes="{one.bytes}" '
            f'data-items="{one.items}" data-normalized="{one.normalised}" '
            f'data-throttled="{one.refused}" data-status="{escape(one.status)}">'
            f"<title>{_text(_label(one), 300)}</title>"
            f'<path class="track" d="{track}"/>'
        )
        if one.bytes and scale:
            part = min(1.0, one.bytes / scale)
            outer = STORE[0] + max(1.0, part * (STORE[1] - STORE[0]))
            bar = sector(X, Y, STORE[0], outer, one.start, one.end, gap)
            yield f'<path class="store" d="{bar}"/>'
        yield f'<path class="h{step}" d="{sector(X, Y, *HEAT, one.start, one.end, gap)}"/>'
        if one.refused:
            thick = min(9.0, 3.0 + 1.5 * log10(one.refused))
            band = sector(X, Y, REFUSED - thick, REFUSED, one.start, one.end, gap)
            yield f'<path class="refused" d="{band}"/>'
        yield "</g>"
    if is_limit:
        yield f'<circle class="limit" cx="{X}" cy="{Y}" r="{STORE[1]}"/>'


def _label(one: Arc) -> str:
    budget = "unlimited" if one.ru_per_s is None else f"{rate(one.ru_per_s)} RU/s"
    return (
        f"Partition {one.id}: {bytes_text(one.bytes)}, {plural(one.items, 'item')}; "
        f"{rate(one.used_ru)} RU/s of {budget}, {one.normalised:.0f} % at most; "
        f"{one.refused:,} refused with 429; {one.status}"
    )


def _ids(ring: Ring) -> Iterator[str]:
    """In the band of heat; where arcs are narrow, inside of it, and not all of them."""
    every = label_every(ring.arcs)
    for one in ring.arcs[::every]:
        radius = (HEAT[0] + HEAT[1]) / 2 if every == 1 else IDS_INSIDE
        hot = "onhot" if heat_step(one.normalised) >= 7 else "onheat"
        kind = f"small bold mid {hot}" if every == 1 else "tiny mid dim"
        x, y = point(X, Y, radius, (one.start + one.end) / 2)
        yield f'<text class="{kind}" x="{x:.1f}" y="{y + 4:.1f}">{escape(one.id)}</text>'


def label_every(arcs: Sequence[Arc]) -> int:
    """How many arcs share a label, so that none touches the next: 1, 2, 5, 10, 20, …"""
    turns = sorted(one.end - one.start for one in arcs)
    needed = LABEL_WIDTH / (2 * pi * HEAT[0] * turns[len(turns) // 2])
    steps = (factor * tens for tens in (1, 10, 100, 1000) for factor in (1, 2, 5))
    return next(step for step in steps if step >= needed)


def _past(ring: Ring) -> Iterator[str]:
    outermost = PAST if label_every(ring.arcs) == 1 else PAST_WITH_IDS
    for n, row in enumerate(ancestors(ring.arcs, PAST_ROWS)):
        radius = outermost - n * PAST_STEP
        for one in row:
            path = arc(X, Y, radius, one.start, one.end, 4.0)
            opacity = 0.9 - 0.15 * n
            yield (
                f'<path class="past" opacity="{opacity:.2f}" d="{path}">'
                f"<title>Partition {escape(one.id)}, until it was split or merged</title></path>"
            )


def _coming(ring: Ring) -> Iterator[str]:
    for move in ring.moves:
        label = f"{move.kind} of {', '.join(move.parents)} into "
        label += " and ".join(child.id for child in move.children)
        yield f'<g class="moving" data-parents="{escape(",".join(move.parents))}">'
        yield f"<title>{_text(label, 200)}</title>"
        for child in move.children:
            yield f'<path class="move" d="{arc(X, Y, COMING, child.start, child.end, 6.0)}"/>'
        for child in move.children[1:]:
            (ax, ay), (bx, by) = (point(X, Y, r, child.start) for r in (HEAT[0], COMING + 3))
            yield f'<path class="cut" d="M{ax:.1f} {ay:.1f}L{bx:.1f} {by:.1f}"/>'
        yield "</g>"


def _keys(keys: list[HotKey]) -> Iterator[str]:
    turns = spread([one.at for one in keys], 0.035)
    for n, (one, turn) in enumerate(zip(keys, turns, strict=True), 1):
        (ax, ay), (bx, by) = (point(X, Y, r, one.at) for r in (HEAT[0], GRADUATION))
        cx, cy = point(X, Y, KEYS, turn)
        label = f"Key {one.label}: {share(one.ru_share)} of the RU, {bytes_text(one.bytes)}"
        yield (
            f'<g class="key" data-share="{one.ru_share}"><title>{_text(label, 200)}</title>'
            f'<path class="lead" d="M{ax:.1f} {ay:.1f}L{bx:.1f} {by:.1f}L{cx:.1f} {cy:.1f}"/>'
            f'<circle class="mark" cx="{cx:.1f}" cy="{cy:.1f}" r="9"/>'
            f'<text class="small bold mid on-mark" x="{cx:.1f}" y="{cy + 4:.1f}">{n}</text></g>'
        )


def _middle(ring: Ring) -> Iterator[str]:
    key = " / ".join(ring.partition_key)
    lines = [
        (-42, "small mid dim", cut(ring.database, 26)),
        (-18, "head mid", cut(ring.container, 22)),
        (2, "small mid dim", f"key {cut(key, 24)}"),
        (38, "big mid", rate(ring.used_ru)),
        (56, "small mid dim", _of_budget(ring)),
    ]
    for down, kind, text in lines:
        yield f'<text class="{kind}" x="{X}" y="{Y + down}">{escape(text)}</text>'


def _of_budget(ring: Ring) -> str:
    if ring.throughput is None:
        return "RU/s, unlimited"
    return f"of {amount(ring.throughput)} RU/s"


def _text(text: str, characters: int) -> str:
    return escape(cut(text, characters))
