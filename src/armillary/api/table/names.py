"""Which tables there are, and what names a request may say. Storage does not tell cases apart."""

from __future__ import annotations

from typing import Final

from armillary.api.table.call import Call
from armillary.errors import NotFound, OwnerNotFound
from armillary.limits import TABLE_NAME_CHARACTERS_END
from armillary.store.catalog.records import ContainerRecord
from armillary.store.catalog.tables import TABLES_DB

API: Final = "table"
HIDDEN: Final = frozenset({"$settings"})  # containers of tables that are none (`settings.py`)


def existing(call: Call, name: str) -> str:
    """The name as the table has it: Storage does not tell cases apart."""
    found = find_table(call, name)
    if found is None:
        raise OwnerNotFound
    return found.id


def find_table(call: Call, name: str) -> ContainerRecord | None:
    lower = name.lower()
    for one in table_records(call):
        if one.id == name or (call.flavour.is_storage and one.id.lower() == lower):
            return one
    return None


def table_records(call: Call) -> list[ContainerRecord]:
    try:
        records = call.gateway.account.list_containers(TABLES_DB, call.budget)
    except NotFound:  # no table was ever made
        return []
    return [one for one in records if one.api == API and one.id not in HIDDEN]


def check_reference(call: Call, name: str) -> None:
    """A name that no table can have. Cosmos DB does not mind its length here (azure-data-tables
    12.7, test_table_name_errors_bad_length)."""
    if len(name) < TABLE_NAME_CHARACTERS_END:
        call.flavour.check_table_name(name)
