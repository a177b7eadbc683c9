"""Collections are containers: made, found, changed, dropped. What their definitions say is in
`store/catalog/collections.py`."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any, Final

from armillary.api.core.gateway import Gateway
from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.language import MISSING, PLAIN
from armillary.api.mongo.match.compiled import compile_filter
from armillary.budget import Budget
from armillary.encoding.bson.stored import to_stored
from armillary.encoding.bson.values import Document, is_text, type_name
from armillary.encoding.partition_key import KeyValues
from armillary.errors import BadInput, Conflict, NotFound
from armillary.store.catalog.collections import (
    ID_INDEX,
    CollectionShape,
    UniqueIndex,
    at_path,
    collection_definition,
    shape_of,
)
from armillary.store.catalog.records import ContainerRecord, Throughput
from armillary.store.items.containers import ContainerStore
from armillary.values import JSON, UNDEFINED

NAME_FORBIDDEN: Final = frozenset('/\\. "$*<>:|?')
ENSURE_ROUNDS: Final = 5


@dataclass(frozen=True, slots=True)
class Collection:
    database: str
    name: str
    store: ContainerStore
    shape: CollectionShape
    definition: Any = field(default=None, compare=False)

    @property
    def namespace(self) -> str:
        return f"{self.database}.{self.name}"

    @property
    def shard(self) -> tuple[str, ...] | None:
        return self.shape.shard

    @property
    def indexes(self) -> tuple[Document, ...]:
        return self.shape.indexes

    @property
    def uniques(self) -> tuple[UniqueIndex, ...]:
        return self.shape.uniques

    @property
    def options(self) -> Document:
        return self.shape.options

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


def walk(value: Any, path: tuple[str, ...]) -> Any:
    found = at_path(value, path)
    return MISSING if found is UNDEFINED else found


# --- names ----------------------------------------------------------------------------------------


def check_database_name(name: Any) -> None:
    if not is_text(name):
        raise MongoError(73, f"database name has invalid type {type_name(name)}")
    if not name or len(name.encode()) > 63 or NAME_FORBIDDEN & set(name) or "\0" in name:
        raise MongoError(73, f"Invalid database name: '{name}'")


def check_collection_name(database: Any, name: Any) -> None:
    check_database_name(database)
    if not is_text(name):
        raise MongoError(73, f"collection name has invalid type {type_name(name)}")
    full = f"{database}.{name}"
    if not name or name[0] == "." or name[-1] == "." or "\0" in name or ".." in name:
        raise MongoError(73, f"Invalid namespace specified '{full}'")
    if "$" in name or any(one in name for one in "/\\?#") or name.startswith("system."):
        raise MongoError(73, f"Invalid namespace specified '{full}'")
    if len(full.encode()) > 255:
        raise MongoError(73, f"Fully qualified namespace is too long. Namespace: {full} Max: 255")


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
        return self._still(self.current(database, name), database, name)

    def forget(self, database: str, name: str | None = None) -> None:
        for key in [one for one in self._known if one[0] == database and name in (None, one[1])]:
            self._known.pop(key, None)
        self.gateway.forget(database, name)

    def records(self, database: str, budget: Budget) -> list[ContainerRecord]:
        try:
            self.account.read_database(database)
        except NotFound:
            return []
        return self.account.list_containers(database, budget)

    # --- making ---

    def ensure(self, database: str, name: str) -> Collection:
        """Another client may make it meanwhile, or drop what was just made."""
        for _ in range(ENSURE_ROUNDS):
            found = self.find(database, name)
            if found is not None:
                return found
            try:
                return self.create(database, name)
            except MongoError as error:
                if error.code not in (26, 48):
                    raise
            self.forget(database, name)
        raise MongoError(26, f"ns does not exist: {database}.{name}")

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
        body = collection_definition(name, shard, listed, options or {})
        try:
            self._create(database, body, throughput)
        except Conflict as error:
            raise MongoError(48, f"Collection {database}.{name} already exists.") from error
        self.forget(database, name)
        return self._still(self.find(database, name), database, name)

    @staticmethod
    def _still(found: Collection | None, database: str, name: str) -> Collection:
        """What this command made or changed, unless another client has dropped it since."""
        if found is None:
            raise MongoError(26, f"ns does not exist: {database}.{name}")
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
        body = collection_definition(
            collection.name, shard, indexes, collection.options if options is None else options
        )
        old = collection.definition.document
        own = old.get("mongo", {})
        if "uuid" in own:  # of a collection that an earlier version made
            body["mongo"]["uuid"] = own["uuid"]
        body["uniqueKeyPolicy"] = old["uniqueKeyPolicy"]
        kept = {one["name"] for one in indexes if one.get("unique")}
        gone = [one.name for one in collection.uniques if one.name not in kept]
        if gone:
            body["mongo"]["dropped"] = gone
        self.account.replace_container(collection.database, body, build=False)
        collection.store.refresh()
        self.gateway.index_later(collection.store)
        database, name = collection.database, collection.name
        return self._still(self.current(database, name), database, name)

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
    return Collection(database, name, store, shape_by(definition), definition)


def shape_by(definition: Any) -> CollectionShape:
    return shape_of(definition, lambda query: compile_filter(query, PLAIN))
