"""What the server itself has to say, and what it adds to the answers of services."""

import json
from collections.abc import Callable
from email.utils import formatdate

from armillary.api.http.encoding import STATUS_LINES
from armillary.api.http.messages import Response
from armillary.server.http.wire import Refusal

CONTINUE_BYTES = b"HTTP/1.1 100 Continue\r\n\r\n"
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


class Stamp:
    """What only the connection knows of an answer, as its last lines: where it came from, how long
    it took, the date. Made into bytes when the answer is, so that the time is the whole time."""

    # HOT: once per request of the NoSQL API. A connection has one for its fast paths, and says of
    # each request only what is new.
    __slots__ = ("began", "date_line", "origin", "stopwatch", "target")

    def __init__(
        self, stopwatch: Callable[[], float], origin: bytes = b"", date_line: bytes = b""
    ) -> None:
        self.stopwatch = stopwatch
        self.origin = origin
        self.target = b""
        self.began = 0.0
        self.date_line = date_line

    def __bytes__(self) -> bytes:
        return b"Content-Location: %b%b\r\nx-ms-request-duration-ms: %.3f\r\n%b" % (
            self.origin,
            self.target,
            (self.stopwatch() - self.began) * 1000.0,
            self.date_line,
        )


def stream_head(response: Response, date_line: str) -> bytes:
    """Of an answer that ends with its connection, and so has no length."""
    lines = "".join(f"{name}: {text}\r\n" for name, text in response.headers.items())
    text = f"{STATUS_LINES[response.status]}{lines}{date_line}Connection: close\r\n\r\n"
    return text.encode("latin-1") + response.body


def says(status: int, message: str) -> Response:
    """An answer of the server itself, in the form in which the API reports errors."""
    body = json.dumps({"code": _CODES[status], "message": message}).encode()
    return Response(status, {"Content-Type": "application/json"}, body)


def refuses(refusal: Refusal) -> Response:
    return says(refusal.status, refusal.message)
