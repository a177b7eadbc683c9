"""Which values a dotted path means in a document, arrays on the way included.

{a: [{b: 1}, {c: 2}, 3]}    a.b  →  1, MISSING      elements that are no documents are passed over
                            a.0  →  {b: 1}          a number is an index, and a name too
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from armillary.api.mongo.language import MISSING, is_index

Walk = Callable[[Any], Iterator[Any]]


def leaves(value: Any, parts: tuple[str, ...], at: int = 0) -> Iterator[Any]:
    """What stands at the end of the path; an array at the end is given whole."""
    if at == len(parts):
        yield value
        return
    if type(value) is dict:
        found = value.get(parts[at], MISSING)
        if found is MISSING:
            yield MISSING
        else:
            yield from leaves(found, parts, at + 1)
    elif type(value) is list:
        part = parts[at]
        if is_index(part):
            index = int(part)
            if index < len(value):
                yield from leaves(value[index], parts, at + 1)
        for one in value:
            if type(one) is dict and (not is_index(part) or part in one):
                yield from leaves(one, parts, at)
    else:
        yield MISSING


def candidates(value: Any, parts: tuple[str, ...]) -> Iterator[Any]:
    """What a comparison looks at: each element of an array at the end, and the array itself."""
    for leaf in leaves(value, parts):
        if type(leaf) is list:
            yield from leaf
        yield leaf
