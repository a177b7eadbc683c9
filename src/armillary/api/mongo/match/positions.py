"""Which element of an array made a filter match: what `$` in an update or projection stands for.

Each condition on a path is tried with the array on its way cut down to one element: the first that
still matches is the one. The last condition with an array decides, as in the reference server.
"""

from __future__ import annotations

from typing import Any

from armillary.api.mongo.language import Language
from armillary.api.mongo.match.compiled import compile_condition


def matched_index(
    query: dict[str, Any], document: dict[str, Any], language: Language
) -> int | None:
    found: int | None = None
    for name, value in query.items():
        if name == "$and":
            for one in value:
                inner = matched_index(one, document, language)
                found = inner if inner is not None else found
        elif name == "$or":
            for one in value:
                inner = matched_index(one, document, language)
                if inner is not None:
                    found = inner
                    break
        elif name[:1] != "$":
            inner = _index_of(tuple(name.split(".")), value, document, language)
            found = inner if inner is not None else found
    return found


def _index_of(
    parts: tuple[str, ...], value: Any, document: dict[str, Any], language: Language
) -> int | None:
    at: Any = document
    for depth, part in enumerate(parts):
        at = at.get(part) if type(at) is dict else None
        if type(at) is list:
            test = compile_condition(("", *parts[depth + 1 :]), value, language)
            return next((i for i, one in enumerate(at) if test({"": [one]})), None)
    return None
