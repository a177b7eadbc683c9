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
from armillary.encoding.partition_key import PartitionKeyDefinition
from armillary.errors import BadInput, Forbidden, NotFound, OwnerNotFound, Unauthorized
from armillary.store.items.containers import ContainerStore

NOT_ALLOWED: Final = frozenset({"id", "label"})
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
    key_name(store.refresh().definition.partition_key)
    return Login(store.database, store.name, principal.may_write, principal.kind == "token")


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


def key_name(definition: PartitionKeyDefinition) -> str:
    """The property that is the partition key. A graph has one, at the top of its documents."""
    paths = definition.paths
    if definition.system_key or len(paths) != 1 or len(paths[0]) != 1:
        raise BadInput(
            "A graph needs one partition key at the top of its documents, such as /pk; "
            "hierarchical and nested keys can't be used."
        )
    (name,) = paths[0]
    if name in NOT_ALLOWED:
        raise BadInput(f"The partition key of a graph can't be /{name}.")
    return str(name)


__all__ = ["Login", "OwnerNotFound", "key_name", "log_in"]
