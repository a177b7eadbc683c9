"""Small parts that pages are made of: messages, empty states, numbers with their units."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from nicegui import ui

from armillary.portal.data.client import Refused


@contextmanager
def card(title: str | None = None, remark: str | None = None) -> Iterator[ui.column]:
    with ui.column().classes("a-card") as column:
        if title is not None:
            with ui.column().classes("gap-0"):
                ui.label(title).classes("a-title").props('role="heading" aria-level="2"')
                if remark is not None:
                    ui.label(remark).classes("a-faint")
        yield column


def stat(value: str, name: str, testid: str | None = None) -> ui.label:
    """A number that counts, with its name under it. `testid` is for tests."""
    with ui.column().classes("a-stat gap-0"):
        label = ui.label(value).classes("a-value")
        if testid is not None:
            label.props(f'data-testid="{testid}"')
        ui.label(name).classes("a-faint")
    return label


def empty(title: str, text: str, icon: str = "inbox") -> None:
    """Where there is nothing yet: what belongs here and how it comes."""
    with ui.column().classes("w-full items-center py-10 gap-1"):
        ui.icon(icon, size="40px").classes("a-faint").props('aria-hidden="true"')
        ui.label(title).classes("a-title")
        ui.label(text).classes("a-faint text-center").style("max-width: 36rem")


def error(what: Refused | str, title: str | None = None) -> None:
    """A refusal, in the page. What the user wrote stays where it is."""
    with ui.column().classes("a-error gap-1").props('role="alert" data-testid="error"'):
        if title is None and isinstance(what, Refused):
            title = f"{what.status} {what.code}" if what.status else what.code
        if title is not None:
            ui.label(title).classes("font-semibold")
        ui.label(str(what)).style("white-space: pre-wrap; overflow-wrap: anywhere")


def tell(text: str) -> None:
    """Something went well."""
    ui.notify(text, type="positive", position="bottom-right")


def report(what: Refused | str) -> None:
    """Something did not; for actions without a place in the page."""
    text = str(what)
    if isinstance(what, Refused) and what.status:
        text = f"{what.status} {what.code}: {text}"
    ui.notify(text, type="negative", position="bottom-right", multi_line=True, timeout=10_000)


def ru_text(charge: float) -> str:
    return f"{charge:,.2f} RU"


def count_text(count: int) -> str:
    """Short, for narrow places: 1234567 is 1.2 M."""
    for unit, size in (("M", 10**6), ("k", 10**4)):
        if count >= size:
            return f"{count / (10**3 if unit == 'k' else size):,.1f} {unit}"
    return f"{count:,}"


def throughput_text(throughput: Mapping[str, Any] | None) -> str:
    if throughput is None:
        return "serverless"
    kind = "up to " if throughput["kind"] == "autoscale" else ""
    return f"{kind}{throughput['ru']:,} RU/s"


def quoted(text: str) -> str:
    """A text for `props`, whatever is in it."""
    return json.dumps(text)


def pre(text: str, height: str = "auto", testid: str | None = None) -> ui.label:
    """Text as it is, such as JSON or a plan."""
    label = ui.label(text).classes("a-pre w-full").style(f"max-height: {height}")
    if testid is not None:
        label.props(f'data-testid="{testid}"')
    return label
