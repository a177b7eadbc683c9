"""What a fault calls the operation that a request asks for (`api/core/faults.py`)."""

from __future__ import annotations

from typing import Final

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
