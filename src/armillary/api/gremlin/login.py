"""SASL PLAIN: the user names database and graph, the password is a key or a resource token.

    base64("\\0/dbs/<database>/colls/<graph>\\0<key>")  ─▶  Login

Facts: gremlin reference 3.
"""

from __future__ import annotations

import base64
import hmac
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from armillary.api.core.gateway import Gateway
from armillary.api.core.paths import Path, parse_path
from armillary.api.core.principals import FULL, READ_ONLY, Principal, authenticate
from armillary.api.http.messages import Request
from armillary.errors import Forbidden, NotFound, OwnerNotFound, Unauthorized
from armillary.store.catalog.graphs import graph_key
from armillary.store.items.containers import ContainerStore

TOKEN_KEY_TEXT: Final = (
    "A resource token for one partition key value can't be used here. Grant the container."
)


@dataclass(frozen=True, slots=True)
class Login:
    database: str
    graph: str
    may_write: bool
    is_token: bool = False


def log_in(gateway: Gateway, sasl: object) -> Login:
    """Raises Unauthorized, or OwnerNotFound where there is no such graph."""
    user, password = _credentials(sasl)
    path = parse_path(user)
    if len(path.segments) != 4 or (path.segments[0], path.segments[2]) != ("dbs", "colls"):
        raise Unauthorized
    principal = _principal(gateway, password)
    store = gateway.container(path.segments[1], path.segments[3])
    _check_scope(gateway, principal, store)
    graph_key(store.refresh().definition.partition_key)
    return Login(store.database, store.name, principal.may_write, principal.kind == "token")


def user_of(sasl: object) -> str:
    """The graph that a client says it wants, before anything is checked."""
    try:
        return _credentials(sasl)[0].strip("/")[:600]
    except Unauthorized:
        return "unknown"


def _credentials(sasl: object) -> tuple[str, str]:
    if not isinstance(sasl, str):
        raise Unauthorized
    try:
        _, user, password = base64.b64decode(sasl, validate=True).decode().split("\0")
    except ValueError as error:
        raise Unauthorized from error
    return user, password


def _principal(gateway: Gateway, password: str) -> Principal:
    given = password.encode()
    settings = gateway.settings
    # Every key is compared, so that the time does not say which one was nearly met.
    full = [hmac.compare_digest(key.encode(), given) for key in settings.keys]
    reading = [hmac.compare_digest(key.encode(), given) for key in settings.read_only_keys]
    if any(full):
        return FULL
    if any(reading):
        return READ_ONLY
    if not password.startswith("type"):
        raise Unauthorized
    header = password if "%" in password else quote(password, safe="")
    request = Request("GET", "/", {"authorization": header})
    try:
        principal = authenticate(gateway, request, Path((), ()))
    except Forbidden as error:
        raise Unauthorized from error
    if principal.kind != "token":
        raise Unauthorized
    return principal


def _check_scope(gateway: Gateway, principal: Principal, store: ContainerStore) -> None:
    if principal.permission is None:
        return
    granted = parse_path(str(principal.permission.body["resource"])).segments
    if len(granted) != 4:
        raise Forbidden
    try:
        allowed = gateway.container(granted[1], granted[3])
    except NotFound as error:
        raise Forbidden from error
    if (allowed.database, allowed.name) != (store.database, store.name):
        raise Forbidden
    if principal.permission.body.get("resourcePartitionKey") is not None:
        raise Forbidden(TOKEN_KEY_TEXT)


__all__ = ["Login", "OwnerNotFound", "log_in", "user_of"]
