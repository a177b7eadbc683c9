"""Where a query goes on, as an opaque text that survives splits, merges, and other processes.

    rows      segments of the hash space that were begun: (start, end, last rid, rows given of it);
              all of the scope beyond the last of them is untouched, all else is done
    ordered   the place of the last row: its sort keys, rid and number
    folded    the place of the last group: its sort keys and digest

No form counts rows to skip, except what is left of OFFSET. A number of rows given of one item is
a place inside that item. Keys too long for a header are cut, and the item is asked for them again
(`is_cut`); only if it is gone do rows that share the cut beginning come a second time.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

import msgspec

from armillary.errors import BadInput
from armillary.partition.ranges import EPK_MAX
from armillary.query.order import Place
from armillary.values import JSON, UNDEFINED

Kind: TypeAlias = Literal["rows", "ordered", "folded"]

VERSION: Final = 1
TOKEN_BYTES_MAX: Final = 720  # before base64, which makes 960 characters of it
KEY_CHARACTERS: Final = 60  # of a cut key
REFUSED: Final = "Invalid Continuation Token"


@dataclass(frozen=True, slots=True)
class Begun:
    """A part of the hash space that has been read up to an item. `given` rows of that item have
    been given; 0 means all of them.
    """

    start: bytes
    end: bytes
    rid: bytes
    given: int = 0


@dataclass(frozen=True, slots=True)
class Continuation:
    kind: Kind
    container: bytes
    skip: int = 0
    """What is left of OFFSET."""
    left: int | None = None
    """What is left of LIMIT or TOP."""
    begun: tuple[Begun, ...] = ()
    place: Place | None = None
    is_cut: bool = False


def encode(continuation: Continuation) -> str:
    data = _pack(continuation)
    if len(data) > TOKEN_BYTES_MAX and continuation.place is not None:
        place = replace(continuation.place, keys=tuple(map(_cut, continuation.place.keys)))
        data = _pack(replace(continuation, place=place, is_cut=True))
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _pack(one: Continuation) -> bytes:
    place = one.place
    keys = None if place is None else [_wrapped(key) for key in place.keys]
    tie = b"" if place is None else place.tie
    number = 0 if place is None else place.number
    begun = [(each.start, each.end, each.rid, each.given) for each in one.begun]
    head = (VERSION, one.kind, one.container, one.skip, one.left, begun)
    return msgspec.msgpack.encode((*head, keys, tie, number, one.is_cut))


def _wrapped(key: JSON) -> list[JSON]:
    return [] if key is UNDEFINED else [key]


def _cut(key: JSON) -> JSON:
    """The least value that begins like the key, so that nothing after the key is left out."""
    if isinstance(key, str):
        return key[:KEY_CHARACTERS]
    if isinstance(key, list):
        return []
    return {} if isinstance(key, dict) else key


_FORM = tuple[
    int, Kind, bytes, int, int | None, list[tuple[bytes, bytes, bytes, int]],
    list[list[Any]] | None, bytes, int, bool,
]  # fmt: skip
_DECODER = msgspec.msgpack.Decoder(_FORM)


def decode(text: str, kind: Kind, container: bytes, keys: int = 0) -> Continuation:
    """Anything else than what `encode` made for this kind of plan on this container is refused."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        (version, made_for, owner, skip, left, begun, values, tie, number, is_cut) = (
            _DECODER.decode(data)
        )
    except (ValueError, binascii.Error, msgspec.MsgspecError) as error:
        raise BadInput(REFUSED) from error
    fits = (
        (version, made_for, owner) == (VERSION, kind, container)
        and skip >= 0
        and number >= 0
        and (left is None or left >= 0)
        and (values is not None if kind != "rows" else bool(begun))
        and len(values or ()) == keys
        and all(len(value) <= 1 for value in values or ())
        and all(low < high <= EPK_MAX and given >= 0 for low, high, _, given in begun)
    )
    if not fits:
        raise BadInput(REFUSED)
    place = None
    if values is not None:
        place = Place(tuple(v[0] if v else UNDEFINED for v in values), tie, number)
    return Continuation(
        made_for, owner, skip, left, tuple(Begun(*each) for each in begun), place, is_cut
    )
