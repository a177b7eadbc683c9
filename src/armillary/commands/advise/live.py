"""Items of a container that is in use: behind a server, or in a data folder of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from armillary.advisor.keys.candidates import Candidate, plain
from armillary.commands.query.asking import find_container, open_data
from armillary.commands.remote import Remote, is_remote, path_of
from armillary.commands.remote_items import RemoteItems
from armillary.commands.sources import pick
from armillary.encoding.partition_key import parse_definition
from armillary.engine.opening import is_there
from armillary.keys.synthetic import SyntheticKey
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
            yield _pages(items), _key(body)
        return
    with open_data(text) as account:
        found = find_container(account, database, container)
        yield found.read_all_items(page_size=PAGE_ITEMS), _key(found.properties())


def _pages(items: RemoteItems) -> Iterator[dict[str, Any]]:
    continuation: str | None = None
    while True:
        page = items.read_page(PAGE_ITEMS, continuation)
        yield from page.items
        continuation = page.continuation
        if continuation is None:
            return


def _key(body: dict[str, JSON]) -> Candidate | None:
    """The present key as a candidate; None for containers without one."""
    spec = body.get("syntheticKey")
    if spec is not None:
        from armillary.advisor.keys.candidates import synthetic

        made = SyntheticKey.from_json(spec).spec
        return synthetic(
            made.parts, separator=made.separator, suffix=made.suffix, stored_in=made.path
        )
    told = body.get("partitionKey")
    if told is None:
        return None
    definition = parse_definition(told)
    return None if definition.system_key else plain(*definition.paths)
