"""Computed properties: names that stand for an expression over the item (nosql-query 7.4).

    {"name": "cp_lower", "query": "SELECT VALUE LOWER(c.name) FROM c"}
    SELECT VALUE c.cp_lower FROM c WHERE c.cp_lower = "ada"

Wherever a query says `c.cp_lower` of the item itself, the expression is evaluated instead of
looking at the item (`query/plan/computed.py`), so it wins over a stored property of that name, and
`SELECT *`, which names no property, does not show it. They are evaluated when a query runs: no
index has entries of them.

A container's definition is checked here rather than in `store/`, which knows no queries; code that
creates or replaces a container calls `check_computed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import orjson

from armillary.errors import BadInput
from armillary.limits import COMPUTED_PROPERTIES_MAX
from armillary.query.expr.evaluate import Computed
from armillary.query.functions import FUNCTIONS
from armillary.query.problems import BadQuery
from armillary.query.sql import ast
from armillary.query.sql.binder import bind
from armillary.query.sql.parser import parse
from armillary.query.sql.syntax import syntax_of
from armillary.values import JSON

SYSTEM_NAMES: Final = frozenset(
    {"id", "ttl", "_rid", "_ts", "_self", "_etag", "_attachments", "_lsn"}
)


def check_computed(body: JSON) -> None:
    """Raises BadInput when the computed properties of a container's definition are not right."""
    if not isinstance(body, dict) or body.get("computedProperties") is None:
        return
    computed = _parse(body["computedProperties"])
    key = body.get("partitionKey")
    paths = key.get("paths") if isinstance(key, dict) else None
    for path in paths if isinstance(paths, list) else ():
        if isinstance(path, str) and path.lstrip("/").split("/")[0].strip('"') in computed:
            raise BadInput(
                f"A computed property can't have the name of the partition key '{path}'."
            )


def computed_of(document: Mapping[str, JSON]) -> dict[str, Computed]:
    """The computed properties of a container, by name."""
    listed = document.get("computedProperties")
    return _known(orjson.dumps(listed)) if listed else {}


@lru_cache(maxsize=256)
def _known(text: bytes) -> dict[str, Computed]:
    return _parse(orjson.loads(text))


def _parse(listed: Any) -> dict[str, Computed]:
    if not isinstance(listed, list):
        raise BadInput(
            "One of the specified inputs is invalid: computedProperties must be an array."
        )
    if len(listed) > COMPUTED_PROPERTIES_MAX:
        raise BadInput(
            f"A container has at most {COMPUTED_PROPERTIES_MAX} computed properties, "
            f"not {len(listed)}."
        )
    asked = [_fields(each) for each in listed]
    names = {name for name, _ in asked}
    if len(names) < len(asked):
        raise BadInput("Two computed properties have the same name.")
    return {name: _definition(name, query, names - {name}) for name, query in asked}


def _fields(each: Any) -> tuple[str, str]:
    fields = (each.get("name"), each.get("query")) if isinstance(each, dict) else (None, None)
    name, query = fields
    if not isinstance(name, str) or not isinstance(query, str):
        raise BadInput("A computed property is an object with the texts 'name' and 'query'.")
    if not name or name in SYSTEM_NAMES or "/" in name:
        raise BadInput(
            f"A computed property can't be called '{name}': it needs a name at the top of the "
            "item that is no system property."
        )
    return name, query


def _definition(name: str, text: str, others: set[str]) -> Computed:
    """Its own name means the stored property."""
    try:
        query = syntax_of(bind(parse(text)))
    except BadQuery as error:
        raise BadInput(f"The query of the computed property '{name}' is not one: {error}") from None
    wrong = next((what for what, is_there in _CLAUSES if is_there(query)), None)
    if wrong is not None:
        raise _refused(name, wrong)
    assert isinstance(query.select, ast.SelectValue)
    assert query.source is not None
    source = query.source.sources[0]
    assert isinstance(source.collection, ast.Identifier)
    root = source.alias.name if source.alias is not None else source.collection.name
    for node in ast.walk(query.select.expr):
        if (wrong := _wrong(node, root, others)) is not None:
            raise _refused(name, wrong)
    return Computed(root, query.select.expr)


def _refused(name: str, what: str) -> BadInput:
    return BadInput(
        f"The query of the computed property '{name}' must be SELECT VALUE of an expression FROM "
        f"the item; it can't have {what}."
    )


def _is_from_item(query: ast.Query) -> bool:
    sources = query.source.sources if query.source is not None else ()
    if len(sources) != 1 or sources[0].iterates:
        return False
    return isinstance(sources[0].collection, ast.Identifier)


#: What a definition may not have, and how to see that it has it.
_CLAUSES: Final[tuple[tuple[str, Any], ...]] = (
    ("a SELECT without VALUE", lambda query: not isinstance(query.select, ast.SelectValue)),
    ("another FROM than the item, or a JOIN", lambda query: not _is_from_item(query)),
    ("WHERE", lambda query: query.where is not None),
    ("GROUP BY", lambda query: bool(query.group_by)),
    ("ORDER BY", lambda query: query.order_by is not None),
    ("TOP", lambda query: query.top is not None),
    ("DISTINCT", lambda query: query.distinct),
    ("OFFSET", lambda query: query.page is not None),
)


def _wrong(node: ast.Node, root: str, others: set[str]) -> str | None:
    match node:
        case ast.Subquery():
            return "a subquery"
        case ast.UdfCall():
            return "a user-defined function"
        case ast.Parameter():
            return "a parameter"
        case ast.Call():
            function = FUNCTIONS[node.function]
            if function.kind != "scalar":
                return f"the aggregate or score {node.name}"
            if node.name.upper().startswith("ST_"):
                return f"the spatial function {node.name}"
            if not function.deterministic:
                return f"{node.name}, which is not the same every time"
        case ast.Member(ast.Identifier(base), name) if base == root and name in others:
            return f"another computed property, '{name}'"
    return None
