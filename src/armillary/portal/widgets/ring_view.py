"""The ring in a page, drawn again when its numbers change, and only then."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui

from armillary.portal.context import Context
from armillary.portal.data.watching import Watch, watches_of
from armillary.portal.widgets import parts
from armillary.ring.style import page_css
from armillary.ring.svg import ring_svg

CSS = """
.r-picture svg { display: block; width: 100%; height: auto; }
.r-table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
.r-table caption { position: absolute; left: -9999px; }
.r-table th { text-align: right; font-weight: 500; color: var(--faint); font-size: 12px;
              padding: 4px 8px; border-bottom: 1px solid var(--line); position: sticky; top: 0;
              background: var(--card); }
.r-table td { text-align: right; padding: 4px 8px; border-bottom: 1px solid var(--line); }
.r-table th:first-child, .r-table td:first-child { text-align: left; }
.r-table tr.hot td[data-name=normalized] { font-weight: 650; color: #b3401b; }
.body--dark .r-table tr.hot td[data-name=normalized] { color: #ffb14d; }
.r-scroll { max-height: 330px; overflow: auto; width: 100%; position: relative; }
.r-meter { width: 110px; height: 8px; border-radius: 4px; background: var(--code); overflow: hidden;
           display: inline-block; vertical-align: middle; }
.r-meter div { height: 100%; border-radius: 4px; }
.r-meter .heat { background: #e88a1f; } .r-meter .store { background: #0072b2; }
.r-meter .full { background: #a3195b; }
.body--dark .r-meter .store { background: #56b4e9; }
.body--dark .r-meter .full { background: #ff8fb8; }
.r-news { font-family: var(--mono); font-size: 12.5px; white-space: pre-wrap; line-height: 1.6;
          max-height: 190px; overflow: auto; width: 100%; }
@media (max-width: 640px) { /* its words can be read, and the rest is a swipe away */
  .r-picture[data-testid=ring] { overflow-x: auto; }
  .r-picture[data-testid=ring] svg { min-width: 560px; }
}
"""


def follow(context: Context, listener: Callable[[Watch], None]) -> None:
    """Call `listener` with what there is to see, until the page is closed."""
    ui.add_css(page_css() + CSS)
    watches = watches_of(context.client)
    watch = watches.join(context.require_place(), listener)
    ui.context.client.on_delete(lambda: watches.leave(watch, listener))


class Picture:
    """A drawing that is sent only when it differs from the last."""

    def __init__(self, label: str, testid: str, classes: str = "w-full") -> None:
        self._html = ui.html("", sanitize=False).classes(f"r-picture {classes}")
        self._html.props(f'data-testid="{testid}" aria-label="{label}"')
        self._drawn = ""

    def show(self, text: str) -> None:
        if text != self._drawn:
            self._drawn = text
            self._html.set_content(text)


class NewsView:
    """Splits and merges, the latest first."""

    def __init__(self) -> None:
        with parts.card("Splits and merges", "UTC, the latest first") as self.card:
            self._text = ui.label("None yet.").classes("r-news").props('data-testid="news"')
            self._text.props('tabindex="0" role="log" aria-label="Splits and merges"')

    def show(self, watch: Watch) -> None:
        self._text.set_text("\n".join(reversed(watch.news)) or "None yet.")


class RingView:
    """The picture, or what is in its way."""

    def __init__(self) -> None:
        self._problem = ui.column().classes("w-full gap-0")
        self._picture = Picture("The ring of physical partitions", "ring")
        self._error = ""

    def show(self, watch: Watch) -> None:
        text = "" if watch.error is None else str(watch.error)
        if text != self._error:
            self._error = text
            self._problem.clear()
            if watch.error is not None:
                with self._problem:
                    parts.error(watch.error, "The server was asked in vain; it is asked again")
        if watch.ring is not None:
            self._picture.show(ring_svg(watch.ring, None))
