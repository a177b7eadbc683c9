"""Response messages and what their status says. Facts: gremlin reference 4."""

from __future__ import annotations

from typing import Any, Final

import orjson

from armillary.api.errors import gremlin_script_status, gremlin_wire
from armillary.api.gremlin.errors import NAMES, ScriptError
from armillary.api.gremlin.wire import graphbinary
from armillary.api.gremlin.wire.requests import BINARY
from armillary.errors import DbError, OverBudget

OK: Final = 200
PARTIAL: Final = 206
NO_CONTENT: Final = 204
CHALLENGE: Final = 407
CHALLENGE_TEXT: Final = "Graph Service requires Gremlin Client to provide SASL Authentication."
MEMORY_TEXT: Final = "Query exceeded memory limit. Bytes Consumed: {0}, Max: {1}"


def response(
    mime: str,
    id: str,
    code: int,
    attributes: dict[str, Any],
    data: list[Any] | None = None,
    message: str = "",
) -> bytes:
    """`data`: plain JSON values, or fragments of JSON."""
    if mime == BINARY:
        plain = None if data is None else orjson.loads(orjson.dumps(data))
        return graphbinary.write_response(id, code, message, attributes, plain)
    return orjson.dumps({
        "requestId": id,
        "status": {"code": code, "attributes": attributes, "message": message},
        "result": {"data": data, "meta": {}},
    })  # fmt: skip


def challenge(mime: str, id: str) -> bytes:
    attributes = {"x-ms-status-code": CHALLENGE}
    return response(mime, id, CHALLENGE, attributes, None, CHALLENGE_TEXT)


def nothing_used(activity: str) -> dict[str, Any]:
    """The attributes of a request that did not run."""
    names = (
        "x-ms-request-charge",
        "x-ms-total-request-charge",
        "x-ms-server-time-ms",
        "x-ms-total-server-time-ms",
    )
    return {**dict.fromkeys(names, 0.0), "x-ms-activity-id": activity}


def failure(
    mime: str, id: str, error: Exception, activity: str, attributes: dict[str, Any]
) -> tuple[bytes, int]:
    """(message, x-ms-status-code); what is not ours is a bug of ours."""
    code, more, text = _described(error, activity, id)
    return response(mime, id, code, attributes | more, None, text), int(more["x-ms-status-code"])


def _described(error: Exception, activity: str, id: str) -> tuple[int, dict[str, Any], str]:
    if isinstance(error, ScriptError):
        code, ms_status = gremlin_script_status(error.kind)
        naming = NAMES[error.kind]
        text = _layout(
            activity, id, naming.type, naming.prefix + error.message, naming.context,
            naming.scope, naming.code, is_compile=ms_status == 400,
        )  # fmt: skip
        return code, {"x-ms-status-code": ms_status}, text
    if not isinstance(error, DbError):
        text = _layout(
            activity, id, "InternalServerException", "The server failed.", "global", "server",
            "InternalError",
        )  # fmt: skip
        return 500, {"x-ms-status-code": 500}, text
    reply = gremlin_wire(error)
    attributes: dict[str, Any] = {"x-ms-status-code": reply.ms_status}
    if reply.sub_status:
        attributes["x-ms-substatus-code"] = reply.sub_status
    wait_ms = error.facts.get("retry_after_ms")
    if wait_ms is not None:
        attributes["x-ms-retry-after-ms"] = time_span(float(wait_ms))
    message = reply.message
    if isinstance(error, OverBudget) and "bytes" in error.facts:
        message = MEMORY_TEXT.format(error.facts["bytes"], error.facts["allowed"])
    if reply.status == 401:
        return 401, attributes, message
    text = _layout(
        activity, id, reply.exception, message, "graphcompute", "graphstore", reply.exception
    )
    return reply.status, attributes, text


def _layout(
    activity: str,
    id: str,
    kind: str,
    message: str,
    context: str,
    scope: str,
    code: str,
    *,
    is_compile: bool = False,
) -> str:
    """The service's own layout, which clients print as it is (recorded)."""
    errors = "\r\n\t1 Error(s)" if is_compile else ""
    return (
        f"\r\n\nActivityId : {activity}\n"
        f"ExceptionType : {kind}\n"
        f"ExceptionMessage : \r\n\t{message}{errors}\r\n"
        f"\tGremlinRequestId : {id}\n"
        f"\tContext : {context}\n"
        f"\tScope : {scope}\n"
        f"\tGraphInterOpStatusCode : {code}\n"
        "\tHResult : 0x80131500\r\n"
    )


def time_span(milliseconds: float) -> str:
    """`00:00:03.9500000`: hours, minutes, seconds and ticks of 100 ns."""
    ticks = round(milliseconds * 10_000)
    seconds, ticks = divmod(ticks, 10_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}.{ticks:07}"
