"""Probes: is it alive, may it be sent requests. Answered without a key, before the API.

`/_armillary/health` is ours; `/alive` and `/ready` are where the Linux emulator answers (there on a
port of their own). Alive while the process is; ready until it is told to stop.
"""

import json
from collections.abc import Mapping

from armillary.api.http.messages import Request, Response
from armillary.version import VERSION

PATHS = frozenset({"/_armillary/health", "/alive", "/ready"})
_JSON = {"Content-Type": "application/json"}


def answer(request: Request, *, ready: bool, up: Mapping[str, int]) -> Response:
    """`up`: the protocols that are served, and their ports."""
    if request.method not in ("GET", "HEAD"):
        return Response(405, {"Allow": "GET, HEAD"})
    if request.target == "/alive":
        return Response(200, _JSON, b'{"status":"alive"}')
    status = "ready" if ready else "stopping"
    body = json.dumps({"status": status, "version": VERSION, "protocols": dict(up)})
    return Response(200 if ready else 503, _JSON, body.encode())
