"""The body of `$batch`, taken apart and put together. Facts: table 8.

    multipart/mixed; boundary=batch_…          ┌─ Part: POST /t, headers, body
      multipart/mixed; boundary=changeset_…  ──┼─ Part
        application/http …                     └─ Part

Clients write headers in either case, with or without Content-ID and Content-Length, and end lines
with CRLF or LF. Bytes in, parts out; no request is understood here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from armillary.api.table.problems import refused
from armillary.limits import BATCH_OPERATIONS_MAX
from armillary.units import whole_number

BOUNDARY_CHARACTERS_MAX: Final = 200
PARTS_MAX: Final = BATCH_OPERATIONS_MAX + 1  # one more than may be, to say what is wrong
HEADERS_MAX: Final = 50
_BOUNDARY: Final = re.compile(r"""boundary=(?:"([^"]+)"|([^;,\s]+))""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Part:
    """One request inside a batch."""

    method: str
    target: str
    """Path and query string."""
    headers: dict[str, str]
    body: bytes
    in_changeset: bool


def boundary_of(content_type: str) -> bytes:
    found = _BOUNDARY.search(content_type)
    if not content_type.strip().lower().startswith("multipart/mixed") or found is None:
        hint = "A batch has the Content-Type multipart/mixed; boundary=…."
        raise refused("input", hint=hint)
    text = found[1] or found[2]
    if len(text) > BOUNDARY_CHARACTERS_MAX or not text.isascii():
        raise refused("input", hint="The boundary of the batch is not valid.")
    return text.encode()


def parse_batch(content_type: str, body: bytes) -> list[Part]:
    parts: list[Part] = []
    for headers, content in _sections(body, boundary_of(content_type)):
        kind = headers.get("content-type", "")
        if kind.lower().startswith("multipart/mixed"):
            for inner, request in _sections(content, boundary_of(kind)):
                parts.append(_request(inner, request, in_changeset=True))
        else:
            parts.append(_request(headers, content, in_changeset=False))
        if len(parts) > PARTS_MAX:
            break
    return parts


def _sections(body: bytes, boundary: bytes) -> Iterator[tuple[dict[str, str], bytes]]:
    """Headers and content between the lines `--boundary`."""
    mark = b"--" + boundary
    pieces = re.split(rb"(?:^|\r?\n)" + re.escape(mark) + rb"(?=[ \t]*\r?\n|--)", body)
    for number, piece in enumerate(pieces[1:]):
        if piece.startswith(b"--"):
            return
        if number >= PARTS_MAX:
            return
        # The rest of the boundary's line, then headers up to an empty line.
        _, _, rest = piece.partition(b"\n")
        yield _headers(rest)


def _headers(data: bytes) -> tuple[dict[str, str], bytes]:
    """The header lines that data begins with, and what is behind the empty line after them."""
    headers: dict[str, str] = {}
    while True:
        line, found, rest = data.partition(b"\n")
        line = line.rstrip(b"\r")
        if not line or not found:
            return headers, rest if not line else b""
        name, colon, value = line.partition(b":")
        if not colon or len(headers) >= HEADERS_MAX:
            raise refused("input", hint="A header of a part of the batch is not valid.")
        headers[name.strip().lower().decode("latin-1")] = value.strip().decode("latin-1")
        data = rest


def _request(outer: Mapping[str, str], content: bytes, *, in_changeset: bool) -> Part:
    if not outer.get("content-type", "").lower().startswith("application/http"):
        raise refused("input", hint="A part of a batch has the Content-Type application/http.")
    line, _, rest = content.partition(b"\n")
    try:
        method, url, _ = line.strip().decode("ascii").split(" ")
    except ValueError as error:  # UnicodeDecodeError is one
        hint = "A part of a batch begins with METHOD URL HTTP/1.1."
        raise refused("input", hint=hint) from error
    headers, body = _headers(rest)
    length = whole_number(headers.get("content-length", ""))
    if length is not None:
        body = body[:length]
    try:
        split = urlsplit(url)
    except ValueError as error:
        raise refused("url") from error
    target = split.path + (f"?{split.query}" if split.query else "")
    return Part(method, target, headers, body.strip(b"\r\n"), in_changeset)


# --- answers ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes = b""


def format_batch(answers: Sequence[Answer], token: str, *, changeset: bool = True) -> bytes:
    """`token` makes the boundaries unique."""
    outer, inner = f"batchresponse_{token}", f"changesetresponse_{token}"
    lines: list[bytes] = [f"--{outer}\r\n".encode()]
    if changeset:
        lines.append(f"Content-Type: multipart/mixed; boundary={inner}\r\n\r\n".encode())
    for answer in answers:
        if changeset:
            lines.append(f"--{inner}\r\n".encode())
        lines.append(b"Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n")
        reason = HTTPStatus(answer.status).phrase
        lines.append(f"HTTP/1.1 {answer.status} {reason}\r\n".encode())
        lines += (f"{name}: {value}\r\n".encode() for name, value in answer.headers.items())
        lines += (b"\r\n", answer.body, b"\r\n")
    if changeset:
        lines.append(f"--{inner}--\r\n".encode())
    lines.append(f"--{outer}--\r\n".encode())
    return b"".join(lines)
