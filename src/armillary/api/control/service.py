"""The controls of one worker: a request in, a response out, never an exception.

    1  path    a row of the table, by its pattern
    2  who     a key of the account: it signed the request, or stands in `Authorization: Bearer`
    3  may     a read-only key what changes nothing; tokens nothing at all
    4  handler

Who asks is found out before anything else: to a stranger every path looks the same.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from armillary.api.control.call import ControlCall, mistake, refusal
from armillary.api.control.routes import ALIASES, find_route
from armillary.api.core.gateway import Gateway
from armillary.api.core.paths import Path, Signed, parse_path
from armillary.api.core.principals import FULL, READ_ONLY, Principal, authenticate
from armillary.api.core.signing import parse_authorization
from armillary.api.http.cors import cors_headers, preflight_headers
from armillary.api.http.messages import Request, Response, Service
from armillary.config import Settings
from armillary.errors import DbError, Forbidden, NotFound, Stale, Unauthorized
from armillary.store.catalog.snapshots import Snapshots
from armillary.store.moves.runner import Move

log = logging.getLogger("armillary.control")

PREFIX: Final = "/_armillary/"
BEARER: Final = "Bearer "


class Controls(Service):
    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.shared = gateway.shared
        self.snapshots = Snapshots(gateway.account, gateway.shared.folder)
        self._moves = ThreadPoolExecutor(4, "move")

    def serves(self, target: str) -> bool:
        return target.startswith(PREFIX) or target.partition("?")[0] in ALIASES

    def handle(self, request: Request) -> Response:
        origins = self.gateway.settings.cors_origins
        if not origins:
            return self._handled(request)
        if request.method == "OPTIONS":
            return Response(200, preflight_headers(request, origins))
        response = self._handled(request)
        return replace(response, headers=response.headers | cors_headers(request, origins))

    def _handled(self, request: Request) -> Response:
        try:
            if self.shared.polls:
                self.shared.poll()
            return self._answer(request)
        except DbError as error:
            return refusal(error)
        except Exception:
            log.exception("a bug: %s %s", request.method, request.target)
            return mistake()

    def lane(self, request: Request) -> str | None:
        """Queries of the portal, by their container."""
        path = request.target.partition("?")[0].rstrip("/")
        return path if request.method == "POST" and path.endswith("/query") else None

    def run_later(self, move: Move) -> None:
        """Should this process die, the housekeeper of another goes on with it."""
        self._moves.submit(self._run, move)

    def close(self) -> None:
        self._moves.shutdown(wait=True, cancel_futures=True)
        self.snapshots.close()

    def _answer(self, request: Request) -> Response:
        path = parse_path(request.target)
        principal = _who(self.gateway, request, path)
        own = request.target.partition("?")[0]
        segments = ALIASES.get(own, path.segments[1:])
        route, names = find_route(request.method, segments)
        if principal.kind != "key" or (route.writes and not principal.may_write):
            raise Forbidden
        return route.handler(ControlCall(self, request, names))

    @staticmethod
    def _run(move: Move) -> None:
        try:
            move.run()
        except (NotFound, Stale) as error:  # the container has gone, or another runner has it
            log.debug("a split or merge is left to others: %s", error)
        except DbError as error:
            log.warning("a split or merge stopped: %s", error)
        except Exception:
            log.exception("a split or merge failed")


def _who(gateway: Gateway, request: Request, path: Path) -> Principal:
    text = request.headers.get("authorization")
    if text is not None and text.startswith(BEARER):
        if gateway.keyring.is_key(text.removeprefix(BEARER).strip()):
            return FULL
        raise Unauthorized("The bearer token is not a key of this account.")
    credential = parse_authorization(text)
    if credential.type != "master":
        return authenticate(gateway, request, path)
    may_write = gateway.keyring.verify(
        request.method, _forms(path), request.headers, credential.signature, gateway.wall_s()
    )
    return FULL if may_write else READ_ONLY


def _forms(path: Path) -> list[Signed]:
    """What may have been signed: `_armillary` and the path; or what a signer of the NoSQL API makes
    of such a path, since people have one of those."""
    segments = path.segments
    if len(segments) % 2:
        usual = Signed(segments[-1], "/".join(segments[:-1]))
    else:
        usual = Signed(segments[-2], "/".join(segments))
    own = Signed("_armillary", "/".join(segments))
    return [own, usual, Signed(usual.type.lower(), usual.link)]


def make_service(gateway: Gateway, settings: Settings) -> Controls:
    """What the server's registry names."""
    return Controls(gateway)
