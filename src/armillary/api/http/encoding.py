"""A response into bytes, one object each: the encoder of every path.

The server adds what belongs to the connection: Content-Length, Date, Connection. A 204 and a 304
have no body and no length; the answer to HEAD has the length of the body it leaves out.

A fast path fills a *form*: the bytes that the encoder makes of a response with marks in place of
its values. So a header is written in one place, and a form can't differ from the general answer.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

from armillary.api.http.messages import Response

BODILESS: Final = frozenset({204, 304})
STATUS_LINES: Final = {one.value: f"HTTP/1.1 {one.value} {one.phrase}\r\n" for one in HTTPStatus}
#: In place of a value of a response: bytes, or an integer.
BYTES_MARK: Final = "\0b"
INTEGER_MARK: Final = "\0d"
_MARK: Final = re.compile(rb"\0([bd])")


def encode(
    response: Response,
    date_line: str,
    *,
    head: bool = False,
    closing: bool = False,
    old: bool = False,
) -> bytes:
    """The bytes of an answer. `date_line`: the Date, and what else the server adds. ValueError if a
    header would break out of its line."""
    # HOT: once per request.
    status, headers, body = response.status, response.headers, response.body
    own = "\r\n".join(map(": ".join, headers.items()))
    breaks = max(0, len(headers) - 1)
    if own.count("\n") != breaks or own.count("\r") != breaks:
        raise ValueError("a header contains a line break")
    lines = STATUS_LINES.get(status) or f"HTTP/1.1 {status} Unknown\r\n"
    if headers:
        lines += own + "\r\n"
    if status in BODILESS:
        body = b""
        lines += date_line
    else:
        lines += f"{date_line}Content-Length: {len(body)}\r\n"
    if closing:
        lines += "Connection: close\r\n\r\n"
    elif old:
        lines += "Connection: keep-alive\r\n\r\n"
    else:
        lines += "\r\n"
    text = lines.encode("latin-1")
    return text if head else text + body


def form_of(response: Response) -> bytes:
    """The answer without its body as a form for `%`: the values that its marks stand for, in the
    order in which the encoder writes them, the Date line and, if it may have a body, its length."""
    date_line = f"{BYTES_MARK}\r\n"
    lines, _, _ = encode(response, date_line).rpartition(date_line.encode())
    form = _MARK.sub(rb"%\1", lines.replace(b"%", b"%%"))
    return form + (b"%b\r\n" if response.status in BODILESS else b"%bContent-Length: %d\r\n\r\n")
