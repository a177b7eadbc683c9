"""Places in a document that an update writes to.

"a.$[x].b"  ──resolve──▶  a.0.b, a.3.b     positional parts become indexes
get_at / set_at / unset_at                 on plain paths, numbers index arrays
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.language import MISSING, is_index

Path: TypeAlias = tuple[str, ...]
ARRAY_MAX: Final = 1_500_000  # how far an index may lie beyond the end, as in the reference server


def parse_path(text: str) -> Path:
    if not text:
        raise MongoError(56, "An empty update path is not valid.")
    parts = tuple(text.split("."))
    if "" in parts:
        raise MongoError(
            56, f"The update path '{text}' contains an empty field name, which is not allowed."
        )
    for at, part in enumerate(parts):
        if part[:1] == "$" and part != "$" and not (part[:2] == "$[" and part[-1] == "]"):
            if at and part in ("$ref", "$id", "$db"):
                continue
            raise MongoError(
                52,
                f"The dollar ($) prefixed field '{part}' in '{text}' is not allowed in the context "
                "of an update's replacement document. Consider using an aggregation pipeline with "
                "$replaceWith.",
            )
    if parts[0] == "$" or parts[0][:2] == "$[":
        raise MongoError(
            2, f"Cannot have positional (i.e. '$') element in the first position in path '{text}'"
        )
    return parts


def resolve(
    document: Any,
    path: Path,
    matched: Callable[[], int | None],
    filters: Mapping[str, Callable[[Any], bool]],
) -> list[Path]:
    """The plain paths that a path with positional parts means in this document."""
    if not any(part[:1] == "$" for part in path):
        return [path]
    found: list[Path] = [()]
    for part in path:
        if part == "$":
            index = matched()
            if index is None:
                raise MongoError(
                    2, "The positional operator did not find the match needed from the query."
                )
            found = [(*one, str(index)) for one in found]
        elif part[:2] == "$[" and part[-1] == "]":
            name = part[2:-1]
            found = [
                (*one, str(at))
                for one in found
                for at, element in enumerate(_array_at(document, one, path))
                if not name or filters[name](element)
            ]
        else:
            found = [(*one, part) for one in found]
    return found


def _array_at(document: Any, path: Path, whole: Path) -> list[Any]:
    value = get_at(document, path)
    if type(value) is not list:
        if value is MISSING:
            raise MongoError(
                2,
                f"The path '{'.'.join(path)}' must exist in the document in order to apply array "
                "updates.",
            )
        raise MongoError(
            2,
            f"Cannot apply array updates to non-array element {shown_field(path, value)}",
        )
    return value


def get_at(document: Any, path: Path) -> Any:
    value = document
    for part in path:
        if type(value) is dict:
            value = value.get(part, MISSING)
        elif type(value) is list and is_index(part) and int(part) < len(value):
            value = value[int(part)]
        else:
            return MISSING
        if value is MISSING:
            return MISSING
    return value


def set_at(document: dict[str, Any], path: Path, value: Any) -> None:
    """Write in place, making documents on the way."""
    at: Any = document
    for depth, part in enumerate(path[:-1]):
        below = _step(at, part, path, depth)
        if below is MISSING:
            below = {}
            _put(at, part, below, path, depth)
        at = below
    _put(at, path[-1], value, path, len(path) - 1)


def _step(at: Any, part: str, path: Path, depth: int) -> Any:
    if type(at) is dict:
        return at.get(part, MISSING)
    if type(at) is list and is_index(part):
        return at[int(part)] if int(part) < len(at) else MISSING
    raise _not_viable(at, part, path, depth)


def _put(at: Any, part: str, value: Any, path: Path, depth: int) -> None:
    if type(at) is dict:
        at[part] = value
        return
    if type(at) is list and is_index(part):
        index = int(part)
        if index - len(at) > ARRAY_MAX:
            raise MongoError(2, "can't backfill more than 1500000 elements")
        at.extend([None] * (index + 1 - len(at)))
        at[index] = value
        return
    raise _not_viable(at, part, path, depth)


def _not_viable(at: Any, part: str, path: Path, depth: int) -> MongoError:
    shown = shown_field(path[:depth], at)
    return MongoError(28, f"Cannot create field '{part}' in element {shown}")


def check_viable(document: Any, path: Path) -> None:
    """Most operators fail when a value stands in the way of their path, even those that would have
    made nothing there."""
    at: Any = document
    for depth, part in enumerate(path):
        if at is MISSING:
            return
        if type(at) is not dict and not (type(at) is list and is_index(part)):
            raise MongoError(
                28,
                f"Cannot use the part ({part}) of ({'.'.join(path)}) to traverse the element "
                f"({shown_field(path[:depth], at)})",
            )
        at = _step(at, part, path, depth)


def unset_at(document: dict[str, Any], path: Path) -> bool:
    above = get_at(document, path[:-1])
    last = path[-1]
    if type(above) is dict:
        return above.pop(last, MISSING) is not MISSING
    if type(above) is list and is_index(last) and int(last) < len(above):
        above[int(last)] = None  # an array keeps its length
        return True
    return False


def shown_field(path: Path, value: Any) -> str:
    from armillary.api.mongo.shown import shown

    return "{" + f"{path[-1] if path else ''}: {shown(value)}" + "}"
