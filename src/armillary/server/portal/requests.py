"""Requests to the portal as they go on to its process: the prefix off, a few headers on.

    GET /_portal/query?x=1 HTTP/1.1      ─▶     GET /query?x=1 HTTP/1.1
    Host: localhost:8081                        Host: localhost:8081
                                                X-Forwarded-Prefix: /_portal

No socket. Bodies pass in pieces as they come, of any size. After an upgrade to WebSocket nothing is
looked at any more. Answers are never read: they pass as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import httptools

from armillary.api.http.messages import Request, Response
from armillary.server.http.answers import says
from armillary.server.portal.door import PREFIX, SECRET_HEADER

OURS: Final = frozenset(
    {SECRET_HEADER, "x-forwarded-prefix", "x-forwarded-proto", "x-forwarded-for", "forwarded"}
)
LINE_START_BYTES_MAX: Final = 64  # a method, a space, the prefix

Admit = Callable[[Request], Response | None]


def upstream_head(
    method: str, target: str, headers: Iterable[tuple[str, str]], *, secret: str, secure: bool
) -> bytes:
    lines = [f"{method} {target.removeprefix(PREFIX) or '/'} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers if name not in OURS]
    lines += [
        f"{SECRET_HEADER}: {secret}",
        f"x-forwarded-prefix: {PREFIX}",
        f"x-forwarded-proto: {'https' if secure else 'http'}",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def is_websocket(headers: dict[str, str]) -> bool:
    return headers.get("upgrade", "").lower() == "websocket"


class PortalRequests:
    """Bytes of a client in, bytes for the portal out. When `refusal` or `leaving` is set nothing
    more is taken: answer it and hang up, or let `leaving` be read as a request to the server."""

    def __init__(self, admit: Admit, *, secret: str, secure: bool, head_bytes_max: int) -> None:
        self._admit = admit
        self._secret = secret
        self._secure = secure
        self._head_bytes_max = head_bytes_max
        self.raw = False
        self.refusal: Response | None = None
        self.leaving: bytes | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._between = True
        self._in_head = False
        self._start = b""
        self._head_bytes = 0
        self._out: list[bytes] = []
        self._url = b""
        self._headers: list[tuple[str, str]] = []
        self._chunked = False
        self._rest_bytes = 0  # of a body whose head somebody else has read

    def begin(self, request: Request, rest_bytes: int = 0) -> bytes:
        """The first request, which is read already, but for so many bytes of its body."""
        headers = {name: text for name, text in request.headers.items() if name not in OURS}
        if headers.pop("transfer-encoding", None) is not None:
            headers["content-length"] = str(len(request.body))
        headers.pop("expect", None)
        self._rest_bytes = rest_bytes
        self.raw = is_websocket(headers)
        return self._head(request.method, request.target, headers.items()) + request.body

    def receive(self, data: bytes) -> bytes:
        if self._rest_bytes:
            body, data = data[: self._rest_bytes], data[self._rest_bytes :]
            self._rest_bytes -= len(body)
            return body + (self.receive(data) if data else b"")
        if self.raw:
            return data
        if self._between:
            data = self._start + data
            line = data[:LINE_START_BYTES_MAX]
            target = line.partition(b" ")[2]
            if len(target) <= len(PREFIX) and len(line) < LINE_START_BYTES_MAX:
                self._start = data
                return b""
            self._start = b""
            if not target.startswith(PREFIX.encode()):
                self.leaving = data
                return b""
        self._head_bytes = self._head_bytes + len(data) if self._in_head else len(data)
        self._feed(data)
        if self._in_head and self._head_bytes > self._head_bytes_max:
            self._refuse(says(431, "The headers are too large."))
        out, self._out = b"".join(self._out), []
        return out

    # --- called by the parser -------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._between, self._in_head = False, True
        self._url, self._headers = b"", []

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.decode("latin-1").lower(), value.decode("latin-1").strip()))

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self.refusal is not None:
            return
        headers = dict(self._headers)
        method = self._parser.get_method().decode("latin-1")
        target = self._url.decode("latin-1")
        refusal = self._admit(Request(method, target, headers, b"", self._secure))
        if refusal is not None:
            self._refuse(refusal)
            return
        self._chunked = "transfer-encoding" in headers
        self._out.append(self._head(method, target, self._headers))
        self.raw = is_websocket(headers)

    def on_body(self, body: bytes) -> None:
        if self.refusal is None:
            self._out.append(b"%x\r\n%b\r\n" % (len(body), body) if self._chunked else body)

    def on_message_complete(self) -> None:
        if self._chunked and self.refusal is None:
            self._out.append(b"0\r\n\r\n")
        self._between = True

    # --- inside ---------------------------------------------------------------------------------

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            rest = data[upgrade.args[0] :]
            if self.raw:
                self._out.append(rest)
            else:  # an offer that need not be taken
                self._parser = httptools.HttpRequestParser(self)
                if rest and self.refusal is None:
                    self._feed(rest)
        except httptools.HttpParserError as error:
            self._refuse(says(400, f"This is not HTTP/1.1: {error}."))

    def _head(self, method: str, target: str, headers: Iterable[tuple[str, str]]) -> bytes:
        return upstream_head(method, target, headers, secret=self._secret, secure=self._secure)

    def _refuse(self, refusal: Response) -> None:
        if self.refusal is None:
            self.refusal = refusal
