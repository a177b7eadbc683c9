"""Where a query goes on, as an opaque text that survives splits, merges, and other processes.

    rows      segments of the hash space that were begun: (start, end, last rid, rows given of it);
              all of the scope beyond the last of them is untouched, all else is done
    ordered   the place of the last row: its sort keys, rid and number
    folded    the place of the last group: its sort keys and digest

No form counts rows to skip, except what is left of OFFSET. A number of rows given of one item is
a place inside that item. Keys that make the token too long are compressed; if that is not enough
they are cut, and the item is asked for them again (`is_cut`). Only if that item has changed since
do rows that share the cut beginning come a second time; none is ever left out.

A token carries a digest of the text of its query, when that is known, and is refused for another.
Values of parameters may differ.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from hashlib import blake2b
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from armillary.errors import BadInput
from armillary.limits import KB
from armillary.partition.ranges import EPK_MAX
from armillary.query.run.order import Place
from armillary.values import JSON, UNDEFINED

Kind: TypeAlias = Literal["rows", "ordered", "folded"]

VERSION: Final = 2
DIGEST_BYTES: Final = 6
TOKEN_BYTES_MAX: Final = 720  # before base64, which makes 960 characters of it
UNPACKED_BYTES_MAX: Final = 64 * KB  # of a token before it is compressed
KEY_CHARACTERS: Final = 40  # of a cut key
COMPRESSED: Final = b"z"  # no packed token begins so
REFUSED: Final = "Invalid Continuation Token"


class Begun(msgspec.Struct, frozen=True):
    """A part of the hash space that has been read up to an item. `given` rows of that item have
    been given; 0 means all of them.
    """

    start: bytes
    end: bytes
    rid: bytes
    given: int = 0


class Continuation(msgspec.Struct, frozen=True):
    kind: Kind
    container: bytes
    skip: int = 0
    """What is left of OFFSET."""
    left: int | None = None
    """What is left of LIMIT or TOP."""
    begun: tuple[Begun, ...] = ()
    place: Place | None = None
    is_cut: bool = False
    query: bytes = b""
    """What the query is known by; may be empty."""


def query_digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


def encode(continuation: Continuation, descending: tuple[bool, ...] = ()) -> str:
    """`descending` says which sort keys descend."""
    data = _pack(continuation)
    if len(data) > TOKEN_BYTES_MAX:
        if len(data) <= UNPACKED_BYTES_MAX:
            data = COMPRESSED + zlib.compress(data, 9)
        place = continuation.place
        if len(data) > TOKEN_BYTES_MAX and place is not None:
            keys = tuple(
                _cut(key, is_descending)
                for key, is_descending in zip(place.keys, descending, strict=True)
            )
            data = _pack(replace(continuation, place=replace(place, keys=keys), is_cut=True))
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _pack(one: Continuation) -> bytes:
    place = one.place
    keys = None if place is None else [_wrapped(key) for key in place.keys]
    tie = b"" if place is None else place.tie
    number = 0 if place is None else place.number
    begun = [(each.start, each.end, each.rid, each.given) for each in one.begun]
    head = (VERSION, one.kind, one.container, one.query, one.skip, one.left, begun)
    return msgspec.msgpack.encode((*head, keys, tie, number, one.is_cut))


def _wrapped(key: JSON) -> list[JSON]:
    return [] if key is UNDEFINED else [key]


def _cut(key: JSON, is_descending: bool) -> JSON:
    """A value that begins like the key and comes before everything else that does, so that nothing
    after the key is left out: the least such value, or the greatest when the order is descending.
    """
    if isinstance(key, str):
        return key[:KEY_CHARACTERS] + ("\uffff" * 4 if is_descending else "")
    if isinstance(key, list):
        return {} if is_descending else []
    if isinstance(key, dict):
        return {"\uffff" * 4: {}} if is_descending else {}
    return key


_FORM = tuple[
    int, Kind, bytes, bytes, int, int | None, list[tuple[bytes, bytes, bytes, int]],
    list[list[Any]] | None, bytes, int, bool,
]  # fmt: skip
_DECODER = msgspec.msgpack.Decoder(_FORM)


def _unpacked(data: bytes) -> bytes:
    """A stranger's token must not make us inflate more than ours do."""
    if not data.startswith(COMPRESSED):
        return data
    inflating = zlib.decompressobj()
    found = inflating.decompress(data[len(COMPRESSED) :], UNPACKED_BYTES_MAX)
    if not inflating.eof:
        raise ValueError("more than any token of ours")
    return found


def decode(
    text: str, kind: Kind, container: bytes, keys: int = 0, query: bytes = b""
) -> Continuation:
    """Anything else than what `encode` made for this kind of plan on this container is refused, and
    what it made for another query, where both are known.
    """
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        (version, made_for, owner, asked, skip, left, begun, values, tie, number, is_cut) = (
            _DECODER.decode(_unpacked(data))
        )
    except (ValueError, binascii.Error, zlib.error, msgspec.MsgspecError) as error:
        raise BadInput(REFUSED) from error
    fits = (
        (version, made_for, owner) == (VERSION, kind, container)
        and (not query or not asked or asked == query)
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
        made_for, owner, skip, left, tuple(Begun(*each) for each in begun), place, is_cut, query
    )
