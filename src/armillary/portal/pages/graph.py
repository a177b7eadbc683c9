"""The graph page: a traversal in, a picture of what it found out. Colours are physical partitions;
dashed edges cross them."""

from __future__ import annotations

from typing import Any, Final

import orjson
from nicegui import ui

from armillary.portal.context import Context
from armillary.portal.data.client import Refused
from armillary.portal.widgets import memory, parts
from armillary.portal.widgets.graph_view import colours, crossing, graph_svg

FIRST: Final = "g.V().limit(50)"
EXAMPLES: Final = (
    ("Some vertices", "g.V().limit(50)"),
    ("Labels", "g.V().groupCount().by(label)"),
    ("Paths of two hops", "g.V().limit(5).outE().inV().outE().inV().path().limit(50)"),
)


def build(context: Context) -> None:
    GraphPage(context).build()


class GraphPage:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._place = context.require_place()
        self._drafts = memory.Kept(f"graph-draft:{self._place}")
        self._is_running = False

    def build(self) -> None:
        with ui.column().classes("a-card"):
            text = self._context.query.get("q", FIRST)
            self._editor = self._context.look.editor(text, "JavaScript", "Traversal", "110px")
            self._editor.on_value_change(lambda: self._drafts.put(self._editor.value))
            self._editor.map_key("Mod-Enter", self._run)
            with ui.row().classes("w-full items-center gap-2"):
                self._run_button = ui.button("Run", icon="play_arrow", on_click=self._run)
                self._run_button.props('unelevated no-caps title="Ctrl-Enter"')
                for name, example in EXAMPLES:
                    button = ui.button(name).props("outline no-caps dense padding='4px 12px'")
                    button.on_click(lambda text=example: self._take(text))
        self._answer = ui.column().classes("w-full gap-4")
        with self._answer, parts.card():
            parts.empty("No traversal run yet", "Ctrl-Enter runs the traversal.", "hub")
        if "q" not in self._context.query:
            self._editor.restore(self._drafts.key)
        self._editor.focus()

    async def _take(self, text: str) -> None:
        self._editor.show(text)
        await self._run()

    async def _run(self) -> None:
        if self._is_running:
            return
        self._set_running(True)
        try:
            found = await self._context.client.control(
                "POST", f"{self._place.path}/gremlin", {"gremlin": self._editor.value}
            )
        except Refused as refusal:
            self._answer.clear()
            with self._answer:
                parts.error(refusal.message, "This traversal failed")
            return
        finally:
            self._set_running(False)
        self._answer.clear()
        with self._answer:
            self._show(found)

    def _set_running(self, running: bool) -> None:
        self._is_running = running
        self._run_button.props(f"loading={'true' if running else 'false'}")

    def _show(self, found: dict[str, Any]) -> None:
        vertices, edges = found["vertices"], found["edges"]
        cost = f"{found['charge_ru']:.2f} RU, {found['elapsed_ms']:.0f} ms"
        with parts.card():
            summary = ui.label(f"{len(found['results'])} results, {cost}")
            summary.classes("a-faint").props("data-testid=graph-cost")
            if vertices:
                self._show_picture(vertices, edges)
        with parts.card():
            ui.label("Results").classes("a-title").props('role="heading" aria-level="2"')
            shown = orjson.dumps(found["results"], option=orjson.OPT_INDENT_2).decode()
            ui.code(shown, language="json").classes("w-full").style("max-height: 50vh")

    @staticmethod
    def _show_picture(vertices: list[dict[str, Any]], edges: list[dict[str, Any]]) -> None:
        across = crossing(vertices, edges)
        ui.label(
            f"{len(vertices)} vertices, {len(edges)} edges; {across.crossing} of {across.edges} "
            f"cross physical partitions ({across.share:.0%})"
        ).props("data-testid=graph-crossing")
        with ui.row().classes("gap-4"):
            for partition, colour in colours(vertices).items():
                with ui.row().classes("items-center gap-1"):
                    ui.element("span").style(
                        f"width: 12px; height: 12px; border-radius: 6px; background: {colour}"
                    )
                    ui.label(f"partition {partition}").classes("a-faint")
        picture = ui.html(graph_svg(vertices, edges), sanitize=False).classes("w-full")
        picture.props("data-testid=graph-picture")
