"""The one order of result rows: keys, then the item, then the row within the item.

A row's place is (keys, tie, number): the values of its sort keys, the rid of its item (or the
digest of its group), and its number among the rows of that item. Rids are unique in a container
for ever, so places are a total order that no split or merge disturbs; "after this place" is all a
continuation has to say. When the first key descends, ties of items descend too; the rows of one
item stay in the order of its arrays (reference 5.4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import total_ordering
from hashlib import blake2b
from typing import Any, TypeAlias

import msgspec

from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.models import ValueModel
from armillary.values import JSON, UNDEFINED, order_key

#: What Python compares.
Sortable: TypeAlias = tuple[Any, ...]

DIGEST_BYTES = 16


class Place(msgspec.Struct, frozen=True):
    keys: tuple[JSON, ...]
    tie: bytes
    number: int = 0


@total_ordering
class Descending:
    """Sorts the other way round."""

    __slots__ = ("inner",)

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self.inner == other.inner)

    def __lt__(self, other: Descending) -> bool:
        return bool(other.inner < self.inner)

    __hash__ = None  # type: ignore[assignment]


class Sorter:
    __slots__ = ("_falling", "_order_key", "descending", "ties_descend")

    def __init__(
        self, descending: tuple[bool, ...], order_key: Callable[[JSON], Any] = order_key
    ) -> None:
        """`descending`: for each key. `order_key`: of the container's value model."""
        self.descending = descending
        self.ties_descend = descending[:1] == (True,)
        self._order_key = order_key
        self._falling = [at for at, is_descending in enumerate(descending) if is_descending]

    def sortable(self, keys: Sequence[JSON], tie: bytes, number: int = 0) -> Sortable:
        """HOT: once per row."""
        parts: list[Any] = list(map(self._order_key, keys))
        for at in self._falling:
            parts[at] = Descending(parts[at])
        return (*parts, Descending(tie) if self.ties_descend else tie, number)

    def of(self, place: Place) -> Sortable:
        return self.sortable(place.keys, place.tie, place.number)


def digest_of(values: Sequence[JSON], model: ValueModel = JSON_MODEL) -> bytes:
    """Equal for values that the language calls equal, in every process and for ever."""
    form = _canonical if model is JSON_MODEL else model.full_term
    return blake2b(b"".join(map(form, values)), digest_size=DIGEST_BYTES).digest()


def _canonical(value: JSON) -> bytes:
    """A text of the value that reads in one way only."""
    kind = type(value)
    if kind is str:
        data = value.encode("utf-8", "surrogatepass")
        return b"s%d:%b" % (len(data), data)
    if kind is float:
        if value.is_integer() and abs(value) < 2.0**63:
            return b"n%d;" % int(value)
        return b"n%b;" % repr(value).encode()
    if kind is int:
        return b"n%d;" % value
    if kind is list:
        return b"a%d:%b" % (len(value), b"".join(map(_canonical, value)))
    if kind is dict:
        members = sorted((_canonical(name), _canonical(inner)) for name, inner in value.items())
        return b"o%d:%b" % (len(members), b"".join(name + inner for name, inner in members))
    if value is UNDEFINED:
        return b"u"
    return b"z" if value is None else (b"t" if value else b"f")
