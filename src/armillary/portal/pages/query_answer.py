"""The answer of a query: numbers, the partitions it touched, rows, plan and indexes."""

from __future__ import annotations

from typing import Any, Final

from nicegui import ui

from armillary.portal.context import Context
from armillary.portal.data.asking import Answer, finish, go_on
from armillary.portal.data.client import Refused
from armillary.portal.data.rows import COLUMNS_MAX, as_csv, as_json, cell_of, columns_of, short
from armillary.portal.widgets import parts
from armillary.ring.words import plural

SEGMENTS_MAX: Final = 400
JSON_ROWS_MAX: Final = 500


async def show_answer(context: Context, answer: Answer) -> None:
    heat = await context.client.control("GET", f"{context.require_place().path}/heat?keys=off")
    shown = AnswerView(context, answer, heat["partitions"])
    shown.build()


class AnswerView:
    def __init__(self, context: Context, answer: Answer, partitions: list[dict[str, Any]]) -> None:
        self._context = context
        self._place = context.require_place()
        self._answer = answer
        self._partitions = sorted(partitions, key=lambda one: float(one["from"]))

    def build(self) -> None:
        with ui.column().classes("a-card") as self._numbers:
            self._show_numbers()
        with ui.column().classes("a-card"):
            with ui.row().classes("w-full items-center no-wrap"):
                tabs = ui.tabs().props("dense no-caps align=left inline-label")
                with tabs:
                    table = ui.tab("Table")
                    text = ui.tab("JSON")
                    plan = ui.tab("Plan and indexes")
                ui.space()
                with ui.button("Export", icon="download").props("flat no-caps dense"), ui.menu():
                    ui.menu_item("As CSV", lambda: self._export("csv"))
                    ui.menu_item("As JSON", lambda: self._export("json"))
            with ui.tab_panels(tabs, value=table, animated=False).classes("w-full a-panels"):
                with ui.tab_panel(table):
                    self._rows = ui.column().classes("w-full")
                with ui.tab_panel(text):
                    self._text = ui.column().classes("w-full")
                with ui.tab_panel(plan):
                    self._show_plan()
            self._more = ui.row().classes("w-full items-center gap-3")
            self._show_rows()

    # --- parts ----------------------------------------------------------------------------------

    def _show_numbers(self) -> None:
        answer = self._answer
        more = "+" if answer.continuation is not None else ""
        with ui.row().classes("gap-10 w-full"):
            parts.stat(f"{len(answer.rows):,}{more}", "rows", "q-rows")
            parts.stat(parts.ru_text(answer.charge_ru), "charge", "q-charge")
            parts.stat(f"{answer.elapsed_ms:,.1f} ms", "in the server", "q-time")
            of = f"{answer.partitions_read} of {len(self._partitions)}"
            parts.stat(of, "partitions read", "q-partitions")
            parts.stat(f"{answer.retrieved_items:,}", "items loaded", "q-loaded")
            index = ", ".join(answer.used) or "none"
            with ui.column().classes("gap-0 a-stat").style("min-width: 0; flex: 1"):
                ui.label(index).classes("a-value a-mono a-cut").props(
                    f'title={parts.quoted(index)} data-testid="q-index"'
                )
                ui.label("index used").classes("a-faint")
        self._show_ring()

    def _show_ring(self) -> None:
        """The hash space from left to right; what the query could touch is filled."""
        touched = set(self._answer.partitions)
        words = (
            f"{len(touched)} of {len(self._partitions)} partitions can hold a part of the answer"
        )
        with ui.row().classes("w-full no-wrap a-strip").props(f'role="img" aria-label="{words}"'):
            for one in self._partitions[:SEGMENTS_MAX]:
                segment = ui.element("div").style(f"flex: {one['to'] - one['from']:.6f} 1 0")
                segment.classes("touched" if one["id"] in touched else "")
                segment.props(f'title="Partition {one["id"]}"')
        ui.label(f"{words}.").classes("a-faint")

    def _show_rows(self) -> None:
        rows = self._answer.rows
        for column in (self._rows, self._text, self._more):
            column.clear()
        with self._rows:
            if rows:
                _table(rows)
            else:
                parts.empty("No rows", "Nothing in the container answers this.")
        with self._text:
            if len(rows) > JSON_ROWS_MAX:
                ui.label(f"The first {JSON_ROWS_MAX}; export for all.").classes("a-faint")
            parts.pre(as_json(rows[:JSON_ROWS_MAX]), "60vh", "q-json")
        with self._more:
            if self._answer.continuation is not None:
                ui.button("Load more rows", on_click=self._load_more).props("outline no-caps dense")
                ui.label("There are more.").classes("a-faint")

    def _show_plan(self) -> None:
        parts.pre("\n".join(self._answer.plan), "50vh", "q-plan")
        with ui.row().classes("gap-10 mt-3"):
            for name, paths in (
                ("Indexes used", self._answer.used),
                ("Indexes that would have helped", self._answer.possible),
            ):
                with ui.column().classes("gap-1"):
                    ui.label(name).classes("a-faint")
                    for path in paths or ["none"]:
                        ui.label(path).classes("a-mono")

    # --- more -----------------------------------------------------------------------------------

    async def _load_more(self) -> None:
        try:
            await go_on(self._context.client, self._place, self._answer)
        except Refused as refusal:
            parts.report(refusal)
            return
        self._renew()

    def _renew(self) -> None:
        self._numbers.clear()
        with self._numbers:
            self._show_numbers()
        self._show_rows()

    async def _export(self, form: str) -> None:
        try:
            whole = await finish(self._context.client, self._place, self._answer)
        except Refused as refusal:
            parts.report(refusal)
            return
        rows = self._answer.rows
        text = as_csv(rows) if form == "csv" else as_json(rows)
        ui.download.content(text.encode("utf-8"), f"{self._place.container}.{form}")
        parts.tell(plural(len(rows), "row") + ("" if whole else "; there are more"))
        self._renew()


def _table(rows: list[Any]) -> None:
    names = columns_of(rows)
    if len(names) > COLUMNS_MAX:
        ui.label(f"The first {COLUMNS_MAX} of {len(names)} columns.").classes("a-faint")
        names = names[:COLUMNS_MAX]
    # Fields by number: a member may be called anything.
    columns = [
        {"name": f"c{at}", "label": name, "field": f"c{at}", "align": _align(rows, name)}
        for at, name in enumerate(names)
    ]
    shown = [
        {"at": number, **{f"c{at}": short(cell_of(row, name)) for at, name in enumerate(names)}}
        for number, row in enumerate(rows)
    ]
    table = ui.table(rows=shown, columns=columns, row_key="at", pagination=0)
    table.props('flat dense hide-pagination virtual-scroll aria-label="Rows"')
    table.classes("a-rows w-full")


def _align(rows: list[Any], name: str) -> str:
    found = [row.get(name) if isinstance(row, dict) else row for row in rows[:50]]
    numbers = [one for one in found if isinstance(one, int | float) and not isinstance(one, bool)]
    known = [one for one in found if one is not None]
    return "right" if numbers and len(numbers) == len(known) else "left"
