"""The container of a table, for every way to make one: requests, `armillary.toml`, import. Facts:
table 1, 12."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from armillary.encoding.edm_values import PARTITION_KEY
from armillary.errors import Conflict, NotFound
from armillary.store.catalog.accounts import AccountStore
from armillary.store.catalog.records import ContainerRecord, Throughput

TABLES_DB: Final = "TablesDB"


def table_definition(name: str) -> dict[str, Any]:
    """The container of a table. Keys have their own way in; the index is for the rest."""
    return {
        "id": name,
        "partitionKey": {"paths": [f'/"{PARTITION_KEY}"'], "kind": "Hash", "version": 2},
        "indexingPolicy": {
            "indexingMode": "consistent",
            "automatic": True,
            "includedPaths": [{"path": "/*"}],
            "excludedPaths": [],
        },
    }


def make_table(
    account: AccountStore, name: str, throughput: Throughput | None = None
) -> ContainerRecord:
    """The table, and the database of all tables when it is the first. Conflict: it exists."""
    try:
        account.read_database(TABLES_DB)
    except NotFound:
        with suppress(Conflict):  # another process was first
            account.create_database(TABLES_DB)
    return account.create_container(TABLES_DB, table_definition(name), throughput=throughput)
