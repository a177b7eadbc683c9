"""The dialog for a new container. Its partition key is for life, so the dialog explains the choice
and shows where keys would land before anything is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from nicegui import ui

from armillary.errors import BadInput
from armillary.portal.context import Context, Place, link
from armillary.portal.data import account
from armillary.portal.data.client import Refused
from armillary.portal.data.landing import KeyChoice, Landing, generated, land, own
from armillary.portal.widgets import dialogs, parts
from armillary.portal.widgets.theme import BLUE, VERMILION

PATH, HIERARCHY, SYNTHETIC, NO_KEY = "One path", "Hierarchical", "Synthetic", "No key"
ABOUT: Final = {
    PATH: "A property that every item has, with many different values that are asked for alike: "
    "a customer, a device. All items of one value live together and share one partition's "
    "throughput.",
    HIERARCHY: "Up to three properties, the widest first: tenant, then user, then session. A large "
    "tenant spreads over several partitions, and a query that names only the tenant still goes "
    "only to those.",
    SYNTHETIC: "A key made of several properties, with a number at its end that spreads a popular "
    "value over k places. The server fills it in; a read asks one place if the number is computed "
    "from a property it knows.",
    NO_KEY: "A fixed container, as in 2018: one physical partition, which never splits. Writes are "
    "refused when it is full, and moving to a container that grows means copying it.",
}
MANY, FEW, OWN = "Many values", "Few values", "Own items"
THROUGHPUTS: Final = {
    "manual": "Manual",
    "autoscale": "Autoscale",
    "none": "Of the database, or serverless",
}
HEADERS: Final[dict[str, Callable[[int], dict[str, str]]]] = {
    "manual": lambda ru: {"x-ms-offer-throughput": str(ru)},
    "autoscale": lambda ru: {"x-ms-cosmos-offer-autopilot-settings": f'{{"maxThroughput":{ru}}}'},
    "none": lambda ru: {},
}
RANGES_MAX: Final = 24


@dataclass(slots=True)
class Form:
    """What the fields hold."""

    name: str = ""
    kind: str = PATH
    path: str = "/customerId"
    paths: str = "/tenantId, /userId"
    made_of: str = "/date"
    stored_at: str = "/partitionKey"
    suffix: str = "computed"
    source: str = "/deviceId"
    k: float | None = 40
    throughput: str = "manual"
    graph: bool = False
    fixed: bool = False
    ru: float | None = 400
    samples: str = MANY
    text: str = '{"customerId": "ada"}\n{"customerId": "bob"}'
    ranges: float | None = 4

    def choice(self) -> KeyChoice:
        assert self.kind != NO_KEY
        if self.kind == PATH:
            return KeyChoice((self.path.strip(),))
        if self.kind == HIERARCHY:
            return KeyChoice(_list(self.paths))
        spec: dict[str, Any] = {
            "version": 1,
            "path": self.stored_at.strip(),
            "parts": list(_list(self.made_of)),
        }
        if self.suffix != "none":
            spec["suffix"] = {"kind": self.suffix, "k": int(self.k or 0)}
        if self.suffix == "computed":
            spec["suffix"]["source"] = self.source.strip()
        return KeyChoice((self.stored_at.strip(),), spec)

    def sampled(self) -> list[str]:
        """The paths that samples need a value at."""
        if self.kind == PATH:
            return [self.path.strip()]
        if self.kind == HIERARCHY:
            return list(_list(self.paths))
        return [*_list(self.made_of), *([self.source.strip()] if self.suffix == "computed" else [])]

    def land(self) -> Landing:
        choice = self.choice()
        if self.samples == OWN:
            items = own(self.text)
        else:
            items = generated(self.sampled(), many=self.samples == MANY)
            if self.kind == SYNTHETIC and self.suffix == "computed" and self.samples == FEW:
                # The popular value is in the parts; what the number is computed from is not few.
                source = self.source.strip()
                for item, fresh in zip(items, generated([source], many=True), strict=True):
                    item.update({name: one for name, one in fresh.items() if name != "id"})
        return land(choice, items, int(self.ranges or 1))


async def ask_new_container(context: Context, database: str) -> None:
    form = Form()
    with dialogs.dialog(f"New container in {database}", "min(62rem, 96vw)") as dialog:
        dialog.props("persistent")
        with ui.row().classes("w-full no-wrap gap-6 items-start"):
            with ui.column().classes("gap-3").style("flex: 1; min-width: 0"):
                _fields(form)
            with ui.column().classes("gap-3").style("flex: 1; min-width: 0"):
                _preview(form)
        trouble = ui.column().classes("w-full")
        with dialogs.answers():
            ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
            create = ui.button("Create container").props("unelevated no-caps")

    async def make() -> None:
        trouble.clear()
        try:
            place = await _create(context, database, form)
        except (Refused, BadInput) as refusal:
            with trouble:
                parts.error(str(refusal), "The container was not created")
            return
        dialog.submit(place)

    create.on_click(make)
    place = await dialog
    dialog.delete()
    if isinstance(place, Place):
        ui.navigate.to(link("/", place))


async def _create(context: Context, database: str, form: Form) -> Place:
    if not form.name.strip():
        raise BadInput("A container needs a name.")
    place = Place(database, form.name.strip())
    throughput = HEADERS[form.throughput](int(form.ru or 0))
    if form.kind == NO_KEY:
        await account.create_container(context.client, place, None, throughput, None)
        return place
    choice = form.choice()
    land(choice, (), 1)  # rejects a key that could not be
    await account.create_container(
        context.client,
        place,
        choice.definition,
        throughput,
        choice.synthetic,
        graph=form.graph and form.kind == PATH,
        fixed=form.fixed and form.kind == PATH,
    )
    return place


def _fields(form: Form) -> None:
    ui.input("Name").props("outlined dense autofocus").classes("w-full").bind_value(form, "name")
    kind = ui.toggle([PATH, HIERARCHY, SYNTHETIC, NO_KEY]).bind_value(form, "kind")
    kind.props('no-caps unelevated spread aria-label="Kind of partition key"').classes("w-full")
    about = ui.label().classes("a-faint")
    about.bind_text_from(form, "kind", lambda one: ABOUT[one])
    with ui.column().classes("w-full gap-3").bind_visibility_from(form, "kind", value=PATH):
        _input("Path", form, "path")
        ui.checkbox("A graph, for the Gremlin API").bind_value(form, "graph")
        ui.checkbox("Fixed, as in 2018: never grows if made with less than 1,000 RU/s").bind_value(
            form, "fixed"
        )
    with ui.column().classes("w-full gap-3").bind_visibility_from(form, "kind", value=HIERARCHY):
        _input("Paths, widest first", form, "paths")
    with ui.column().classes("w-full gap-3").bind_visibility_from(form, "kind", value=SYNTHETIC):
        _input("Made of", form, "made_of")
        with ui.row().classes("w-full no-wrap gap-2"):
            suffix = ui.select(
                {"computed": "computed number", "random": "random number", "none": "no number"},
                label="Then",
            )
            suffix.props("outlined dense").style("flex: 1").bind_value(form, "suffix")
            source = _input("Computed from", form, "source").style("flex: 1")
            source.bind_visibility_from(form, "suffix", value="computed")
            k = ui.number("1 to k", min=1, max=100_000, precision=0).bind_value(form, "k")
            k.props("outlined dense").style("width: 6rem")
            k.bind_visibility_from(form, "suffix", lambda one: one != "none")
        _input("Stored at", form, "stored_at")
    ui.separator()
    with ui.row().classes("w-full no-wrap gap-2"):
        offer = ui.select(dict(THROUGHPUTS), label="Throughput").bind_value(form, "throughput")
        offer.props("outlined dense").style("flex: 1")
        ru = ui.number("RU/s", min=400, step=100, precision=0).bind_value(form, "ru")
        ru.props("outlined dense").style("width: 9rem")
        ru.bind_visibility_from(form, "throughput", lambda one: one != "none")


def _input(label: str, form: Form, name: str) -> ui.input:
    field = ui.input(label).props("outlined dense").classes("w-full a-mono")
    return field.bind_value(form, name)


def _preview(form: Form) -> None:
    ui.label("Where keys would land").classes("a-title")
    with ui.row().classes("w-full no-wrap gap-2 items-center"):
        samples = ui.toggle([MANY, FEW, OWN]).bind_value(form, "samples")
        samples.props('no-caps unelevated dense padding="4px 10px" aria-label="Samples"')
        ui.space()
        ranges = ui.number("Partitions", min=1, max=RANGES_MAX, precision=0)
        ranges.props("outlined dense").style("width: 7rem").bind_value(form, "ranges")
    own_text = ui.textarea("One item per line, as JSON").props("outlined dense rows=4")
    own_text.classes("w-full a-mono").bind_value(form, "text")
    own_text.bind_visibility_from(form, "samples", value=OWN)
    drawing = ui.column().classes("w-full gap-1")
    drawn: list[Any] = []

    def draw() -> None:
        state = [getattr(form, name) for name in Form.__slots__]
        if drawn == state:
            return
        drawn[:] = state
        drawing.clear()
        with drawing:
            if form.kind == NO_KEY:
                ui.label("All items go to the one partition.").props('data-testid="landing"')
                return
            try:
                _bars(form.land())
            except (BadInput, ValueError) as error:
                parts.error(str(error))

    draw()
    ui.timer(0.25, draw)


def _bars(landing: Landing) -> None:
    total, largest = sum(landing.counts), max(landing.counts)
    even = total / len(landing.counts)
    for at, count in enumerate(landing.counts):
        hot = count > 1.5 * even and len(landing.counts) > 1
        with ui.row().classes("w-full no-wrap items-center gap-2"):
            ui.label(str(at)).classes("a-faint a-number").style("width: 1.6rem; text-align: right")
            with ui.element("div").classes("a-track"):
                width = 100 * count / largest if largest else 0
                colour = VERMILION if hot else BLUE
                ui.element("div").classes("a-bar").style(f"width:{width:.1f}%;background:{colour}")
            ui.label(f"{100 * count / total if total else 0:.0f} %").classes(
                "a-number a-faint"
            ).style("width: 3rem; text-align: right")
    words = f"{total:,} items under {landing.keys:,} keys"
    share = f"the fullest partition has {100 * landing.largest_share:.0f} %"
    ui.label(f"{words}; {share}, even would be {100 / len(landing.counts):.0f} %.").props(
        'data-testid="landing"'
    )
    for one in landing.shown:
        with ui.row().classes("w-full no-wrap gap-2 a-mono a-faint"):
            ui.label(one.key).classes("a-cut").style("flex: 1")
            ui.label(f"{one.epk[:8]}…").props(f'title="{one.epk}"')
            ui.label(f"→ {one.range}").style("width: 3rem")


def _list(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(",") if one.strip())
