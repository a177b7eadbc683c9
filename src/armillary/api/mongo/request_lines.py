"""A line in the request log for a command: its name, where it went, how it ended. Never its
arguments, which may be documents or proofs of a login."""

from __future__ import annotations

from typing import Final

from armillary.api.core.request_log import log_request
from armillary.api.mongo.wire.messages import Request
from armillary.encoding.bson.values import Document, is_text

SHOWN_MAX: Final = 300


def log_command(request: Request, code: int, charge_ru: float, elapsed_ms: float) -> None:
    target = request.command.get(request.name)
    place = f"{request.database}.{target}" if is_text(target) else request.database
    log_request({
        "Method": _shown(request.name),
        "Path": _shown(place),
        "StatusCode": code,
        "DurationMs": round(elapsed_ms, 2),
        "RequestCharge": round(charge_ru, 2),
    })  # fmt: skip


def code_of(reply: Document) -> int:
    """0 is success; of a bulk, the code of the first statement that failed."""
    failed = reply.get("writeErrors") or [reply]
    return int(failed[0].get("code", 0))


def _shown(text: str) -> str:
    """Clients choose these: they must not begin a line of their own."""
    return "".join(one if one.isprintable() else "?" for one in text[:SHOWN_MAX])
