"""One container in the explorer: a page of its items, and the editor alongside it.

Never more than a page is loaded. The way back is kept as the tokens of the pages before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nicegui import ui

from armillary.portal.context import Context, link
from armillary.portal.data.account import ItemPage, Items
from armillary.portal.data.asking import mistakes_of
from armillary.portal.data.client import Refused
from armillary.portal.data.items import Keyed, preview_of
from armillary.portal.pages.explorer_editor import Editor
from armillary.portal.widgets import dialogs, parts
from armillary.ring.words import plural
from armillary.units import bytes_text

PAGE_SIZES: Final = (25, 50, 100)
OPEN_ITEM: Final = """
<q-td :props="props">
  <a href="#" class="a-mono a-item-link" @click.prevent="$parent.$emit('open', props.row.at)"
     :title="props.value">{{ props.value }}</a>
</q-td>
"""


async def show_items(context: Context) -> None:
    place = context.require_place()
    items = await Items.of(context.client, place)
    _head(context, items.keyed)
    grid = Grid(context, items)
    with ui.row().classes("w-full no-wrap items-stretch gap-4"):
        with ui.column().classes("a-card").style("flex: 1.5; min-width: 0"):
            grid.build()
        with ui.column().classes("a-card").style("flex: 1; min-width: 0"):
            grid.editor.build()
    await grid.load()


def _head(context: Context, keyed: Keyed) -> None:
    place, about = context.require_place(), context.definition()
    with ui.column().classes("a-card gap-3"):
        with ui.row().classes("w-full items-center no-wrap gap-2"):
            ui.label(place.database).classes("a-page-title a-cut a-faint")
            ui.label("/").classes("a-page-title a-faint")
            title = ui.label(place.container).classes("a-page-title a-cut")
            title.props(f'role="heading" aria-level="1" title={parts.quoted(place.container)}')
            ui.space()
            button = ui.button("Delete container", icon="delete")
            button.on_click(lambda: _delete_container(context)).props("flat dense no-caps")
        with ui.row().classes("gap-10"):
            parts.stat(f"{about['items']:,}", "items", "items")
            parts.stat(bytes_text(about["bytes"]), "data and index")
            count, *noun = plural(about["partitions"], "physical partition").split()
            parts.stat(count, " ".join(noun), "partitions")
            shared = about["shared_throughput"]
            ru = parts.throughput_text(about["throughput"] or shared)
            parts.stat(ru, "shared by the database" if shared else "throughput", "throughput")
            with ui.column().classes("gap-0 a-stat").style("min-width: 0"):
                paths = ", ".join(keyed.shown_paths)
                ui.label(paths).classes("a-value a-mono a-cut").props(
                    f"title={parts.quoted(paths)}"
                )
                kind = "synthetic partition key" if about["synthetic_key"] else "partition key"
                ui.label(kind).classes("a-faint")


async def _delete_container(context: Context) -> None:
    place, about = context.require_place(), context.definition()
    remark = f"{plural(about['items'], 'item')} will be gone. This can't be undone."
    if not await dialogs.confirm_by_name("Delete container", place.container, remark):
        return
    try:
        await context.client.rest("DELETE", place.path)
    except Refused as refusal:
        parts.report(refusal)
        return
    ui.navigate.to(link("/"))


class Grid:
    """Pages of items."""

    def __init__(self, context: Context, items: Items) -> None:
        self._items = items
        self.editor = Editor(context, items, self.reload)
        # Where each page up to this one began: the token, and how many items came before.
        self._ways: list[tuple[str | None, int]] = [(None, 0)]
        self._page = ItemPage([], None, 0.0)
        self._size = PAGE_SIZES[1]
        self._where = ""

    def build(self) -> None:
        with ui.row().classes("w-full items-center no-wrap gap-2"):
            ui.label("Items").classes("a-title").props('role="heading" aria-level="2"')
            self._filter = ui.input(placeholder="Filter, such as  c.total > 20")
            self._filter.props('outlined dense clearable aria-label="Filter"')
            self._filter.classes("a-mono").style("flex: 1")
            self._filter.on("keydown.enter", self._find).on("clear", self._find)
            ui.button("Find", on_click=self._find).props("flat dense no-caps")
            ui.button("New item", icon="add", on_click=self.editor.begin_new).props(
                "unelevated dense no-caps padding='4px 10px'"
            )
        self._trouble = ui.column().classes("w-full")
        self._table = ui.table(rows=[], columns=self._columns(), row_key="at", pagination=0)
        self._table.props('flat dense hide-pagination wrap-cells=false aria-label="Items"')
        self._table.classes("a-grid w-full").props("rows-per-page-options=[0]")
        self._table.add_slot("body-cell-id", OPEN_ITEM)
        self._table.add_slot("no-data", "<span></span>")
        self._table.on("open", lambda event: self._open(int(event.args)))
        self._empty = ui.column().classes("w-full")
        with ui.row().classes("w-full items-center no-wrap gap-2"):
            self._shown = ui.label().classes("a-faint a-number").props('data-testid="shown"')
            ui.space()
            sizes = ui.select({one: f"{one} per page" for one in PAGE_SIZES}, value=self._size)
            sizes.props('dense borderless aria-label="Items per page"').classes("a-faint")
            sizes.on_value_change(lambda event: self._resize(event.value))
            self._back = ui.button(icon="chevron_left", on_click=self._go_back)
            self._back.props('flat dense aria-label="Page before"')
            self._next = ui.button(icon="chevron_right", on_click=self._go_on)
            self._next.props('flat dense aria-label="Next page"')

    def _columns(self) -> list[dict[str, Any]]:
        keyed = self._items.keyed
        named = enumerate(zip(keyed.paths, keyed.labels, strict=True))
        keys = [(f"key{at}", label) for at, (path, label) in named if path != "/id"]
        shown = [("id", keyed.id_label), *keys]
        shown.append(("rest", "properties"))
        return [
            {
                "name": name,
                "label": label,
                "field": name,
                "align": "left",
                "classes": f"a-c-{name}",
                "headerClasses": f"a-c-{name}",
            }
            for name, label in shown
        ]

    async def load(self) -> None:
        self._trouble.clear()
        try:
            self._page = await self._items.page(self._size, self._ways[-1][0], self._where)
        except Refused as refusal:
            with self._trouble:
                text = "\n".join(one.message for one in mistakes_of(refusal))
                parts.error(text, "This can't be shown")
            return
        self._table.rows = [self._row(at, item) for at, item in enumerate(self._page.items)]
        before = self._ways[-1][1]
        count = len(self._page.items)
        self._table.set_visibility(count > 0)
        self._empty.clear()
        if not count:
            with self._empty:
                self._say_empty()
        place = f"{before + 1:,}–{before + count:,}" if count else "0"
        self._shown.text = f"{place} · {parts.ru_text(self._page.charge_ru)}"
        self._back.set_enabled(len(self._ways) > 1)
        self._next.set_enabled(self._page.continuation is not None)

    async def reload(self) -> None:
        await self.load()

    def _say_empty(self) -> None:
        if self._where:
            parts.empty("Nothing passes the filter", self._where, "filter_alt_off")
        else:
            parts.empty("No items yet", "Create one here, or write with any SDK.")

    def _row(self, at: int, item: Mapping[str, Any]) -> dict[str, Any]:
        keyed = self._items.keyed
        keys = {f"key{index}": text for index, text in enumerate(keyed.shown(item))}
        return {
            "at": at,
            "id": item["id"],
            **keys,
            "rest": preview_of(item, keyed.paths),
        }

    async def _open(self, at: int) -> None:
        if at < len(self._page.items):
            await self.editor.open(self._page.items[at])

    async def _find(self) -> None:
        self._where = (self._filter.value or "").strip()
        self._ways = [(None, 0)]
        await self.load()

    async def _resize(self, size: int) -> None:
        self._size = size
        self._ways = [(None, 0)]
        await self.load()

    async def _go_on(self) -> None:
        if self._page.continuation is not None:
            before = self._ways[-1][1] + len(self._page.items)
            self._ways.append((self._page.continuation, before))
            await self.load()

    async def _go_back(self) -> None:
        if len(self._ways) > 1:
            self._ways.pop()
            await self.load()
