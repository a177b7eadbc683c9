"""Questions to the user that wait for an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nicegui import ui

from armillary.portal.widgets import parts


@contextmanager
def dialog(title: str, width: str = "28rem") -> Iterator[ui.dialog]:
    """`await` it after the block: what it was submitted with, or None."""
    with ui.dialog() as made, ui.card().classes("a-dialog").style(f"width: {width}"):
        made.props(f'aria-label="{title}"')
        ui.label(title).classes("a-title").props('role="heading" aria-level="2"')
        yield made


@contextmanager
def answers() -> Iterator[None]:
    with ui.row().classes("w-full justify-end gap-2 mt-2"):
        yield


async def ask_text(title: str, label: str, remark: str = "", action: str = "Create") -> str | None:
    with dialog(title) as made:
        if remark:
            ui.label(remark).classes("a-faint")
        field = ui.input(label).props("outlined dense autofocus").classes("w-full")
        field.on("keydown.enter", lambda: made.submit(field.value))
        with answers():
            ui.button("Cancel", on_click=made.close).props("flat no-caps")
            ui.button(action, on_click=lambda: made.submit(field.value)).props("unelevated no-caps")
    answer = await made
    made.delete()
    return answer.strip() if isinstance(answer, str) and answer.strip() else None


async def confirm_by_name(title: str, name: str, remark: str) -> bool:
    """For what can't be undone: the name has to be written."""
    with dialog(title) as made:
        ui.label(remark)
        with ui.row().classes("items-center gap-1"):
            ui.label("To confirm, write its name:").classes("a-faint")
            ui.label(name).classes("a-mono").style("overflow-wrap: anywhere")
        field = ui.input("Name").props("outlined dense autofocus").classes("w-full")
        with answers():
            ui.button("Cancel", on_click=made.close).props("flat no-caps")
            button = ui.button("Delete", on_click=lambda: made.submit(True))
            button.props("unelevated no-caps color=negative")
            button.bind_enabled_from(field, "value", lambda text: text == name)
    answer = await made
    made.delete()
    return answer is True


async def choose(title: str, remark: str, options: Sequence[tuple[str, str]]) -> str | None:
    """`options`: what a button says, and what is returned for it. The last is the usual one."""
    with dialog(title, "34rem") as made:
        ui.label(remark)
        with answers():
            for at, (text, value) in enumerate(options):
                button = ui.button(text, on_click=lambda value=value: made.submit(value))
                last = at == len(options) - 1
                button.props("unelevated no-caps" if last else "flat no-caps")
    answer = await made
    made.delete()
    return answer if isinstance(answer, str) else None


async def compare(title: str, remark: str, mine: str, theirs: str) -> str | None:
    """Two versions side by side; the answer is `overwrite`, `reload` or nothing."""
    with dialog(title, "min(64rem, 94vw)") as made:
        made.props("persistent")
        ui.label(remark)
        with ui.row().classes("w-full no-wrap gap-4"):
            for name, text in (("Your version", mine), ("The stored version", theirs)):
                with ui.column().classes("gap-1").style("flex: 1; min-width: 0"):
                    ui.label(name).classes("a-faint")
                    parts.pre(text, "22rem")
        with answers():
            ui.button("Go on editing", on_click=made.close).props("flat no-caps")
            ui.button("Take the stored one", on_click=lambda: made.submit("reload")).props(
                "flat no-caps"
            )
            ui.button("Overwrite it", on_click=lambda: made.submit("overwrite")).props(
                "unelevated no-caps color=negative"
            )
    answer = await made
    made.delete()
    return answer if isinstance(answer, str) else None
