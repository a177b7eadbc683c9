"""One request on its way through the API, and the answers that end it.

`Call` is what every handler takes; `reply` and the functions around it are the only ways to make a
response, so that the headers every client relies on are always there. Facts: nosql-rest 3.2, 9.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import orjson

from armillary.api.core.activities import new_activity
from armillary.api.core.paths import Path
from armillary.api.errors import log_damage, wire
from armillary.api.http.messages import Request, Response
from armillary.api.nosql.options import Options
from armillary.budget import Budget
from armillary.encoding.etags import matches
from armillary.errors import BadInput, DbError, InvalidUrl, NeedsMerge, NotModified, Throttled
from armillary.partition.request_units import metadata_ru, rounded
from armillary.query.problems import BadQuery
from armillary.values import JSON

if TYPE_CHECKING:
    from armillary.api.core.gateway import Gateway
    from armillary.api.core.principals import Principal

T = TypeVar("T")

COMMON: Final = {
    "Content-Type": "application/json",
    "Server": "Microsoft-HTTPAPI/2.0",
    "Cache-Control": "no-store, no-cache",
    "Pragma": "no-cache",
    "x-ms-schemaversion": "1.18",
    "x-ms-serviceversion": "version=2.14.0.0",
    "x-ms-gatewayversion": "version=2.14.0",
}
SUFFIX: Final = "\r\nActivityId: {0}, Microsoft.Azure.Documents.Common/2.14.0"
ACTIVITY: Final = "x-ms-activity-id"
CHARGE: Final = "x-ms-request-charge"
Headers: TypeAlias = Mapping[str, str | None]
NONE: Final[Headers] = {}
THROTTLED_RU: Final = 0.38
TOO_LARGE: Final = 'Message: {"Errors":["Request size is too large"]}\r\n'  # as SDKs look for it
#: No JSON: the original's comes from below the gateway, and clients notice.
INVALID_URL: Final = "<html><body><h2>Bad Request - Invalid URL</h2><p>{0}</p></body></html>"
BODILESS: Final = frozenset({204, 304})


@dataclass(frozen=True, slots=True)
class Call:
    gateway: Gateway
    request: Request
    path: Path
    options: Options
    principal: Principal

    @property
    def budget(self) -> Budget:
        return self.request.bounded()

    @property
    def names(self) -> tuple[str, ...]:
        return self.path.names

    @property
    def host(self) -> str:
        """Host and port as the client sees them."""
        headers = self.request.headers
        host = headers.get("host", "localhost")
        if self.gateway.settings.trust_forwarded:
            # Of several proxies, what the outermost said.
            host = headers.get("x-forwarded-host", "").partition(",")[0].strip() or host
        return host

    def json(self) -> Any:
        """The body, whatever JSON it is."""
        return parse_json(self.request.body)

    def document(self) -> dict[str, JSON]:
        body = self.json()
        if not isinstance(body, dict):
            raise BadInput("The request body must be a JSON object.")
        return body


def parse_json(body: bytes) -> Any:
    """Raises BadInput."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadInput(f"The request body is not valid JSON: {error}.") from error


def reply(
    call: Call,
    status: int,
    body: bytes = b"",
    headers: Headers = NONE,
    *,
    ru: float | None = None,
) -> Response:
    """`ru`: None for a call about metadata. A header that is None is left out."""
    charge = metadata_ru(write=call.request.method != "GET") if ru is None else ru
    given = call.request.headers.get(ACTIVITY)
    activity = given if given and _is_plain(given) else new_activity()
    return response_of(status, activity, format_charge(charge), headers, body)


def response_of(
    status: int, activity: str, charge: str, headers: Headers, body: bytes = b""
) -> Response:
    """What every answer has; fast paths fill forms of it."""
    found = {name: text for name, text in headers.items() if text is not None}
    return Response(
        status,
        {**COMMON, ACTIVITY: activity, CHARGE: charge, **found},
        body if status not in BODILESS else b"",
    )


def with_headers(response: Response, headers: Mapping[str, str]) -> Response:
    return replace(response, headers={**response.headers, **headers})


def resource(
    call: Call, status: int, document: dict[str, JSON], headers: Headers = NONE
) -> Response:
    """One resource that is not an item. Its etag goes into a header as well."""
    etag, given = document.get("_etag"), call.options.if_none_match
    is_read = call.request.method == "GET" and isinstance(etag, str)
    if is_read and given is not None and matches(given, str(etag).strip('"')):
        raise NotModified(etag=str(etag).strip('"'), charge_ru=metadata_ru(write=False))
    body = b"" if call.options.is_minimal and status != 200 else orjson.dumps(document)
    return reply(call, status, body, {"etag": document.get("_etag"), **headers})


def feed_body(rid: str, key: str, rows: Iterable[bytes]) -> bytes:
    """`{"_rid": …, "Documents": […], "_count": n}` from rows that are JSON already."""
    texts = list(rows)
    return b'{"_rid":%b,"%b":[%b],"_count":%d}' % (
        orjson.dumps(rid),
        key.encode(),
        b",".join(texts),
        len(texts),
    )


def format_charge(ru: float) -> str:
    return f"{rounded(ru):.2f}".rstrip("0").rstrip(".") or "0"


def _is_plain(text: str) -> bool:
    return len(text) <= 64 and text.isascii() and text.isprintable()


# --- errors -------------------------------------------------------------------------------------


def refusal(call: Call, error: DbError) -> Response:
    """The answer to a request that could not be served."""
    log_damage(error, f"{call.request.method} {call.request.target}")
    status, sub_status, code, message = wire(error)
    headers: dict[str, str] = {}
    if sub_status:
        headers["x-ms-substatus"] = str(sub_status)
    wait_ms = error.facts.get("retry_after_ms")
    if wait_ms is not None:
        headers["x-ms-retry-after-ms"] = str(wait_ms)
    given = error.facts.get("headers", {})
    headers |= {name: text for name, text in given.items() if text is not None}
    if "etag" in error.facts:
        headers["etag"] = quoted(error.facts["etag"])
    ru = error.facts.get("charge_ru", THROTTLED_RU if isinstance(error, Throttled) else 0.0)
    response = with_headers(reply(call, status, ru=ru), headers)
    if status in BODILESS:
        return response
    if isinstance(error, InvalidUrl):
        shown = {**response.headers, "Content-Type": "text/html; charset=us-ascii"}
        return Response(status, shown, INVALID_URL.format(message).encode())
    if isinstance(error, BadQuery):
        message = f"Message: {message}"
    activity = response.headers[ACTIVITY]
    body = {"code": code, "message": message + SUFFIX.format(activity)}
    if isinstance(error, NeedsMerge):
        body["additionalErrorInfo"] = orjson.dumps(error.facts["plan"]).decode()
    return Response(status, response.headers, orjson.dumps(body))


def answered(call: Call, work: Callable[[], T]) -> T | Response:
    """What `work` gives, or the refusal that it raises."""
    try:
        return work()
    except DbError as error:
        return refusal(call, error)


def quoted(etag: str) -> str:
    return f'"{etag}"'
