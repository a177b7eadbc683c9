"""The editor of one item: checked while it is written, saved only over the version it began with.

open ─▶ edit ─▶ save with If-Match ─▶ stored
                                  └─▶ 412: somebody else was first: both versions are shown,
                                      and nothing is lost until the user has chosen
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from uuid import uuid4

from nicegui import ui

from armillary.portal.context import Context
from armillary.portal.data.account import Items
from armillary.portal.data.client import Refused
from armillary.portal.data.items import (
    Invalid,
    changed_text,
    new_item,
    parse_item,
    shown_body,
    text_of,
)
from armillary.portal.widgets import dialogs, parts

CHANGED: Final = 412
GONE: Final = 404


class Editor:
    def __init__(
        self, context: Context, items: Items, saved: Callable[[], Awaitable[None]]
    ) -> None:
        self._context = context
        self._items = items
        self._saved = saved
        self._stored: Mapping[str, Any] | None = None
        self._is_new = False

    def build(self) -> None:
        with ui.row().classes("w-full items-center no-wrap gap-2").style("min-height: 40px"):
            self._title = ui.label("Item").classes("a-title a-cut")
            self._title.props('role="heading" aria-level="2" data-testid="item-title"')
            ui.space()
            self._delete_button = ui.button("Delete", icon="delete", on_click=self._delete)
            self._delete_button.props("flat dense no-caps")
            self._save_button = ui.button("Save", icon="save", on_click=self._save)
            self._save_button.props("unelevated dense no-caps padding='4px 10px'")
        self._hint = ui.column().classes("w-full")
        with self._hint:
            parts.empty("No item is open", "Choose one in the list, or create one.", "data_object")
        self._editor = self._context.look.editor("", "JSON", "Item as JSON", "52vh")
        self._editor.on_value_change(self._check)
        self._trouble = ui.label().classes("a-trouble").props('role="status" data-testid="invalid"')
        with ui.column().classes("w-full gap-0 a-faint") as self._about:
            self._changed = ui.label()
            self._etag = ui.label().classes("a-mono a-cut").props('data-testid="etag"')
        self._show(None, is_new=False)

    # --- what is open ---------------------------------------------------------------------------

    async def open(self, item: Mapping[str, Any]) -> None:
        if await self._may_leave():
            self._show(item, is_new=False)

    async def begin_new(self) -> None:
        if await self._may_leave():
            self._show(new_item(self._items.keyed, str(uuid4())[:8]), is_new=True)

    @property
    def _is_changed(self) -> bool:
        if self._stored is None:
            return False
        return bool(self._editor.value != text_of(self._stored)) and not self._is_same_item()

    def _is_same_item(self) -> bool:
        """Other spaces are no change."""
        assert self._stored is not None
        try:
            return bool(json.loads(self._editor.value) == shown_body(self._stored))
        except ValueError:
            return False

    async def _may_leave(self) -> bool:
        if not self._is_changed:
            return True
        answer = await dialogs.choose(
            "This item has changes that are not saved",
            "They will be lost.",
            [("Discard them", "discard"), ("Go on editing", "stay")],
        )
        return answer == "discard"

    def _show(self, item: Mapping[str, Any] | None, *, is_new: bool) -> None:
        self._stored, self._is_new = item, is_new
        for one in (self._editor, self._trouble, self._about, self._save_button):
            one.set_visibility(item is not None)
        self._delete_button.set_visibility(item is not None and not is_new)
        self._hint.set_visibility(item is None)
        self._title.text = "Item"
        self._editor.show("" if item is None else text_of(item))
        if item is not None:
            self._title.text = "New item" if is_new else item["id"]
            etag = item.get("_etag", "").strip('"')
            self._changed.text = "Not stored yet" if is_new else f"Stored {changed_text(item)} UTC"
            self._etag.text = "" if is_new else f"etag {etag}"
        self._check()

    def _check(self) -> dict[str, Any] | None:
        """The item in the editor; None, and a message, if it is none."""
        self._trouble.text = ""
        if self._stored is None:
            self._editor.set_marks()
            return None
        try:
            item = parse_item(self._editor.value, entity=self._items.keyed.is_table)
        except Invalid as invalid:
            self._trouble.text = str(invalid)
            marks = []
            if invalid.at is not None and self._editor.value:
                start = min(invalid.at, len(self._editor.value) - 1)
                marks = [{"kind": "mark", "from": start, "to": start + 1, "class": "a-wrong"}]
            self._editor.set_marks(marks)
            self._save_button.disable()
            return None
        self._editor.set_marks()
        self._save_button.enable()
        return item

    # --- saving ---------------------------------------------------------------------------------

    async def _save(self) -> None:
        item = self._check()
        if item is None or self._stored is None:
            return
        if self._is_new:
            await self._create(item)
        elif item["id"] != self._stored["id"] or not self._items.keyed.is_same(item, self._stored):
            await self._save_as_new(item)
        else:
            await self._replace(item, self._stored["_etag"])

    async def _create(self, item: Mapping[str, Any]) -> bool:
        try:
            reply = await self._items.create(item)
        except Refused as refusal:
            parts.report(refusal)
            return False
        await self._stand(reply.body, f"Created for {parts.ru_text(reply.charge_ru)}")
        return True

    async def _save_as_new(self, item: Mapping[str, Any]) -> None:
        answer = await dialogs.choose(
            "Another id or partition key is another item",
            "An item keeps its id and its partition key for life. This text can be saved as a new "
            "item; the old one stays.",
            [("Go on editing", "stay"), ("Save as a new item", "new")],
        )
        if answer == "new":
            await self._create(item)

    async def _replace(self, item: Mapping[str, Any], etag: str) -> None:
        assert self._stored is not None
        try:
            reply = await self._items.replace(self._stored, item, etag)
        except Refused as refusal:
            if refusal.status in (CHANGED, GONE):
                await self._settle_conflict(item)
            else:
                parts.report(refusal)
            return
        await self._stand(reply.body, f"Saved for {parts.ru_text(reply.charge_ru)}")

    async def _settle_conflict(self, item: Mapping[str, Any]) -> None:
        assert self._stored is not None
        try:
            theirs = await self._items.read(self._stored)
        except Refused as refusal:
            if refusal.status != GONE:
                parts.report(refusal)
                return
            answer = await dialogs.choose(
                "This item was deleted meanwhile",
                "Your version can be created again.",
                [("Go on editing", "stay"), ("Create it again", "create")],
            )
            if answer == "create":
                await self._create(item)
            return
        answer = await dialogs.compare(
            "This item was changed meanwhile",
            "Somebody saved another version after you opened it (412, the etag differs).",
            self._editor.value,
            text_of(theirs),
        )
        if answer == "reload":
            self._show(theirs, is_new=False)
            await self._saved()
        elif answer == "overwrite":
            await self._replace(item, theirs["_etag"])

    async def _delete(self) -> None:
        assert self._stored is not None
        answer = await dialogs.choose(
            f"Delete {self._stored['id']}?",
            "This can't be undone.",
            [("Cancel", "stay"), ("Delete", "delete")],
        )
        if answer != "delete":
            return
        try:
            reply = await self._items.delete(self._stored, self._stored["_etag"])
        except Refused as refusal:
            if refusal.status == CHANGED:
                parts.report("It was changed meanwhile: open it again to see what it is now.")
            else:
                parts.report(refusal)
            return
        self._show(None, is_new=False)
        parts.tell(f"Deleted for {parts.ru_text(reply.charge_ru)}")
        await self._saved()

    async def _stand(self, item: Mapping[str, Any], message: str) -> None:
        self._show(item, is_new=False)
        parts.tell(message)
        await self._saved()
