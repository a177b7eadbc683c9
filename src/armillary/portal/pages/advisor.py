"""The advisor page: a sample in, a recommended partition key out, with its reasons."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

from nicegui import app, events, ui
from starlette.responses import FileResponse, Response

from armillary.portal.context import PREFIX, Context
from armillary.portal.data.account import Items
from armillary.portal.data.advising import (
    Advice,
    NoAdvice,
    Workshop,
    advise,
    suffix_of,
    write_sample,
)
from armillary.portal.data.client import Refused
from armillary.portal.widgets import parts

CONTAINER, FILE = "This container", "A file"
SIZES: Final = {1_000: "1,000 items", 10_000: "10,000 items", 100_000: "100,000 items"}
VERDICTS: Final = {"recommended": "positive", "acceptable": "info", "rejected": "negative"}

workshop = Workshop()
app.on_shutdown(workshop.close)


@app.get("/report/{name}")
def report(name: str) -> Response:
    """A page that `advise` wrote: self-contained, shown in a frame."""
    path = workshop.find(name)
    return Response(status_code=404) if path is None else FileResponse(path, media_type="text/html")


def build(context: Context) -> None:
    AdvisorPage(context).build()


class AdvisorPage:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._source = CONTAINER if context.place is not None else FILE
        self._upload: Path | None = None
        self._paths: list[str] = []  # of the container's key, in the sample
        self._task: asyncio.Task[Advice] | None = None

    def build(self) -> None:
        with parts.card(
            "Which partition key?",
            "Reads a sample, tries every key it could have, and says which spreads data and "
            "requests best, with the numbers.",
        ):
            with ui.row().classes("w-full items-center gap-3"):
                sources = [CONTAINER, FILE] if self._context.place is not None else [FILE]
                source = ui.toggle(sources).bind_value(self, "_source")
                source.props('no-caps unelevated aria-label="Source"')
                self._size = ui.select(dict(SIZES), value=10_000, label="Sample")
                self._size.props("outlined dense").style("width: 11rem")
                self._size.bind_visibility_from(self, "_source", value=CONTAINER)
                self._throughput = ui.number("Throughput, RU/s", min=400, step=1000, precision=0)
                self._throughput.props("outlined dense clearable").style("width: 11rem")
                self._storage = ui.input("Storage, such as 2TB").props("outlined dense clearable")
                self._storage.style("width: 12rem")
                ui.space()
                self._cancel = ui.button("Cancel", on_click=self._stop).props("flat no-caps")
                self._cancel.set_visibility(False)
                self._run = ui.button("Advise", icon="insights", on_click=self._advise)
                self._run.props("unelevated no-caps")
            upload = ui.upload(
                label="JSON, JSON Lines, CSV or Parquet; .gz too",
                auto_upload=True,
                on_upload=self._uploaded,
                max_files=1,
            )
            upload.props('flat bordered aria-label="File"').classes("w-full")
            upload.bind_visibility_from(self, "_source", value=FILE)
            with ui.expansion("Workload (optional)").classes("w-full").props("dense"):
                ui.label(
                    "What runs against the container: operations with their rate per second. "
                    "Without it, items are assumed to be written and read by key."
                ).classes("a-faint")
                self._workload = self._context.look.editor("", "JSON", "Workload", "140px")
            self._progress = ui.label().classes("a-faint").props('role="status"')
        self._answer = ui.column().classes("w-full gap-4")
        ui.context.client.on_delete(self._stop)

    async def _uploaded(self, event: events.UploadEventArguments) -> None:
        try:
            path = workshop.new_file(suffix_of(event.file.name))
        except NoAdvice as error:
            parts.report(str(error))
            return
        await event.file.save(path)
        self._upload = path
        self._progress.text = f"{event.file.name} is here."

    # --- running --------------------------------------------------------------------------------

    async def _advise(self) -> None:
        self._answer.clear()
        self._set_running(True)
        try:
            self._task = asyncio.ensure_future(self._work())
            advice = await self._task
        except asyncio.CancelledError:
            self._progress.text = "Cancelled."
            return
        except (NoAdvice, Refused) as error:
            with self._answer:
                parts.error(str(error), "There is no advice")
            self._progress.text = ""
            return
        finally:
            self._task = None
            self._set_running(False)
        self._progress.text = ""
        with self._answer:
            _show(advice)

    async def _work(self) -> Advice:
        made = self._upload is None or self._source == CONTAINER
        source = await self._sample() if self._source == CONTAINER else self._upload
        if source is None:
            raise NoAdvice("Choose a file first.")
        self._progress.text = "Trying keys…"
        target = workshop.new_file(".html")
        try:
            advice = await advise(source, self._options(), target)
        finally:
            if made:
                source.unlink(missing_ok=True)
        if advice.report is not None:
            workshop.keep(advice.report)
        return advice

    async def _sample(self) -> Path:
        items = await Items.of(self._context.client, self._context.require_place())
        self._paths = items.keyed.shown_paths
        path = workshop.new_file(".jsonl")

        def progress(count: int) -> None:
            self._progress.text = f"{count:,} items read…"

        if not await write_sample(items, path, int(self._size.value), progress):
            path.unlink()
            raise NoAdvice("The container is empty: there is nothing to judge a key by.")
        return path

    def _options(self) -> list[str]:
        options: list[str] = []
        if self._source == CONTAINER:
            about = self._context.definition()
            options += ["--container", about["id"]]
            if not about["synthetic_key"]:
                options += ["--current", ",".join(self._paths)]
        if self._throughput.value:
            options += ["--throughput", str(int(self._throughput.value))]
        if (self._storage.value or "").strip():
            options += ["--storage", self._storage.value.strip()]
        text = self._workload.value.strip()
        if text:
            try:
                json.loads(text)
            except ValueError as error:
                raise NoAdvice(f"The workload is not JSON: {error}.") from error
            path = workshop.new_file(".json")
            path.write_text(text, "utf-8")
            options += ["--workload", str(path)]
        return options

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _set_running(self, running: bool) -> None:
        self._run.props(f"loading={'true' if running else 'false'}")
        self._cancel.set_visibility(running)


def _show(advice: Advice) -> None:
    best = advice.document.get("recommended") or {}
    candidates = advice.document.get("candidates") or []
    inputs = advice.document.get("inputs") or {}
    with parts.card():
        with ui.row().classes("w-full items-end gap-10"):
            with ui.column().classes("gap-0").style("min-width: 0"):
                ui.label("Recommended").classes("a-faint")
                ui.label(str(best.get("key", "none"))).classes("a-page-title a-cut a-key").props(
                    'data-testid="recommended"'
                )
            parts.stat(f"{inputs.get('items', 0):,}", "items judged", "judged")
            parts.stat(str(inputs.get("partitions_judged", "")), "partitions assumed")
            parts.stat(str(len(candidates)), "keys compared", "compared")
        _lines(best.get("reasons"))
        for name, text in (
            ("Definition", json.dumps(best.get("definition"), indent=2, ensure_ascii=False)),
            ("Python", best.get("python")),
            ("How to get there", "\n".join(best.get("migration") or [])),
        ):
            if text:
                with ui.expansion(name).props("dense").classes("w-full"):
                    parts.pre(str(text))
    with parts.card("Candidates", "Best first; open one for its reasons."):
        _candidates(candidates)
    notes = advice.document.get("notes")
    if notes:
        with parts.card("What this rests on"):
            _lines(notes)
    if advice.report is not None:
        _report(advice.report)


def _report(path: Path) -> None:
    address = f"{PREFIX}/report/{path.name}"
    with parts.card():
        with ui.row().classes("w-full items-center"):
            ui.label("Report").classes("a-title").props('role="heading" aria-level="2"')
            ui.space()
            # A plain address: `ui.link` would put the prefix before it once more.
            ui.html(f'<a class="a-item-link" href="{address}" target="_blank">Open it alone</a>')
        frame = ui.element("iframe").props(f'src="{address}" title="Report"')
        frame.classes("w-full a-report")


def _lines(texts: list[str] | None) -> None:
    with ui.column().classes("w-full gap-1"):
        for text in texts or []:
            ui.label(f"• {text}")


def _candidates(candidates: list[dict[str, Any]]) -> None:
    for at, one in enumerate(candidates):
        reasons = [str(reason) for reason in one.get("reasons", [])]
        verdict = str(one.get("verdict", ""))
        with ui.expansion().classes("w-full a-candidate").props("dense") as row:
            with row.add_slot("header"), ui.row().classes("w-full items-center no-wrap gap-3"):
                ui.label(str(one.get("rank", at + 1))).classes("a-faint a-number")
                ui.label(str(one.get("key", ""))).classes("a-mono a-cut font-semibold")
                ui.badge(verdict, color=VERDICTS.get(verdict, "secondary"))
                ui.label(reasons[0] if reasons else "").classes("a-faint a-cut").style("flex: 1")
            _lines(reasons)
