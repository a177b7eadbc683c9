"""Keys of composite indexes and unique keys: several values of one item in one key.

A composite key joins the terms of its paths, complemented where the order is descending; a missing
path is the undefined term. Strings are cut shorter the more paths there are, so that the key fits.
A unique key is a digest over its values in full, a missing one counting as null.

The time of a write is not known when its item is walked: a composite index over `_ts` leaves a gap
of fixed width that `stamp` fills. The other system properties are undefined here.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Literal, TypeAlias

from armillary.encoding.documents import SYSTEM_PROPERTIES
from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.models import ValueModel
from armillary.encoding.paths import Path, extract
from armillary.encoding.terms import (
    NUMBER,
    ZERO,
    descending,
    term,
    term_bytes_max,
)
from armillary.limits import COMPOSITE_PATHS_MAX, KEY_BYTES_MAX, TERM_CUT_BYTES
from armillary.store.index.paths import Array, Segment
from armillary.store.index.policy import CompositePath
from armillary.store.rows import layout
from armillary.values import JSON, UNDEFINED

#: Where a time goes: which key of the list, at which byte, and whether complemented.
Stamp: TypeAlias = tuple[int, int, bool]

RID_BYTES: Final = 8
_HEAD_BYTES: Final = len(layout.CX) + 2
_TS: Final[Path] = ("_ts",)


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


def compile_composite(
    number: int, paths: tuple[CompositePath, ...], model: ValueModel = JSON_MODEL
) -> Composite:
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


def composite_keys(
    composite: Composite, item: dict[str, JSON], keys: list[bytes], stamps: list[Stamp]
) -> None:
    """Appends one key, or one for each element of the array that the index goes into."""
    if composite.array is None:
        _append_key(composite, item, UNDEFINED, keys, stamps)
        return
    elements = extract(item, composite.array)
    if not isinstance(elements, list) or not elements:
        elements = [UNDEFINED]
    made: list[bytes] = []
    places: list[Stamp] = []
    for element in elements:
        _append_key(composite, item, element, made, places)
    # Equal elements make equal keys. A policy names a path once, so a key has one time or none.
    for key, at in {key: at for at, key in enumerate(made)}.items():
        if places:
            stamps.append((len(keys), *places[at][1:]))
        keys.append(key)


def _append_key(
    composite: Composite,
    item: dict[str, JSON],
    element: JSON,
    keys: list[bytes],
    stamps: list[Stamp],
) -> None:
    key = composite.prefix
    term = composite.model.term
    for column in composite.columns:
        place = column.place
        if place == "item":
            part = term(extract(item, column.names), composite.cut)
        elif place == "element":
            part = term(extract(element, column.names), composite.cut)
        elif place == "time":
            stamps.append((len(keys), len(key), column.descending))
            part = NUMBER + ZERO
        else:
            part = term(UNDEFINED, composite.cut)
        key += descending(part) if column.descending else part
    keys.append(key)


def stamp(cx: list[bytes], stamps: list[Stamp], ts: int) -> list[bytes]:
    """The composite keys with the time of the write in its places."""
    if not stamps:
        return cx
    stamped = list(cx)
    for index, offset, is_descending in stamps:
        part = descending(term(ts)) if is_descending else term(ts)
        key = stamped[index]
        stamped[index] = key[:offset] + part + key[offset + len(part) :]
    return stamped


def unique_key(
    number: int, paths: tuple[Path, ...], item: dict[str, JSON], model: ValueModel = JSON_MODEL
) -> bytes:
    digest = blake2b(digest_size=16)
    for path in paths:
        value = extract(item, path)
        digest.update(model.full_term(None if value is UNDEFINED else value))
    return bytes((number,)) + digest.digest()
