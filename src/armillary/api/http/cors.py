"""Calls from web pages. Off unless origins are configured: the emulator key is public, so any page
a developer visits could sign requests for a server on loopback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from armillary.api.http.messages import Request

METHODS: Final = "GET, POST, PUT, PATCH, DELETE, OPTIONS, HEAD"
AGE_SECONDS: Final = "3600"
EXPOSED: Final = (
    "x-ms-request-charge, x-ms-session-token, x-ms-continuation, x-ms-activity-id, "
    "x-ms-substatus, x-ms-item-count, x-ms-retry-after-ms, x-ms-alt-content-path, "
    "x-ms-content-path, x-ms-documentdb-partitionkeyrangeid, etag"
)


def cors_headers(request: Request, origins: Sequence[str]) -> dict[str, str]:
    """What tells a browser to hand the answer to the page; nothing for strangers."""
    origin = request.headers.get("origin")
    if origin is None or not ("*" in origins or origin in origins):
        return {}
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": EXPOSED,
        "Vary": "Origin",
    }


def preflight_headers(request: Request, origins: Sequence[str]) -> dict[str, str]:
    """What a browser wants to know before it lets a page call; nothing for strangers."""
    if not cors_headers(request, origins):
        return {}
    asked = request.headers.get("access-control-request-headers", "")
    return {
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": asked if asked.isprintable() else "",
        "Access-Control-Max-Age": AGE_SECONDS,
    }
