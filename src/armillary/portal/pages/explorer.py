"""Databases, containers and items: the tree on the left, one container on the right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nicegui import ui

from armillary.portal.context import Context, Place, link, places_of
from armillary.portal.data import account
from armillary.portal.data.client import Refused, path_of
from armillary.portal.pages.explorer_items import show_items
from armillary.portal.pages.new_container import ask_new_container
from armillary.portal.widgets import dialogs, parts
from armillary.ring.words import plural


async def build(context: Context) -> None:
    with ui.row().classes("w-full no-wrap items-start gap-4"):
        with ui.column().classes("a-card a-side gap-2").props('role="region" aria-label="Account"'):
            _tree(context)
        with ui.column().classes("gap-4").style("flex: 1; min-width: 0"):
            if context.place in places_of(context.account):
                await show_items(context)
            else:
                with parts.card():
                    _invite(context)


def _invite(context: Context) -> None:
    if not context.account["databases"]:
        parts.empty(
            "This account is empty",
            "Create a database, then a container in it. Or connect an SDK to "
            f"{context.client.endpoint}.",
            "storage",
        )
        with ui.row().classes("w-full justify-center pb-6"):
            button = ui.button("Create a database", on_click=lambda: _new_database(context))
            button.props("unelevated no-caps")
    elif context.place is not None:
        parts.empty(f"There is no container {context.place}", "Choose one on the left.", "search")
    else:
        parts.empty("Choose a container", "Its items are shown here.", "arrow_back")


def _tree(context: Context) -> None:
    with ui.row().classes("w-full items-center no-wrap"):
        ui.label("Databases").classes("a-title")
        ui.space()
        button = ui.button("New", icon="add", on_click=lambda: _new_database(context))
        button.props('flat dense no-caps size="sm" aria-label="New database"')
    if not context.account["databases"]:
        ui.label("None yet.").classes("a-faint")
    for database in context.account["databases"]:
        _database(context, database)


def _database(context: Context, database: Mapping[str, Any]) -> None:
    name = database["id"]
    with ui.row().classes("w-full items-center no-wrap gap-1 a-tree-database"):
        ui.icon("storage", size="18px").classes("a-faint").props('aria-hidden="true"')
        ui.label(name).classes("a-cut font-semibold").props(f"title={parts.quoted(name)}")
        ui.space()
        with ui.button(icon="more_horiz").props("flat dense round size=sm") as button:
            button.props(f"aria-label={parts.quoted(f'Actions for database {name}')}")
            with ui.menu():
                ui.menu_item("New container", lambda: ask_new_container(context, name))
                ui.menu_item("Delete database", lambda: _delete_database(context, database))
    for container in database["containers"]:
        place = Place(name, container["id"])
        with ui.link(target=link("/", place)).classes("a-tree-row") as shown:
            if place == context.place:
                shown.classes("here").props('aria-current="true"')
            ui.label(container["id"]).classes("a-cut").props(
                f"title={parts.quoted(container['id'])}"
            )
            ui.space()
            ui.label(parts.count_text(container["items"])).classes("a-faint a-number").props(
                f'title="{container["items"]:,} items"'
            )
    if not database["containers"]:
        button = ui.button("New container", icon="add")
        button.on_click(lambda: ask_new_container(context, name))
        button.props("flat dense no-caps size=sm").classes("ml-5")


async def _new_database(context: Context) -> None:
    name = await dialogs.ask_text("New database", "Name", "Containers live in databases.")
    if name is None:
        return
    try:
        await account.create_database(context.client, name)
    except Refused as refusal:
        parts.report(refusal)
        return
    ui.navigate.to(link("/"))


async def _delete_database(context: Context, database: Mapping[str, Any]) -> None:
    count = len(database["containers"])
    items = sum(one["items"] for one in database["containers"])
    remark = (
        f"{plural(count, 'container')} with {plural(items, 'item')} will be gone. "
        "This can't be undone."
    )
    if not await dialogs.confirm_by_name("Delete database", database["id"], remark):
        return
    try:
        await context.client.rest("DELETE", path_of("dbs", database["id"]))
    except Refused as refusal:
        parts.report(refusal)
        return
    ui.navigate.to(link("/"))
