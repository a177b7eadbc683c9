"""What the server itself has to say, and what it adds to the answers of services."""

import json
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


def stamp(answer: bytes, origin: bytes, target: bytes, seconds: float) -> bytes:
    """An answer that says where it came from and how long it took. Here, because only the
    connection knows both for answers of every path, from bytes to bytes or not."""
    # HOT: once per request of the NoSQL API.
    at = answer.index(b"\n") + 1
    duration = b"\r\nx-ms-request-duration-ms: %.3f\r\n" % (seconds * 1000)
    return b"".join((answer[:at], b"Content-Location: ", origin, target, duration, answer[at:]))


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
