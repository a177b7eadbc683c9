"""How one page looks just now: light or dark, and the code editors that must follow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from nicegui import ui

from armillary.portal.widgets.text_editor import TextEditor

LIGHT: Final = "vscodeLight"
DARK: Final = "vscodeDark"
ANSWER_SECONDS: Final = 10.0
IS_DARK: Final = "document.body.classList.contains('body--dark')"
NAME_PARTS: Final = """
document.querySelectorAll('.a-editor .cm-content').forEach(one => {
  one.setAttribute('aria-label', one.closest('.a-editor').getAttribute('aria-label'));
  one.setAttribute('aria-description', 'Escape, then Tab, leaves the editor'); })
document.querySelectorAll('.q-slider > [tabindex]').forEach(one => {
  one.setAttribute('role', 'group');
  one.setAttribute('aria-label', one.closest('.q-slider').getAttribute('aria-label')); })
"""


@dataclass(slots=True)
class Look:
    dark: bool = False
    _editors: list[TextEditor] = field(default_factory=list)

    def editor(
        self,
        value: str,
        language: Literal["JSON", "SQL", "JavaScript"],
        label: str,
        height: str = "100%",
    ) -> TextEditor:
        """A code editor in the colours of the page."""
        editor = TextEditor(value, language=language, theme=DARK if self.dark else LIGHT)
        editor.props["indent"] = "  "
        editor.props(f'role="group" aria-label="{label}"').style(f"height: {height}")
        editor.classes("a-editor w-full")
        self._editors.append(editor)
        return editor

    def turn(self, dark: bool) -> None:
        self.dark = dark
        for editor in self._editors:
            if not editor.is_deleted:
                editor.theme = DARK if dark else LIGHT

    async def follow(self) -> None:
        """What the browser made of "as the system". And editors and sliders get their names for
        readers of the screen, which their components do not pass on to the part with the focus."""
        ui.run_javascript(NAME_PARTS)
        try:
            dark = await ui.run_javascript(IS_DARK, timeout=ANSWER_SECONDS)
        except TimeoutError:  # the browser has gone, or is too busy to look good
            return
        self.turn(bool(dark))
