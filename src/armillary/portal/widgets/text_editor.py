"""A code editor whose text belongs to the browser.

    typing ─▶ document in the browser ─▶ change set ─▶ `value` here       always in this direction
    show   ─▶ `value` here, and the document; change sets that were on their way are left out

The component it is made of sends its value to the browser again with every other update of the
element (marks, colours, visibility). By then the user has typed on, and what he typed since would
be put back. So updates of the element do not touch the text: it is set by `show` alone, and marks
go there by themselves, if the text is still the one they are about.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from nicegui import ui
from nicegui.events import GenericEventArguments

SHOWN: Final = "armillary-shown"
#: The component is there some time after the page; until then it takes no text.
SHOW: Final = """
(function show(tries) { const one = getElement(%(id)d);
  if (!one?.editor) { if (tries) setTimeout(() => show(tries - 1), 20); return; }
  one.setEditorValue(%(text)s); one.$emit('%(event)s', %(number)d); })(3000)
"""
MARK: Final = """
(() => { const one = getElement(%(id)d);
  if (one?.editor?.state.doc.length === %(length)d) one.setDecorations(%(marks)s); })()
"""
RESTORE: Final = """
(async () => { const one = getElement(%(id)d); await one.editorPromise;
  const text = one.editor.state.doc.toString();
  let kept = null;
  try { kept = JSON.parse(localStorage.getItem(%(key)s)); } catch (error) { }
  if (typeof kept === 'string' && kept.trim() && kept !== text && text === %(first)s)
    one.editor.dispatch({changes: {from: 0, to: text.length, insert: kept}}); })()
"""
FOCUS: Final = """
(async () => { const one = getElement(%(id)d); await one.editorPromise;
  if (document.activeElement === document.body) one.editor.focus(); })()
"""


class TextEditor(ui.codemirror):
    def __init__(self, value: str = "", **options: Any) -> None:
        self._sent = 0
        self._confirmed = 0
        """Of the texts that were set here, by their numbers: the latest that the browser shows."""
        self._marked = False
        super().__init__(value, **options)
        self._update_method = None
        self.on(SHOWN, self._was_shown)

    def show(self, text: str) -> None:
        """Another text, in place of whatever is being typed."""
        self._sent += 1
        self._marked = False
        self.value = text
        facts = {"id": self.id, "text": json.dumps(text), "event": SHOWN, "number": self._sent}
        ui.run_javascript(SHOW % facts)

    def set_marks(self, marks: Sequence[dict[str, Any]] = ()) -> None:
        """Parts of the text, by their offsets in `value`. None: those there were are taken away."""
        if not marks and not self._marked:
            return
        self._marked = bool(marks)
        length = len(self.value.encode("utf-16-le")) // 2
        facts = {"id": self.id, "length": length, "marks": json.dumps(list(marks))}
        ui.run_javascript(MARK % facts)

    def restore(self, key: str) -> None:
        """What the browser has kept under `key`, unless the user has begun to write."""
        facts = {"id": self.id, "key": json.dumps(key), "first": json.dumps(self.value)}
        ui.run_javascript(RESTORE % facts)

    def focus(self) -> None:
        """Unless something else has the focus already."""
        ui.run_javascript(FOCUS % {"id": self.id})

    def _was_shown(self, event: GenericEventArguments) -> None:
        self._confirmed = max(self._confirmed, int(event.args))

    def _event_args_to_value(self, e: GenericEventArguments) -> str:
        # Until the browser confirms, changes are about a text that is no longer there.
        if self._confirmed < self._sent:
            return str(self.value)
        return str(super()._event_args_to_value(e))
