"""Items completed: with a key at its path, or with each of the values a property may have."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from armillary.encoding.paths import Path, extract, format_path, parse_path
from armillary.errors import BadInput
from armillary.values import JSON, UNDEFINED

#: Possible values of a property that is not known exactly, by its path: `{"/date": [2017, 2018]}`.
Among: TypeAlias = Mapping[str, Sequence[JSON]]


def views(known: dict[str, JSON], among: Among) -> Iterator[dict[str, JSON]]:
    """`known` completed with every combination of the listed values."""
    paths = [parse_path(text) for text in among]
    for path, values in zip(paths, among.values(), strict=True):
        if extract(known, path) is not UNDEFINED:
            raise BadInput(f"'{format_path(path)}' is both known and listed.")
        if isinstance(values, str | bytes) or not isinstance(values, Sequence):
            raise BadInput(f"The values listed for '{format_path(path)}' must be a list.")
    for choice in itertools.product(*among.values()):
        view = known
        for path, value in zip(paths, choice, strict=True):
            view = put(view, path, value)
        yield view


def put(item: dict[str, JSON], path: Path, value: JSON) -> dict[str, JSON]:
    """A copy of the item with `value` at `path`; objects on the way are made or copied."""
    result = dict(item)
    node: dict[str, Any] = result
    for position, name in enumerate(path[:-1]):
        inner = node.get(name, {})
        if not isinstance(inner, dict):
            raise BadInput(
                f"'{format_path(path[: position + 1])}' is not an object, so that "
                f"'{format_path(path)}' can't be put into it."
            )
        node[name] = dict(inner)
        node = node[name]
    node[path[-1]] = value
    return result
