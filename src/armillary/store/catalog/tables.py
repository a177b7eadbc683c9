"""The container of a table, for every way to make one: requests, `armillary.toml`, import. Facts:
table 1, 12."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from armillary.encoding.edm.values import PARTITION_KEY, ROW_KEY
from armillary.errors import Conflict, NotFound
from armillary.store.catalog.accounts import AccountStore
from armillary.store.catalog.records import ContainerRecord, Throughput

TABLES_DB: Final = "TablesDB"


def table_definition(name: str, *, ordered: bool = False) -> dict[str, Any]:
    """The container of a table: keyed by PartitionKey, every property indexed. `ordered`: with the
    index that gives the order of keys, in which Storage answers queries."""
    policy: dict[str, Any] = {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [],
    }
    if ordered:
        paths = [{"path": f'/"{one}"', "order": "ascending"} for one in (PARTITION_KEY, ROW_KEY)]
        policy["compositeIndexes"] = [paths]
    return {
        "id": name,
        "partitionKey": {"paths": [f'/"{PARTITION_KEY}"'], "kind": "Hash", "version": 2},
        "indexingPolicy": policy,
    }


def is_table(definition: Mapping[str, Any]) -> bool:
    """Whether a container's definition is that of a table."""
    key = definition.get("partitionKey") or {}
    return bool(key.get("paths") == table_definition("")["partitionKey"]["paths"])


def api_of(record: ContainerRecord) -> str:
    """The API that a container was made for."""
    return record.api if isinstance(record.api, str) else "nosql"


def make_table(
    account: AccountStore,
    name: str,
    throughput: Throughput | None = None,
    *,
    ordered: bool = False,
) -> ContainerRecord:
    """The table, and the database of all tables when it is the first. Conflict: it exists."""
    try:
        account.read_database(TABLES_DB)
    except NotFound:
        with suppress(Conflict):  # another process was first
            account.create_database(TABLES_DB)
    definition = table_definition(name, ordered=ordered)
    return account.create_container(TABLES_DB, definition, throughput=throughput, api="table")
