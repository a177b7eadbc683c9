"""The query page: a text in, rows out, and everything about how they were found."""

from __future__ import annotations

from typing import Final

from nicegui import ui

from armillary.errors import BadInput
from armillary.portal.context import Context
from armillary.portal.data.asking import Answer, Mistake, go_on, mistakes_of, question
from armillary.portal.data.client import Refused
from armillary.portal.pages.query_answer import show_answer
from armillary.portal.widgets import memory, parts

SIZES: Final = (25, 100, 500)
FIRST: Final = "SELECT * FROM c"
EXAMPLES: Final = (
    ("All items", "SELECT * FROM c"),
    ("Count", "SELECT VALUE COUNT(1) FROM c"),
    ("The latest ten", "SELECT TOP 10 * FROM c ORDER BY c._ts DESC"),
)


def build(context: Context) -> None:
    QueryPage(context).build()


class QueryPage:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._place = context.require_place()
        self._drafts = memory.Kept(f"query-draft:{self._place}")
        self._history = memory.Kept("query-history")
        self._is_running = False

    def build(self) -> None:
        with ui.column().classes("a-card"):
            text = self._context.query.get("q", FIRST)
            self._editor = self._context.look.editor(text, "SQL", "Query", "150px")
            self._editor.on_value_change(self._edited)
            self._editor.map_key("Mod-Enter", self._run)
            with ui.row().classes("w-full items-center no-wrap gap-2"):
                self._run_button = ui.button("Run", icon="play_arrow", on_click=self._run)
                self._run_button.props('unelevated no-caps title="Ctrl-Enter"')
                self._parameters = _field('Parameters, such as {"@least": 20}', "Parameters")
                self._parameters.style("flex: 2")
                self._key = _field("Partition key (all, if empty)", "Partition key")
                self._key.style("flex: 1")
                self._size = ui.select({one: f"{one} rows" for one in SIZES}, value=SIZES[1])
                self._size.props('outlined dense options-dense aria-label="Rows per page"')
                ui.button("History", icon="history", on_click=self._show_history).props(
                    "flat no-caps"
                )
        self._answer = ui.column().classes("w-full gap-4")
        with self._answer:
            self._invite()
        if "q" not in self._context.query:
            self._editor.restore(self._drafts.key)
        self._editor.focus()

    def _invite(self) -> None:
        with parts.card():
            parts.empty("No query run yet", "Ctrl-Enter runs the text. To begin with:", "search")
            with ui.row().classes("w-full justify-center gap-2 pb-6"):
                for name, text in EXAMPLES:
                    button = ui.button(name).props("outline no-caps dense padding='4px 12px'")
                    button.on_click(lambda text=text: self._take(text))

    async def _take(self, text: str) -> None:
        self._editor.show(text)
        await self._run()

    def _edited(self) -> None:
        self._editor.set_marks()
        self._drafts.put(self._editor.value)

    # --- running --------------------------------------------------------------------------------

    async def _run(self) -> None:
        if self._is_running:
            return
        text = self._editor.value
        try:
            body = question(
                text, self._parameters.value or "", self._key.value or "", self._size.value
            )
        except (ValueError, BadInput) as error:
            self._show_mistakes([Mistake(str(error))])
            return
        self._editor.set_marks()
        self._set_running(True)
        answer = Answer(body)
        try:
            await go_on(self._context.client, self._place, answer)
        except Refused as refusal:
            self._show_mistakes(mistakes_of(refusal), refusal)
            return
        finally:
            self._set_running(False)
        await self._remember(text)
        self._answer.clear()
        with self._answer:
            await show_answer(self._context, answer)

    def _set_running(self, running: bool) -> None:
        self._is_running = running
        self._run_button.props(f"loading={'true' if running else 'false'}")

    def _show_mistakes(self, mistakes: list[Mistake], refusal: Refused | None = None) -> None:
        """What was asked before goes; the text stays, marked where it is wrong."""
        text = self._editor.value
        marks = []
        for one in mistakes:
            if one.start is not None and one.end is not None and text:
                start = min(one.start, len(text) - 1)
                end = max(start + 1, min(one.end, len(text)))
                marks.append({"kind": "mark", "from": start, "to": end, "class": "a-wrong"})
        self._editor.set_marks(marks)
        self._answer.clear()
        with self._answer:
            title = "Invalid query"
            if refusal is not None and refusal.status != 400:
                title = f"{refusal.status} {refusal.code}"
            parts.error("\n".join(_placed(text, one) for one in mistakes), title)

    # --- history --------------------------------------------------------------------------------

    async def _remember(self, text: str) -> None:
        await self._history.push({"text": text, "place": str(self._place)})

    async def _show_history(self) -> None:
        found = await self._history.get()
        entries = found if isinstance(found, list) else []
        with ui.dialog() as dialog, ui.card().classes("a-dialog").style("width: 46rem"):
            dialog.props('aria-label="History"')
            ui.label("History").classes("a-title").props('role="heading" aria-level="2"')
            if not entries:
                parts.empty("No query yet", "What you run is kept in this browser.", "history")
            with ui.column().classes("w-full gap-1").style("max-height: 60vh; overflow: auto"):
                for one in entries:
                    _entry(one, dialog)
        chosen = await dialog
        dialog.delete()
        if isinstance(chosen, str):
            self._editor.show(chosen)


def _entry(one: object, dialog: ui.dialog) -> None:
    if not isinstance(one, dict) or not isinstance(one.get("text"), str):
        return
    text = one["text"]
    button = ui.button(on_click=lambda: dialog.submit(text)).props("flat no-caps align=left")
    with button.classes("w-full a-history"):
        ui.label(" ".join(text.split())).classes("a-mono a-cut").style("flex: 1; text-align: left")
        ui.label(str(one.get("place", ""))).classes("a-faint a-cut").style("max-width: 12rem")


def _field(placeholder: str, label: str) -> ui.input:
    field = ui.input(placeholder=placeholder).classes("a-mono")
    return field.props(f'outlined dense aria-label="{label}"')


def _placed(text: str, mistake: Mistake) -> str:
    if mistake.start is None:
        return mistake.message
    before = text[: mistake.start]
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    return f"Line {line}, column {column}: {mistake.message}"
