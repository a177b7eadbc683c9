"""The XML documents of Storage: properties and statistics of the service, stored access policies.

Cosmos DB has none of them and answers 501, as does its flavour here. In the flavour of Storage they
are kept by `settings.py`. Facts: table 9.
"""

from __future__ import annotations

from email.utils import formatdate
from typing import Final
from xml.etree import ElementTree

from armillary.api.http.messages import Response
from armillary.api.table.call import Call, reply
from armillary.api.table.names import existing
from armillary.api.table.problems import refused
from armillary.api.table.settings import NO_POLICIES, load, save
from armillary.limits import (
    KB,
    TABLE_CORS_RULES_MAX,
    TABLE_POLICIES_MAX,
    TABLE_RETENTION_DAYS_MAX,
)
from armillary.units import whole_number

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
STATS: Final = (
    "<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>{0}</LastSyncTime>"
    "</GeoReplication></StorageServiceStats>"
)


# --- the service --------------------------------------------------------------------------------


def read_properties(call: Call) -> Response:
    _need_storage(call)
    return _xml(call, 200, load(call.gateway, "service", "properties") or PROPERTIES)


def write_properties(call: Call) -> Response:
    _need_storage(call)
    text, root = _parsed(call, "StorageServiceProperties")
    for days in root.iter("Days"):
        if not 1 <= (whole_number((days.text or "").strip()) or 0) <= TABLE_RETENTION_DAYS_MAX:
            raise refused("xml", f"Days are from 1 to {TABLE_RETENTION_DAYS_MAX}.")
    if len(root.findall("./Cors/CorsRule")) > TABLE_CORS_RULES_MAX:
        raise refused("xml", f"At most {TABLE_CORS_RULES_MAX} CORS rules are allowed.")
    save(call.gateway, "service", "properties", _completed(call, root) or text)
    return reply(call, 202)


def _completed(call: Call, root: ElementTree.Element) -> str:
    """What is not sent stays as it was."""
    kept = ElementTree.fromstring(load(call.gateway, "service", "properties") or PROPERTIES)
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
    return _xml(call, 200, load(call.gateway, "acl", name.lower()) or NO_POLICIES)


def write_policies(call: Call) -> Response:
    _need_storage(call)
    name = existing(call, call.target.table)
    if not call.request.body:
        save(call.gateway, "acl", name.lower(), NO_POLICIES)
        return reply(call, 204)
    text, root = _parsed(call, "SignedIdentifiers")
    if len(root.findall("SignedIdentifier")) > TABLE_POLICIES_MAX:
        raise refused("xml", f"At most {TABLE_POLICIES_MAX} access policies are allowed.")
    if any(not (one.findtext("Id") or "") for one in root.findall("SignedIdentifier")):
        raise refused("xml", "Every policy has an Id.")
    save(call.gateway, "acl", name.lower(), text)
    return reply(call, 204)


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
