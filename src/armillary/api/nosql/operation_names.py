"""Names of the operation that a request asks for: what a fault calls it (`api/core/faults.py`), and
what the request log calls it, which has the names of the original."""

from __future__ import annotations

from typing import Final

from armillary.api.http.messages import Request
from armillary.api.nosql.call import Call
from armillary.errors import NotFound

DOCS: Final = "dbs/*/colls/*/docs"
ITEM: Final = "dbs/*/colls/*/docs/*"

#: (method, shape, variant) → its name. Everything else is `metadata`.
OPERATIONS: Final[dict[tuple[str, str, str], str]] = {
    ("POST", DOCS, ""): "create",
    ("POST", DOCS, "query"): "query",
    ("POST", DOCS, "plan"): "query_plan",
    ("POST", DOCS, "batch"): "batch",
    ("GET", DOCS, ""): "read_feed",
    ("GET", DOCS, "changes"): "change_feed",
    ("GET", ITEM, ""): "read",
    ("PUT", ITEM, ""): "replace",
    ("PATCH", ITEM, ""): "patch",
    ("DELETE", ITEM, ""): "delete",
    ("POST", "dbs/*/colls/*/operations/partitionkeydelete", ""): "delete_by_key",
    ("POST", "dbs/*/colls/*/sprocs/*", ""): "script",
}
#: What the headers of a POST make of it; the first that is true.
POSTS: Final = (
    ("x-ms-cosmos-is-query-plan-request", "QueryPlan"),
    ("x-ms-documentdb-isquery", "Query"),
    ("x-ms-cosmos-is-batch-request", "Batch"),
    ("x-ms-documentdb-is-upsert", "Upsert"),
)
#: Of one item.
METHODS: Final = {"GET": "Read", "PUT": "Replace", "PATCH": "Patch", "DELETE": "Delete"}


def operation_name(call: Call, variant: str) -> str:
    found = OPERATIONS.get((call.request.method, call.path.shape, variant), "metadata")
    return "upsert" if found == "create" and call.options.is_upsert else found


def container_named(call: Call) -> tuple[str, str] | None:
    """Database and container that the path names; None: it names none that exists."""
    segments = call.path.segments
    if len(segments) < 4 or (segments[0], segments[2]) != ("dbs", "colls"):
        return None
    try:
        store = call.gateway.container(segments[1], segments[3])
    except NotFound:
        return None
    return store.database, store.name


def logged_name(request: Request) -> str | None:
    """As the original's logs call it; None for what is not about items."""
    parts = request.target.partition("?")[0].strip("/").split("/")
    if len(parts) not in (5, 6) or parts[4] != "docs":
        return None
    if request.method == "POST":
        headers = request.headers
        return next((name for header, name in POSTS if _is_true(headers.get(header))), "Create")
    return METHODS.get(request.method) if len(parts) == 6 else "ReadFeed"


def _is_true(text: str | None) -> bool:
    return text is not None and text.lower() == "true"
