"""What an item puts into the spatial, full-text and vector indexes of its container.

    sx  path, cell, rid         → epk               each cell of each shape at the path
    fx  path, 01, token, rid    → epk               each different token of a text
    fx  path, 00, rid           → words, epk        how many tokens it has, repeated ones too
    vx  path, rid               → 01, floats, epk   a vector of the policy's length, as float32;
                                  00, epk           something else that may have a distance

Keys are made without the rid at the end, values without the EPK: the store knows those. Whoever
finds an item here looks at the item again, except for single tokens, which are exact. Spatial
paths may go into arrays and end in `/*`; the other two are plain properties.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from armillary.encoding.cells import EARTH, Box, cells_of
from armillary.encoding.geo_boxes import KINDS, boxes_of
from armillary.encoding.paths import extract
from armillary.encoding.terms import string_term
from armillary.encoding.text_tokens import tokens
from armillary.store.catalog.policies import is_geometry, languages
from armillary.store.index.paths import (
    ARRAY,
    Array,
    IndexPath,
    Path,
    Segment,
    parse_index_path,
    parse_property_path,
    path_hash,
)
from armillary.store.rows import layout
from armillary.values import JSON

Row: TypeAlias = tuple[bytes, bytes]

WORDS: Final = b"\x00"
TOKEN: Final = b"\x01"
TOKEN_CUT_BYTES: Final = 64  # longer words are told apart by a digest, and by the item
COUNT: Final = struct.Struct(">I")
NO_VECTOR, VECTOR = b"\x00", b"\x01"
FLOAT_MAX: Final = 3.4e38
FLOAT_MIN: Final = 1.2e-38  # below, a float32 loses digits


@dataclass(frozen=True, slots=True)
class SpatialIndex:
    path: IndexPath
    geometry: bool
    domain: Box

    def covers(self, path: Path) -> bool:
        own = self.path.segments
        if self.path.kind == "scalar":
            return path == own
        return bool(path) and path[: len(own)] == own


@dataclass(frozen=True, slots=True)
class TextIndex:
    path: tuple[str, ...]
    language: str

    def covers(self, path: Path) -> bool:
        return path == self.path


@dataclass(frozen=True, slots=True)
class VectorIndex:
    path: tuple[str, ...]
    dimensions: int

    def covers(self, path: Path) -> bool:
        return path == self.path


Other: TypeAlias = SpatialIndex | TextIndex | VectorIndex
KIND: Final[dict[type, bytes]] = {
    SpatialIndex: layout.SX,
    TextIndex: layout.FX,
    VectorIndex: layout.VX,
}
NAMES: Final = ("spatialIndexes", "fullTextIndexes", "vectorIndexes")


def described(document: Mapping[str, Any]) -> dict[str, JSON] | None:
    """What index entries depend on beside the indexing policy; None when they do not."""
    policy = document["indexingPolicy"]
    if not any(policy.get(name) for name in NAMES):
        return None
    default, by_path = languages(document)
    embeddings = (document.get("vectorEmbeddingPolicy") or {}).get("vectorEmbeddings") or ()
    return {
        "geometry": is_geometry(document),
        "language": default,
        "languages": by_path,
        "dimensions": {each["path"]: each["dimensions"] for each in embeddings},
    }


def compile_others(policy: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[Other, ...]:
    """The indexes of a policy document, by what `described` says of the container."""
    found: list[Other] = []
    for entry in policy.get("spatialIndexes") or ():
        path = parse_index_path(entry["path"])
        found.append(SpatialIndex(path, known["geometry"], _domain(entry, known["geometry"])))
    for entry in policy.get("fullTextIndexes") or ():
        language = known["languages"].get(entry["path"], known["language"])
        found.append(TextIndex(_names(entry["path"]), language))
    for entry in policy.get("vectorIndexes") or ():
        dimensions = known["dimensions"].get(entry["path"])
        if dimensions is not None:
            found.append(VectorIndex(_names(entry["path"]), dimensions))
    return tuple(found)


def _domain(entry: Mapping[str, Any], geometry: bool) -> Box:
    box = entry.get("boundingBox")
    if not geometry or not box:
        return EARTH
    return Box(*(float(box[name]) for name in ("xmin", "ymin", "xmax", "ymax")))


def _names(text: str) -> tuple[str, ...]:
    return tuple(str(each) for each in parse_property_path(text))


# --- entries --------------------------------------------------------------------------------------


def other_rows(indexes: tuple[Other, ...], item: dict[str, JSON]) -> list[Row]:
    rows: dict[bytes, bytes] = {}
    for index in indexes:
        match index:
            case SpatialIndex():
                rows.update(_spatial_rows(index, item))
            case TextIndex(path, language):
                rows.update(_text_rows(path, language, extract(item, path)))
            case VectorIndex(path, dimensions):
                rows.update(_vector_rows(path, dimensions, extract(item, path)))
    return list(rows.items())


def prefix_of(kind: bytes, path: Path) -> bytes:
    return kind + path_hash(path)


def _spatial_rows(index: SpatialIndex, item: JSON) -> Iterator[Row]:
    everything = index.path.kind == "subtree"
    for path, shape in _shapes(item, index.path.segments, (), everything):
        prefix = prefix_of(layout.SX, path)
        for box in boxes_of(shape, geometry=index.geometry):
            for cell in cells_of(box, index.domain):
                yield prefix + cell, b""


def _shapes(
    value: JSON, left: Path, at: tuple[Segment, ...], everything: bool
) -> Iterator[tuple[Path, JSON]]:
    """Values that look like shapes at a path, or anywhere below it."""
    if not left:
        if type(value) is dict and value.get("type") in KINDS:
            yield at, value
        if everything:
            for segment, inner in _inside(value):
                yield from _shapes(inner, (), (*at, segment), True)
        return
    first, *rest = left
    if isinstance(first, Array):
        for inner in value if type(value) is list else ():
            yield from _shapes(inner, tuple(rest), (*at, first), everything)
    elif type(value) is dict and first in value:
        yield from _shapes(value[first], tuple(rest), (*at, first), everything)


def _inside(value: JSON) -> Iterator[tuple[Segment, JSON]]:
    if type(value) is dict:
        yield from value.items()
    elif type(value) is list:
        for each in value:
            yield ARRAY, each


def _text_rows(path: Path, language: str, text: JSON) -> Iterator[Row]:
    if type(text) is not str:
        return
    prefix = prefix_of(layout.FX, path)
    found = tokens(text, language)
    yield prefix + WORDS, COUNT.pack(len(found))
    for token in dict.fromkeys(found):
        yield prefix + TOKEN + string_term(token, TOKEN_CUT_BYTES), b""


def _vector_rows(path: Path, dimensions: int, vector: JSON) -> Iterator[Row]:
    if type(vector) is not list or not all(type(each) in (int, float) for each in vector):
        return
    data = NO_VECTOR
    if len(vector) == dimensions and all(map(_fits, vector)):
        data = VECTOR + struct.pack(f"<{dimensions}f", *vector)
    yield prefix_of(layout.VX, path), data


def _fits(number: float) -> bool:
    size = abs(number)
    return size == 0 or (FLOAT_MIN <= size <= FLOAT_MAX and math.isfinite(size))


def changed_indexes(was: list[Row], now: list[Row]) -> tuple[int, int]:
    """(removed, added): each index whose rows changed counts once, as one leaf of an item does."""
    before, after = set(was), set(now)
    prefixes = [{key[:9] for key, _ in rows} for rows in (before - after, after - before)]
    return len(prefixes[0]), len(prefixes[1])
