"""Property paths as policies write them: `/a/b`, `/"a b"/c`, `/'x/y'/z`.

A path is a tuple of property names. Inside quotes a backslash makes the next character plain. The
documented grammar of a bare segment is letters, digits and `_`; like the SDKs we also take other
characters that cannot be mistaken for syntax (`/first-name`). Wildcards and array steps are no
property paths; index policies, which have them, parse their own endings. Facts: partitioning
reference, section 5.
"""

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from armillary.errors import BadInput
from armillary.values import JSON, UNDEFINED, Undefined

Path: TypeAlias = tuple[str, ...]

_BARE: Final = re.compile(r"""[^/"'*?\[\]\\]+""")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_]+")


def parse_path(text: str) -> Path:
    """The property names of a path, outermost first."""
    segments: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "/":
            raise _bad(text, f"'/' is expected at position {at}")
        at += 1
        if text[at : at + 1] in ('"', "'"):
            segment, at = _quoted(text, at)
        else:
            segment, at = _bare(text, at)
        segments.append(segment)
    if not segments:
        raise _bad(text, "it is empty")
    return tuple(segments)


def format_path(segments: Sequence[str]) -> str:
    """The text of a path, with quotes only where needed. The inverse of `parse_path`."""
    return "".join("/" + (s if _PLAIN.fullmatch(s) else _quote(s)) for s in segments)


def extract(item: JSON, path: Path) -> JSON | Undefined:
    """The value at a path. A step that is missing, or not an object, makes it UNDEFINED."""
    for name in path:
        if type(item) is not dict or name not in item:
            return UNDEFINED
        item = item[name]
    return item


def _bare(text: str, at: int) -> tuple[str, int]:
    match = _BARE.match(text, at)
    if match is None:
        empty = text[at : at + 1] in ("", "/")
        why = "a segment is empty" if empty else f"'{text[at]}' is not allowed at position {at}"
        raise _bad(text, why)
    segment = match[0]
    if segment != segment.strip():
        # SDKs trim these, so client and server would mean different properties.
        raise _bad(text, f"the segment '{segment}' begins or ends with white space; quote it")
    return segment, match.end()


def _quoted(text: str, at: int) -> tuple[str, int]:
    quote, start = text[at], at
    out: list[str] = []
    at += 1
    while at < len(text):
        char = text[at]
        if char == quote:
            if not out:
                raise _bad(text, "a segment is empty")
            return "".join(out), at + 1
        if char == "\\":
            at += 1
            char = text[at : at + 1]
        out.append(char)
        at += 1
    raise _bad(text, f"the quote at position {start} is not closed")


def _quote(segment: str) -> str:
    return '"' + segment.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _bad(text: str, why: str) -> BadInput:
    return BadInput(
        f"The path '{text}' is invalid: {why}. A path is '/' and a property name, repeated, as in "
        "'/tenant' or '/address/\"zip code\"'; wildcards and array steps are not allowed."
    )
