"""Physical partitions, live: the ring, storage and RU/s, heat over time, keys, splits and merges.

What there is to see comes from one watch of the container (`watching.py`); nothing is asked for by
the page itself, and what has not changed is not sent again. Doing (scale, split, merge) is in
`partition_actions.py`.
"""

from __future__ import annotations

from nicegui import ui

from armillary.limits import REPORT_KEYS_SCANNED_MAX
from armillary.portal.context import Context
from armillary.portal.data.watching import Watch
from armillary.portal.widgets import parts
from armillary.portal.widgets.partition_actions import add_actions
from armillary.portal.widgets.ring_view import NewsView, Picture, RingView, follow
from armillary.ring.charts import Column, columns_svg, heatmap_svg
from armillary.ring.model import Ring
from armillary.ring.style import heat_step
from armillary.ring.tables import keys_html, partitions_html
from armillary.ring.words import rate
from armillary.units import bytes_text


def build(context: Context) -> None:
    view = _View(context)
    follow(context, view.show)


class _View:
    def __init__(self, context: Context) -> None:
        self.ring: Ring | None = None
        with ui.row().classes("w-full items-stretch gap-4 no-wrap max-lg:flex-wrap"):
            with parts.card() as big:
                self._ring = RingView()
            big.style("flex: 1 1 68%; min-width: 0")
            with ui.column().classes("gap-4").style("flex: 0 0 300px"):
                self._numbers()
                with parts.card("Change it"):
                    add_actions(context, lambda: self.ring)
                self._news = NewsView()
        with ui.row().classes("w-full gap-4 no-wrap max-lg:flex-wrap"):
            self._storage = self._chart("Stored", "with indexes, by physical partition", "storage")
            self._use = self._chart("RU/s now", "of the budget of each partition", "use")
            self._heat = self._chart("Heat", "RU/s of the last five minutes", "heatmap")
        with parts.card("Physical partitions"):
            self._partitions = Picture("Physical partitions", "partitions", "r-scroll")
        with parts.card("Heaviest keys", "by request units of the last minutes, then by size"):
            self._keys = Picture("Heaviest partition keys", "keys", "r-scroll")

    def _numbers(self) -> None:
        with parts.card(), ui.grid(columns=2).classes("w-full gap-3"):
            self._used = parts.stat("–", "RU/s used", "used-ru")
            self._count = parts.stat("–", "partitions", "partition-count")
            self._refused = parts.stat("–", "429, last minutes", "refused")
            self._items = parts.stat("–", "items", "items")

    def _chart(self, title: str, remark: str, testid: str) -> Picture:
        with parts.card(title, remark) as card:
            picture = Picture(title, testid)
        card.style("flex: 1 1 0; min-width: 0")
        return picture

    def show(self, watch: Watch) -> None:
        self._ring.show(watch)
        ring = self.ring = watch.ring
        if ring is None:
            return
        self._used.set_text(rate(ring.used_ru))
        self._count.set_text(f"{len(ring.arcs):,}")
        self._refused.set_text(f"{ring.refused:,}")
        self._items.set_text(f"{ring.items:,}")
        self._news.show(watch)
        self._storage.show(storage_chart(ring))
        self._use.show(use_chart(ring))
        rows = [(one.id, watch.bins.row(one.id)) for one in ring.arcs]
        budgets = {one.id: one.ru_per_s for one in ring.arcs}
        title = "Request units per second of each partition over time"
        self._heat.show(heatmap_svg(title, rows, budgets, watch.bins.seconds))
        self._partitions.show(partitions_html(ring))
        self._keys.show(keys_html(ring) if ring.keys else no_keys(ring))


def no_keys(ring: Ring) -> str:
    text = "No partition key has items or requests yet."
    if ring.items:
        text = (
            "No partition key had requests in the last minutes. By size they are listed only in "
            f"containers of up to {REPORT_KEYS_SCANNED_MAX:,} items."
        )
    return f'<div class="a-faint">{text}</div>'


def storage_chart(ring: Ring) -> str:
    columns = [
        Column(
            one.id, one.bytes, ring.partition_bytes, f"{one.id}: {bytes_text(one.bytes)}", "store"
        )
        for one in ring.arcs
    ]
    text = f"splits at {bytes_text(ring.partition_bytes)}"
    return columns_svg("Bytes stored in each physical partition", columns, bytes_text, text)


def use_chart(ring: Ring) -> str:
    columns = []
    for one in ring.arcs:
        part = 100 * one.used_ru / one.ru_per_s if one.ru_per_s else 0.0
        label = f"{one.id}: {rate(one.used_ru)} RU/s"
        kind = f"h{max(1, heat_step(part))}"
        columns.append(Column(one.id, one.used_ru, one.ru_per_s, label, kind))
    budgets = {one.ru_per_s for one in ring.arcs if one.ru_per_s}
    text = f"budget {rate(max(budgets))} RU/s" if budgets else ""
    return columns_svg("RU/s used by each physical partition", columns, rate, text)
