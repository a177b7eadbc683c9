"""Live load: a workload against a container, and what it does to the ring."""

from __future__ import annotations

from nicegui import ui

from armillary.portal.context import Context
from armillary.portal.data.load import Load
from armillary.portal.data.watching import Watch
from armillary.portal.data.workloads import ABOUT, KINDS, RATE_MAX, Workload, target_of
from armillary.portal.widgets import parts
from armillary.portal.widgets.ring_view import NewsView, Picture, RingView, follow
from armillary.ring.charts import traffic_svg
from armillary.ring.words import rate

SHOW_SECONDS = 1.0


def build(context: Context) -> None:
    definition = context.definition()
    paths = definition["partition_key"]
    target = target_of(paths, definition["synthetic_key"])
    load = Load(context.client, context.require_place(), paths, target)
    for ending in (ui.context.client.on_disconnect, ui.context.client.on_delete):
        ending(lambda: load.stop("It stopped: the page was closed or lost its connection."))
    with ui.row().classes("w-full items-stretch gap-4 no-wrap max-lg:flex-wrap"):
        with ui.column().classes("gap-4").style("flex: 0 0 360px; min-width: 0"):
            _Controls(load)
        with ui.column().classes("gap-4").style("flex: 1 1 0; min-width: 0"):
            with parts.card():
                view = RingView()
            news = NewsView()
            news.card.style("flex: 1")

    def show(watch: Watch) -> None:
        view.show(watch)
        news.show(watch)

    follow(context, show)


class _Controls:
    def __init__(self, load: Load) -> None:
        self._load = load
        start = Workload()
        with parts.card("Workload"):
            names = {kind: ABOUT[kind][0] for kind in KINDS}
            self._kind = ui.select(names, value=start.kind, label="Keys", on_change=self._change)
            self._kind.props('outlined dense options-dense aria-label="Keys"').classes("w-full")
            self._about = ui.label().classes("a-faint")
            self._rate = self._slider("Requests per second", 0, RATE_MAX, 10, start.rate, "rate")
            reads = start.reads_percent
            self._reads = self._slider("Reads, per cent", 0, 100, 5, reads, "reads")
            with ui.row().classes("w-full no-wrap gap-3"):
                self._keys = self._number("Different keys", start.keys)
                self._bytes = self._number("Bytes per item", start.item_bytes)
            ui.label(f"Start writes items into {load.where}. They stay there when it stops.").props(
                'data-testid="load-notice"'
            ).classes("a-faint")
            self._problem = ui.column().classes("w-full gap-0")
            self._button = ui.button("Start", icon="play_arrow", on_click=self._turn)
            self._button.props('no-caps unelevated data-testid="load-turn"').classes("w-full")
        with parts.card("Results", "of this page's requests"):
            with ui.grid(columns=4).classes("w-full gap-2"):
                self._done = parts.stat("0", "done", "load-done")
                self._refused = parts.stat("0", "429", "load-refused")
                self._failed = parts.stat("0", "failed", "load-failed")
                self._per_s = parts.stat("0", "per second", "load-rate")
                self._ru = parts.stat("0", "RU/s", "load-ru")
                self._median = parts.stat("–", "median ms", "load-p50")
                self._slow = parts.stat("–", "p99 ms", "load-p99")
            self._traffic = Picture("Requests of the last minute", "load-traffic")
        self._change()
        ui.timer(SHOW_SECONDS, self._show)

    def _slider(
        self, label: str, low: int, high: int, step: int, value: float, testid: str
    ) -> ui.slider:
        with ui.column().classes("w-full gap-0"):
            with ui.row().classes("w-full justify-between"):
                ui.label(label).classes("a-faint")
                shown = ui.label().classes("a-number").props(f'data-testid="load-{testid}-set"')
            slider = ui.slider(min=low, max=high, step=step, value=value)
            slider.props(f'aria-label="{label}"').classes("w-full")
            slider.on_value_change(lambda: self._change())
            shown.bind_text_from(slider, "value", lambda now: f"{now:,.0f}")
        return slider

    def _number(self, label: str, value: int) -> ui.number:
        field = ui.number(label, value=value, format="%d", on_change=lambda: self._change())
        return field.props(f'outlined dense aria-label="{label}"').classes("w-full")

    def _wanted(self) -> Workload:
        if self._keys.value is None or self._bytes.value is None:
            raise ValueError("Say how many keys there are and how large an item is.")
        return Workload(
            self._kind.value,
            float(self._rate.value),
            float(self._reads.value),
            int(self._keys.value),
            int(self._bytes.value),
        )

    def _change(self) -> None:
        if not hasattr(self, "_button"):
            return  # still being built
        self._about.set_text(ABOUT[self._kind.value][1])
        self._problem.clear()
        try:
            self._load.change(self._wanted())
        except ValueError as error:
            with self._problem:
                parts.error(str(error))

    def _turn(self) -> None:
        if self._load.is_running:
            self._load.stop()
        else:
            self._problem.clear()
            try:
                self._load.start(self._wanted())
            except ValueError as error:
                with self._problem:
                    parts.error(str(error))
        self._show()

    def _show(self) -> None:
        load = self._load
        running = load.is_running
        self._button.set_text("Stop" if running else "Start")
        self._button.props(f"icon={'stop' if running else 'play_arrow'}")
        if not running and load.why_ended:
            self._problem.clear()
            with self._problem:
                parts.error(load.error or load.why_ended, load.why_ended)
            load.why_ended = ""
        seconds = load.seconds()
        last = seconds[-1]
        self._done.set_text(f"{load.done:,}")
        self._refused.set_text(f"{load.refused:,}")
        self._failed.set_text(f"{load.failed:,}")
        self._per_s.set_text(f"{last.done + last.refused:,}")
        self._ru.set_text(rate(last.ru))
        if load.done:
            self._median.set_text(f"{load.latency_ms(0.5):.0f}")
            self._slow.set_text(f"{load.latency_ms(0.99):.0f}")
        self._traffic.show(traffic_svg([(one.done, one.refused) for one in seconds]))
