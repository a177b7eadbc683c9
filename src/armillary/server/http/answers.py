"""Responses into bytes, one object each, and what the server itself has to say.

The server adds what belongs to the connection: Content-Length, Date, Connection. A 204 and a 304
have no body and no length; the answer to HEAD has the length of the body it leaves out.
"""

import json
from email.utils import formatdate
from http import HTTPStatus

from armillary.api.http.messages import Response
from armillary.server.http.wire import Refusal

CONTINUE_BYTES = b"HTTP/1.1 100 Continue\r\n\r\n"
BODILESS = frozenset({204, 304})

_STATUS_LINES = {one.value: f"HTTP/1.1 {one.value} {one.phrase}\r\n" for one in HTTPStatus}
_CODES = {
    400: "BadRequest",
    403: "Forbidden",
    413: "RequestEntityTooLarge",
    414: "RequestUriTooLong",
    431: "RequestHeaderFieldsTooLarge",
    500: "InternalServerError",
    501: "NotImplemented",
    503: "ServiceUnavailable",
    505: "HttpVersionNotSupported",
}


class DateLine:
    """The Date header, formatted once per second."""

    def __init__(self) -> None:
        self._second = -1
        self._line = ""
        self._bytes = b""

    def at(self, now_s: int) -> str:
        if now_s != self._second:
            self._line = f"Date: {formatdate(now_s, usegmt=True)}\r\n"
            self._bytes = self._line.encode()
            self._second = now_s
        return self._line

    def bytes_at(self, now_s: int) -> bytes:
        if now_s != self._second:
            self.at(now_s)
        return self._bytes


def encode(
    response: Response, date_line: str, *, head: bool = False, closing: bool = False, old: bool
) -> bytes:
    """The bytes of an answer. ValueError if a header would break out of its line."""
    # HOT: once per request.
    status, headers, body = response.status, response.headers, response.body
    lines = _STATUS_LINES.get(status) or f"HTTP/1.1 {status} Unknown\r\n"
    breaks = 4 + len(headers)
    if headers:
        lines += "\r\n".join(map(": ".join, headers.items())) + "\r\n"
    if status in BODILESS:
        body = b""
        breaks -= 1
        lines += date_line
    else:
        lines += f"{date_line}Content-Length: {len(body)}\r\n"
    if closing:
        lines += "Connection: close\r\n\r\n"
        breaks += 1
    elif old:
        lines += "Connection: keep-alive\r\n\r\n"
        breaks += 1
    else:
        lines += "\r\n"
    if lines.count("\n") != breaks or lines.count("\r") != breaks:
        raise ValueError("a header contains a line break")
    text = lines.encode("latin-1")
    return text if head else text + body


def stream_head(response: Response, date_line: str) -> bytes:
    """Of an answer that ends with its connection, and so has no length."""
    lines = "".join(f"{name}: {text}\r\n" for name, text in response.headers.items())
    text = f"{_STATUS_LINES[response.status]}{lines}{date_line}Connection: close\r\n\r\n"
    return text.encode("latin-1") + response.body


def says(status: int, message: str) -> Response:
    """An answer of the server itself, in the form in which the API reports errors."""
    body = json.dumps({"code": _CODES[status], "message": message}).encode()
    return Response(status, {"Content-Type": "application/json"}, body)


def refuses(refusal: Refusal) -> Response:
    return says(refusal.status, refusal.message)
