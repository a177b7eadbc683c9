"""Positions in a container: how far a reader has come, range of hashes by range of hashes.

A position names hashes, never physical partitions, so it stays good when partitions split or merge:
at each step it is cut along the ranges of the moment. To a client it is an opaque text.

    items     (EPK range, last rid)     reading everything, in rid order within a range
    key       (EPK, last rid)           reading one logical partition, in rid order
    latest    (EPK range, LSN)          the change feed
    versions  (EPK range, LSN)          the change feed with every version
"""

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import msgspec

from armillary.encoding.records import decoder
from armillary.errors import BadInput
from armillary.partition.ranges import EPK_MAX, EPK_MIN, RangeTable

Kind: TypeAlias = Literal["items", "key", "latest", "versions"]
VERSION = 1
AT_MAX = 2**63  # of a rid or an LSN; both stay far below
SEGMENTS_MAX = 4096


@dataclass(frozen=True, slots=True)
class Segment:
    start: bytes
    end: bytes
    at: int
    """The last rid or LSN that was given."""


@dataclass(frozen=True, slots=True)
class Position:
    kind: Kind
    segments: tuple[Segment, ...]
    digest: bytes = b""
    """Of the one key value that is wanted, if it is one: another may have the same EPK."""

    def cut(self, table: RangeTable) -> "Position":
        """The first segment cut to the one range that owns its beginning; the rest follows it."""
        first, *rest = self.segments
        owner = table.find(first.start)
        if first.end <= owner.end:
            return self
        head = replace(first, end=owner.end)
        tail = replace(first, start=owner.end)
        return replace(self, segments=(head, tail, *rest))

    def advanced(self, at: int) -> "Position":
        """The first segment moved on."""
        return replace(self, segments=(replace(self.segments[0], at=at), *self.segments[1:]))

    def rotated(self) -> "Position":
        """The first segment to the back, so that every range gets its turn."""
        return replace(self, segments=(*self.segments[1:], self.segments[0]))

    def without_first(self) -> "Position | None":
        rest = self.segments[1:]
        return replace(self, segments=rest) if rest else None


class _Token(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    version: int
    kind: Kind
    segments: tuple[tuple[str, str, int], ...]
    digest: str = ""


_decode_token = decoder(_Token)


def point(epk: bytes) -> Position:
    """The beginning of one logical partition."""
    return Position("key", (Segment(epk, epk + b"\x00", 0),))


def whole(kind: Kind, at: int = 0) -> Position:
    return Position(kind, (Segment(EPK_MIN, EPK_MAX, at),))


def encode_position(position: Position) -> str:
    segments = [(one.start.hex(), one.end.hex(), one.at) for one in position.segments]
    digest = [position.digest.hex()] if position.digest else []
    data = msgspec.json.encode([VERSION, position.kind, segments, *digest])
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode_position(text: str, allowed: Iterable[Kind] = get_args(Kind)) -> Position:
    """Anything that `encode_position` did not make is refused."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        token = _decode_token(data)
        cut = tuple(
            Segment(bytes.fromhex(start), bytes.fromhex(end), at)
            for start, end, at in token.segments
        )
        position = Position(token.kind, cut, bytes.fromhex(token.digest))
    except (ValueError, binascii.Error, msgspec.MsgspecError) as error:
        raise BadInput("Invalid Continuation Token") from error
    fits = token.version == VERSION and token.kind in set(allowed)
    if not fits or not are_sound(cut):
        raise BadInput("Invalid Continuation Token")
    return position


def are_sound(segments: Sequence[Segment]) -> bool:
    """Whether a client may have been given them. Each step copies the list of them."""
    return 0 < len(segments) <= SEGMENTS_MAX and all(
        one.start < one.end <= EPK_MAX and 0 <= one.at < AT_MAX for one in segments
    )
