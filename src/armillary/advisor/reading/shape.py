"""What items look like: which properties there are, of which types, how large; from a sample.

A property that is a scalar in the sample becomes a column of text; one that is an object, a column
for each of its properties, to some depth. Arrays are no keys and are not read. The sample's counts
tell the types of a column, the index terms of an item, and how much shorter an item is without the
blanks of its file.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
import polars as pl

from armillary.encoding.documents import SYSTEM_PROPERTIES
from armillary.encoding.paths import Path, format_path

DEPTH_MAX: Final = 4
COLUMNS_MAX: Final = 120
SIZE: Final = "$bytes"  # no path has such a name: paths begin with a slash
_TYPES: Final[dict[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    type(None): "null",
    list: "array",
    dict: "object",
}


@dataclass(slots=True)
class Seen:
    """One path in the sample."""

    types: Counter[str] = field(default_factory=Counter)
    fractions: int = 0
    """Numbers that are not whole."""
    bytes_max: int = 0
    bytes_sum: int = 0


@dataclass(slots=True)
class Shape:
    paths: dict[Path, Seen] = field(default_factory=dict)
    seen: int = 0
    leaves: int = 0
    raw_bytes: int = 0
    compact_bytes: int = 0
    size_column: str = SIZE

    def look(self, item: dict[str, Any], size: int) -> None:
        self.seen += 1
        self.raw_bytes += size
        self.compact_bytes += len(orjson.dumps(item))
        for path, value in _walk(item, ()):
            kind = _TYPES.get(type(value), "string")
            found = self.paths.get(path)
            if found is None:
                found = self.paths[path] = Seen()
            found.types[kind] += 1
            if kind in ("string", "number"):
                length = len(value.encode()) if isinstance(value, str) else 8
                found.bytes_max = max(found.bytes_max, length)
                found.bytes_sum += length
                if isinstance(value, float) and not value.is_integer():
                    found.fractions += 1
        self.leaves += _leaves(item)

    @property
    def leaves_mean(self) -> float:
        return self.leaves / self.seen if self.seen else 5.0

    @property
    def compactness(self) -> float:
        """Bytes of the item over bytes of its line."""
        return self.compact_bytes / self.raw_bytes if self.raw_bytes else 1.0

    def scalars(self) -> list[Path]:
        """The paths that hold scalars, at most so many, those in most items first."""
        found = [
            (path, seen)
            for path, seen in self.paths.items()
            if any(kind in seen.types for kind in ("string", "number", "boolean"))
        ]
        found.sort(key=lambda each: -sum(each[1].types.values()))
        kept = {path for path, _ in found[:COLUMNS_MAX]}
        return [path for path in self.paths if path in kept]

    def schema(self) -> dict[str, Any]:
        """For the parser: text at every scalar path, structs on the way."""
        tree: dict[str, Any] = {}
        for path in sorted(self.scalars(), key=len):
            node = tree
            for name in path[:-1]:
                inner = node.setdefault(name, {})
                if inner is None:  # sometimes a scalar, sometimes an object: the scalar is kept
                    break
                node = inner
            else:
                node.setdefault(path[-1], None)
        return _types(tree)


def _types(tree: dict[str, Any]) -> dict[str, Any]:
    return {
        name: pl.String() if inner is None else pl.Struct(_types(inner))
        for name, inner in tree.items()
    }


def _walk(value: dict[str, Any], above: Path) -> Iterator[tuple[Path, Any]]:
    for name, inner in value.items():
        if not above and name in SYSTEM_PROPERTIES and name != "_ts":
            continue
        path = (*above, name)
        yield path, inner
        if isinstance(inner, dict) and len(path) < DEPTH_MAX:
            yield from _walk(inner, path)


def _leaves(value: Any) -> int:
    """Values that an index with every path has terms for."""
    if isinstance(value, dict):
        return sum(map(_leaves, value.values()))
    if isinstance(value, list):
        return sum(map(_leaves, value))
    return 1


def compacted(frame: pl.DataFrame) -> pl.DataFrame:
    """A copy that holds nothing but itself: rows picked from a batch share its texts, and a few of
    them would keep all of it in memory."""
    whole = frame.write_ipc(None, compat_level=pl.CompatLevel.oldest())
    return pl.read_ipc(whole.getvalue())


def flattened(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns named by their paths; structs opened, lists and other things dropped."""
    made: list[pl.Expr] = []
    for name, kind in frame.schema.items():
        made += _columns(pl.col(name), kind, (name,))
    return frame.select(made)


def _columns(column: pl.Expr, kind: pl.DataType, path: Path) -> list[pl.Expr]:
    if isinstance(kind, pl.Struct):
        if len(path) >= DEPTH_MAX:
            return []
        found: list[pl.Expr] = []
        for inner in kind.fields:
            dtype = inner.dtype
            assert isinstance(dtype, pl.DataType), "a schema has instances"
            found += _columns(column.struct.field(inner.name), dtype, (*path, inner.name))
        return found
    if isinstance(kind, pl.List | pl.Array | pl.Binary | pl.Object | pl.Null):
        return []
    return [column.alias(format_path(path))]
