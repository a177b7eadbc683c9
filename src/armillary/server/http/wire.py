"""HTTP/1.1 requests out of bytes. No socket, no clock: a test can cut the stream anywhere.

    bytes ──▶ RequestReader ──▶ Incoming   a whole request
                           └──▶ Continue   the client waits for a word before it sends the body
                           └──▶ Refusal    nothing after it is read; answer it and hang up

llhttp (through httptools) does the parsing, strictly: obsolete line folding, bare line feeds, two
lengths, or a length with chunks are refused, because two readings of one stream are how requests
are smuggled. What it leaves to its caller is here: every bound, and what a request must have.

Answers are in `answers.py`, their order in `pipeline.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import httptools

from armillary.api.http.messages import Request
from armillary.server.bounds import Bounds


class Incoming:
    """A request and what its answer depends on. Not frozen: it is made once per request."""

    __slots__ = ("began", "keep_alive", "old", "request")

    def __init__(self, request: Request, keep_alive: bool, old: bool) -> None:
        self.request = request
        self.keep_alive = keep_alive
        self.old = old
        """HTTP/1.0, where staying connected has to be said."""
        self.began = 0.0
        """When it was whole, by the connection's stopwatch."""


@dataclass(frozen=True, slots=True)
class Continue:
    """`Expect: 100-continue`, and the headers are fine."""


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    message: str


Event = Incoming | Continue | Refusal

CONTINUE = Continue()
STREAMED = b"/_portal/"  # bodies of such requests pass through as they come
_VERBS = {one.encode(): one for one in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")}
NAMES_KEPT_MAX = 512
#: Header names as they came → in lower case. Clients send the same few dozen for ever.
_names: dict[bytes, str] = {}


class _Stop(Exception):
    """Leaves the parser from inside a callback; the refusal is noted already."""


class RequestReader:
    """Bytes in, events out. `close` it: parser and reader hold each other."""

    def __init__(self, bounds: Bounds, *, secure: bool = False) -> None:
        self._bounds = bounds
        self._secure = secure
        self._events: list[Event] = []
        self._ended = False
        self.in_request = False
        """The first byte of a request is here, its last is not."""
        self.in_body = False
        self._chunk_bytes = 0  # of the piece at hand
        self._fed_bytes = 0  # since the request began, or somewhat before: never too few
        self._later_bytes = 0  # in pieces after the one it began in: never too many
        self._url = b""
        self._raw: list[tuple[bytes, bytes]] = []  # headers, later trailers
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []
        self.body_bytes = 0
        """Of the request that is coming in; 0 between requests."""
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)

    def receive(self, data: bytes) -> list[Event]:
        """The events that `data` completes."""
        if self._ended or self._parser is None:
            return []
        self._chunk_bytes = len(data)
        self._fed_bytes += len(data)
        self._later_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # An offer to speak something else need not be followed (JDK clients offer h2c).
            events, self._events = self._events, []
            return events + self.receive(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            if not self._ended:
                self._note(400, f"This is not HTTP/1.1: {error}.")
        if self.in_request and self._fed_bytes > self._bounds.head_bytes:
            self._check_unfinished()
        events, self._events = self._events, []
        return events

    def unfinished(self) -> tuple[Request, int] | None:
        """A request to the portal whose body is still coming in, and how much of it is missing: it
        need not be held until it is whole, and may be of any size."""
        if not (self.in_body and self._is_streamed and "host" in self._headers):
            return None
        assert self._parser is not None
        method, target = self._parser.get_method().decode(), self._url.decode("latin-1")
        request = Request(method, target, self._headers, b"".join(self._pieces), self._secure)
        return request, int(self._headers["content-length"]) - self.body_bytes

    def begun(self) -> Request | None:
        """The request whose body is coming in, without it."""
        if not self.in_body or self._parser is None:
            return None
        method, target = self._parser.get_method().decode(), self._url.decode("latin-1")
        return Request(method, target, self._headers, b"", self._secure)

    def close(self) -> None:
        self._end()
        self._parser = None

    # --- called by the parser -------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._ended:
            raise _Stop
        self.in_request = True
        self._fed_bytes = self._chunk_bytes
        self._later_bytes = 0
        self._url = b""
        self._raw = []

    def on_url(self, url: bytes) -> None:
        self._url = self._url + url if self._url else url
        if len(self._url) > self._bounds.target_bytes:
            self._refuse(
                414, f"The path is too long; {self._bounds.target_bytes} bytes are allowed."
            )

    def on_header(self, name: bytes, value: bytes) -> None:
        # HOT: some ten times per request. What it costs to keep a header is all that is done here.
        self._raw.append((name, value))

    def on_headers_complete(self) -> None:
        raw = self._raw
        # The exact count is taken only where the bytes that came could be too many.
        if self._fed_bytes > self._bounds.head_bytes and self._head_bytes() > 0:
            self._refuse(431, self._head_text())
        # The parser strips space before a value, not after it.
        headers = {
            _names.get(name) or _lower(name): value.decode("latin-1")
            if value and value[-1] > 32
            else value.decode("latin-1").rstrip(" \t")
            for name, value in raw
        }
        if len(raw) != len(headers) or len(raw) > self._bounds.headers:
            self._check_names(raw)
        self._headers = headers
        self._raw = []
        if "content-length" in headers or "transfer-encoding" in headers:
            self._check_body(headers)
        self.in_body = True

    def on_body(self, body: bytes) -> None:
        self.body_bytes += len(body)
        self._fed_bytes = self._chunk_bytes
        self._later_bytes = 0
        if self.body_bytes > self._bounds.body_bytes and not self._is_streamed:
            self._refuse(413, self._body_text())
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        parser = self._parser
        assert parser is not None
        headers = self._headers
        keep_alive = parser.should_keep_alive()
        old = False
        # The version costs a format; without a Connection header keep-alive says it is 1.1.
        if not keep_alive or "connection" in headers:
            old = self._check_version(parser.get_http_version())
        target = self._url.decode("latin-1")
        if target[:1] != "/":
            target = self._origin_form(target)
        if "host" not in headers and not old:
            self._refuse(400, "The Host header is missing.")
        if self._raw and self._head_bytes() > 0:
            self._refuse(431, self._head_text())  # trailers
        body = b""
        if self._pieces:
            body = b"".join(self._pieces) if len(self._pieces) > 1 else self._pieces[0]
            self._pieces = []
            self.body_bytes = 0
        method = parser.get_method()
        verb = _VERBS.get(method) or method.decode()
        request = Request(verb, target, headers, body, self._secure)
        self._events.append(Incoming(request, keep_alive, old))
        self.in_request = self.in_body = False
        if not keep_alive:
            self._ended = True

    # --- inside ---------------------------------------------------------------------------------

    def _check_unfinished(self) -> None:
        """Many bytes came and the request is not whole: what is kept must stay within bounds."""
        if self._ended:
            return
        # A header or trailer that never ends is kept inside the parser and makes no callback, nor
        # does the extension of a chunk. In a body the count begins anew with each piece.
        endless = self._later_bytes > 2 * self._bounds.head_bytes
        if endless or self._head_bytes() > 0:
            self._note(431, self._head_text())

    def _head_bytes(self) -> int:
        """By how much the headers (or trailers) exceed their bound; 0 or less is well."""
        lengths = sum(len(name) + len(value) + 4 for name, value in self._raw)
        return len(self._url) + lengths - self._bounds.head_bytes

    def _check_names(self, raw: list[tuple[bytes, bytes]]) -> None:
        if len(raw) > self._bounds.headers:
            self._refuse(431, f"There are too many headers; {self._bounds.headers} are allowed.")
        if sum(name.lower() == b"host" for name, _ in raw) > 1:
            self._refuse(400, "There are two Host headers; one is allowed.")

    def _check_body(self, headers: dict[str, str]) -> None:
        length = headers.get("content-length", "0")
        coding = headers.get("transfer-encoding")
        assert self._parser is not None
        if self._parser.should_upgrade() and (coding is not None or length != "0"):
            # llhttp takes the body of an upgrade for the other protocol; we would for a request.
            self._refuse(501, "A request with a body can't ask for an upgrade.")
        if coding is not None and coding.lower() != "chunked":
            self._refuse(501, "The only transfer encoding is chunked.")
        # Before the body: a hostile length must not make us wait for it.
        if int(length) > self._bounds.body_bytes and not self._is_streamed:
            self._refuse(413, f"{self._body_text()} It has {int(length)}.")
        if headers.get("expect", "").lower() == "100-continue" and (coding or length != "0"):
            self._events.append(CONTINUE)

    @property
    def _is_streamed(self) -> bool:
        return self._url.startswith(STREAMED) and "content-length" in self._headers

    def _check_version(self, version: str) -> bool:
        if version not in ("1.1", "1.0"):
            self._refuse(505, f"This server speaks HTTP/1.1, not HTTP/{version}.")
        return version == "1.0"

    def _origin_form(self, target: str) -> str:
        """`http://host/path` is what proxies are sent; its host is the one that counts."""
        scheme, separator, rest = target.partition("://")
        if separator and scheme.lower() in ("http", "https"):
            host, slash, path = rest.partition("/")
            self._headers["host"] = host
            return slash + path or "/"
        if target == "*":
            return target
        self._refuse(400, "The path has to begin with a slash.")
        return target

    def _refuse(self, status: int, message: str) -> None:
        self._note(status, message)
        raise _Stop

    def _note(self, status: int, message: str) -> None:
        self._events.append(Refusal(status, message))
        self._end()

    def _end(self) -> None:
        """Nothing more is read, and what there is of a body is let go."""
        self._ended = True
        self._pieces = []
        self.body_bytes = 0

    def _head_text(self) -> str:
        return f"The headers are too large; {self._bounds.head_bytes} bytes are allowed."

    def _body_text(self) -> str:
        return f"The body is too large; {self._bounds.body_bytes} bytes are allowed."


def _lower(name: bytes) -> str:
    text = name.decode("latin-1").lower()
    if len(_names) < NAMES_KEPT_MAX and len(name) <= 64:
        _names[name] = text
    return text
