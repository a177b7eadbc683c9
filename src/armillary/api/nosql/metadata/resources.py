"""Users, permissions, scripts and client encryption keys on the wire: one set of handlers for all.

A kind differs from another in who owns it, in what its body must have, and in little else: that is
the table `RULES`. Facts: nosql-rest 1.3, 2.1, 2.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from armillary.api.core.paths import parse_path
from armillary.api.core.tokens import EXPIRY_HEADER, make_token, token_seconds
from armillary.api.http.messages import Response
from armillary.api.nosql.authorization import CONTAINER_RID, container_rid
from armillary.api.nosql.call import Call, reply, resource
from armillary.api.nosql.items.pages import CROSS_TEXT
from armillary.api.nosql.metadata.databases import required_id
from armillary.api.nosql.metadata.listing import list_page
from armillary.api.nosql.metadata.presenting import (
    FEEDS,
    container_link,
    database_link,
    resource_json,
)
from armillary.encoding.partition_key import coerce
from armillary.errors import BadInput, NotFound, OwnerNotFound, TooLarge
from armillary.limits import SCRIPT_TEXT_BYTES_MAX
from armillary.store.catalog.resources import ResourceRecord, ResourceStore
from armillary.values import JSON

TRIGGER_TYPES: Final = ("Pre", "Post")
TRIGGER_OPERATIONS: Final = ("All", "Create", "Update", "Delete", "Replace", "Upsert")
SCRIPTS: Final = frozenset({"sproc", "trigger", "udf"})
NO_UPSERT: Final = "Upserts for scripts in collections with multiple partitions are not supported."
NO_RENAME: Final = (
    "Changing id of a script in collections with multiple partitions is not supported."
)
MISSING: Final = (
    "The input content is invalid because the required properties - '{0}; ' - are missing"
)
PERMISSION_MODES: Final = ("All", "Read")


class Owner(NamedTuple):
    rid: str
    link: str


@dataclass(frozen=True, slots=True)
class Rule:
    owner: Callable[[Call], Owner]
    names: int
    """How many names in the path belong to the owner."""
    check: Callable[[dict[str, JSON]], dict[str, JSON]]
    """The body to keep, or BadInput."""


# --- owners -------------------------------------------------------------------------------------


def _database(call: Call) -> Owner:
    rid = call.gateway.owner_database(call.names[0]).rid
    return Owner(rid, database_link(rid))


def _container(call: Call) -> Owner:
    try:
        rid = call.gateway.container_record(call.names[0], call.names[1]).rid
    except NotFound as error:
        raise OwnerNotFound from error
    return Owner(rid, container_link(rid))


def _user(call: Call) -> Owner:
    database = _database(call)
    try:
        user = ResourceStore(call.gateway.engine, "user", database.rid).read(call.names[1])
    except NotFound as error:
        raise OwnerNotFound from error
    return Owner(user.rid, f"{database.link}users/{user.rid}/")


# --- bodies -------------------------------------------------------------------------------------


def _plain(body: dict[str, JSON]) -> dict[str, JSON]:
    required_id(body)
    return {name: value for name, value in body.items() if not name.startswith("_")}


def _script(body: dict[str, JSON]) -> dict[str, JSON]:
    if not isinstance(body.get("body"), str):
        raise BadInput(MISSING.format("body"))
    if len(body["body"].encode("utf-8", "surrogatepass")) > SCRIPT_TEXT_BYTES_MAX:
        raise TooLarge
    return _plain(body)


def _trigger(body: dict[str, JSON]) -> dict[str, JSON]:
    for name in ("triggerType", "triggerOperation"):
        if name not in body:
            raise BadInput(MISSING.format(name))
    _one_of(body, "triggerType", TRIGGER_TYPES)
    _one_of(body, "triggerOperation", TRIGGER_OPERATIONS)
    return _script(body)


def _permission(body: dict[str, JSON]) -> dict[str, JSON]:
    _one_of(body, "permissionMode", PERMISSION_MODES)
    link = body.get("resource")
    if not isinstance(link, str) or parse_path(link).segments[:1] != ("dbs",):
        raise BadInput("The property 'resource' must be the link of what the permission is for.")
    kept = _plain(body)
    kept["resource"] = link.strip("/")
    if (key := body.get("resourcePartitionKey")) is not None:
        coerce(key)
    return kept


def _encryption_key(body: dict[str, JSON]) -> dict[str, JSON]:
    for name in ("encryptionAlgorithm", "wrappedDataEncryptionKey", "keyWrapMetadata"):
        if name not in body:
            raise BadInput(MISSING.format(name))
    return _plain(body)


def _one_of(body: dict[str, JSON], name: str, allowed: tuple[str, ...]) -> None:
    value = body.get(name)
    # The Python SDK sends lower case, and expects back what it sent.
    if not isinstance(value, str) or value.lower() not in map(str.lower, allowed):
        raise BadInput(f"The property '{name}' must be one of {', '.join(allowed)}.")


RULES: Final[dict[str, Rule]] = {
    "user": Rule(_database, 1, _plain),
    "permission": Rule(_user, 2, _permission),
    "sproc": Rule(_container, 2, _script),
    "trigger": Rule(_container, 2, _trigger),
    "udf": Rule(_container, 2, _script),
    "clientencryptionkey": Rule(_database, 1, _encryption_key),
}


# --- handlers -----------------------------------------------------------------------------------


def list_resources(kind: str) -> Callable[[Call], Response]:
    def handler(call: Call) -> Response:
        owner, store = _opened(call, kind)
        rows = [(one.number, _document(call, one, owner)) for one in store.list(call.budget)]
        return list_page(call, owner.rid, FEEDS[kind][1], rows)

    return handler


def create_resource(kind: str) -> Callable[[Call], Response]:
    def handler(call: Call) -> Response:
        owner, store = _opened(call, kind)
        body = _bound(call, kind, RULES[kind].check(call.document()))
        upsert = call.options.is_upsert
        if upsert and kind in SCRIPTS:
            raise BadInput(NO_UPSERT)
        was_there = upsert and any(one.id == body["id"] for one in store.list(call.budget))
        record = store.create(body, upsert=upsert)
        return resource(call, 200 if was_there else 201, _document(call, record, owner))

    return handler


def read_resource(kind: str) -> Callable[[Call], Response]:
    def handler(call: Call) -> Response:
        owner, store = _opened(call, kind)
        record = store.read(call.names[RULES[kind].names])
        return resource(call, 200, _document(call, record, owner))

    return handler


def replace_resource(kind: str) -> Callable[[Call], Response]:
    def handler(call: Call) -> Response:
        owner, store = _opened(call, kind)
        current = store.read(call.names[RULES[kind].names])
        body = _bound(call, kind, RULES[kind].check(call.document()))
        if kind in SCRIPTS and body["id"] != current.id:
            raise BadInput(NO_RENAME)
        record = store.replace(current.id, body, if_match=call.options.if_match)
        return resource(call, 200, _document(call, record, owner))

    return handler


def delete_resource(kind: str) -> Callable[[Call], Response]:
    def handler(call: Call) -> Response:
        _, store = _opened(call, kind)
        current = store.read(call.names[RULES[kind].names])
        store.delete(current.id, if_match=call.options.if_match)
        return reply(call, 204)

    return handler


def list_nothing(key: str) -> Callable[[Call], Response]:
    """A feed that is always empty: one region has no conflicts, and attachments are history."""

    def handler(call: Call) -> Response:
        return list_page(call, _container(call).rid, key, [])

    return handler


def query_conflicts(call: Call) -> Response:
    """No conflict is ever found, but what is asked must be askable."""
    everywhere = call.options.key is None and call.options.range_id is None
    if everywhere and not call.options.flag("x-ms-documentdb-query-enablecrosspartition"):
        raise BadInput(CROSS_TEXT)
    return list_page(call, _container(call).rid, "Conflicts", [])


def find_nothing(call: Call) -> Response:
    _container(call)
    raise NotFound


def _bound(call: Call, kind: str, body: dict[str, JSON]) -> dict[str, JSON]:
    """A permission by name is for the container that has the name now, not for one that will."""
    if kind != "permission":
        return body
    rid = container_rid(call.gateway, parse_path(str(body["resource"])))
    return body if rid is None else body | {CONTAINER_RID: rid}


def _opened(call: Call, kind: str) -> tuple[Owner, ResourceStore]:
    owner = RULES[kind].owner(call)
    return owner, ResourceStore(call.gateway.engine, kind, owner.rid)


def _document(call: Call, record: ResourceRecord, owner: Owner) -> dict[str, JSON]:
    document = resource_json(record, owner.link)
    if record.kind == "permission":
        seconds = token_seconds(call.options.number(EXPIRY_HEADER))
        signer = call.gateway.keyring.token_signer
        document["_token"] = make_token(signer, record.rid, call.gateway.now_s(), seconds)
    return document
