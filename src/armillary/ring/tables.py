"""Tables of partitions and keys as HTML: the numbers of the pictures, for reading and for screen
readers. Every text is escaped; every cell that a test or a script may want has its name."""

from __future__ import annotations

from html import escape
from typing import Final

from armillary.ring.model import Arc, HotKey, Ring
from armillary.ring.words import cut, rate, share
from armillary.units import bytes_text

PARTITION_HEADS: Final = (
    *("partition", "of the ring", "stored", "items", "RU/s", "budget", "busiest second"),
    *("429", "status"),
)
KEY_HEADS: Final = ("key", "partition", "of all RU", "", "stored", "of the limit", "")


def partitions_html(ring: Ring) -> str:
    placed = any(one.node for one in ring.arcs)
    heads = (*PARTITION_HEADS, "node") if placed else PARTITION_HEADS
    return _table("Physical partitions", heads, [_partition(one, placed) for one in ring.arcs])


def keys_html(ring: Ring) -> str:
    rows = [_key(one, ring.logical_bytes) for one in ring.keys]
    return _table("Heaviest partition keys", KEY_HEADS, rows)


def _partition(one: Arc, placed: bool) -> str:
    cells = [
        ("id", one.id),
        ("part", f"{100 * (one.end - one.start):.3g} %"),
        ("bytes", bytes_text(one.bytes)),
        ("items", f"{one.items:,}"),
        ("used", rate(one.used_ru)),
        ("budget", "unlimited" if one.ru_per_s is None else rate(one.ru_per_s)),
        ("normalized", f"{one.normalised:.0f} %"),
        ("throttled", f"{one.refused:,}"),
        ("status", one.status),
        *([("node", one.node)] if placed else ()),
    ]
    hot = " hot" if one.normalised >= 90 else ""
    drawn = "".join(f'<td data-name="{name}">{escape(text)}</td>' for name, text in cells)
    return f'<tr class="{one.status}{hot}" data-id="{escape(one.id)}">{drawn}</tr>'


def _key(one: HotKey, limit: int) -> str:
    full = one.bytes / limit
    return (
        f'<tr data-partition="{escape(one.partition)}">'
        f'<td class="a-mono" title="{escape(one.label)}">{escape(cut(one.label, 48))}</td>'
        f"<td>{escape(one.partition)}</td>"
        f'<td data-name="share">{share(one.ru_share)}</td><td>{_meter(one.ru_share, "heat")}</td>'
        f'<td data-name="bytes">{bytes_text(one.bytes)}</td>'
        f"<td>{share(full)}</td><td>{_meter(full, 'full' if full >= 0.7 else 'store')}</td></tr>"
    )


def _meter(part: float, kind: str) -> str:
    percent = min(100.0, max(0.0, 100 * part))
    least = max(percent, 1.0) if part > 0 else 0.0
    return f'<div class="r-meter"><div class="{kind}" style="width:{least:.1f}%"></div></div>'


def _table(caption: str, heads: tuple[str, ...], rows: list[str]) -> str:
    head = "".join(f"<th>{escape(one)}</th>" for one in heads)
    return (
        f'<table class="r-table"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
