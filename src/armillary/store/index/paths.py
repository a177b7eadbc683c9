"""Paths of an indexing policy: text in, segments and a kind out.

    /a/b/?        the scalar at a.b            /a/[]/b/?      b of every element of the array a
    /a/*          a and everything below       /"x-y"/?       a name with other characters, quoted
    /ev/[]/{n,k}/?   a tuple: n and k of the same element (echoed, not indexed)

A name may stand without quotes when it is made of letters, digits and underscores (nosql-query
7.1). Composite indexes and unique keys leave the `/?` out; it is implied.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from typing import Final, Literal, TypeAlias

from armillary.errors import BadInput


class Array(Enum):
    """The segment that stands for every element of an array; not the name "[]"."""

    ARRAY = "[]"

    def __repr__(self) -> str:
        return "ARRAY"


ARRAY: Final = Array.ARRAY
Segment: TypeAlias = str | Array
Path: TypeAlias = tuple[Segment, ...]
Kind: TypeAlias = Literal["scalar", "subtree", "tuple"]

PATH_HASH_BYTES: Final = 8
ROOT_HASH: Final = bytes(PATH_HASH_BYTES)

_NAME = re.compile(r"[A-Za-z0-9_]+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_TUPLE = re.compile(r"\{([^{}]*)\}/\?")


@dataclass(frozen=True, slots=True)
class IndexPath:
    """Where an entry of includedPaths or excludedPaths points. A tuple keeps only what is before
    its braces.
    """

    segments: Path
    kind: Kind


def parse_index_path(text: object) -> IndexPath:
    """An entry of includedPaths or excludedPaths; ends in `/?` or `/*`. `/` alone is an old way to
    write `/*`."""
    if not isinstance(text, str):
        raise BadInput("A path of the indexing policy must be a string.")
    if text == "/":
        return IndexPath((), "subtree")
    segments: list[Segment] = []
    position = 0
    while True:
        rest = text[position:]
        if rest == "/?" and segments:
            return IndexPath(tuple(segments), "scalar")
        if rest == "/*":
            return IndexPath(tuple(segments), "subtree")
        if rest.startswith("/{"):
            _check_tuple(text, position + 1, segments)
            return IndexPath(tuple(segments), "tuple")
        segment, position = _segment(text, position)
        segments.append(segment)


def parse_property_path(text: object) -> Path:
    """A path of a composite index or a unique key; `/?` at the end is implied."""
    if not isinstance(text, str):
        raise BadInput("A path must be a string such as '/name'.")
    segments: list[Segment] = []
    position = 0
    while True:
        segment, position = _segment(text, position)
        segments.append(segment)
        if text[position:] in ("", "/?"):
            return tuple(segments)


def path_text(segments: Sequence[Segment]) -> str:
    """The segments as a policy writes them, without an ending: /a/[]/"x-y"."""
    return "".join(f"/{_segment_text(segment)}" for segment in segments)


def _segment_text(segment: Segment) -> str:
    if isinstance(segment, Array):
        return segment.value
    if _NAME.fullmatch(segment):
        return segment
    escaped = segment.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _segment(text: str, position: int) -> tuple[Segment, int]:
    """The segment after the slash at `position`, and where it ends."""
    if not text.startswith("/", position):
        raise _refused(text, position)
    start = position + 1
    if text.startswith("[]", start):
        return _ended(text, ARRAY, start + 2)
    if quoted := _QUOTED.match(text, start):
        return _ended(text, _ESCAPED.sub(r"\1", quoted[1]), quoted.end())
    if name := _NAME.match(text, start):
        return _ended(text, name[0], name.end())
    raise _refused(text, start)


def _ended(text: str, segment: Segment, end: int) -> tuple[Segment, int]:
    if end < len(text) and text[end] != "/":
        raise _refused(text, end)
    return segment, end


def _check_tuple(text: str, position: int, segments: list[Segment]) -> None:
    match = _TUPLE.fullmatch(text, position)
    if match is None or segments.count(ARRAY) != 1 or segments[-1] is not ARRAY:
        raise BadInput(
            f"The indexing path '{text}' could not be accepted: a tuple has the form "
            "/array/[]/{first,second}/? with one [] directly before the braces."
        )
    for member in match[1].split(","):
        if ARRAY in parse_property_path("/" + member.strip()):
            raise _refused(text, position)


def _refused(text: str, position: int) -> BadInput:
    return BadInput(
        f"The indexing path '{text}' could not be accepted, failed near position '{position}'. "
        "Please ensure that the path is a valid path. Common errors include invalid characters or "
        "absence of quotes around labels.",
        position=position,
    )


# --- in keys --------------------------------------------------------------------------------------


def path_hash(segments: Iterable[Segment]) -> bytes:
    """Eight bytes that stand for a path in index keys. Chained from the root, so that a node needs
    only the hash of its parent.
    """
    digest = ROOT_HASH
    for segment in segments:
        digest = child_hash(digest, segment)
    return digest


def child_hash(parent: bytes, segment: Segment) -> bytes:
    name = (
        b"\x00"
        if isinstance(segment, Array)
        else b"\x01" + segment.encode("utf-8", "surrogatepass")
    )
    return blake2b(parent + name, digest_size=PATH_HASH_BYTES).digest()
