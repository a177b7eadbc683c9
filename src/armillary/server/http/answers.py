"""What the server itself has to say, and what it adds to the answers of services."""

import json
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Final

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
        self._until = 0.0

    def at(self, now_s: int) -> str:
        if now_s != self._second:
            self._line = f"Date: {formatdate(now_s, usegmt=True)}\r\n"
            self._bytes = self._line.encode()
            self._second = now_s
        return self._line

    def bytes_now(self, loop_s: float) -> bytes:
        """`loop_s`: the time of the event loop, which costs nothing to ask. HOT."""
        if loop_s >= self._until:
            now = time.time()
            self.at(int(now))
            self._until = loop_s + 1.0 - now % 1.0
        return self._bytes


_DURATION: Final = b"\r\nx-ms-request-duration-ms: %.3f\r\n"
_SHORT_DURATIONS: Final = [_DURATION % (us / 1000.0) for us in range(1_000)]


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
        self.origin = b"Content-Location: " + origin
        self.target = b""
        self.began = 0.0
        self.date_line = date_line

    def __bytes__(self) -> bytes:
        us = int((self.stopwatch() - self.began) * 1e6)
        lasted = _SHORT_DURATIONS[us] if 0 <= us < 1_000 else _DURATION % (us / 1000.0)
        return b"".join((self.origin, self.target, lasted, self.date_line))


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
