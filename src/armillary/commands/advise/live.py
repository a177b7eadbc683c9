"""Items of a container that is in use: behind a server, or in a data folder of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from armillary.advisor.keys.candidates import Candidate, plain
from armillary.commands.query.asking import find_container, open_data
from armillary.commands.remote import Remote, is_remote, path_of
from armillary.commands.remote_items import RemoteItems
from armillary.commands.sources import pick
from armillary.encoding.edm.json import plain_values
from armillary.encoding.partition_key import parse_definition
from armillary.engine.opening import is_there
from armillary.keys.synthetic import SyntheticKey
from armillary.store.catalog.tables import is_table
from armillary.values import JSON

PAGE_ITEMS = 1_000


def is_live(text: str) -> bool:
    return is_remote(text) or is_there(text)


@contextmanager
def live_items(
    text: str, database: str | None, container: str | None
) -> Iterator[tuple[Iterator[dict[str, Any]], Candidate | None]]:
    """Every item, page by page, and the key that the container has now."""
    if is_remote(text):
        with Remote(text) as remote:
            home, name = pick(remote, database, container)
            body = remote.rest("GET", path_of("dbs", home, "colls", name)).body
        with RemoteItems(text, home, name) as items:
            yield _plain(_pages(items), body), _key(body)
        return
    with open_data(text) as account:
        found = find_container(account, database, container)
        body = found.properties()
        yield _plain(found.read_all_items(page_size=PAGE_ITEMS), body), _key(body)


def _pages(items: RemoteItems) -> Iterator[dict[str, Any]]:
    continuation: str | None = None
    while True:
        page = items.read_page(PAGE_ITEMS, continuation)
        yield from page.items
        continuation = page.continuation
        if continuation is None:
            return


def _plain(items: Iterator[dict[str, Any]], body: dict[str, JSON]) -> Iterator[dict[str, Any]]:
    """Entities of a table by their plain names, so that candidates are those that people know."""
    return map(plain_values, items) if is_table(body) else items


def _key(body: dict[str, JSON]) -> Candidate | None:
    """The present key as a candidate; None for containers without one."""
    spec = body.get("syntheticKey")
    if spec is not None:
        from armillary.advisor.keys.candidates import synthetic

        made = SyntheticKey.from_json(spec).spec
        return synthetic(
            made.parts, separator=made.separator, suffix=made.suffix, stored_in=made.path
        )
    given = body.get("partitionKey")
    if is_table(body):
        return replace(plain(("PartitionKey",)), of_table=True)
    if given is None:
        return None
    definition = parse_definition(given)
    return None if definition.system_key else plain(*definition.paths)
