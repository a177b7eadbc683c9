"""The time of a write in keys that are made before it is known.

An item is walked before it is written, and again from what is stored. An index over `_ts` leaves a
gap of fixed width in its key; `stamp` fills it.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from armillary.encoding.terms import NUMBER, ZERO, descending, term

#: Where a time goes: which key of the list, at which byte, and whether complemented.
Stamp: TypeAlias = tuple[int, int, bool]

GAP: Final = NUMBER + ZERO


def stamp(keys: list[bytes], stamps: list[Stamp], ts: int) -> list[bytes]:
    """The keys with the time of the write in its places."""
    if not stamps:
        return keys
    stamped = list(keys)
    for index, offset, is_descending in stamps:
        part = descending(term(ts)) if is_descending else term(ts)
        key = stamped[index]
        stamped[index] = key[:offset] + part + key[offset + len(part) :]
    return stamped
