"""Keys of composite indexes and unique keys: several values of one item in one key.

A composite key joins the terms of its paths, complemented where the order is descending; a missing
path is the undefined term. Strings are cut shorter the more paths there are, so that the key fits.
A unique key is a digest over its values in full, a missing one counting as null.

The time of a write is not known when its item is walked: a composite index over `_ts` leaves a gap
of fixed width that `stamp` fills. The other system properties are undefined here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, TypeAlias

from armillary.encoding.documents import SYSTEM_PROPERTIES
from armillary.encoding.paths import Path, extract
from armillary.encoding.terms import (
    ARRAY_TERM,
    NUMBER,
    OBJECT_TERM,
    ZERO,
    descending,
    string_term,
    term,
    term_bytes_max,
)
from armillary.limits import COMPOSITE_PATHS_MAX, KEY_BYTES_MAX, TERM_CUT_BYTES
from armillary.store import layout
from armillary.store.index_path import Array, Segment
from armillary.store.index_policy import CompositePath
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


@dataclass(frozen=True, slots=True)
class Column:
    """One path of a composite index: names from the top of the item, or of the array's element."""

    names: Path
    of_element: bool
    descending: bool


@dataclass(frozen=True, slots=True)
class Composite:
    """One composite index. `array` is the path of the array its `[]` goes into, or None."""

    prefix: bytes
    cut: int
    columns: tuple[Column, ...]
    array: Path | None


def compile_composite(number: int, paths: tuple[CompositePath, ...]) -> Composite:
    split = [_split_at_array(path.segments) for path in paths]
    arrays = [array for array, _ in split if array is not None]
    return Composite(
        prefix=layout.CX + number.to_bytes(2, "big"),
        cut=composite_cut(len(paths)),
        columns=tuple(
            Column(names, array is not None, path.descending)
            for path, (array, names) in zip(paths, split, strict=True)
        ),
        array=arrays[0] if arrays else None,
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


def composite_keys(
    composite: Composite, item: dict[str, JSON], keys: list[bytes], stamps: list[Stamp]
) -> None:
    """One key, or one for each element of the array that the index goes into."""
    made: dict[bytes, list[tuple[int, bool]]] = {}
    for element in _elements(composite, item):
        key = composite.prefix
        places: list[tuple[int, bool]] = []
        for column in composite.columns:
            if column.names == _TS and not column.of_element:
                places.append((len(key), column.descending))
                part = NUMBER + ZERO
            else:
                part = term(_column_value(column, item, element), composite.cut)
            key += descending(part) if column.descending else part
        made[key] = places
    for key, places in made.items():
        stamps.extend((len(keys), offset, falling) for offset, falling in places)
        keys.append(key)


def _elements(composite: Composite, item: dict[str, JSON]) -> Sequence[JSON]:
    found = UNDEFINED if composite.array is None else extract(item, composite.array)
    return found if isinstance(found, list) and found else (UNDEFINED,)


def _column_value(column: Column, item: dict[str, JSON], element: JSON) -> JSON:
    if column.of_element:
        return extract(element, column.names)
    # An item is walked before it has these, and again when it is stored: both must agree.
    if column.names[0] in SYSTEM_PROPERTIES:
        return UNDEFINED
    return extract(item, column.names)


def stamp(cx: list[bytes], stamps: list[Stamp], ts: int) -> list[bytes]:
    """The composite keys with the time of the write in its places."""
    if not stamps:
        return cx
    stamped = list(cx)
    for index, offset, falling in stamps:
        part = descending(term(ts)) if falling else term(ts)
        key = stamped[index]
        stamped[index] = key[:offset] + part + key[offset + len(part) :]
    return stamped


def unique_key(number: int, paths: tuple[Path, ...], item: dict[str, JSON]) -> bytes:
    digest = blake2b(digest_size=16)
    for path in paths:
        value = extract(item, path)
        digest.update(_full_term(None if value is UNDEFINED else value))
    return bytes((number,)) + digest.digest()


def _full_term(value: JSON) -> bytes:
    """Bytes that are equal exactly when the values are: nothing cut, arrays and objects with their
    content, members of an object in one order.
    """
    if isinstance(value, dict):
        members = sorted((string_term(name, len(name) * 6), name) for name in value)
        inner = b"".join(name_term + _full_term(value[name]) for name_term, name in members)
        return OBJECT_TERM + inner + b"\x00"
    if isinstance(value, list):
        return ARRAY_TERM + b"".join(map(_full_term, value)) + b"\x00"
    if isinstance(value, str):
        return string_term(value, len(value) * 6)
    if isinstance(value, int | float) and not isinstance(value, bool):
        # The digits tell apart the integers that share a double.
        return term(value) + (b"%d\x00" % int(value) if int(value) == value else b"\x00")
    return term(value)
