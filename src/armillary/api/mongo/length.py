"""Which commands are short whatever the collection holds: those that name one document by `_id`,
and those that look at no documents. They run with point reads; the others take their turn in the
lane of their collection.

By the form of the command alone, on the event loop: large statements are not looked at.
"""

from __future__ import annotations

from typing import Any, Final

from armillary.api.mongo.wire.messages import Request
from armillary.encoding.bson.values import decode
from armillary.errors import BadInput

SMALL_BYTES: Final = 4096
#: Commands that may look at many documents, and where the name of the collection is.
LONG: Final = {
    "aggregate": "aggregate",
    "count": "count",
    "delete": "delete",
    "distinct": "distinct",
    "explain": "explain",
    "find": "find",
    "findAndModify": "findAndModify",
    "findandmodify": "findandmodify",
    "getMore": "collection",
    "update": "update",
}
#: Of those, the ones that may name a single document: where their statements are, if they have
#: several, and where the filter is.
SINGLE: Final = {
    "delete": ("deletes", "q"),
    "find": ("", "filter"),
    "findAndModify": ("", "query"),
    "findandmodify": ("", "query"),
    "update": ("updates", "q"),
}
#: Parts of a statement that compute when they are not plain: a projection, a pipeline.
SHOWING: Final = ("projection", "fields")
COMPUTING: Final = (*SHOWING, "u", "update")


def lane_of(request: Request) -> str:
    """Empty: it is short."""
    name = request.name
    where = LONG.get(name)
    if where is None or _is_single(request):
        return ""
    return f"{request.database}.{request.command.get(where)}"[:512]


def _is_single(request: Request) -> bool:
    found = SINGLE.get(request.name)
    if found is None or len(request.raw) > SMALL_BYTES:
        return False
    statements, filter_name = found
    statement: Any = request.command
    if statements:
        given = request.arrays.get(statements)
        if given is not None:
            if len(given) != 1 or len(given[0]) > SMALL_BYTES:
                return False
            try:
                statement = decode(given[0])
            except BadInput:
                return False  # its command says so
        else:
            listed = statement.get(statements)
            if not isinstance(listed, list) or len(listed) != 1:
                return False
            statement = listed[0]
    if not isinstance(statement, dict) or "arrayFilters" in statement:
        return False
    return _names_one(statement.get(filter_name)) and _is_plain(statement)


def _names_one(query: Any) -> bool:
    """`{_id: 7}`, perhaps with the shard key: values, no operators."""
    return (
        isinstance(query, dict)
        and "_id" in query
        and not any(isinstance(one, dict | list) for one in query.values())
    )


def _is_plain(statement: dict[str, Any]) -> bool:
    for name in COMPUTING:
        part = statement.get(name)
        if isinstance(part, list) or (name in SHOWING and not _is_choice(part)):
            return False
    return True


def _is_choice(projection: Any) -> bool:
    """Which fields to show, and nothing to compute."""
    return not isinstance(projection, dict) or not any(
        isinstance(one, dict | list | str) for one in projection.values()
    )
