"""Requests for one entity that look like one before, from bytes to bytes.

    bytes ──▶ template (server/http/templates.py) ──▶ Request ──▶ TableService ──▶ bytes

What a template saves is the HTTP parser and the turns of a connection through it. Everything else
is the general path: the request that is made here holds every header that the API reads
(`HEADERS`), so the service can't tell how it was read, and has no second way to answer.

HOT: once per request for an entity; numbers in bench/table.py. Compared with the parser, and that
the API reads no other header, in tests/property/test_table_fast.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from armillary.api.http.encoding import encode
from armillary.api.http.messages import Begun, Request, Response, Waiting
from armillary.clock import MayNotWait

if TYPE_CHECKING:
    from armillary.api.table.service import TableService

#: Every header that a request for an entity may be decided by.
HEADERS: Final = (
    "host",
    "x-ms-date",
    "authorization",
    "accept",
    "content-type",
    "x-ms-version",
    "x-ms-client-request-id",
    "if-match",
    "prefer",
    "x-http-method",
    "date",
    "content-md5",
    "x-forwarded-proto",
    "x-forwarded-host",
)
#: Sent by SDKs and read by nothing here.
IGNORED: Final = frozenset(
    {
        "cache-control",
        "dataserviceversion",
        "maxdataserviceversion",
        "x-ms-return-client-request-id",
    }
)
METHODS: Final = ("GET", "PUT", "PATCH", "POST", "DELETE")
HOSTS_MAX: Final = 64
VALUE: Final = rb"[!-~](?:[ -~]*[!-~])?"  # no space around it: the parser strips that
TARGET: Final = rb"/(?!Tables|\$)[A-Za-z0-9_.~!$&'()*+,;=:@%-]{1,1024}"


class Hosts:
    """By which requests came that were answered well: they are ours."""

    def __init__(self) -> None:
        self.known: set[bytes] = set()

    def add(self, headers: Mapping[str, str]) -> None:
        if len(self.known) >= HOSTS_MAX:
            self.known.clear()
        self.known.add(headers.get("host", "").encode("latin-1"))


class EntityRequests:
    """A fast path: requests of one method for one entity."""

    captured: Final[Mapping[str, bytes]] = dict.fromkeys(HEADERS, VALUE)
    fixed: Final[frozenset[str]] = frozenset()
    ignored: Final = IGNORED

    def __init__(self, service: TableService, method: str, *, secure: bool) -> None:
        self._service = service
        self._secure = secure
        # Links begin with the scheme, so the two have templates of their own.
        self.target = TARGET + rb"(?:)" if secure else TARGET
        self.method = method
        self.has_body = method in ("PUT", "PATCH", "POST")
        self.waits = method != "GET"
        self._hosts = Hosts()

    def accepts(self, request: Request) -> bool:
        """It was answered well, so its host is one of ours."""
        if request.secure is not self._secure or "?" in request.target:
            return False
        self._hosts.add(request.headers)
        return True

    def answer(self, date_line: bytes, path: bytes, *values: bytes) -> bytes | Waiting | None:
        body = b""
        if self.has_body:
            *values, body = values  # type: ignore[assignment]
        if values[0] not in self._hosts.known:
            return None
        headers = {
            name: value.decode() for name, value in zip(HEADERS, values, strict=True) if value
        }
        request = Request(self.method, path.decode(), headers, body, self._secure)
        if not self.waits:
            if not self._service.is_quick(request):
                return None
            try:
                return encode(self._service.handle(request), date_line.decode())
            except MayNotWait:
                return None
        begun = self._service.begin(request)
        if not isinstance(begun, Begun):
            return None if begun is None else encode(begun, date_line.decode())
        seen: list[Response | None] = []
        return Waiting(begun.future, partial(_finish, begun, seen), lambda request: seen[0])


def _finish(begun: Begun, seen: list[Response | None], date_line: bytes) -> bytes | None:
    response = begun.finish()
    if response is None:  # nothing has happened: the general path begins again
        seen.append(None)
        return None
    return encode(response, date_line.decode())
