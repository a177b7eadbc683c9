"""The operations of a batch and their results, as values and as JSON. Facts: nosql-rest 6.5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from armillary.api.errors import wire
from armillary.api.nosql.call import quoted
from armillary.encoding.partition_key import KeyValues, coerce, parse_key_header
from armillary.errors import BadInput, DbError
from armillary.partition.request_units import rounded
from armillary.store.items.requests import Done
from armillary.values import JSON

KINDS: Final = frozenset({"create", "upsert", "replace", "patch", "read", "delete"})
STATUS: Final = {"created": 201, "replaced": 200, "deleted": 204, "read": 200}


@dataclass(frozen=True, slots=True)
class Entry:
    kind: str
    id: str = ""
    body: JSON = None
    key: KeyValues | None = None
    if_match: str | None = None
    if_none_match: str | None = None
    minimal: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    status: int
    sub_status: int = 0
    charge_ru: float = 0.0
    etag: str | None = None
    """With its quotes."""
    body: bytes | None = None
    retry_after_ms: int = 0


def entries_of_json(body: JSON) -> list[Entry]:
    if not isinstance(body, list):
        raise BadInput("The body of a batch must be a JSON array of operations.")
    return list(map(_entry, body))


def _entry(source: Any) -> Entry:
    if not isinstance(source, dict):
        raise BadInput("Each operation of a batch must be a JSON object.")
    kind = str(source.get("operationType", "")).lower()
    if kind not in KINDS:
        raise BadInput(f"Unknown item operation '{source.get('operationType')}'.")
    for name in ("id", "ifMatch", "ifNoneMatch"):
        if not isinstance(source.get(name, ""), str):
            raise BadInput(f"The member '{name}' of an operation must be a string.")
    return Entry(
        kind,
        source.get("id", ""),
        source.get("resourceBody"),
        _key(source.get("partitionKey")),
        source.get("ifMatch"),
        source.get("ifNoneMatch"),
        source.get("minimalReturnPreference") is True,
    )


def _key(source: Any) -> KeyValues | None:
    """A string that holds a JSON array; some clients send the array itself."""
    if source is None:
        return None
    return parse_key_header(source) if isinstance(source, str) else coerce(source)


def result_of(done: Done | DbError, entry: Entry, minimal: bool = False) -> Result:
    """`minimal`: the request asked for no bodies of what was written."""
    if isinstance(done, DbError):
        reply = wire(done)
        etag = done.facts.get("etag")
        return Result(
            reply.status,
            reply.sub_status,
            float(done.facts.get("charge_ru", 0.0)),
            None if etag is None else quoted(etag),
            retry_after_ms=int(done.facts.get("retry_after_ms", 0)),
        )
    silent = done.outcome == "deleted" or ((entry.minimal or minimal) and done.outcome != "read")
    etag = None if done.outcome == "deleted" else quoted(done.etag)
    body = None if silent else done.text
    return Result(STATUS[done.outcome], 0, done.charge_ru, etag, body)


def results_json(results: Sequence[Result]) -> bytes:
    return b"[%b]" % b",".join(map(_result_json, results))


def _result_json(result: Result) -> bytes:
    members: dict[str, JSON] = {
        "statusCode": result.status,
        "subStatusCode": result.sub_status,
        "requestCharge": rounded(result.charge_ru),
    }
    if result.etag is not None:
        members["eTag"] = result.etag
    if result.retry_after_ms:
        members["retryAfterMilliseconds"] = result.retry_after_ms
    if result.body is not None:
        members["resourceBody"] = orjson.Fragment(result.body)
    return orjson.dumps(members)
