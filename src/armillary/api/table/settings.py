"""Documents of the Storage flavour that are kept: properties of the service, access policies.

They are entities of the container `$settings`, which is not listed among the tables:

    PartitionKey "service", RowKey "properties"     the properties, XML
    PartitionKey "acl", RowKey name in lower case   the policies of a table, XML
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from xml.etree import ElementTree

import orjson

from armillary.api.table.wire.forms import make_item
from armillary.encoding.edm import values as edm
from armillary.encoding.edm.values import item_id
from armillary.errors import Conflict, NotFound
from armillary.store.catalog.tables import TABLES_DB, make_table
from armillary.store.items.preparation import Operation

if TYPE_CHECKING:
    from armillary.api.core.gateway import Gateway
    from armillary.store.items.containers import ContainerStore

SETTINGS: Final = "$settings"
NO_POLICIES: Final = '<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers/>'


class Policy(NamedTuple):
    """A stored access policy; empty where it leaves something to the signature."""

    start: str
    expiry: str
    permissions: str


def find_policy(gateway: Gateway, table: str, name: str) -> Policy | None:
    root = ElementTree.fromstring(load(gateway, "acl", table.lower()) or NO_POLICIES)
    for one in root.findall("SignedIdentifier"):
        if one.findtext("Id") == name:
            found = one.find("AccessPolicy")
            if found is None:
                return Policy("", "", "")
            get = found.findtext
            return Policy(get("Start") or "", get("Expiry") or "", get("Permission") or "")
    return None


def forget_policies(gateway: Gateway, table: str) -> None:
    """The table is gone; one of its name does not inherit them."""
    store = _settings(gateway)
    if store is not None:
        with suppress(NotFound):
            store.run(Operation("delete", item_id(table.lower())), ("acl",))


def load(gateway: Gateway, partition_key: str, row_key: str) -> str | None:
    store = _settings(gateway)
    if store is None:
        return None
    try:
        found: dict[str, Any] = orjson.loads(store.read(item_id(row_key), (partition_key,)).text)
    except NotFound:
        return None
    return str(found["xml"][edm.VALUE])


def save(gateway: Gateway, partition_key: str, row_key: str, text: str) -> None:
    if _settings(gateway) is None:
        with suppress(Conflict):  # another request was first
            make_table(gateway.account, SETTINGS)
    item = make_item(partition_key, row_key, {"xml": edm.tagged(edm.STRING, text)})
    gateway.container(TABLES_DB, SETTINGS).run(Operation("upsert", body=item), None)


def _settings(gateway: Gateway) -> ContainerStore | None:
    try:
        return gateway.container(TABLES_DB, SETTINGS)
    except NotFound:
        return None
