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
from collections.abc import Callable
from typing import Final, NamedTuple

from armillary.api.nosql.messages import Request, Shortcut

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


class Shape(NamedTuple):
    match: Callable[[bytes], re.Match[bytes] | None]
    order: tuple[int, ...]
    """Which groups the shortcut is given, in its order."""
    answer: Callable[..., bytes | None]


class Shapes:
    """Those of one worker, shared by its connections."""

    def __init__(self, shortcut: Shortcut) -> None:
        self._shortcut = shortcut
        self._known: dict[bytes, Shape] = {}

    def learn(self, data: bytes, request: Request) -> Shape | None:
        """The shape of a request that was read from exactly `data`; None: it has none."""
        pattern = self._pattern(data, request)
        if pattern is None:
            return None
        shape = self._known.get(pattern)
        if shape is None:
            if len(self._known) >= SHAPES_MAX:
                self._known.clear()
            shape = self._known[pattern] = self._made(pattern)
        return shape

    def _pattern(self, data: bytes, request: Request) -> bytes | None:
        shortcut = self._shortcut
        head, end, rest = data.partition(END)
        first, *lines = head.split(b"\r\n")
        if (
            not end
            or rest
            or not first.endswith(b" HTTP/1.1")
            or request.method != shortcut.method
            or FRAMING & request.headers.keys()
            or len(lines) != len(request.headers)  # a name stands there twice
            or not shortcut.accepts(request)
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
            elif lower in FIXED or lower in shortcut.fixed:
                value = re.escape(value)
            else:
                value = ANYTHING
            pieces.append(b"%b: %b\\r\\n" % (re.escape(name), value))
        pieces.append(rb"\r\n")
        # Headers it does not have are empty.
        missing = [name for name in shortcut.captured if name not in request.headers]
        pieces += [b"(?P<%b>)" % _group(name) for name in missing]
        return b"".join(pieces)

    def _made(self, pattern: bytes) -> Shape:
        compiled = re.compile(pattern)
        shortcut = self._shortcut
        places = compiled.groupindex
        order = [*range(1, compiled.groups - len(shortcut.captured) + 1)]
        order += [places[_group(name).decode()] for name in shortcut.captured]
        return Shape(compiled.fullmatch, tuple(order), shortcut.answer)


def _group(name: str) -> bytes:
    return name.replace("-", "_").encode()
