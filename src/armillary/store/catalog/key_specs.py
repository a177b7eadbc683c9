"""The synthetic key of a container that has none yet, or another one, while it is empty.

A client of the original API can't say `syntheticKey` when it makes a container. So it may be set
afterwards; but items keep the key they were written with, and a computed key that finds nothing is
worse than none. With items in it a container changes its key by a copy
(`store/migration/rekey.py`).
"""

from dataclasses import replace

import msgspec

from armillary.engine.base import CATALOG_SPACE, Command
from armillary.errors import BadInput, Stale
from armillary.store.catalog.accounts import AccountStore
from armillary.store.catalog.definitions import parse_container
from armillary.store.catalog.records import ContainerRecord, decode_container
from armillary.store.items.containers import ContainerStore
from armillary.store.items.routing import ROUNDS_MAX
from armillary.store.reports.statistics import partitions
from armillary.store.upkeep.containers import reindex
from armillary.values import JSON


def replace_key_spec(account: AccountStore, store: ContainerStore, spec: JSON) -> ContainerRecord:
    """None takes it away."""
    for _ in range(ROUNDS_MAX):
        current = account.read_container(store.database, store.name)
        new = parse_container(current.definition | {"syntheticKey": spec})
        if new.document.get("syntheticKey") == current.definition.get("syntheticKey"):
            return current
        if any(one.items for one in partitions(store)):
            raise BadInput(
                "The container has items, which keep the partition key they have. Only an empty "
                "container gets another synthetic key; copy this one into a new one instead."
            )
        record = replace(current, definition=new.document, settings=current.settings + 1)
        data = (msgspec.json.encode(record), account.engine.now_ms() // 1000)
        try:
            row = account.engine.run(CATALOG_SPACE, Command("catalog.replace_container", data))
        except Stale:  # a split or merge changed the row
            continue
        store.refresh()
        reindex(store)  # every range gets the new settings; processes with the old ones notice
        return decode_container(row)
    raise Stale
