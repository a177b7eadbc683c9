"""Tables on the wire: create, list, delete. A table is a container of database `TablesDB`, keyed by
`$pk`, with every property indexed. Facts: table 1, 3, 12."""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote

import orjson

from armillary.api.http.messages import Response
from armillary.api.table.call import TABLES_DB, Call, document, reply, with_preference
from armillary.api.table.entities import NO_CONTENT
from armillary.api.table.etags import etag_of
from armillary.api.table.filters import parse_table_filter
from armillary.api.table.forms import parse_json
from armillary.api.table.presenting import METADATA, show_table
from armillary.api.table.problems import refused
from armillary.encoding.edm_values import PARTITION_KEY
from armillary.encoding.rids import rid_bytes
from armillary.errors import BadInput, Conflict, NotFound, OwnerNotFound
from armillary.limits import TABLE_PAGE_TABLES_MAX
from armillary.partition.offers import requested
from armillary.store.accounts import AccountStore
from armillary.store.catalog import ContainerRecord, Throughput

NEXT_TABLE: Final = "x-ms-continuation-NextTableName"
HIDDEN: Final = "$"  # begins the names of containers that are no tables


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


def create_table(call: Call) -> Response:
    name = call.flavour.check_table_name(parse_json(call.request.body).get("TableName"))
    account = call.gateway.account
    if call.flavour.is_storage and _find(call, name) is not None:
        raise refused("table exists")
    try:
        record = make_table(account, name, asked_throughput(call))
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
    return reply(call, 204)


def list_tables(call: Call) -> Response:
    most = _top(call)
    holds = parse_table_filter(call.parameters.get("$filter"))
    after = _after(call.parameters.get("NextTableName"))
    # In the order of creation, so that a table made meanwhile can't shift the pages.
    found = [one for one in _records(call) if rid_bytes(one.rid) > after and holds(one.id)]
    headers: dict[str, str] = {}
    if len(found) > most:
        found = found[:most]
        headers[NEXT_TABLE] = base64.urlsafe_b64encode(rid_bytes(found[-1].rid)).decode()
    rows = [show_table(call, one.id) for one in found]
    body: dict[str, Any] = {"value": rows}
    if call.level != "nometadata":
        body = {METADATA: f"{call.base_url}/$metadata#Tables", **body}
    return document(call, 200, body, headers)


# --- names --------------------------------------------------------------------------------------


def existing(call: Call, name: str) -> str:
    """The name as the table has it: Storage does not tell cases apart."""
    found = _find(call, name)
    if found is None:
        raise OwnerNotFound
    return found.id


def _find(call: Call, name: str) -> ContainerRecord | None:
    lower = name.lower()
    for one in _records(call):
        if one.id == name or (call.flavour.is_storage and one.id.lower() == lower):
            return one
    return None


def _records(call: Call) -> list[ContainerRecord]:
    records = call.gateway.account.list_containers(TABLES_DB)
    return [one for one in records if not one.id.startswith(HIDDEN)]


def check_reference(call: Call, name: str) -> None:
    """A name that no table can have. Cosmos DB does not mind its length here (azure-data-tables
    12.7, test_table_name_errors_bad_length)."""
    if len(name) < 255:
        call.flavour.check_table_name(name)


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
    if not text.isdecimal() or not text.isascii() or int(text) < 1:
        raise refused("url")
    return min(int(text), TABLE_PAGE_TABLES_MAX)


def _after(token: str | None) -> bytes:
    if not token:
        return b""
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True)
    except ValueError as error:
        raise refused("url") from error


def asked_throughput(call: Call) -> Throughput | None:
    """The extension headers of NoSQL; the OData protocol has none (table 12)."""
    manual = call.headers.get("x-ms-offer-throughput")
    autopilot = call.headers.get("x-ms-cosmos-offer-autopilot-settings")
    if manual is None and autopilot is None:
        return None
    try:
        most = None if autopilot is None else orjson.loads(autopilot)["maxThroughput"]
        return requested(None if manual is None else int(manual), most, None)
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(
            "x-ms-offer-throughput is a number; x-ms-cosmos-offer-autopilot-settings is "
            '{"maxThroughput": number}.'
        ) from error
