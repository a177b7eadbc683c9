"""Collections are containers: their shard keys, indexes and options, made, found, changed, dropped.

    container definition ─ partitionKey   the shard key; none: one logical partition, fixed
                         ─ indexingPolicy what the indexes come to
                         ─ uniqueKeyPolicy `/$unique/<index name>`, one per unique index
                         ─ mongo          {shardKey, indexes, options}: what clients see;
                                          {dropped}: unique indexes that are no more

A unique index compares as BSON does (1 and 1.0 are the same, missing is null), so its value is
computed here and stored in a hidden member of the item, under the name of the index. A container
keeps its unique keys for life: once the index is dropped, every document gets a value of its own.
"""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from armillary.api.core.gateway import Gateway
from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.language import MISSING, PLAIN
from armillary.api.mongo.match.compiled import compile_filter
from armillary.api.mongo.match.operators import Filter
from armillary.encoding.bson_stored import canonical, stored_name, to_stored
from armillary.encoding.bson_values import Document, is_number, number_of, sort_key
from armillary.encoding.partition_key import KeyValues
from armillary.errors import BadInput, Conflict, NotFound
from armillary.limits import TTL_SECONDS_MAX
from armillary.store.catalog.records import ContainerRecord, Throughput
from armillary.store.items.containers import ContainerStore
from armillary.values import JSON

ID_INDEX: Final[Document] = {"v": 2, "key": {"_id": 1}, "name": "_id_"}
UNIQUE: Final = "$unique"
TTL_ON: Final = -1
NAME_FORBIDDEN: Final = frozenset('/\\. "$*<>:|?')


@dataclass(frozen=True, slots=True)
class UniqueIndex:
    name: str
    paths: tuple[tuple[str, ...], ...]
    key: Document
    sparse: bool
    where: Filter | None


@dataclass(frozen=True, slots=True)
class Collection:
    database: str
    name: str
    store: ContainerStore
    shard: tuple[str, ...] | None
    indexes: tuple[Document, ...]
    options: Document
    uniques: tuple[UniqueIndex, ...] = ()
    ttl_field: tuple[tuple[str, ...], int] | None = None
    definition: Any = field(default=None, compare=False)

    @property
    def namespace(self) -> str:
        return f"{self.database}.{self.name}"

    # --- shard keys ---

    def key_of(self, document: Document) -> KeyValues:
        """The partition key value of a document."""
        if self.shard is None:
            return ()
        found = walk(document, self.shard)
        if found is MISSING or isinstance(found, list):
            raise MongoError(
                61,
                f"The document does not contain shard key at '{'.'.join(self.shard)}'",
            )
        return self.key_values(found)

    def key_values(self, value: Any) -> KeyValues:
        if self.shard is None:
            return ()
        try:
            return (self.store.state.model.key(to_stored(value)),)
        except BadInput as error:
            raise MongoError(61, error.message) from error

    # --- what the store is told beside the document ---

    def extra(self, document: Document, now_s: int) -> dict[str, JSON]:
        made: dict[str, JSON] = {}
        if self.uniques:
            made[UNIQUE] = {one.name: _unique_text(one, document) for one in self.uniques}
        ttl = self._ttl(document, now_s)
        if ttl is not None:
            made["ttl"] = ttl
        return made

    def _ttl(self, document: Document, now_s: int) -> int | None:
        if self.ttl_field is not None:
            path, after_s = self.ttl_field
            moment = _expiry_ms(walk(document, path))
            if moment is None:
                return None
            return min(TTL_SECONDS_MAX, max(1, moment // 1000 + after_s - now_s))
        own = document.get("ttl", MISSING)
        if own is MISSING or not is_number(own) or isinstance(own, bool):
            return None
        plain: Any = number_of(own)
        if plain != plain or abs(plain) >= 2**31 or plain != int(plain):
            return None
        return int(plain) if plain == -1 or plain > 0 else None


def walk(value: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        if not isinstance(value, dict):
            return MISSING
        value = value.get(part, MISSING)
    return value


def _expiry_ms(value: Any) -> int | None:
    from bson.datetime_ms import DatetimeMS

    if isinstance(value, DatetimeMS):
        return int(value)
    if is_number(value):
        plain: Any = number_of(value)
        return int(plain) if plain == plain and abs(plain) < 2**62 else None
    if isinstance(value, list):
        found = [one for one in map(_expiry_ms, value) if one is not None]
        return min(found, default=None)
    return None


def _covers_nothing(document: Any) -> bool:
    return False


def _unique_text(index: UniqueIndex, document: Document) -> str:
    values = [walk(document, path) for path in index.paths]
    covered = index.where is None or index.where(document)
    if index.sparse and all(one is MISSING for one in values):
        covered = False
    keys: list[Any] = [sort_key(None if one is MISSING else one) for one in values]
    if not covered:  # its own, so that it meets no other
        keys = ["not in the index", sort_key(document["_id"])]
    data = repr(canonical(tuple(keys))).encode()
    return blake2b(data, digest_size=16).hexdigest()


# --- definitions ----------------------------------------------------------------------------------


def check_database_name(name: str) -> None:
    if not name or len(name.encode()) > 63 or NAME_FORBIDDEN & set(name) or "\0" in name:
        raise MongoError(73, f"Invalid database name: '{name}'")


def check_collection_name(database: str, name: str) -> None:
    check_database_name(database)
    full = f"{database}.{name}"
    if not name or name[0] == "." or name[-1] == "." or "\0" in name or ".." in name:
        raise MongoError(73, f"Invalid namespace specified '{full}'")
    if "$" in name or any(one in name for one in "/\\?#") or name.startswith("system."):
        raise MongoError(73, f"Invalid namespace specified '{full}'")
    if len(full.encode()) > 255:
        raise MongoError(73, f"Fully qualified namespace is too long. Namespace: {full} Max: 255")


def stored_path(path: str) -> str:
    """`a.b` as a path of the container: `/a/b`, with names of the store escaped."""
    first, *rest = path.split(".")
    parts = [stored_name(first), *rest]
    return "".join("/" + _quoted(one) for one in parts)


def _quoted(part: str) -> str:
    plain = part.replace("_", "a").isalnum() and not part[0].isdigit()
    return part if plain else '"' + part.replace('"', '\\"') + '"'


def _index_paths(path: str) -> list[str]:
    """A field, and the same through arrays on the way."""
    found = [""]
    for at, part in enumerate(path.split(".")):
        name = "/" + _quoted(stored_name(part) if at == 0 else part)
        found = [one + name for one in found] + [one + name + "/[]" for one in found]
    return [one + "/?" for one in found[:16]]


def container_body(
    name: str, shard: str | None, indexes: list[Document], options: Document
) -> dict[str, JSON]:
    included: dict[str, None] = dict.fromkeys(["/_id/?"])
    composites: list[list[dict[str, str]]] = []
    uniques: list[dict[str, list[str]]] = []
    default_ttl = TTL_ON
    spatial: list[dict[str, Any]] = []
    if shard is not None:
        included[stored_path(shard) + "/?"] = None
    for index in indexes:
        key: Document = index["key"]
        if index.get("unique") and index["name"] != "_id_":
            uniques.append({"paths": [f"/{_quoted(UNIQUE)}/{_quoted(index['name'])}"]})
        if "expireAfterSeconds" in index and list(key) == ["_ts"]:
            default_ttl = int(number_of(index["expireAfterSeconds"])) or 1
            continue
        plain = [one for one, kind in key.items() if is_number(kind)]
        for path in plain:
            if path == "$**":
                included["/*"] = None
            elif path.endswith(".$**"):
                included[stored_path(path[:-4]) + "/*"] = None
            else:
                included |= dict.fromkeys(_index_paths(path))
        for path, kind in key.items():
            if kind == "2dsphere":
                kinds = ["Point", "Polygon", "MultiPolygon", "LineString"]
                spatial.append({"path": stored_path(path) + "/?", "types": kinds})
        if len(plain) > 1 and len(plain) == len(key) and index["name"] != "_id_":
            composites.append(
                [
                    {
                        "path": stored_path(path),
                        "order": "ascending" if number_of(order) > 0 else "descending",
                    }
                    for path, order in key.items()
                ]
            )
    excluded = [] if "/*" in included else [{"path": "/*"}]
    policy: dict[str, JSON] = {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": one} for one in included],
        "excludedPaths": [*excluded, {"path": '/"_etag"/?'}],
    }
    if composites:
        policy["compositeIndexes"] = composites
    if spatial:
        policy["spatialIndexes"] = spatial
    body: dict[str, JSON] = {
        "id": name,
        "indexingPolicy": policy,
        "defaultTtl": default_ttl,
        "mongo": {
            "shardKey": shard,
            "indexes": [to_stored(one) for one in indexes],
            "options": to_stored(options),
            "uuid": str(uuid.uuid4()),
        },
    }
    if uniques:
        body["uniqueKeyPolicy"] = {"uniqueKeys": uniques}
    if shard is not None:
        body["partitionKey"] = {"paths": [stored_path(shard)], "kind": "Hash", "version": 2}
    return body


class Collections:
    """The collections of an account, as one worker knows them."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.account = gateway.account
        self._known: dict[tuple[str, str], Collection] = {}

    # --- finding ---

    def find(self, database: str, name: str) -> Collection | None:
        """HOT: once per command about documents."""
        known = self.known(database, name)
        if known is not None:
            return known
        try:
            store = self.gateway.container(database, name)
            definition = store.state.definition
        except NotFound:
            self._known.pop((database, name), None)
            self.gateway.forget(database, name)
            return None
        made = collection_of(database, name, store, definition)
        if len(self._known) > 4096:
            self._known.clear()
        self._known[database, name] = made
        return made

    def known(self, database: str, name: str) -> Collection | None:
        """One that has been asked for before and is as it was then: no look at the catalog."""
        known = self._known.get((database, name))
        state = None if known is None else known.store.known_state
        if known is None or state is None or known.definition is not state.definition:
            return None
        return known

    def current(self, database: str, name: str) -> Collection | None:
        """The same by the catalog, not by what this worker remembers."""
        known = self._known.get((database, name))
        if known is not None:
            try:
                known.store.refresh()
            except NotFound:
                self.forget(database, name)
        return self.find(database, name)

    def need(self, database: str, name: str) -> Collection:
        found = self.current(database, name)
        if found is None:
            raise MongoError(26, f"ns does not exist: {database}.{name}")
        return found

    def forget(self, database: str, name: str | None = None) -> None:
        for key in [one for one in self._known if one[0] == database and name in (None, one[1])]:
            self._known.pop(key, None)
        self.gateway.forget(database, name)

    def records(self, database: str) -> list[ContainerRecord]:
        try:
            self.account.read_database(database)
        except NotFound:
            return []
        return self.account.list_containers(database)

    # --- making ---

    def ensure(self, database: str, name: str) -> Collection:
        found = self.find(database, name)
        if found is not None:
            return found
        try:
            return self.create(database, name)
        except MongoError as error:
            if error.code != 48:
                raise
        found = self.current(database, name)
        assert found is not None
        return found

    def ensure_database(self, name: str, throughput: Throughput | None = None) -> None:
        check_database_name(name)
        with contextlib.suppress(Conflict):
            self.account.create_database(name, throughput)

    def create(
        self,
        database: str,
        name: str,
        *,
        shard: str | None = None,
        indexes: list[Document] | None = None,
        options: Document | None = None,
        throughput: Throughput | None = None,
    ) -> Collection:
        check_collection_name(database, name)
        try:
            self.account.read_database(database)
        except NotFound:
            self.ensure_database(database)
        listed = indexes or [dict(ID_INDEX)]
        body = container_body(name, shard, listed, options or {})
        try:
            self._create(database, body, throughput)
        except Conflict as error:
            raise MongoError(48, f"Collection {database}.{name} already exists.") from error
        self.forget(database, name)
        found = self.find(database, name)
        assert found is not None
        return found

    def _create(self, database: str, body: dict[str, JSON], throughput: Throughput | None) -> None:
        self.account.create_container(database, body, throughput=throughput, api="mongo")

    def drop(self, database: str, name: str) -> bool:
        try:
            self.account.delete_container(database, name)
        except NotFound:
            return False
        finally:
            self.forget(database, name)
        return True

    def drop_database(self, database: str) -> None:
        try:
            self.account.delete_database(database)
        except NotFound:
            return
        finally:
            self.forget(database)

    # --- changing ---

    def replace_indexes(
        self, collection: Collection, indexes: list[Document], options: Document | None = None
    ) -> Collection:
        """The same collection with other indexes. Index entries are built in the background."""
        shard = None if collection.shard is None else ".".join(collection.shard)
        body = container_body(
            collection.name, shard, indexes, collection.options if options is None else options
        )
        old = collection.definition.document
        own = old.get("mongo", {})
        body["mongo"]["uuid"] = own.get("uuid", body["mongo"]["uuid"])
        body["uniqueKeyPolicy"] = old["uniqueKeyPolicy"]
        kept = {one["name"] for one in indexes if one.get("unique")}
        gone = [one.name for one in collection.uniques if one.name not in kept]
        if gone:
            body["mongo"]["dropped"] = gone
        self.account.replace_container(collection.database, body, build=False)
        collection.store.refresh()
        self.gateway.index_later(collection.store)
        found = self.current(collection.database, collection.name)
        assert found is not None
        return found

    def remake(self, collection: Collection, indexes: list[Document]) -> Collection:
        """The same, empty collection again: unique keys are fixed when a container is made."""
        from armillary.store.throughput.provisioned import read_offer

        shard = None if collection.shard is None else ".".join(collection.shard)
        throughput: Throughput | None = None
        try:
            offer = read_offer(self.account.engine, collection.store.state.record.rid)
            throughput = (offer.kind, offer.ru)
        except NotFound:
            pass
        self.drop(collection.database, collection.name)
        return self.create(
            collection.database,
            collection.name,
            shard=shard,
            indexes=indexes,
            options=collection.options,
            throughput=throughput,
        )


def collection_of(database: str, name: str, store: ContainerStore, definition: Any) -> Collection:
    from armillary.encoding.bson_stored import from_stored

    document = definition.document
    own = document.get("mongo") or {}
    shard = own.get("shardKey")
    indexes = [from_stored(one) for one in own.get("indexes", [])] or [dict(ID_INDEX)]
    if not own and not definition.partition_key.system_key:  # made by another API
        shard = ".".join(definition.partition_key.paths[0])
    uniques = []
    ttl_field = None
    for one in indexes:
        if one.get("unique") and one["name"] != "_id_":
            partial = one.get("partialFilterExpression")
            uniques.append(
                UniqueIndex(
                    one["name"],
                    tuple(tuple(path.split(".")) for path in one["key"]),
                    one["key"],
                    bool(one.get("sparse")),
                    None if partial is None else compile_filter(partial, PLAIN),
                )
            )
        if "expireAfterSeconds" in one and list(one["key"]) != ["_ts"]:
            (path,) = one["key"]
            ttl_field = tuple(path.split(".")), int(number_of(one["expireAfterSeconds"]))
    uniques += [
        UniqueIndex(one, (), {}, sparse=False, where=_covers_nothing)
        for one in own.get("dropped", [])
    ]
    return Collection(
        database,
        name,
        store,
        None if shard is None else tuple(shard.split(".")),
        tuple(indexes),
        from_stored(own.get("options", {})),
        tuple(uniques),
        ttl_field,
        definition,
    )
