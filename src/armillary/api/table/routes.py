"""Every route, in one table: method, what the path names, who answers. It drives dispatch,
authorization and the compatibility page. Facts: table 3.

    MERGE   also PATCH, and POST with the header X-HTTP-Method: MERGE
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from armillary.api.http.messages import Begun, Response
from armillary.api.table import batches, entities, queries, service_documents, tables
from armillary.api.table.auth.authorization import authorize, letters_of
from armillary.api.table.problems import refused

if TYPE_CHECKING:
    from armillary.api.table.call import Call
    from armillary.api.table.changes import Change

Handler: TypeAlias = Callable[["Call"], Response]


def _fixed(letters: str) -> Callable[[Call], str]:
    return lambda call: letters


def _of_update(call: Call) -> str:
    return letters_of("replace", call.headers.get("if-match"))


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    kind: str
    """Of the target; with `?comp=…` where the path means something else with it."""
    handler: Handler
    name: str
    permissions: Callable[[Call], str]
    """What a shared access signature needs: letters together, alternatives apart by `|`."""
    resource: str = "o"
    """The kind of resource that an account SAS has to name."""
    writes: bool = False
    operation: str = "metadata"
    """What faults and statistics call it."""
    shown: str = ""
    """The path on the compatibility page."""
    note: str = ""
    begin: Callable[[Call], Begun] | None = None
    """The handler without the wait for the writer, for a server whose loop must not wait."""


def _writes(
    method: str, kind: str, change_of: Callable[[Call], Change], name: str, **more: Any
) -> Route:
    """A write of one entity."""
    return Route(
        method,
        kind,
        lambda call: entities.write_one(call, change_of(call)),
        name,
        writes=True,
        begin=lambda call: entities.begin_one(call, change_of(call)),
        **more,
    )


def _read(call: Call) -> Response:
    """A GET inside a batch."""
    route = find_route(call)
    if route.kind not in ("entity", "entities"):
        raise refused("url")
    authorize(call, route)
    return route.handler(call)


def run_batch(call: Call) -> Response:
    return batches.run_batch(call, _read)


ENTITY: Final = "/t(PartitionKey='p',RowKey='r')"
STORAGE_ONLY: Final = "Storage only; Cosmos DB answers 501, as does the `cosmos` flavour"

ROUTES: Final[tuple[Route, ...]] = (
    Route("POST", "tables", tables.create_table, "create a table", _fixed("c|w"), "c", True,
          shown="/Tables"),
    Route("GET", "tables", tables.list_tables, "list tables", _fixed("l|r"), "c",
          shown="/Tables"),
    Route("GET", "table", tables.read_table, "read a table", _fixed("l|r"), "c",
          shown="/Tables('t')"),
    Route("DELETE", "table", tables.delete_table, "delete a table", _fixed("d"), "c", True,
          shown="/Tables('t')"),
    _writes("POST", "entities", entities.insertion_of, "insert an entity",
            permissions=_fixed("a"), operation="create", shown="/t"),
    Route("GET", "entities", queries.query_entities, "query entities", _fixed("r"),
          operation="query", shown="/t()"),
    Route("GET", "entity", entities.read_one, "read an entity", _fixed("r"), operation="read",
          shown=ENTITY),
    _writes("PUT", "entity", entities.replacement_of, "update or insert-or-replace an entity",
            permissions=_of_update, operation="replace", shown=ENTITY),
    _writes("MERGE", "entity", entities.merge_of, "merge or insert-or-merge an entity",
            permissions=_of_update, operation="patch", shown=ENTITY,
            note="also PATCH, and POST with X-HTTP-Method: MERGE"),
    _writes("DELETE", "entity", entities.deletion_of, "delete an entity",
            permissions=_fixed("d"), operation="delete", shown=ENTITY),
    Route("POST", "batch", run_batch, "entity group transaction", _fixed(""), "o", True, "batch",
          shown="/$batch"),
    Route("GET", "service?properties", service_documents.read_properties, "read the service's "
          "properties", _fixed("r"), "s", shown="/?restype=service&comp=properties",
          note=STORAGE_ONLY),
    Route("PUT", "service?properties", service_documents.write_properties, "set the service's "
          "properties", _fixed("w"), "s", True, shown="/?restype=service&comp=properties",
          note=STORAGE_ONLY),
    Route("GET", "service?stats", service_documents.read_stats, "read the service's statistics",
          _fixed("r"), "s", shown="/?restype=service&comp=stats", note=STORAGE_ONLY),
    Route("GET", "entities?acl", service_documents.read_policies, "read stored access policies",
          _fixed("r"), "c", shown="/t?comp=acl", note=STORAGE_ONLY),
    Route("PUT", "entities?acl", service_documents.write_policies, "set stored access policies",
          _fixed("w"), "c", True, shown="/t?comp=acl", note=STORAGE_ONLY),
)  # fmt: skip

TABLE: Final = {(one.method, one.kind): one for one in ROUTES}
assert len(TABLE) == len(ROUTES)
KINDS: Final = {one.kind for one in ROUTES}
MERGE: Final = frozenset({"PATCH", "MERGE"})


def find_route(call: Call) -> Route:
    kind: str = call.target.kind
    comp = call.parameters.get("comp")
    if comp is not None and f"{kind}?{comp}" in KINDS:
        kind = f"{kind}?{comp}"
    if kind not in KINDS:
        raise refused("url")
    method = "MERGE" if call.method in MERGE else call.method
    route = TABLE.get((method, kind))
    if route is None:
        raise refused("method")
    return route
