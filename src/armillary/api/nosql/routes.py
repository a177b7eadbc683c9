"""Every route, in one table: method, path, what is asked for, who answers.

    POST  dbs/*/colls/*/docs   query   ──▶ query_items
                               plan    ──▶ plan_query
                               batch   ──▶ run_batch
                               ·       ──▶ create_item

The table drives dispatch, authorization and the compatibility page. A `variant` is what headers
make of a request; one without a row of its own is the plain one. Facts: nosql-rest 2.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from armillary.api.http.messages import Begun, Response
from armillary.api.later import later
from armillary.api.nosql.call import Call
from armillary.api.nosql.items import batches, feeds
from armillary.api.nosql.items import single as items
from armillary.api.nosql.metadata import containers, databases, offers
from armillary.api.nosql.metadata.account import read_account
from armillary.api.nosql.metadata.presenting import FEEDS
from armillary.api.nosql.metadata.resources import (
    create_resource,
    delete_resource,
    find_nothing,
    list_nothing,
    list_resources,
    query_conflicts,
    read_resource,
    replace_resource,
)
from armillary.api.nosql.options import Options
from armillary.api.nosql.scripts import begin_script, execute_script

Handler = Callable[[Call], Response]


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    pattern: str
    handler: Handler
    name: str
    variant: str = ""
    writes: bool = False
    is_management: bool = False
    """About databases, containers, throughput or users: for keys, not for tokens."""
    note: str = ""
    """What is different from the original, for the compatibility page."""
    begin: Callable[[Call], Begun | None] | None = None
    """The handler without the wait for the writer, for a server whose loop must not wait."""


QUERIES: Final = "armillary.api.nosql.items.queries"
DB: Final = "dbs/*"
COLL: Final = "dbs/*/colls/*"
DOCS: Final = f"{COLL}/docs"


def _managed(method: str, pattern: str, handler: Handler, name: str) -> Route:
    writes = method != "GET" and "query" not in name
    variant = "query" if "query" in name else ""
    return Route(method, pattern, handler, name, variant, writes, is_management=True)


def _resource_routes(kind: str, owner: str, *, is_management: bool) -> list[Route]:
    word, plural = FEEDS[kind]
    feed, one = f"{owner}/{word}", f"{owner}/{word}/*"
    rows: list[tuple[str, str, Handler, str, str, bool]] = [
        ("GET", feed, list_resources(kind), "list", "", False),
        ("POST", feed, list_resources(kind), "query", "query", False),
        ("POST", feed, create_resource(kind), "create", "", True),
        ("GET", one, read_resource(kind), "read", "", False),
        ("PUT", one, replace_resource(kind), "replace", "", True),
        ("DELETE", one, delete_resource(kind), "delete", "", True),
    ]
    return [
        Route(method, pattern, handler, f"{verb} {plural}", variant, writes, is_management)
        for method, pattern, handler, verb, variant, writes in rows
        if not (kind == "clientencryptionkey" and method == "DELETE")  # data would be lost with it
    ]


ROUTES: Final[tuple[Route, ...]] = (
    Route("GET", "", read_account, "read the account"),
    _managed("GET", "dbs", databases.list_databases, "list databases"),
    _managed("POST", "dbs", databases.list_databases, "query databases"),
    _managed("POST", "dbs", databases.create_database, "create a database"),
    _managed("GET", DB, databases.read_database, "read a database"),
    _managed("DELETE", DB, databases.delete_database, "delete a database"),
    _managed("GET", f"{DB}/colls", containers.list_containers, "list containers"),
    _managed("POST", f"{DB}/colls", containers.list_containers, "query containers"),
    _managed("POST", f"{DB}/colls", containers.create_container, "create a container"),
    Route("GET", COLL, containers.read_container, "read a container"),
    _managed("PUT", COLL, containers.replace_container, "replace a container"),
    _managed("DELETE", COLL, containers.delete_container, "delete a container"),
    Route("GET", f"{COLL}/pkranges", containers.list_ranges, "list partition key ranges"),
    Route("GET", DOCS, feeds.list_items, "list items"),
    Route("GET", DOCS, feeds.read_changes, "read the change feed", "changes"),
    Route("POST", DOCS, later(QUERIES, "query_items"), "query items", "query"),
    Route("POST", DOCS, later(QUERIES, "plan_query"), "plan a query", "plan"),
    Route("POST", DOCS, batches.run_batch, "batch and bulk", "batch", writes=True),
    Route(
        "POST",
        DOCS,
        items.create_item,
        "create or upsert an item",
        writes=True,
        begin=items.begin_create,
    ),
    Route("GET", f"{DOCS}/*", items.read_item, "read an item"),
    Route(
        "PUT",
        f"{DOCS}/*",
        items.replace_item,
        "replace an item",
        writes=True,
        begin=items.begin_replace,
    ),
    Route(
        "PATCH",
        f"{DOCS}/*",
        items.patch_item,
        "patch an item",
        writes=True,
        begin=items.begin_patch,
    ),
    Route(
        "DELETE",
        f"{DOCS}/*",
        items.delete_item,
        "delete an item",
        writes=True,
        begin=items.begin_delete,
    ),
    Route(
        "POST",
        f"{COLL}/operations/partitionkeydelete",
        items.delete_by_key,
        "delete the items of a partition key",
        writes=True,
    ),
    Route(
        "GET",
        f"{DOCS}/*/attachments",
        list_nothing("Attachments"),
        "list attachments",
        note="always empty: attachments are history",
    ),
    *_resource_routes("sproc", COLL, is_management=False),
    Route(
        "POST",
        f"{COLL}/sprocs/*",
        execute_script,
        "execute a stored procedure",
        writes=True,
        begin=begin_script,
    ),
    *_resource_routes("trigger", COLL, is_management=False),
    *_resource_routes("udf", COLL, is_management=False),
    Route(
        "GET",
        f"{COLL}/conflicts",
        list_nothing("Conflicts"),
        "list conflicts",
        note="always empty: there is one region",
    ),
    Route("POST", f"{COLL}/conflicts", query_conflicts, "query conflicts", "query"),
    Route("GET", f"{COLL}/conflicts/*", find_nothing, "read a conflict"),
    Route("DELETE", f"{COLL}/conflicts/*", find_nothing, "delete a conflict", writes=True),
    *_resource_routes("user", DB, is_management=True),
    *_resource_routes("permission", f"{DB}/users/*", is_management=True),
    *_resource_routes("clientencryptionkey", DB, is_management=True),
    _managed("GET", "offers", offers.list_all_offers, "list offers"),
    _managed("POST", "offers", offers.list_all_offers, "query offers"),
    _managed("GET", "offers/*", offers.read_offer, "read an offer"),
    _managed("PUT", "offers/*", offers.replace_offer, "replace an offer"),
)


def variant_of(method: str, options: Options) -> str:
    if method == "POST":
        if options.is_plan:
            return "plan"
        if options.is_query:
            return "query"
        return "batch" if options.is_batch else ""
    return "changes" if method == "GET" and options.feed_mode is not None else ""


#: Shape of a path → (method, variant) → route.
TABLE: Final[dict[str, dict[tuple[str, str], Route]]] = {}
for _route in ROUTES:
    _rows = TABLE.setdefault(_route.pattern, {})
    assert (_route.method, _route.variant) not in _rows, f"two routes for {_route}"
    _rows[_route.method, _route.variant] = _route


def find_route(method: str, shape: str, options: Options) -> Route | None:
    """None: the path is right, the method is not. KeyError: there is no such path."""
    rows = TABLE[shape]
    return rows.get((method, variant_of(method, options))) or rows.get((method, ""))
