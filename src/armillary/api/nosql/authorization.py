"""Who sent this, and may they? Keys, resource tokens, tokens of Entra ID.

    authenticate   the authorization header → a Principal       before anything is looked up
    authorize      principal × route × path → or Forbidden      before the handler runs

A key may do everything, a read-only key what changes nothing, a resource token what its permission
says, a person of Entra ID what is not about databases, containers or throughput. Facts: nosql-rest
1.1 to 1.3.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import orjson

from armillary.api.nosql.messages import Request
from armillary.api.nosql.paths import Path, parse_path, signed_forms
from armillary.api.nosql.signing import FORMAT_TEXT, check_time, parse_authorization
from armillary.api.nosql.tokens import open_token
from armillary.encoding.partition_key import coerce, same_key
from armillary.engine.base import CATALOG_SPACE
from armillary.errors import Forbidden, NotForEntra, NotFound, Unauthorized
from armillary.store.resources import ResourceRecord, find_by_rid

if TYPE_CHECKING:
    from armillary.api.nosql.call import Call
    from armillary.api.nosql.gateway import Gateway
    from armillary.api.nosql.routes import Route

ENTRA_OFF_TEXT: Final = (
    "This server does not take tokens of Entra ID. Sign with a key, or switch them on."
)
#: Shapes that a holder of a token for something inside a container may read beside it: clients
#: need the definition and the ranges to find anything.
ALWAYS_READABLE: Final = frozenset({"dbs/*/colls/*", "dbs/*/colls/*/pkranges"})


@dataclass(frozen=True, slots=True)
class Principal:
    kind: Literal["key", "token", "entra"]
    may_write: bool
    permission: ResourceRecord | None = None


FULL: Final = Principal("key", True)
READ_ONLY: Final = Principal("key", False)
ENTRA: Final = Principal("entra", True)


def authenticate(gateway: Gateway, request: Request, path: Path) -> Principal:
    text = request.headers.get("authorization")
    credential = parse_authorization(text)
    if credential.type == "master":
        full = gateway.keyring.verify(
            request.method,
            signed_forms(path),
            request.headers,
            credential.signature,
            gateway.wall_s(),
        )
        return FULL if full else READ_ONLY
    if credential.type == "aad":
        return _entra(gateway, credential.signature)
    return _token(gateway, credential.signature)


def authorize(call: Call, route: Route) -> None:
    principal = call.principal
    if route.writes and not principal.may_write:
        raise Forbidden
    if principal.kind == "entra" and route.is_management and route.writes:
        request = call.request
        shown = f"{request.method} {request.target.partition('?')[0]}"
        raise NotForEntra(
            f"The given request [{shown}] cannot be authorized by AAD token in data plane. "
            "Learn more: https://aka.ms/cosmos-native-rbac."
        )
    if principal.permission is not None and call.path.segments:
        _check_scope(call, route, principal.permission)


# --- Entra ID -----------------------------------------------------------------------------------


def _entra(gateway: Gateway, token: str) -> Principal:
    if not gateway.settings.accept_entra:
        raise Unauthorized(ENTRA_OFF_TEXT)
    parts = token.split(".")
    try:
        if len(parts) != 3:
            raise ValueError("a token has three parts")
        claims = orjson.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        start, end = int(claims.get("nbf", 0)), int(claims["exp"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unauthorized(FORMAT_TEXT) from error
    check_time(start, end, gateway.wall_s())
    return ENTRA


# --- resource tokens ----------------------------------------------------------------------------


def _token(gateway: Gateway, text: str) -> Principal:
    rid = open_token(gateway.keyring.token_signer, text, gateway.now_s())
    with gateway.engine.read(CATALOG_SPACE) as reader:
        permission = find_by_rid(reader, rid)
    if permission is None or permission.kind != "permission":
        raise Forbidden  # taken back since
    return Principal("token", str(permission.body["permissionMode"]).lower() == "all", permission)


def _check_scope(call: Call, route: Route, permission: ResourceRecord) -> None:
    granted = _canonical(call.gateway, parse_path(str(permission.body["resource"])))
    asked = _canonical(call.gateway, call.path)
    if granted is None or asked is None:
        raise Forbidden
    if route.pattern in ALWAYS_READABLE:
        if asked[:4] == granted[:4] and not route.writes:
            return
        raise Forbidden
    if asked[: len(granted)] != granted or route.is_management:
        raise Forbidden
    wanted = permission.body.get("resourcePartitionKey")
    if wanted is not None:
        given = call.options.key
        # The entries of a bulk have keys of their own.
        is_bulk = call.options.is_batch and not call.options.is_atomic
        if given is None or is_bulk or not same_key(given, coerce(wanted)):
            raise Forbidden


def _canonical(gateway: Gateway, path: Path) -> tuple[str, ...] | None:
    """Names where a link has rids, as far as the container. None: there is no such thing."""
    segments = path.segments
    try:
        if len(segments) >= 4 and (segments[0], segments[2]) == ("dbs", "colls"):
            store = gateway.container(segments[1], segments[3])
            return ("dbs", store.database, "colls", store.name, *segments[4:])
        if len(segments) >= 2 and segments[0] == "dbs":
            return ("dbs", gateway.database(segments[1]).id, *segments[2:])
    except NotFound:
        return None
    return segments
