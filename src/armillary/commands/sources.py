"""Where a command finds a container: in a data folder, on PostgreSQL, or behind a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from armillary.account import open_account
from armillary.commands.errors import EXIT_USAGE, CommandError
from armillary.commands.query.asking import find_container, only
from armillary.commands.remote import Remote, is_remote, path_of
from armillary.engine.opening import is_there

Heat = Callable[[], dict[str, Any]]


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
    """The names, where one that is the only one was not given."""
    if database is None:
        there = [one["id"] for one in remote.rest("GET", "dbs").body["Databases"]]
        database = only(None, there, "database")
    if container is None:
        feed = remote.rest("GET", path_of("dbs", database, "colls")).body["DocumentCollections"]
        container = only(None, [one["id"] for one in feed], "container")
    return database, container
