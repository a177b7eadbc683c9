"""One request on its way through the API, and the answers that end it. Facts: table 3, 4, 10."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from urllib.parse import quote

import orjson

from armillary.api.core.activities import new_activity
from armillary.api.errors import TABLE_INTERNAL, Reply, log_damage, table_wire
from armillary.api.http.messages import Request, Response
from armillary.api.table.auth.callers import FULL, Caller
from armillary.api.table.flavours import Flavour
from armillary.api.table.problems import refused
from armillary.api.table.wire.targets import Target, key_literal
from armillary.budget import Budget
from armillary.errors import DbError
from armillary.partition.request_units import metadata_ru, rounded

if TYPE_CHECKING:
    from armillary.api.core.gateway import Gateway

Level: TypeAlias = Literal["nometadata", "minimalmetadata", "fullmetadata"]

NOWHERE: Final = Target("service")
LEVELS: Final[tuple[Level, ...]] = ("nometadata", "minimalmetadata", "fullmetadata")
VERSION: Final = "2019-02-02"
NONE: Final[Mapping[str, str]] = {}
CLIENT_ID_CHARACTERS_MAX: Final = 64
PREFERENCES: Final = ("return-no-content", "return-content")


@dataclass(slots=True)
class Call:
    """Not frozen, though nothing changes it: that would cost more than a point read."""

    gateway: Gateway
    request: Request
    flavour: Flavour
    account: str
    target: Target = NOWHERE
    parameters: Mapping[str, str] = field(default_factory=dict)
    caller: Caller = FULL
    method: str = ""
    """What is asked for, which a header may say instead of the method."""

    @property
    def budget(self) -> Budget:
        return self.request.bounded()

    @property
    def headers(self) -> dict[str, str]:
        return self.request.headers

    @property
    def base_url(self) -> str:
        """Scheme, host and, if the path has it, the account: what links begin with."""
        headers, settings = self.request.headers, self.gateway.settings
        scheme = "https" if self.request.secure else "http"
        host = headers.get("host", "localhost")
        if settings.trust_forwarded:
            scheme = headers.get("x-forwarded-proto", scheme)
            host = headers.get("x-forwarded-host", host)
        account = f"/{self.target.account}" if self.target.account else ""
        return f"{scheme}://{host}{account}"

    @property
    def level(self) -> Level:
        """How much metadata the client wants."""
        text = self.parameters.get("$format") or self.headers.get("accept", "")
        return level_of(text)

    @property
    def preference(self) -> str | None:
        """`return-no-content` or `return-content`, if the client said so."""
        text = self.headers.get("prefer", "").strip().lower()
        return text if text in PREFERENCES else None


@lru_cache(maxsize=64)
def level_of(text: str) -> Level:
    lower = text.lower().replace(" ", "")
    for level in LEVELS:
        if f"odata={level}" in lower:
            return level
    if "atom" in lower and "json" not in lower:
        raise refused("format")
    return "minimalmetadata"


def entity_link(table: str, partition_key: str, row_key: str) -> str:
    """`t(PartitionKey='p',RowKey='r')`, percent-encoded."""
    partition, row = (quote(key_literal(one), safe="'") for one in (partition_key, row_key))
    return f"{quote(table, safe='')}(PartitionKey='{partition}',RowKey='{row}')"


# --- answers ------------------------------------------------------------------------------------


def reply(
    call: Call,
    status: int,
    body: bytes = b"",
    headers: Mapping[str, str] = NONE,
    *,
    ru: float | None = None,
    level: str | None = None,
) -> Response:
    """`ru`: None for a call about tables or the service."""
    client_id = call.headers.get("x-ms-client-request-id")
    found = reply_headers(
        new_activity(),
        shown_version(call.headers.get("x-ms-version", VERSION)),
        shown_charge(metadata_ru(write=call.method != "GET") if ru is None else ru),
        client_id if client_id and is_client_id(client_id) else None,
    )
    if body:
        found["Content-Type"] = call.flavour.content_type_of(level or call.level)
    found.update(headers)
    return Response(status, found, body)


def reply_headers(
    request_id: str, version: str, charge: str, client_id: str | None
) -> dict[str, str]:
    """Of every answer."""
    found = {
        "x-ms-request-id": request_id,
        "x-ms-version": version,
        "x-ms-request-charge": charge,
        "Cache-Control": "no-cache",
    }
    if client_id is not None:
        found["x-ms-client-request-id"] = client_id
    return found


@lru_cache(maxsize=1024)
def shown_charge(ru: float) -> str:
    return f"{rounded(ru):.2f}".rstrip("0").rstrip(".") or "0"


@lru_cache(maxsize=64)
def shown_version(text: str) -> str:
    """The one that the client speaks, if it is one."""
    return text if len(text) == len(VERSION) and text.replace("-", "").isdecimal() else VERSION


def is_client_id(text: str) -> bool:
    """One that is echoed."""
    return len(text) <= CLIENT_ID_CHARACTERS_MAX and text.isascii() and text.isprintable()


def document(
    call: Call,
    status: int,
    body: Any,
    headers: Mapping[str, str] = NONE,
    *,
    ru: float | None = None,
) -> Response:
    return reply(call, status, orjson.dumps(body), headers, ru=ru)


def with_preference(call: Call, headers: dict[str, str]) -> dict[str, str]:
    """Said only if the client asked: SDKs show it (table 3)."""
    if call.preference is not None:
        headers["Preference-Applied"] = call.preference
    return headers


# --- errors -------------------------------------------------------------------------------------


def error_body(answer: Reply, flavour: Flavour, request_id: str, index: int | None = None) -> bytes:
    """`index`: of the operation of a batch that failed; SDKs read it from the text."""
    text = answer.message if index is None else f"{index}:{answer.message}"
    if flavour.is_storage:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "0Z")
        text, lang = f"{text}\nRequestId:{request_id}\nTime:{now}", "en-US"
    else:
        text, lang = f"{text}\nRequestID:{request_id}\n", "en-us"
    error = {"code": answer.code, "message": {"lang": lang, "value": text}}
    return orjson.dumps({"odata.error": error})


def refusal(call: Call, error: DbError) -> Response:
    log_damage(error, f"{call.request.method} {call.request.target}")
    answer = table_wire(error, storage=call.flavour.is_storage)
    headers: dict[str, str] = {}
    wait_ms = error.facts.get("retry_after_ms")
    if wait_ms is not None:
        headers["x-ms-retry-after-ms"] = str(wait_ms)
    return _failed(call, answer, headers, ru=error.facts.get("charge_ru", 0.0))


def internal_error(call: Call) -> Response:
    row = TABLE_INTERNAL
    return _failed(call, Reply(row.status, 0, row.code, row.text), {}, ru=0.0)


def _failed(call: Call, answer: Reply, headers: dict[str, str], *, ru: float) -> Response:
    if call.flavour.is_storage:
        headers["x-ms-error-code"] = answer.code
    response = reply(call, answer.status, b"", headers, ru=ru)
    response.body = error_body(answer, call.flavour, response.headers["x-ms-request-id"])
    response.headers["Content-Type"] = call.flavour.content_type_of("fullmetadata")
    return response
