"""Every place inside a value, and the value with something else there: for tests that put each
wrong thing in the place of each argument."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

Path = tuple[str | int, ...]
LEFT_OUT: Final = object()


def paths(value: Any, at: Path = ()) -> Iterator[Path]:
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for name, part in parts:
        yield (*at, name)
        if isinstance(part, dict | list):
            yield from paths(part, (*at, name))


def changed(value: Any, path: Path, new: Any) -> Any:
    """The value with another at a path, or without it."""
    name, rest = path[0], path[1:]
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    made = [
        (one, part if one != name else changed(part, rest, new) if rest else new)
        for one, part in parts
        if one != name or rest or new is not LEFT_OUT
    ]
    return dict(made) if isinstance(value, dict) else [part for _, part in made]
