"""The pages, in the order of the navigation. Each is a module here with `build(context)`, which may
be asynchronous and draws into the frame. A page that is not here does not exist."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module

from armillary.portal.context import Context


@dataclass(frozen=True, slots=True)
class Page:
    path: str
    title: str
    module: str
    needs_container: bool = True
    """The frame offers a choice of containers, and says so when there is none."""

    works_without: bool = False
    """It has something to offer in an account without containers too."""

    def build(self) -> Callable[[Context], Awaitable[None] | None]:
        found: Callable[[Context], Awaitable[None] | None]
        found = import_module(f"armillary.portal.pages.{self.module}").build
        return found


PAGES: tuple[Page, ...] = (
    Page("/", "Explorer", "explorer", needs_container=False),
    Page("/query", "Query", "query"),
    Page("/graph", "Graph", "graph"),
    Page("/scripts", "Scripts", "scripts"),
    Page("/partitions", "Partitions", "partitions"),
    Page("/load", "Live load", "load"),
    Page("/advisor", "Advisor", "advisor", works_without=True),
)
