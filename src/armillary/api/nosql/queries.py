"""Queries over items on the wire: the thin seam to `query/`. Facts: nosql-rest 5."""

from armillary.api.nosql.call import Call
from armillary.api.nosql.messages import Response
from armillary.api.nosql.placing import store_of
from armillary.api.nosql.simple_query import parse_query_body
from armillary.errors import NotSupported
from armillary.query.sql.binder import bind
from armillary.query.sql.parser import parse


def query_items(call: Call) -> Response:
    store_of(call)
    bind(parse(parse_query_body(call.json()).text))
    raise NotSupported("Queries over items are not served yet.")


def plan_query(call: Call) -> Response:
    return query_items(call)
