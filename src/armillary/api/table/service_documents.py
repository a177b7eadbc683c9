"""The XML documents of Storage: properties and statistics of the service, stored access policies.

Cosmos DB has none of them and answers 501, as does its flavour here. In the flavour of Storage they
are kept as entities of the container `$settings`, which is not listed among the tables:

    PartitionKey "service", RowKey "properties"     the properties as they were sent
    PartitionKey "acl", RowKey name in lower case   the policies of a table

Facts: table 9.
"""

from __future__ import annotations

from contextlib import suppress
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from xml.etree import ElementTree

import orjson

from armillary.api.http.messages import Response
from armillary.api.table.call import TABLES_DB, Call, reply
from armillary.api.table.forms import make_item
from armillary.api.table.problems import refused
from armillary.api.table.tables import existing, make_table
from armillary.encoding import edm_values as edm
from armillary.encoding.edm_values import item_id
from armillary.errors import Conflict, NotFound
from armillary.limits import (
    KB,
    TABLE_CORS_RULES_MAX,
    TABLE_POLICIES_MAX,
    TABLE_RETENTION_DAYS_MAX,
)
from armillary.store.preparing import Operation

if TYPE_CHECKING:
    from armillary.store.containers import ContainerStore

SETTINGS: Final = "$settings"
XML_BYTES_MAX: Final = 64 * KB
XML: Final = '<?xml version="1.0" encoding="utf-8"?>'
_NO_RETENTION: Final = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
_METRICS: Final = f"<Version>1.0</Version><Enabled>false</Enabled>{_NO_RETENTION}"
PROPERTIES: Final = (
    f"{XML}<StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete>"
    f"<Read>false</Read><Write>false</Write>{_NO_RETENTION}</Logging>"
    f"<HourMetrics>{_METRICS}</HourMetrics><MinuteMetrics>{_METRICS}</MinuteMetrics><Cors/>"
    "</StorageServiceProperties>"
)
NO_POLICIES: Final = f"{XML}<SignedIdentifiers/>"
STATS: Final = (
    "<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>{0}</LastSyncTime>"
    "</GeoReplication></StorageServiceStats>"
)


class Policy(NamedTuple):
    """A stored access policy; empty where it leaves something to the signature."""

    start: str
    expiry: str
    permissions: str


# --- the service --------------------------------------------------------------------------------


def read_properties(call: Call) -> Response:
    _need_storage(call)
    return _xml(call, 200, _load(call, "service", "properties") or PROPERTIES)


def write_properties(call: Call) -> Response:
    _need_storage(call)
    text, root = _parsed(call, "StorageServiceProperties")
    for days in root.iter("Days"):
        value = (days.text or "").strip()
        if not value.isdecimal() or not 1 <= int(value) <= TABLE_RETENTION_DAYS_MAX:
            raise refused("xml", f"Days are from 1 to {TABLE_RETENTION_DAYS_MAX}.")
    if len(root.findall("./Cors/CorsRule")) > TABLE_CORS_RULES_MAX:
        raise refused("xml", f"At most {TABLE_CORS_RULES_MAX} CORS rules are allowed.")
    _save(call, "service", "properties", _completed(call, root) or text)
    return reply(call, 202)


def _completed(call: Call, root: ElementTree.Element) -> str:
    """What is not sent stays as it was."""
    kept = ElementTree.fromstring(_load(call, "service", "properties") or PROPERTIES)
    for old in list(kept):
        new = root.find(old.tag)
        if new is not None:
            kept[list(kept).index(old)] = new
    return XML + ElementTree.tostring(kept, encoding="unicode")


def read_stats(call: Call) -> Response:
    _need_storage(call)
    return _xml(call, 200, XML + STATS.format(formatdate(call.gateway.now_s(), usegmt=True)))


# --- stored access policies ---------------------------------------------------------------------


def read_policies(call: Call) -> Response:
    _need_storage(call)
    name = existing(call, call.target.table)
    return _xml(call, 200, _load(call, "acl", name.lower()) or NO_POLICIES)


def write_policies(call: Call) -> Response:
    _need_storage(call)
    name = existing(call, call.target.table)
    if not call.request.body:
        _save(call, "acl", name.lower(), NO_POLICIES)
        return reply(call, 204)
    text, root = _parsed(call, "SignedIdentifiers")
    if len(root.findall("SignedIdentifier")) > TABLE_POLICIES_MAX:
        raise refused("xml", f"At most {TABLE_POLICIES_MAX} access policies are allowed.")
    if any(not (one.findtext("Id") or "") for one in root.findall("SignedIdentifier")):
        raise refused("xml", "Every policy has an Id.")
    _save(call, "acl", name.lower(), text)
    return reply(call, 204)


def find_policy(call: Call, table: str, name: str) -> Policy | None:
    root = ElementTree.fromstring(_load(call, "acl", table.lower()) or NO_POLICIES)
    for one in root.findall("SignedIdentifier"):
        if one.findtext("Id") == name:
            get = (one.find("AccessPolicy") or ElementTree.Element("AccessPolicy")).findtext
            return Policy(get("Start") or "", get("Expiry") or "", get("Permission") or "")
    return None


def forget_policies(call: Call, table: str) -> None:
    """The table is gone; one of its name does not inherit them."""
    store = _settings(call)
    if store is not None:
        with suppress(NotFound):
            store.run(Operation("delete", item_id(table.lower())), ("acl",))


# --- inside -------------------------------------------------------------------------------------


def _need_storage(call: Call) -> None:
    if not call.flavour.is_storage:
        raise refused("not implemented")


def _xml(call: Call, status: int, text: str) -> Response:
    return reply(call, status, text.encode(), {"Content-Type": "application/xml"})


def _parsed(call: Call, name: str) -> tuple[str, ElementTree.Element]:
    body = call.request.body
    # No declarations: entities could make a small document large.
    if len(body) > XML_BYTES_MAX or b"<!" in body:
        raise refused("xml")
    try:
        text = body.decode("utf-8-sig")
        root = ElementTree.fromstring(text.encode())
    except (UnicodeDecodeError, ElementTree.ParseError) as error:
        raise refused("xml", str(error)) from error
    if root.tag != name:
        raise refused("xml", f"The document must be a {name}.")
    return text, root


def _settings(call: Call) -> ContainerStore | None:
    try:
        return call.gateway.container(TABLES_DB, SETTINGS)
    except NotFound:
        return None


def _load(call: Call, partition_key: str, row_key: str) -> str | None:
    store = _settings(call)
    if store is None:
        return None
    try:
        found: dict[str, Any] = orjson.loads(store.read(item_id(row_key), (partition_key,)).text)
    except NotFound:
        return None
    return str(found["xml"][edm.VALUE])


def _save(call: Call, partition_key: str, row_key: str, text: str) -> None:
    if _settings(call) is None:
        with suppress(Conflict):  # another request was first
            make_table(call.gateway.account, SETTINGS)
    item = make_item(partition_key, row_key, {"xml": edm.tagged(edm.STRING, text)})
    call.gateway.container(TABLES_DB, SETTINGS).run(Operation("upsert", body=item), None)
