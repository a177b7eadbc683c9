"""Tables on the wire: create, list, delete. A table is a container of database `TablesDB`, keyed by
`$pk`, with every property indexed. Facts: table 1, 3, 12."""

from __future__ import annotations

import base64
from typing import Any, Final
from urllib.parse import quote

import orjson

from armillary.api.http.messages import Response
from armillary.api.table import settings
from armillary.api.table.call import Call, document, reply, with_preference
from armillary.api.table.entities import NO_CONTENT
from armillary.api.table.filter.predicate import parse_table_filter
from armillary.api.table.names import check_reference, existing, find_table, table_records
from armillary.api.table.problems import refused
from armillary.api.table.wire.etags import etag_of
from armillary.api.table.wire.forms import parse_json
from armillary.api.table.wire.presenting import METADATA, show_table
from armillary.encoding.rids import rid_bytes
from armillary.errors import BadInput, Conflict, NotFound, OwnerNotFound
from armillary.limits import TABLE_PAGE_TABLES_MAX
from armillary.partition.provisioning.offers import requested
from armillary.store.catalog.records import Throughput
from armillary.store.catalog.tables import TABLES_DB, make_table
from armillary.units import whole_number

NEXT_TABLE: Final = "x-ms-continuation-NextTableName"


def create_table(call: Call) -> Response:
    name = call.flavour.check_table_name(parse_json(call.request.body).get("TableName"))
    account = call.gateway.account
    if call.flavour.is_storage and find_table(call, name) is not None:
        raise refused("table exists")
    try:
        record = make_table(account, name, asked_throughput(call), ordered=call.flavour.is_storage)
    except Conflict as error:
        raise refused("table exists") from error
    link = f"Tables('{quote(name, safe='')}')"
    headers = {"Location": f"{call.base_url}/{link}", "ETag": etag_of(record.etag)}
    with_preference(call, headers)
    if call.preference == NO_CONTENT:
        return reply(call, 204, headers=headers)
    return document(call, 201, _alone(call, name), headers)


def read_table(call: Call) -> Response:
    return document(call, 200, _alone(call, existing(call, call.target.table)))


def delete_table(call: Call) -> Response:
    name = call.target.table
    if not call.flavour.is_storage:
        check_reference(call, name)
    name = existing(call, name)
    try:
        call.gateway.account.delete_container(TABLES_DB, name)
    except NotFound as error:
        raise OwnerNotFound from error
    call.gateway.forget(TABLES_DB, name)
    if call.flavour.is_storage:
        settings.forget_policies(call.gateway, name)
    return reply(call, 204)


def list_tables(call: Call) -> Response:
    most = _top(call)
    holds = parse_table_filter(call.parameters.get("$filter"))
    after = _after(call.parameters.get("NextTableName"))
    # In the order of creation, so that a table made meanwhile can't shift the pages.
    found = [one for one in table_records(call) if rid_bytes(one.rid) > after and holds(one.id)]
    headers: dict[str, str] = {}
    if len(found) > most:
        found = found[:most]
        headers[NEXT_TABLE] = base64.urlsafe_b64encode(rid_bytes(found[-1].rid)).decode()
    rows = [show_table(call, one.id) for one in found]
    body: dict[str, Any] = {"value": rows}
    if call.level != "nometadata":
        body = {METADATA: f"{call.base_url}/$metadata#Tables", **body}
    return document(call, 200, body, headers)


# --- inside -------------------------------------------------------------------------------------


def _alone(call: Call, name: str) -> dict[str, Any]:
    shown = show_table(call, name)
    if call.level == "nometadata":
        return shown
    return {METADATA: f"{call.base_url}/$metadata#Tables/@Element", **shown}


# --- options ------------------------------------------------------------------------------------


def _top(call: Call) -> int:
    text = call.parameters.get("$top")
    if text is None:
        return TABLE_PAGE_TABLES_MAX
    top = whole_number(text)
    if not top:
        raise refused("url", hint=f"$top is a number from 1 to {TABLE_PAGE_TABLES_MAX}.")
    return min(top, TABLE_PAGE_TABLES_MAX)


def _after(token: str | None) -> bytes:
    if not token:
        return b""
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True)
    except ValueError as error:
        raise refused("url", hint="NextTableName is none that this server gave.") from error


def asked_throughput(call: Call) -> Throughput | None:
    """The extension headers of NoSQL; the OData protocol has none (table 12)."""
    manual = call.headers.get("x-ms-offer-throughput")
    autopilot = call.headers.get("x-ms-cosmos-offer-autopilot-settings")
    if manual is None and autopilot is None:
        return None
    try:
        most = None if autopilot is None else orjson.loads(autopilot)["maxThroughput"]
        if autopilot is not None and type(most) is not int:
            raise ValueError
        return requested(None if manual is None else int(manual), most, None)
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(
            "x-ms-offer-throughput is a number; x-ms-cosmos-offer-autopilot-settings is "
            '{"maxThroughput": number}.'
        ) from error
