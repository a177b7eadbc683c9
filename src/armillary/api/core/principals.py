"""Who sent this? Keys, resource tokens, tokens of Entra ID: the authorization header → a Principal,
before anything is looked up. What a principal may do, each protocol decides. Facts: nosql-rest
1.1 to 1.3.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import orjson

from armillary.api.core.paths import Path, signed_forms
from armillary.api.core.signing import FORMAT_TEXT, check_time, parse_authorization
from armillary.api.core.tokens import open_token
from armillary.api.http.messages import Request
from armillary.engine.base import CATALOG_SPACE
from armillary.errors import Forbidden, Unauthorized
from armillary.store.catalog.resources import ResourceRecord, find_by_rid

if TYPE_CHECKING:
    from armillary.api.core.gateway import Gateway

ENTRA_OFF_TEXT: Final = (
    "This server does not take tokens of Entra ID. Sign with a key, or switch them on."
)


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
        return entra_principal(gateway, credential.signature)
    return _token(gateway, credential.signature)


# --- Entra ID -----------------------------------------------------------------------------------


def entra_principal(gateway: Gateway, token: str) -> Principal:
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
