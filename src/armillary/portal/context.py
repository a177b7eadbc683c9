"""What a page is given: the server, which container it is about, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from armillary.portal.data.client import Client, path_of
from armillary.portal.widgets.look import Look

PREFIX = "/_portal"


@dataclass(frozen=True, slots=True)
class Place:
    """One container."""

    database: str
    container: str

    @property
    def path(self) -> str:
        """As in both APIs: `dbs/…/colls/…`."""
        return path_of("dbs", self.database, "colls", self.container)

    def __str__(self) -> str:
        return f"{self.database}/{self.container}"


@dataclass(frozen=True, slots=True)
class Context:
    client: Client
    path: str
    """Of the page, without the prefix and the query."""
    place: Place | None = None
    """The chosen container; pages that need one are not built without."""
    account: Mapping[str, Any] = field(default_factory=dict)
    """What `GET /_armillary/account` said when the page was opened."""
    query: Mapping[str, str] = field(default_factory=dict)
    """What else stands in the address."""
    dark: bool | None = None
    """None: as the system has it."""
    look: Look = field(default_factory=Look)

    def require_place(self) -> Place:
        assert self.place is not None, "the frame builds no such page"
        return self.place

    def definition(self) -> Mapping[str, Any]:
        """What the account says of the chosen container: key, throughput, items, bytes."""
        place = self.require_place()
        for database in self.account["databases"]:
            for container in database["containers"]:
                if (database["id"], container["id"]) == (place.database, place.container):
                    found: Mapping[str, Any] = container
                    return found
        raise KeyError(str(place))


def places_of(account: Mapping[str, Any]) -> list[Place]:
    return [
        Place(database["id"], container["id"])
        for database in account["databases"]
        for container in database["containers"]
    ]


def link(path: str, place: Place | None = None, **query: str) -> str:
    """The address of a page of ours, for `ui.navigate.to` and links inside the pages."""
    parts = dict(query)
    if place is not None:
        parts = {"db": place.database, "c": place.container, **parts}
    text = "&".join(f"{name}={quote(value, safe='')}" for name, value in parts.items())
    return f"{path}?{text}" if text else path
