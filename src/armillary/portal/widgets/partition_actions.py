"""Scale, split, merge: each asks first, says what will happen, and shows why it was refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import pairwise

from nicegui import ui

from armillary.portal.context import Context
from armillary.portal.data.client import Refused
from armillary.portal.data.offers import change_offer, read_offer
from armillary.portal.widgets import parts
from armillary.ring.model import Ring
from armillary.ring.words import plural
from armillary.units import bytes_text

Look = Callable[[], Ring | None]


def add_actions(context: Context, look: Look) -> None:
    for label, icon, start in (
        ("Scale throughput", "speed", _scale),
        ("Split a partition", "call_split", _split),
        ("Merge neighbours", "call_merge", _merge),
    ):
        button = ui.button(label, icon=icon, on_click=_opener(start, context, look))
        button.props("outline no-caps align=left").classes("w-full")


def _opener(
    start: Callable[[Context, Ring], Awaitable[None]], context: Context, look: Look
) -> Callable[[], Awaitable[None]]:
    async def open_dialog() -> None:
        ring = look()
        if ring is None:
            parts.report("The partitions have not been read yet.")
            return
        try:
            await start(context, ring)
        except Refused as refusal:
            parts.report(refusal)

    return open_dialog


class _Dialog:
    """A question with a place for what went wrong; it closes only when it went well."""

    def __init__(self, title: str, do: Callable[[], Awaitable[str]], verb: str) -> None:
        self._do = do
        with ui.dialog() as self.dialog, ui.card().style("width: 460px; max-width: 92vw"):
            ui.label(title).classes("a-title").props('role="heading" aria-level="2"')
            self.body = ui.column().classes("w-full gap-3")
            self._problem = ui.column().classes("w-full gap-0")
            with ui.row().classes("w-full justify-end"):
                ui.button("Cancel", on_click=self.dialog.close).props("flat no-caps")
                self._button = ui.button(verb, on_click=self._run).props("no-caps unelevated")

    async def _run(self) -> None:
        self._problem.clear()
        self._button.disable()
        try:
            text = await self._do()
        except Refused as refusal:
            with self._problem:
                parts.error(refusal)
            return
        except ValueError as error:
            with self._problem:
                parts.error(str(error))
            return
        finally:
            self._button.enable()
        self.dialog.close()
        parts.tell(text)


async def _scale(context: Context, ring: Ring) -> None:
    offer = await read_offer(context.client, context.require_place())
    if offer is None:
        parts.report(
            "Nothing is provisioned here that could be changed: the account is serverless."
        )
        return

    async def do() -> str:
        if given.value is None:
            raise ValueError("Say how many RU/s it shall have.")
        done = await change_offer(context.client, offer, int(given.value))
        return (
            "Partitions are split first; the throughput follows."
            if done.pending
            else f"The throughput is {done.ru:,} RU/s."
        )

    ask = _Dialog("Scale throughput", do, "Scale")
    with ask.body:
        whose = "of the database, shared by its containers" if offer.shared else "of the container"
        kind = "Autoscale maximum" if offer.autoscale else "Throughput"
        ui.label(f"{kind} {whose}: now {offer.ru:,} RU/s, at least {offer.minimum:,}.")
        given = ui.number(
            "RU/s", value=offer.ru, step=1000 if offer.autoscale else 100, format="%d"
        )
        given.classes("w-full").props('outlined dense aria-label="RU/s"')
        ui.label(
            "More than its physical partitions can serve splits them. Less never merges them: "
            "each then has a smaller share."
        ).classes("a-faint")
    ask.dialog.open()


async def _split(context: Context, ring: Ring) -> None:
    place = context.require_place()
    fullest = max(ring.arcs, key=lambda one: one.bytes)
    choices = {
        one.id: f"{one.id} – {bytes_text(one.bytes)}, {plural(one.items, 'item')}"
        for one in ring.arcs
    }

    async def do() -> str:
        body = {"id": chosen.value}
        if at.value and at.value.strip():
            body["at"] = at.value.strip()
        done = await context.client.control("POST", f"{place.path}/split", body)
        return f"Partition {chosen.value} is being split ({done['operation']})."

    ask = _Dialog("Split a partition", do, "Split")
    with ask.body:
        chosen = ui.select(choices, value=fullest.id, label="Partition").classes("w-full")
        chosen.props('outlined dense options-dense aria-label="Partition"')
        at = ui.input("At the hash (optional)", placeholder="1FFFFFFF").classes("w-full a-mono")
        at.props('outlined dense aria-label="At the hash"')
        ui.label(
            "It becomes two, at half of its bytes unless you say where. Reads and writes go on. A "
            "partition that is one key value can't be split."
        ).classes("a-faint")
    ask.dialog.open()


async def _merge(context: Context, ring: Ring) -> None:
    place = context.require_place()
    if len(ring.arcs) < 2:
        parts.report("There is one physical partition: it has no neighbour to merge with.")
        return
    choices = {
        f"{left.id},{right.id}": f"{left.id} and {right.id} – {bytes_text(together)}"
        for left, right in pairwise(ring.arcs)
        for together in (left.bytes + right.bytes,)
    }

    async def do() -> str:
        ids = chosen.value.split(",")
        done = await context.client.control("POST", f"{place.path}/merge", {"ids": ids})
        return f"Partitions {' and '.join(ids)} are being merged ({done['operation']})."

    ask = _Dialog("Merge neighbours", do, "Merge")
    with ask.body:
        chosen = ui.select(choices, value=next(iter(choices)), label="Neighbours")
        chosen.classes("w-full").props('outlined dense options-dense aria-label="Neighbours"')
        ui.label(
            "Both become one, with the throughput of both. Reads and writes go on. What would be "
            "too full splits again."
        ).classes("a-faint")
    ask.dialog.open()
