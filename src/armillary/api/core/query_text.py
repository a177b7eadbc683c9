"""The body of a query request: its text and its parameters."""

from __future__ import annotations

from typing import NamedTuple, cast

from armillary.errors import BadInput
from armillary.limits import ITEM_DEPTH_MAX
from armillary.values import JSON, UNDEFINED


class QueryText(NamedTuple):
    """The body of a query request."""

    text: str
    parameters: dict[str, JSON]


def parse_query_body(body: JSON) -> QueryText:
    if not isinstance(body, dict) or not isinstance(body.get("query"), str):
        raise BadInput("The body of a query must be a JSON object with a string 'query'.")
    given = body.get("parameters")
    parameters: dict[str, JSON] = {}
    if given is not None and not isinstance(given, list):
        raise BadInput("The 'parameters' of a query must be a list.")
    for one in given or ():
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            raise BadInput("A parameter of a query must be an object with a 'name' and a 'value'.")
        parameters[one["name"]] = value = one.get("value", UNDEFINED)
        if isinstance(value, list | dict) and not is_shallow(value, ITEM_DEPTH_MAX):
            raise BadInput(
                f"The parameter '{one['name']}' is nested more than {ITEM_DEPTH_MAX} deep, "
                "which no item can be."
            )
    return QueryText(body["query"], parameters)


def is_shallow(value: JSON, depth_max: int) -> bool:
    """Whether no more than `depth_max` arrays and objects are in each other."""
    level: list[JSON] = [value]
    for _ in range(depth_max):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else cast(list[JSON], one))
            if isinstance(inner, list | dict)
        ]
        if not level:
            return True
    return False
