"""What every page has: the header with the way to the others, the choice of container, the theme.

    /explorer, /query?db=shop&c=orders …   all that a page shows stands in its address

A page is built anew for every visit; between visits only the browser remembers (theme, history).
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

from nicegui import ui
from starlette.requests import Request

from armillary.portal.context import Context, Place, link, places_of
from armillary.portal.data.client import Client, Refused
from armillary.portal.pages import PAGES, Page
from armillary.portal.widgets import parts, theme
from armillary.portal.widgets.look import Look

BUILD_SECONDS = 60.0  # for a page to be made: a server under full load answers late
THEME_COOKIE = "armillary_theme"
THEMES = {"light": False, "dark": True}


def add_pages(client: Client) -> None:
    for page in PAGES:
        title = f"{page.title} · Armillary"
        ui.page(page.path, title=title, response_timeout=BUILD_SECONDS)(_shower(client, page))


def _shower(client: Client, page: Page) -> Callable[[Request], Awaitable[None]]:
    async def show(request: Request) -> None:
        await _show(client, page, request)

    return show


async def _show(client: Client, page: Page, request: Request) -> None:
    dark = THEMES.get(request.cookies.get(THEME_COOKIE, ""))
    ui.colors(**theme.COLOURS)
    ui.add_css(theme.CSS)
    query = dict(request.query_params)
    place = _place(query.pop("db", None), query.pop("c", None))
    try:
        account = await client.control("GET", "account")
    except Refused as refusal:
        _header(Context(client, page.path, place, dark=dark))
        with _main():
            parts.error(refusal, "The server can't be asked")
        return
    places = places_of(account)
    if page.needs_container and place not in places:
        # A container that has gone, or none was named: begin with the first.
        place = places[0] if places else None
    look = Look(dark is True)
    context = Context(client, page.path, place, account, query, dark, look)
    _header(context)
    with _main():
        if page.needs_container:
            _choice(page, places, place)
            if place is None and not page.works_without:
                with parts.card():
                    parts.empty(
                        "There is no container yet",
                        "Create a database and a container in the Explorer; this page is about "
                        "one of them.",
                    )
                return
        try:
            built = page.build()(context)
            if inspect.isawaitable(built):
                await built
        except Refused as refusal:
            parts.error(refusal)
    ui.timer(0.0, look.follow, once=True)


def _place(database: str | None, container: str | None) -> Place | None:
    return Place(database, container) if database and container else None


def _main() -> ui.column:
    return ui.column().classes("a-main")


def _choice(page: Page, places: list[Place], place: Place | None) -> None:
    with ui.row().classes("items-center gap-4 w-full no-wrap"):
        ui.label(page.title).classes("a-page-title").props('role="heading" aria-level="1"')
        ui.space()
        if places:
            by_text = {str(one): one for one in places}
            choice = ui.select(list(by_text), value=str(place), label="Container")
            choice.props("dense outlined options-dense aria-label='Container'")
            choice.classes("a-mono").style("min-width: 18rem; max-width: 50vw")
            choice.on_value_change(
                lambda event: ui.navigate.to(link(page.path, by_text[event.value]))
            )


def _header(context: Context) -> None:
    with ui.header().classes("a-header items-center no-wrap gap-6"):
        with ui.row().classes("items-center gap-2 no-wrap"):
            ui.html(theme.MARK, sanitize=False).style("width: 26px; height: 26px")
            ui.label("Armillary").classes("text-base font-semibold")
        with ui.row().classes("gap-1 no-wrap").props('role="navigation" aria-label="Pages"'):
            for page in PAGES:
                here = page.path == context.path
                shown = ui.link(page.title, link(page.path, context.place))
                shown.classes("here" if here else "")
                if here:
                    shown.props('aria-current="page"')
        ui.space()
        ui.label(context.client.endpoint).classes("a-mono a-cut").style("color: #b9c4d6").props(
            'data-testid="endpoint" title="The address of this account"'
        )
        _theme_switch(context)


def _theme_switch(context: Context) -> None:
    mode = ui.dark_mode(context.dark)
    steps = {None: True, True: False, False: None}
    faces = {
        None: ("brightness_auto", "Theme: as the system"),
        True: ("dark_mode", "Theme: dark"),
        False: ("light_mode", "Theme: light"),
    }

    async def turn() -> None:
        mode.value = steps[mode.value]
        show()
        name = {True: "dark", False: "light", None: ""}[mode.value]
        ui.run_javascript(
            f"document.cookie = '{THEME_COOKIE}={name}; path=/_portal; max-age=31536000; "
            "SameSite=Strict'"
        )
        await context.look.follow()

    button = ui.button(on_click=turn).props("flat round dense color=white")

    def show() -> None:
        icon, text = faces[mode.value]
        button.props(f'icon="{icon}" aria-label="{text}" title="{text}"')

    show()
