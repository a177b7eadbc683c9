"""Where a command finds a container: in a data folder, on PostgreSQL, or behind a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Protocol

from armillary.account import open_account
from armillary.commands.errors import EXIT_USAGE, CommandError
from armillary.commands.query.asking import find_container, only
from armillary.commands.remote import Remote, Reply, is_remote, path_of
from armillary.engine.opening import is_there
from armillary.errors import NotFound

PAGES_MAX: Final = 10_000
Heat = Callable[[], dict[str, Any]]


class Door(Protocol):
    def rest(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Reply: ...


@contextmanager
def heat_of(source: str, database: str | None, container: str | None) -> Iterator[Heat]:
    """A function that tells the heat report of a container, as often as it is called."""
    if is_remote(source):
        with Remote(source) as remote:
            found, name = pick(remote, database, container)
            path = path_of("dbs", found, "colls", name)
            yield lambda: remote.control("GET", f"{path}/heat")
        return
    if not is_there(source):
        raise CommandError(f"There is no data folder at {source}.", EXIT_USAGE)
    # `report`: the counters of a server that runs on the folder are read, nothing is refused.
    with open_account(source, housekeeping=False, enforce="report") as account:
        yield find_container(account, database, container).heat_report


def pick(remote: Remote, database: str | None, container: str | None) -> tuple[str, str]:
    """The names, where one that is the only one was not given. What was given is there."""
    if database is None:
        there = [one["id"] for one in listed(remote, "dbs", "Databases")]
        database = only(None, there, "database")
    if container is None:
        existing(remote, database)
        inside = listed(remote, path_of("dbs", database, "colls"), "DocumentCollections")
        return database, only(None, [one["id"] for one in inside], "container")
    existing(remote, database, container)
    return database, container


def listed(door: Door, path: str, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    headers: dict[str, str] = {}
    for _ in range(PAGES_MAX):
        reply = door.rest("GET", path, None, headers)
        found += reply.body[name]
        token = reply.headers.get("x-ms-continuation")
        if token is None:
            break
        headers = {"x-ms-continuation": token}
    return found


def existing(
    door: Door,
    database: str,
    container: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """The database, or the container in it; if there is none, an error that says what there is."""
    names = ("dbs", database) if container is None else ("dbs", database, "colls", container)
    try:
        return door.rest("GET", path_of(*names), None, headers)
    except NotFound as error:
        only(database, [one["id"] for one in listed(door, "dbs", "Databases")], "database")
        inside = listed(door, path_of("dbs", database, "colls"), "DocumentCollections")
        only(container, [one["id"] for one in inside], "container", f"{database}/")
        raise CommandError(f"{error.message} It was there a moment ago.", EXIT_USAGE) from error
