"""Composite indexes: several values of one item in one key.

A key joins the terms of its paths, complemented where the order is descending; a missing path is
the undefined term. Strings are cut shorter the more paths there are, so that the key fits.

The time of a write is not known when its item is walked: an index over `_ts` leaves a gap for it
(`store/index/stamps.py`). The other system properties are undefined here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from armillary.encoding.documents import SYSTEM_PROPERTIES
from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.models import ValueModel
from armillary.encoding.paths import Path, extract
from armillary.encoding.terms import descending, term_bytes_max
from armillary.errors import BadInput
from armillary.limits import (
    COMPOSITE_INDEXES_MAX,
    COMPOSITE_PATHS_MAX,
    KEY_BYTES_MAX,
    TERM_CUT_BYTES,
)
from armillary.store.index.kinds.base import Kind
from armillary.store.index.paths import ARRAY, Array, Segment, parse_property_path, path_text
from armillary.store.index.paths import Path as IndexedPath
from armillary.store.index.stamps import GAP, Stamp
from armillary.store.rows import layout
from armillary.values import JSON, UNDEFINED

RID_BYTES: Final = 8
_HEAD_BYTES: Final = len(layout.CX) + 2
_TS: Final[Path] = ("_ts",)
_PATHS_MIN: Final = 2


def composite_cut(paths: int) -> int:
    """Bytes of a string that a composite index of so many paths keeps, so that its key fits."""
    room = (KEY_BYTES_MAX - _HEAD_BYTES - RID_BYTES) // paths
    return (room - term_bytes_max(0)) // 2


assert composite_cut(2) <= TERM_CUT_BYTES
assert composite_cut(COMPOSITE_PATHS_MAX) > 0


#: Where a column finds its value: in the item, in an element of the array, or (`_ts`) in the time
#: of the write. The other system properties are nowhere: an item is walked before it has them, and
#: again from what is stored, and both walks must agree.
Place: TypeAlias = Literal["item", "element", "time", "nowhere"]


@dataclass(frozen=True, slots=True)
class Column:
    """One path of a composite index: names from the top of its place."""

    names: Path
    place: Place
    descending: bool


@dataclass(frozen=True, slots=True)
class Composite:
    """One composite index. `array` is the path of the array its `[]` goes into, or None."""

    prefix: bytes
    cut: int
    columns: tuple[Column, ...]
    array: Path | None
    model: ValueModel = JSON_MODEL

    def append_keys(self, item: dict[str, JSON], keys: list[bytes], stamps: list[Stamp]) -> None:
        """One key, or one for each element of the array that the index goes into."""
        if self.array is None:
            self._append(item, UNDEFINED, keys, stamps)
            return
        elements = extract(item, self.array)
        if not isinstance(elements, list) or not elements:
            elements = [UNDEFINED]
        made: list[bytes] = []
        places: list[Stamp] = []
        for element in elements:
            self._append(item, element, made, places)
        # Equal elements make equal keys. A policy names a path once, so a key has one time or none.
        for key, at in {key: at for at, key in enumerate(made)}.items():
            if places:
                stamps.append((len(keys), *places[at][1:]))
            keys.append(key)

    def _append(
        self, item: dict[str, JSON], element: JSON, keys: list[bytes], stamps: list[Stamp]
    ) -> None:
        key, term = self.prefix, self.model.term
        for column in self.columns:
            place = column.place
            if place == "item":
                part = term(extract(item, column.names), self.cut)
            elif place == "element":
                part = term(extract(element, column.names), self.cut)
            elif place == "time":
                stamps.append((len(keys), len(key), column.descending))
                part = GAP
            else:
                part = term(UNDEFINED, self.cut)
            key += descending(part) if column.descending else part
        keys.append(key)


# --- policies -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CompositePath:
    segments: IndexedPath
    descending: bool = False


def _parse_all(entries: list[JSON]) -> list[JSON]:
    if len(entries) > COMPOSITE_INDEXES_MAX:
        raise BadInput(
            f"The policy has {len(entries)} composite indexes; allowed are {COMPOSITE_INDEXES_MAX}."
        )
    return [list(map(_path_json, parse_composite(entry))) for entry in entries]


def parse_composite(entry: JSON) -> tuple[CompositePath, ...]:
    if not isinstance(entry, list):
        raise BadInput("A composite index must be a list of paths.")
    if not _PATHS_MIN <= len(entry) <= COMPOSITE_PATHS_MAX:
        raise BadInput(
            f"A composite index has {len(entry)} paths; allowed are {_PATHS_MIN} to "
            f"{COMPOSITE_PATHS_MAX}."
        )
    paths = tuple(map(_parse_path, entry))
    if len({path.segments for path in paths}) < len(paths):
        raise BadInput("A composite index names a path more than once.")
    arrays = {
        path.segments[: path.segments.index(ARRAY)] for path in paths if ARRAY in path.segments
    }
    if len(arrays) > 1 or any(path.segments.count(ARRAY) > 1 for path in paths):
        raise BadInput("A composite index can go into one array only.")
    return paths


def _parse_path(entry: JSON) -> CompositePath:
    if not isinstance(entry, dict):
        raise BadInput("A path of a composite index must be a JSON object.")
    order = entry.get("order") or "ascending"
    if not isinstance(order, str) or order.lower() not in ("ascending", "descending"):
        raise BadInput(
            f"The order {order!r} of a composite index is invalid; allowed are 'ascending' and "
            "'descending'."
        )
    return CompositePath(parse_property_path(entry.get("path")), order.lower() == "descending")


def _path_json(path: CompositePath) -> dict[str, JSON]:
    order = "descending" if path.descending else "ascending"
    return {"path": path_text(path.segments), "order": order}


# --- compiled -------------------------------------------------------------------------------------


def _compile(number: int, entry: JSON, model: ValueModel) -> Composite:
    paths = parse_composite(entry)
    split = [_split_at_array(path.segments) for path in paths]
    arrays = [array for array, _ in split if array is not None]
    return Composite(
        prefix=layout.CX + number.to_bytes(2, "big"),
        cut=composite_cut(len(paths)),
        columns=tuple(
            Column(names, _place(array, names, model), path.descending)
            for path, (array, names) in zip(paths, split, strict=True)
        ),
        array=arrays[0] if arrays else None,
        model=model,
    )


def _split_at_array(segments: tuple[Segment, ...]) -> tuple[Path | None, Path]:
    """/a/[]/b is b of each element of a. The policy allows one array only."""
    array: Path | None = None
    names: Path = ()
    for segment in segments:
        if isinstance(segment, Array):
            array, names = names, ()
        else:
            names = (*names, segment)
    return array, names


def _place(array: Path | None, names: Path, model: ValueModel) -> Place:
    if array is not None:
        return "element"
    if names == _TS and model is JSON_MODEL:  # the gap for a time has the width of a JSON number
        return "time"
    return "nowhere" if names[0] in SYSTEM_PROPERTIES else "item"


KIND: Final = Kind(
    name="compositeIndexes", prefix=layout.CX, parse=_parse_all, compile_keys=_compile
)
