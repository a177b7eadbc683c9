"""The scripts page: write procedures, triggers and functions, run procedures and watch them."""

from __future__ import annotations

import json
from urllib.parse import unquote

from nicegui import ui

from armillary.errors import BadInput
from armillary.portal.context import Context
from armillary.portal.data import scripts
from armillary.portal.data.client import Refused
from armillary.portal.data.items import parse_key
from armillary.portal.data.scripts import KINDS, STARTERS, Run, Script
from armillary.portal.widgets import parts


async def build(context: Context) -> None:
    await ScriptsPage(context).build()


class ScriptsPage:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._place = context.require_place()
        self._open: Script | None = None
        """The one in the editor, as it is kept; None: a new one."""

    async def build(self) -> None:
        with ui.row().classes("w-full no-wrap gap-4 items-start"):
            with ui.column().classes("a-card").style("width: 16rem; flex: none"):
                with ui.row().classes("w-full gap-1"):
                    for kind in KINDS:
                        button = ui.button(f"+ {kind}", on_click=lambda kind=kind: self._new(kind))
                        button.props("flat dense no-caps").props(f'aria-label="New {kind}"')
                self._list = ui.column().classes("w-full gap-0").props('data-testid="s-list"')
            with ui.column().style("flex: 1; min-width: 0").classes("gap-4"):
                self._build_editor()
                self._build_run()
                self._answer = ui.column().classes("w-full gap-4")
        self._new("procedure")
        await self._refresh()

    def _build_editor(self) -> None:
        with ui.column().classes("a-card"):
            with ui.row().classes("w-full items-center no-wrap gap-2"):
                self._id = ui.input("Name").props('outlined dense aria-label="Name"')
                self._id.style("flex: 1")
                self._kind = ui.select(list(KINDS), value="procedure", on_change=self._show_kind)
                self._kind.props('outlined dense options-dense aria-label="Kind"')
                self._type = ui.select(scripts.TRIGGER_TYPES, value="Pre")
                self._type.props('outlined dense options-dense aria-label="Type"')
                self._operation = ui.select(scripts.TRIGGER_OPERATIONS, value="All")
                self._operation.props('outlined dense options-dense aria-label="Operation"')
            self._editor = self._context.look.editor("", "JavaScript", "Script", "320px")
            with ui.row().classes("w-full items-center gap-2"):
                save = ui.button("Save", icon="save", on_click=self._save)
                save.props("unelevated no-caps")
                self._delete_button = ui.button("Delete", on_click=self._delete)
                self._delete_button.props("flat no-caps color=negative")

    def _build_run(self) -> None:
        self._run_card = ui.column().classes("a-card")
        with self._run_card, ui.row().classes("w-full items-center no-wrap gap-2"):
            self._run_button = ui.button("Run", icon="play_arrow", on_click=self._run)
            self._run_button.props('unelevated no-caps title="Saves, then runs"')
            self._key = ui.input("Partition key", placeholder='"ada", 5 or ["a", "b"]')
            self._key.props('outlined dense aria-label="Partition key"').style("flex: 1")
            self._arguments = ui.input("Arguments", placeholder='a list, such as ["a", 1]')
            self._arguments.props('outlined dense aria-label="Arguments"').style("flex: 2")

    # --- the list -------------------------------------------------------------------------------

    async def _refresh(self) -> None:
        try:
            found = await scripts.list_scripts(self._context.client, self._place)
        except Refused as refusal:
            parts.report(refusal)
            return
        self._list.clear()
        with self._list:
            for one in found:
                button = ui.button(on_click=lambda one=one: self._take(one))
                button.props("flat no-caps dense align=left").classes("w-full")
                with button:
                    ui.label(one.id).classes("a-cut").style("flex: 1; text-align: left")
                    ui.label(one.kind).classes("a-faint")
            if not found:
                parts.empty("No script yet", "Write one, then save it.", "code")

    def _new(self, kind: str) -> None:
        self._open = None
        self._id.value, self._kind.value = "", kind
        self._editor.show(STARTERS[kind])
        self._show_kind()

    def _take(self, script: Script) -> None:
        self._open = script
        self._id.value, self._kind.value = script.id, script.kind
        self._type.value, self._operation.value = script.type, script.operation
        self._editor.show(script.body)
        self._show_kind()

    def _show_kind(self) -> None:
        kind = self._kind.value
        for one in (self._type, self._operation):
            one.set_visibility(kind == "trigger")
        self._run_card.set_visibility(kind == "procedure")
        self._delete_button.set_visibility(self._open is not None)

    # --- actions --------------------------------------------------------------------------------

    async def _save(self) -> bool:
        script = Script(
            self._kind.value,
            (self._id.value or "").strip(),
            self._editor.value,
            self._type.value,
            self._operation.value,
        )
        if not script.id:
            parts.report("A script needs a name.")
            return False
        old = self._open
        is_new = old is None or (old.kind, old.id) != (script.kind, script.id)
        try:
            await scripts.save(self._context.client, self._place, script, is_new=is_new)
        except Refused as refusal:
            self._show_refusal(refusal)
            return False
        self._open = script
        self._show_kind()
        await self._refresh()
        return True

    async def _delete(self) -> None:
        if self._open is None:
            return
        try:
            await scripts.delete(self._context.client, self._place, self._open)
        except Refused as refusal:
            parts.report(refusal)
            return
        parts.tell(f"Deleted {self._open.id}.")
        self._new(self._open.kind)
        await self._refresh()

    async def _run(self) -> None:
        try:
            key = parse_key((self._key.value or "").strip())
            given = scripts.arguments_of(self._arguments.value or "")
        except (ValueError, BadInput) as error:
            self._show_text(str(error), "This can't be run")
            return
        if not await self._save():
            return
        assert self._open is not None
        self._run_button.props("loading=true")
        values = key if isinstance(key, list) else [key]
        try:
            ran = await scripts.run(self._context.client, self._place, self._open.id, values, given)
        except Refused as refusal:
            self._show_refusal(refusal)
            return
        finally:
            self._run_button.props("loading=false")
        self._show_run(ran)

    # --- answers --------------------------------------------------------------------------------

    def _show_run(self, ran: Run) -> None:
        self._answer.clear()
        with self._answer:
            with parts.card(), ui.row().classes("gap-8"):
                parts.stat(parts.ru_text(ran.charge_ru), "charge", "s-charge")
                parts.stat(f"{ran.seconds * 1000:.0f} ms", "time")
                parts.stat(str(len(ran.changes)), "items written", "s-written")
            with parts.card("Result"):
                text = json.dumps(ran.value, indent=2, ensure_ascii=False)
                parts.pre(text, "16rem", "s-result")
            if ran.log:
                with parts.card("Log"):
                    parts.pre(ran.log, "10rem", "s-log")
            if ran.changes:
                with parts.card("What it wrote"):
                    lines = [f"{outcome}  {id}" for outcome, id in ran.changes]
                    parts.pre("\n".join(lines), "10rem", "s-changes")

    def _show_refusal(self, refusal: Refused) -> None:
        title = f"{refusal.status} {refusal.code}"
        if refusal.sub_status:
            title += f", number {refusal.sub_status}"
        log = unquote(refusal.headers.get(scripts.LOG, ""))
        self._show_text(refusal.message, title, log)

    def _show_text(self, text: str, title: str, log: str = "") -> None:
        self._answer.clear()
        with self._answer:
            parts.error(text, title)
            if log:
                with parts.card("Log"):
                    parts.pre(log, "10rem", "s-log")
