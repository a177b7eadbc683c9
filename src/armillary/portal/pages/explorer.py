"""Databases, containers and items."""

from __future__ import annotations

from nicegui import ui

from armillary.portal import parts
from armillary.portal.context import Context


def build(context: Context) -> None:
    databases = context.account["databases"]
    if not databases:
        with parts.card():
            parts.empty("This account is empty", "Create a database to begin.", "storage")
        return
    for database in databases:
        with parts.card(database["id"]):
            for container in database["containers"]:
                with ui.row().classes("w-full items-center"):
                    ui.label(container["id"]).classes("a-mono")
                    ui.label(", ".join(container["partition_key"])).classes("a-faint a-mono")
                    ui.space()
                    ui.label(f"{container['items']:,} items").classes("a-number")
                    ui.label(parts.bytes_text(container["bytes"])).classes("a-number")
