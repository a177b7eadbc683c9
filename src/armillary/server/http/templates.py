"""Requests that look like one before, recognised whole: one regular expression instead of a parser.

    a request      GET /dbs/d/colls/c/docs/i1 HTTP/1.1 ⏎ Host: localhost ⏎ x-ms-date: Mon, … ⏎ …
    its template   GET /((dbs/…/colls/…)/docs/(…)) HTTP/1.1 ⏎ Host: localhost ⏎ x-ms-date: (…) ⏎ …

A client sends the same headers in the same order for ever; what changes are a few values. So the
first request of a kind is read by the parser (`wire.py`), and a template is made of it: the names
as they came, the values that decide something word for word, a group for each value that changes,
and printable characters in headers that are known to mean nothing. A header that is in none of
these lists has no template. What has none, differs by one byte, comes in pieces (a head and a whole
body excepted), or has another behind it takes the general path. So a template accepts less than the
parser, and reads nothing otherwise: tests/property/test_templates.py compares.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from armillary import limits
from armillary.api.core.fast import keep
from armillary.api.http.messages import FastPath, Request, Waiting

TEMPLATES_MAX: Final = 256  # in a worker; when there are so many, it begins anew
TEMPLATES_OF_CONNECTION_MAX: Final = 4

#: Part of a template as they came.
FIXED: Final = frozenset({"host", "connection", "content-length", "keep-alive"})
#: How an HTTP client works, not what it wants.
IGNORED: Final = frozenset({"accept", "accept-encoding", "accept-language", "user-agent"})
END: Final = b"\r\n\r\n"


class Template(NamedTuple):
    match: Callable[[bytes], Sequence[bytes] | None]
    """What the fast path is given, in its order; None: another request."""
    answer: Callable[..., bytes | Waiting | None]
    waits: bool


class Templates:
    """Those of one worker, shared by its connections."""

    def __init__(
        self, paths: Sequence[FastPath], request_bytes: int = limits.TEMPLATE_REQUEST_BYTES_MAX
    ) -> None:
        self._paths = paths
        self._request_bytes = request_bytes
        self._known: dict[bytes, Template] = {}

    def find(self, data: bytes, request: Request) -> Template | None:
        """The template of a request that was read from exactly `data`; None: it has none."""
        if len(data) > self._request_bytes or len(request.headers) > limits.TEMPLATE_HEADERS_MAX:
            return None
        for path in self._paths:
            if request.method == path.method and path.accepts(request):
                pattern = _pattern(path, data, request)
                if pattern is not None and len(pattern) <= limits.TEMPLATE_BYTES_MAX:
                    known = self._known.get(pattern)
                    return known or keep(self._known, pattern, _made(path, pattern), TEMPLATES_MAX)
        return None


def _pattern(path: FastPath, data: bytes, request: Request) -> bytes | None:
    head, end, rest = data.partition(END)
    first, *lines = head.split(b"\r\n")
    if (
        not end
        or rest != request.body
        or bool(rest) is not path.has_body
        or not first.endswith(b" HTTP/1.1")
        or len(lines) != len(request.headers)  # a name stands there twice
    ):
        return None
    pieces = [b"%b (%b) HTTP/1\\.1\\r\\n" % (path.method.encode(), path.target)]
    for line in lines:
        name, colon, value = line.partition(b": ")
        lower = name.decode("latin-1").lower()
        if not colon or request.headers.get(lower, "").encode("latin-1") != value:
            return None  # more space, or none, than people write
        if lower in path.captured:
            value = b"(?P<%b>%b)" % (_group(lower).encode(), path.captured[lower])
        elif lower == "content-length" and rest:
            value = rb"(?P<content_length>[1-9][0-9]{0,6})"
        elif lower in FIXED or lower in path.fixed:
            value = re.escape(value)
        elif lower in IGNORED or lower in path.ignored:
            value = rb"[ -~]*"
        else:
            return None  # it may decide something
        pieces.append(b"%b: %b\\r\\n" % (re.escape(name), value))
    pieces.append(rb"\r\n")
    # Headers it does not have are empty.
    missing = [name for name in path.captured if name not in request.headers]
    pieces += [b"(?P<%b>)" % _group(name).encode() for name in missing]
    return b"".join(pieces) + (rb"(?P<body>(?s:.+))" if rest else b"")


def _made(path: FastPath, pattern: bytes) -> Template:
    compiled = re.compile(pattern)
    places, fullmatch = compiled.groupindex, compiled.fullmatch
    target = [n for n in range(1, compiled.groups + 1) if n not in places.values()]
    body, length = places.get("body", 0), places.get("content_length", 0)
    order = *target, *(places[_group(name)] for name in path.captured), *([body] if body else [])

    def match(data: bytes) -> Sequence[bytes] | None:
        """Whole: not a byte less than it says, and none of the next one. The bounds of the parser
        hold here as well; what is long goes there to be refused."""
        found = fullmatch(data)
        if found is None:
            return None
        head_bytes = found.start(body) if body else len(data)
        is_whole = not body or int(found[length]) == len(data) - head_bytes
        is_short = head_bytes <= limits.TEMPLATE_HEAD_BYTES_MAX
        return found.group(*order) if is_whole and is_short else None

    return Template(match, path.answer, path.waits)


def _group(name: str) -> str:
    return name.replace("-", "_")
