"""Databases on the wire."""

from armillary.api.http.messages import Response
from armillary.api.nosql.call import Call, reply, resource
from armillary.api.nosql.metadata.listing import list_page
from armillary.api.nosql.metadata.presenting import database_json
from armillary.api.nosql.metadata.throughput import asked_throughput, keep_increment
from armillary.encoding.etags import matches
from armillary.errors import BadInput, PreconditionFailed
from armillary.values import JSON


def list_databases(call: Call) -> Response:
    records = call.gateway.account.list_databases(call.budget)
    rows = [(one.number, database_json(one)) for one in records]
    return list_page(call, "", "Databases", rows)


def create_database(call: Call) -> Response:
    name = required_id(call.document())
    record = call.gateway.account.create_database(name, asked_throughput(call.options))
    keep_increment(call, record.rid)
    return resource(call, 201, database_json(record))


def read_database(call: Call) -> Response:
    return resource(call, 200, database_json(call.gateway.database(call.names[0])))


def delete_database(call: Call) -> Response:
    record = call.gateway.database(call.names[0])
    check_match(call, record.etag)
    call.gateway.account.delete_database(record.id)
    call.gateway.forget(record.id)
    return reply(call, 204)


def check_match(call: Call, etag: str) -> None:
    if call.options.if_match is not None and not matches(call.options.if_match, etag):
        raise PreconditionFailed


def required_id(body: dict[str, JSON]) -> str:
    if "id" not in body:
        raise BadInput(
            "The input content is invalid because the required properties - 'id; ' - are missing"
        )
    name = body["id"]
    if not isinstance(name, str):
        raise BadInput("The property 'id' must be a string.")
    return name
