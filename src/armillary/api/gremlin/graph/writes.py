"""Writing elements: one document each, atomic by itself; nothing spans two of them.

A change of an element is a replace that must meet the version it was computed from; when another
writer was quicker, it is computed again from the new version, so that no property is lost. A
traversal that compares etags itself (`guarded`) gets 412 instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Final

import orjson

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.graph.base import NewProperty
from armillary.api.gremlin.graph.costs import Costs
from armillary.api.gremlin.graph.elements import (
    EDGE,
    IN_ID,
    IN_LABEL,
    IN_PARTITION,
    META,
    OUT_ID,
    OUT_LABEL,
    RESERVED,
    SYSTEM,
    VALUE,
    Document,
    Edge,
    Element,
    Vertex,
    VertexProperty,
)
from armillary.api.gremlin.graph.reads import key_values, point_read
from armillary.api.gremlin.machine.values import equal
from armillary.budget import Budget
from armillary.errors import DbError, NotFound, PreconditionFailed
from armillary.store.items.containers import ContainerStore
from armillary.store.items.preparation import Operation
from armillary.values import JSON

ROUNDS_MAX: Final = 50
NO_KEY: Final = "Cannot add a vertex where the partition key property has value 'null'."
KEY_FIXED: Final = "Cannot update the partition key property '{0}' of an existing vertex."
EDGE_KEY: Final = "Cannot set the partition key property '{0}' of an edge: it is its source's."
RESERVED_NAME: Final = "The property name '{0}' is reserved."
#: Of a vertex: values of their own, not lists of values. The store reads `ttl`.
PLAIN: Final = "ttl"

Change = Callable[[Document], None]


class Writer:
    def __init__(
        self,
        store: ContainerStore,
        partition_name: str,
        new_id: Callable[[], str],
        costs: Costs,
        guarded: bool,
        budget: Budget,
    ) -> None:
        self._store = store
        self._partition_name = partition_name
        self._new_id = new_id
        self.costs = costs
        self._guarded = guarded
        self._budget = budget

    # --- new elements -----------------------------------------------------------------------------

    def add_vertex(self, label: str, id: Any, properties: Sequence[NewProperty]) -> Vertex:
        document: Document = {"id": self._id(id), "label": label}
        name = self._partition_name
        for one in properties:
            if one.name == name:
                document[name] = one.value
        if document.get(name) is None:
            raise ScriptError(NO_KEY)
        for one in properties:
            # Recorded: the same key again in one creation adds a value.
            self._put(document, one, appends=True)
        return Vertex.of(self._create(document), name)

    def add_edge(
        self, label: str, id: Any, source: Vertex, target: Vertex, properties: Sequence[NewProperty]
    ) -> Edge:
        name = self._partition_name
        document: Document = {"id": self._id(id), "label": label}
        for one in properties:
            self._put_edge(document, one)
        document |= {
            EDGE: True,
            OUT_ID: source.id,
            OUT_LABEL: source.label,
            IN_ID: target.id,
            IN_LABEL: target.label,
            IN_PARTITION: target.partition,
        }
        if source.partition is not None:
            document[name] = source.partition
        return Edge(self._create(document), name)

    def _id(self, given: Any) -> str:
        if given is None:
            return self._new_id()
        if isinstance(given, str):
            return given
        if isinstance(given, bool):
            return str(given).lower()
        if isinstance(given, int | float):
            return str(given)
        raise ScriptError("The id of an element must be a string.")

    def _create(self, document: Document) -> Document:
        return self._run(Operation("create", body=document), document.get(self._partition_name))

    def _run(self, operation: Operation, partition: JSON) -> Document:
        self._budget.check()
        began = perf_counter()
        done = self._store.run(operation, key_values(partition))
        self.costs.writes += 1
        self.costs.note(1, 1, done.new_bytes, perf_counter() - began, done.charge_ru)
        document: Document = orjson.loads(done.text) if done.text else {}
        return document

    # --- properties -------------------------------------------------------------------------------

    def set_properties(self, element: Element, properties: Sequence[NewProperty]) -> None:
        put = self._put_edge if isinstance(element, Edge) else self._put_vertex

        def change(document: Document) -> None:
            for one in properties:
                put(document, one)

        self._change(element, change)

    def _put_vertex(self, document: Document, new: NewProperty) -> None:
        name = self._partition_name
        if new.name == name:
            if not equal(document.get(name), new.value):
                raise ScriptError(KEY_FIXED.format(name))
            return
        self._put(document, new, appends=False)

    def _put(self, document: Document, new: NewProperty, *, appends: bool) -> None:
        if new.name == self._partition_name:
            return
        if new.name in RESERVED:
            raise ScriptError(RESERVED_NAME.format(new.name))
        if new.name == PLAIN:
            document[PLAIN] = new.value
            return
        value: dict[str, Any] = {"id": self._new_id(), VALUE: new.value}
        if new.meta:
            value[META] = dict(new.meta)
        kept = document.get(new.name)
        if new.cardinality == "list" or (appends and new.cardinality == "unset"):
            if kept is not None and not isinstance(kept, list):
                kept = [{"id": f"{document['id']}|{new.name}", VALUE: kept}]
            document[new.name] = [*(kept or ()), value]
        else:
            document[new.name] = [value]

    def _put_edge(self, document: Document, new: NewProperty) -> None:
        if new.name == self._partition_name:
            raise ScriptError(EDGE_KEY.format(new.name))
        if new.name in RESERVED:
            raise ScriptError(RESERVED_NAME.format(new.name))
        document[new.name] = new.value

    def set_meta(self, owner: VertexProperty, name: str, value: JSON) -> None:
        def change(each: dict[str, Any]) -> None:
            each[META] = {**each.get(META, {}), name: value}

        self._change_value(owner, change)
        owner.meta = {**owner.meta, name: value}

    def drop_meta(self, owner: VertexProperty, name: str) -> None:
        def change(each: dict[str, Any]) -> None:
            left = {key: value for key, value in each.get(META, {}).items() if key != name}
            each.pop(META, None)
            if left:
                each[META] = left

        self._change_value(owner, change)

    def _change_value(
        self, owner: VertexProperty, change: Callable[[dict[str, Any]], None]
    ) -> None:
        def all_of(document: Document) -> None:
            found = document.get(owner.key)
            if not isinstance(found, list):
                raise ScriptError(f"The property '{owner.key}' can't have properties of its own.")
            for each in found:
                if isinstance(each, dict) and each.get("id", "") == owner.id:
                    change(each)

        self._change(owner.owner, all_of)

    def drop_property(self, element: Element, name: str, id: str | None) -> None:
        if name == self._partition_name:
            raise ScriptError(KEY_FIXED.format(name))

        def change(document: Document) -> None:
            found = document.get(name)
            if id is None or not isinstance(found, list):
                document.pop(name, None)
                return
            left = [one for one in found if not isinstance(one, dict) or one.get("id", "") != id]
            if left:
                document[name] = left
            else:
                del document[name]

        self._change(element, change)

    def _change(self, element: Element, change: Change) -> None:
        current = element.document
        for _ in range(ROUNDS_MAX):
            if "_etag" not in current:  # it had gone when it was read (`StoreGraph._text_of`)
                raise NotFound
            new = {key: value for key, value in current.items() if key not in SYSTEM}
            change(new)
            operation = Operation("replace", element.id, new, if_match=str(current["_etag"]))
            try:
                element.document = self._run(operation, element.partition)
            except PreconditionFailed:
                if self._guarded:
                    raise
            else:
                return
            found = point_read(self._store, (element.partition, element.id), self.costs)
            if found is None:
                raise NotFound
            current = orjson.loads(found)
        raise PreconditionFailed

    # --- deleting ---------------------------------------------------------------------------------

    def delete(self, elements: Sequence[Element]) -> None:
        """What is gone already is no error, unless the traversal compares etags."""
        guarded = self._guarded
        operations = [
            (
                Operation("delete", one.id, if_match=_etag(one.document) if guarded else None),
                key_values(one.partition),
            )
            for one in elements
        ]
        began = perf_counter()
        failed: DbError | None = None
        charge = 0.0
        for done in self._store.bulk(operations, budget=self._budget):
            if isinstance(done, DbError):
                charge += float(done.facts.get("charge_ru", 0.0))
                if guarded or not isinstance(done, NotFound):
                    failed = failed or done
            else:
                charge += done.charge_ru
        self.costs.writes += len(operations)
        self.costs.note(1, len(operations), 0, perf_counter() - began, charge)
        if failed is not None:
            raise failed


def _etag(document: Document) -> str | None:
    found = document.get("_etag")
    return str(found) if found is not None else None
