"""Probes: is it alive, may it be sent requests. Answered without a key, before the API.

`/_armillary/health` is ours; `/alive` and `/ready` are where the Linux emulator answers (there on a
port of their own). Alive while the process is; ready until it is asked to stop, and while there is
a database behind it.
"""

import json
from collections.abc import Mapping

from armillary.api.http.messages import Request, Response
from armillary.version import VERSION

PATHS = frozenset({"/_armillary/health", "/alive", "/ready"})
_JSON = {"Content-Type": "application/json"}


def answer(request: Request, *, ready: bool, up: Mapping[str, int], trouble: str = "") -> Response:
    """`up`: the protocols that are served, and their ports. `trouble`: why requests can't be
    served though the server runs."""
    if request.method not in ("GET", "HEAD"):
        return Response(405, {"Allow": "GET, HEAD"})
    if request.target == "/alive":
        return Response(200, _JSON, b'{"status":"alive"}')
    status = ("waiting" if trouble else "ready") if ready else "stopping"
    members = {"status": status, "version": VERSION, "protocols": dict(up)}
    if trouble:
        members["reason"] = trouble
    return Response(200 if status == "ready" else 503, _JSON, json.dumps(members).encode())
