"""Which scripts are short whatever the graph holds: a few elements by id, their properties, a write
of one element. They run with point reads; everything else takes its turn in the lane of its graph.
And which of both may be small enough for the event loop: that is seen while they run.

By the text alone, on the event loop; a long text is not looked at.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.language.nodes import Chain, ListOf
from armillary.api.gremlin.language.parser import parse

CHARACTERS_MAX: Final = 1024
TEXTS_KEPT_MAX: Final = 1024
#: Steps that make few of few.
SMALL: Final = frozenset({
    "addE", "addV", "and", "as", "by", "choose", "coalesce", "constant", "count", "dedup", "fold",
    "from", "has", "hasId", "hasKey", "hasLabel", "hasNot", "hasValue", "id", "identity", "inject",
    "inV", "is", "key", "label", "limit", "not", "option", "optional", "or", "outV", "project",
    "properties", "property", "select", "to", "unfold", "value", "valueMap", "values", "where",
})  # fmt: skip
BY_ID: Final = frozenset({"V", "E"})
BEGINNINGS: Final = ("g.V([", "g.E([")
WRITES: Final = ("addV", "addE", "property(", "drop(")


def may_be_small(text: object) -> bool:
    """It only reads, from elements that are named by key and id."""
    return (
        isinstance(text, str)
        and len(text) <= CHARACTERS_MAX
        and text.startswith(BEGINNINGS)
        and not any(word in text for word in WRITES)
    )


def is_short(text: object) -> bool:
    if not isinstance(text, str) or len(text) > CHARACTERS_MAX:
        return False
    return _is_short(text)


@lru_cache(maxsize=TEXTS_KEPT_MAX)
def _is_short(text: str) -> bool:
    try:
        return _small(parse(text))
    except ScriptError:
        return True  # it is answered at once


def _small(node: Any) -> bool:
    if isinstance(node, ListOf):
        return all(map(_small, node.items))
    if not isinstance(node, Chain):
        return True
    return all(
        (call.name in SMALL or (call.name in BY_ID and bool(call.args)))
        and all(map(_small, call.args))
        for call in node.calls
    )
