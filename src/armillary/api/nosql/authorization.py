"""May they? Principal × route × path, before the handler runs.

A key may do everything, a read-only key what changes nothing, a resource token what its permission
says, a person of Entra ID what is not about databases, containers or throughput. Facts: nosql-rest
1.1 to 1.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from armillary.api.core.paths import Path, parse_path
from armillary.encoding.partition_key import coerce, same_key
from armillary.errors import Forbidden, NotForEntra, NotFound
from armillary.store.catalog.resources import ResourceRecord

if TYPE_CHECKING:
    from armillary.api.core.gateway import Gateway
    from armillary.api.nosql.call import Call
    from armillary.api.nosql.routes import Route

#: Shapes that a holder of a token for something inside a container may read alongside it: clients
#: need the definition and the ranges to find anything.
ALWAYS_READABLE: Final = frozenset({"dbs/*/colls/*", "dbs/*/colls/*/pkranges"})

#: In the stored body of a permission: the container it was given for. Clients do not see it.
CONTAINER_RID: Final = "_container"


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


def _check_scope(call: Call, route: Route, permission: ResourceRecord) -> None:
    granted = _canonical(call.gateway, parse_path(str(permission.body["resource"])))
    asked = _canonical(call.gateway, call.path)
    if granted is None or asked is None:
        raise Forbidden
    bound = permission.body.get(CONTAINER_RID)
    if bound is not None and bound != container_rid(call.gateway, call.path):
        raise Forbidden  # deleted since; another one has its name
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


def container_rid(gateway: Gateway, path: Path) -> str | None:
    """Of the container that a link is about, or lies in."""
    segments = path.segments
    if len(segments) < 4 or (segments[0], segments[2]) != ("dbs", "colls"):
        return None
    try:
        return gateway.container_record(segments[1], segments[3]).rid
    except NotFound:
        return None


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
