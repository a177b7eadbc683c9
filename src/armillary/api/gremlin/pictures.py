"""A traversal of a graph with what a picture needs: the vertices it found, the edges between them,
and where each lies. What the graph page of the portal shows.

    POST /_armillary/dbs/{db}/colls/{coll}/gremlin   {"gremlin": "g.V()", "bindings": {}}

Mounted alongside the controls of the NoSQL port, because a browser's page speaks HTTP.
"""

from __future__ import annotations

import logging
from typing import Any, Final

import orjson

from armillary.api.core.gateway import Gateway
from armillary.api.core.paths import Path as TargetPath
from armillary.api.core.paths import parse_path
from armillary.api.core.principals import FULL, Principal, authenticate
from armillary.api.errors import INTERNAL, wire
from armillary.api.gremlin.errors import ScriptError
from armillary.api.http.messages import Request, Response, Service
from armillary.config import Settings
from armillary.errors import BadInput, DbError, Forbidden, UnknownMethod
from armillary.values import JSON

log = logging.getLogger("armillary.api.gremlin")

MEMBERS: Final = frozenset({"gremlin", "bindings"})
PREFIX: Final = "/_armillary/dbs/"
SUFFIX: Final = "/gremlin"
BEARER: Final = "Bearer "


def make_service(gateway: Gateway, settings: Settings) -> Pictures:
    return Pictures(gateway)


class Pictures(Service):
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def serves(self, target: str) -> bool:
        own = target.partition("?")[0].rstrip("/")
        return own.startswith(PREFIX) and own.endswith(SUFFIX) and own.count("/") == 6

    def handle(self, request: Request) -> Response:
        try:
            return _answer(200, self._found(request))
        except ScriptError as error:
            return _answer(400, {"code": "BadRequest", "message": error.message})
        except DbError as error:
            reply = wire(error)
            return _answer(reply.status, {"code": reply.code, "message": reply.message})
        except Exception:
            log.exception("a bug: %s %s", request.method, request.target)
            return _answer(500, {"code": INTERNAL.code, "message": "The server failed."})

    def lane(self, request: Request) -> str | None:
        return request.target.partition("?")[0]

    def _found(self, request: Request) -> dict[str, JSON]:
        path = parse_path(request.target)
        principal = self._who(request, path)
        if request.method != "POST":
            raise UnknownMethod
        if principal.kind != "key":
            raise Forbidden
        # Here, so that a server that draws no graphs does not load the language.
        from armillary.api.gremlin.drawing import traverse
        from armillary.api.gremlin.evaluation import compile_script

        program = compile_script(*_asked(request.body))
        if program.writes and not principal.may_write:
            raise Forbidden
        _, _, database, _, name, _ = path.segments
        store = self._gateway.container(database, name)
        return traverse(store, program)

    def _who(self, request: Request, path: TargetPath) -> Principal:
        """A signature, or the key itself, as for the controls."""
        given = request.headers.get("authorization", "")
        if given.startswith(BEARER) and self._gateway.keyring.is_key(given[len(BEARER) :]):
            return FULL
        return authenticate(self._gateway, request, path)


def _asked(body: bytes) -> tuple[str, dict[str, Any]]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadInput(f"The request body is not valid JSON: {error}.") from error
    if not isinstance(found, dict) or not found.keys() <= MEMBERS:
        raise BadInput("The body is an object with 'gremlin', and 'bindings' if wanted.")
    text, bindings = found.get("gremlin"), found.get("bindings", {})
    if not isinstance(text, str) or not isinstance(bindings, dict):
        raise BadInput("The body is an object with a text 'gremlin', and 'bindings' if wanted.")
    return text, bindings


def _answer(status: int, body: Any) -> Response:
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store"}
    return Response(status, headers, orjson.dumps(body))
