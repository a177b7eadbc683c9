"""Requests that look like one before, recognised whole: one regular expression instead of a parser.

    a request      GET /dbs/d/colls/c/docs/i1 HTTP/1.1 ⏎ Host: localhost ⏎ x-ms-date: Mon, … ⏎ …
    its shape      GET /((dbs/…/colls/…)/docs/(…)) HTTP/1.1 ⏎ Host: localhost ⏎ x-ms-date: (…) ⏎ …

A client sends the same headers in the same order for ever; what changes are a few values. So the
first request of a kind is read by the parser as any other (`wire.py`), and is then *learned*: the
names as they came, the values that decide something word for word, a group for each value that
changes, and no more than printable characters elsewhere. Whatever differs by one byte, comes in two
pieces, or has another behind it does not match, and goes to the parser.

A shape can't read a request otherwise than the parser does: it accepts less. Both are compared in
tests/property/test_shapes.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from armillary.api.http.messages import Request, Shortcut, Waiting
from armillary.limits import (
    LESSON_BYTES_MAX,
    TEMPLATE_BYTES_MAX,
    TEMPLATE_HEAD_BYTES_MAX,
    TEMPLATE_HEADERS_MAX,
)

SHAPES_MAX: Final = 256
"""In a worker; when there are so many, it begins anew."""
LESSONS_MAX: Final = 4
"""On a connection."""

#: Where these say anything, how long a request is or what comes after it is not for us to guess.
FRAMING: Final = frozenset({"transfer-encoding", "expect", "upgrade", "te", "trailer"})
#: Part of the shape as they came.
FIXED: Final = frozenset({"host", "connection", "content-length", "keep-alive"})
ANYTHING: Final = rb"[ -~]*"
END: Final = b"\r\n\r\n"
LENGTH: Final = "content-length"


class Shape(NamedTuple):
    match: Callable[[bytes], re.Match[bytes] | None]
    order: tuple[int, ...]
    """Which groups the shortcut is given, in its order."""
    answer: Callable[..., bytes | Waiting | None]
    waits: bool


class Shapes:
    """Those of one worker, shared by its connections."""

    def __init__(self, shortcuts: Sequence[Shortcut], lesson_bytes: int = LESSON_BYTES_MAX) -> None:
        self._shortcuts = shortcuts
        self._lesson_bytes = lesson_bytes
        self._known: dict[bytes, Shape] = {}

    def learn(self, data: bytes, request: Request) -> Shape | None:
        """The shape of a request that was read from exactly `data`; None: it has none."""
        if len(data) > self._lesson_bytes or len(request.headers) > TEMPLATE_HEADERS_MAX:
            return None
        for shortcut in self._shortcuts:
            if request.method == shortcut.method and shortcut.accepts(request):
                pattern = _pattern(shortcut, data, request)
                if pattern is None or len(pattern) > TEMPLATE_BYTES_MAX:
                    return None
                return self._shape(shortcut, pattern)
        return None

    def _shape(self, shortcut: Shortcut, pattern: bytes) -> Shape:
        shape = self._known.get(pattern)
        if shape is None:
            if len(self._known) >= SHAPES_MAX:
                self._known.clear()
            shape = self._known[pattern] = _made(shortcut, pattern)
        return shape


def _pattern(shortcut: Shortcut, data: bytes, request: Request) -> bytes | None:
    head, end, rest = data.partition(END)
    first, *lines = head.split(b"\r\n")
    if (
        not end
        or rest != request.body
        or bool(rest) is not shortcut.has_body
        or not first.endswith(b" HTTP/1.1")
        or FRAMING & request.headers.keys()
        or len(lines) != len(request.headers)  # a name stands there twice
    ):
        return None
    pieces = [b"%b %b HTTP/1\\.1\\r\\n" % (shortcut.method.encode(), shortcut.target)]
    for line in lines:
        name, colon, value = line.partition(b": ")
        lower = name.decode("latin-1").lower()
        if not colon or request.headers.get(lower, "").encode("latin-1") != value:
            return None  # more space, or none, than people write
        known = shortcut.captured.get(lower)
        if known is not None:
            value = b"(?P<%b>%b)" % (_group(lower), known)
        elif lower == LENGTH and rest:
            value = rb"(?P<content_length>[1-9][0-9]{0,6})"
        elif lower in FIXED or lower in shortcut.fixed:
            value = re.escape(value)
        else:
            value = ANYTHING
        pieces.append(b"%b: %b\\r\\n" % (re.escape(name), value))
    pieces.append(rb"\r\n")
    # Headers it does not have are empty.
    missing = [name for name in shortcut.captured if name not in request.headers]
    pieces += [b"(?P<%b>)" % _group(name) for name in missing]
    if rest:
        pieces.append(rb"(?P<body>(?s:.+))")
    return b"".join(pieces)


def _made(shortcut: Shortcut, pattern: bytes) -> Shape:
    compiled = re.compile(pattern)
    places = compiled.groupindex
    named = [*map(_group, shortcut.captured), *([b"body"] if "body" in places else [])]
    order = [n for n in range(1, compiled.groups + 1) if n not in places.values()]
    order += [places[name.decode()] for name in named]
    if "body" not in places:

        def match_head(data: bytes) -> re.Match[bytes] | None:
            # The bounds of the parser hold here as well; what is long goes there to be refused.
            return None if len(data) > TEMPLATE_HEAD_BYTES_MAX else compiled.fullmatch(data)

        return Shape(match_head, tuple(order), shortcut.answer, shortcut.waits)
    length, answer = places["content_length"], shortcut.answer

    def match(data: bytes) -> re.Match[bytes] | None:
        """Whole: not a byte less than it says, and none of the next one."""
        found = compiled.fullmatch(data)
        if (
            found is None
            or found.start("body") > TEMPLATE_HEAD_BYTES_MAX
            or int(found[length]) != len(found["body"])
        ):
            return None
        return found

    return Shape(match, tuple(order), answer, shortcut.waits)


def _group(name: str) -> bytes:
    return name.replace("-", "_").encode()
