"""Transactions in one unsharded collection: writes are kept aside and committed as one batch.

The state is a note of the catalog, so that statements may come over any connection to any worker:

    {state, ns, snapshot, deadline, writes: {item id: {op, document, etag}}}

Reads see the documents as of the first statement (store/snapshots/), with the transaction's own
writes over them:

    found now, no newer than the snapshot  +  changed since, as it was  +  own writes

A write to a document that another client has changed since is a write conflict at once; one that
is changed later is found at the commit, by its etag.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from armillary.api.mongo.data.collections import Collection
from armillary.api.mongo.data.reads import Row, is_record, row_of, rows_of, target_of
from armillary.api.mongo.data.writes import (
    Statement,
    duplicate,
    item_of,
    quoted,
    recording,
    writing,
)
from armillary.api.mongo.errors import TRANSIENT, MongoError, bad_value
from armillary.encoding.bson.stored import item_id
from armillary.encoding.bson.values import Document, decode, encode
from armillary.errors import Conflict, NotFound, PreconditionFailed, UniqueKeyConflict
from armillary.limits import MONGO_TRANSACTION_OPERATIONS_MAX, MONGO_TRANSACTION_SECONDS
from armillary.store.catalog.notes import put_notes, read_note, remove_notes
from armillary.store.items.preparation import Operation
from armillary.store.items.requests import Failed, from_refusal
from armillary.store.items.sent_batches import run_batch
from armillary.store.snapshots.reading import Snapshot, before, begin

if TYPE_CHECKING:
    from armillary.api.mongo.call import Call

PREFIX: Final = b"mongo transaction "
KEPT_SECONDS: Final = 60  # how long the outcome of a transaction is remembered


def conflict() -> MongoError:
    return MongoError(
        112,
        "WriteConflict error: this operation conflicted with another operation. Please retry your "
        "operation or multi-document transaction.",
        labels=(TRANSIENT,),
    )


def unknown(number: int, why: str = "has been aborted.") -> MongoError:
    return MongoError(
        251,
        f"Given transaction number {number} does not match any in-progress transactions."
        if why == "unknown"
        else f"Transaction with {{ txnNumber: {number} }} {why}",
        labels=(TRANSIENT,),
    )


@dataclass(slots=True)
class Transaction:
    key: bytes
    number: int
    state: str
    deadline_ms: int
    namespace: str = ""
    snapshot: Snapshot | None = None
    """None: the collection was not there, or nothing was asked yet."""
    writes: dict[str, Document] = field(default_factory=dict)
    stale: set[str] = field(default_factory=set)
    """Documents that this statement has seen as they were, and that are different now."""

    # --- reading ---

    def rows(self, call: Call, collection: Collection, query: Document) -> Iterator[Row]:
        snapshot = self._enter(call, collection)
        store = collection.store.as_of(snapshot.now_s)
        view = replace(collection, store=store)
        one = target_of(collection, query).item
        seen = set(self.writes)
        for row in rows_of(view, query, call.charge, call.budget):
            if store.state.container != snapshot.container:
                raise conflict()
            name = item_id(row.document["_id"])
            if row.lsn <= snapshot.lsn and name not in seen:
                seen.add(name)
                yield row
        if one is None or one not in seen:
            for name, row in self._before(call, collection, snapshot):
                if name not in seen:
                    self.stale.add(name)
                    yield row
        for own in list(self.writes.values()):
            if own["op"] != "delete":
                yield Row(own["document"], own["etag"])

    def _before(
        self, call: Call, collection: Collection, snapshot: Snapshot
    ) -> Iterator[tuple[str, Row]]:
        """What has changed since the snapshot, as it was."""
        found = before(collection.store, snapshot, call.budget)
        if found is None:
            raise conflict()
        for one in found:
            call.budget.spend()
            if not is_record(one):
                row = row_of(one)
                yield item_id(row.document["_id"]), row

    # --- writing ---

    def insert(
        self, call: Call, collection: Collection, documents: list[Document]
    ) -> tuple[int, list[tuple[int, MongoError]]]:
        snapshot = self._enter(call, collection)
        names = [str(item_of(collection, one)["id"]) for one in documents]
        others = [
            (name, collection.key_of(one))
            for name, one in zip(names, documents, strict=True)
            if name not in self.writes
        ]
        store = collection.store.as_of(snapshot.now_s)
        found = store.read_many(others, call.budget)
        if store.state.container != snapshot.container:
            raise conflict()
        lsns = {
            name: one.lsn for (name, _), one in zip(others, found, strict=True) if one is not None
        }
        older = {name for name, _ in self._before(call, collection, snapshot)}
        for at, (name, document) in enumerate(zip(names, documents, strict=True)):
            own = self.writes.get(name)
            if own is not None:
                exists = own["op"] != "delete"
            else:
                exists = name in older or lsns.get(name, snapshot.lsn + 1) <= snapshot.lsn
                if not exists and name in lsns:
                    raise conflict()  # another client made it since
            if exists:
                abort(call)  # as any error of a statement
                return at, [(at, duplicate(collection, document, Conflict()))]
            if own is not None:  # deleted before in this transaction
                self._put(name, "replace", document, own["etag"])
            else:
                self._put(name, "create", document, "")
        self.save(call)
        return len(documents), []

    def replace(self, call: Call, collection: Collection, row: Row, new: Document) -> None:
        name = item_id(row.document["_id"])
        own = self._own(name)
        operation = "create" if own is not None and own["op"] == "create" else "replace"
        self._put(name, operation, new, own["etag"] if own else row.etag)
        self.save(call)

    def delete(self, call: Call, collection: Collection, row: Row) -> None:
        name = item_id(row.document["_id"])
        own = self._own(name)
        if own is not None and own["op"] == "create":
            del self.writes[name]
        else:
            self._put(name, "delete", row.document, own["etag"] if own else row.etag)
        self.save(call)

    def _own(self, name: str) -> Document | None:
        """What the transaction has written of a document that it is about to write."""
        if name in self.stale:
            raise conflict()
        return self.writes.get(name)

    def _put(self, name: str, operation: str, document: Document, etag: str) -> None:
        if len(self.writes) >= MONGO_TRANSACTION_OPERATIONS_MAX and name not in self.writes:
            raise MongoError(
                2, f"A transaction writes {MONGO_TRANSACTION_OPERATIONS_MAX} documents at most."
            )
        self.writes[name] = {"op": operation, "document": document, "etag": etag}

    def looked_for(self, call: Call, namespace: str) -> None:
        """A collection that is not there. Should it be made later, its documents are not seen."""
        if not self.namespace:
            self.namespace = namespace
            self.save(call)

    def _enter(self, call: Call, collection: Collection) -> Snapshot:
        if collection.shard is not None:
            raise MongoError(
                263, "Transactions are only supported in collections that are not sharded."
            )
        if self.namespace and self.namespace != collection.namespace:
            raise MongoError(263, "A transaction is about one collection only.")
        if self.snapshot is None:
            snapshot = begin(collection.store)
            if self.namespace and snapshot.items:
                raise conflict()  # another client made the collection that was not there
            self.namespace, self.snapshot = collection.namespace, snapshot
            self.save(call)
        return self.snapshot

    # --- state ---

    def save(self, call: Call, seconds: int = KEPT_SECONDS) -> None:
        data = encode(
            {
                "state": self.state,
                "deadline": self.deadline_ms,
                "ns": self.namespace,
                "snapshot": None if self.snapshot is None else list(self.snapshot),
                "writes": [{"id": name, **one} for name, one in self.writes.items()],
            }
        )
        put_notes(call.service.engine, [(self.key, data)], seconds)


def _number(call: Call) -> int:
    return call.whole("txnNumber")


def _load(call: Call) -> Transaction | None:
    if not call.session or "txnNumber" not in call.command:
        raise MongoError(72, "A transaction needs a session and a transaction number.")
    number = _number(call)
    key = PREFIX + f"{call.session}.{number}".encode()
    row = read_note(call.service.engine, key)
    if row is None:
        return None
    found = decode(row)
    writes = {
        one["id"]: {"op": one["op"], "document": one["document"], "etag": one["etag"]}
        for one in found["writes"]
    }
    noted = found.get("snapshot")
    snapshot = None if noted is None else Snapshot(bytes(noted[0]), *map(int, noted[1:]))
    return Transaction(
        key, number, found["state"], int(found["deadline"]), found["ns"], snapshot, writes
    )


def enter(call: Call) -> Transaction:
    """The transaction that a statement belongs to."""
    number = _number(call)
    known = _load(call)
    now_ms = call.service.engine.now_ms()
    if call.command.get("startTransaction") is True:
        if known is not None and known.state == "active":
            raise MongoError(
                256 if known.state == "committed" else 251,
                f"Transaction {number} is already in progress.",
            )
        key = PREFIX + f"{call.session}.{number}".encode()
        made = Transaction(key, number, "active", now_ms + MONGO_TRANSACTION_SECONDS * 1000)
        made.save(call)
        return made
    if known is None:
        raise unknown(number, "unknown")
    if known.state == "committed":
        raise MongoError(256, f"Transaction with {{ txnNumber: {number} }} has been committed.")
    if known.state != "active":
        raise unknown(number)
    if now_ms > known.deadline_ms:
        known.state, known.writes = "aborted", {}
        known.save(call)
        raise bad_value("Transaction is not active")
    return known


def abort(call: Call) -> None:
    known = _load(call)
    if known is not None and known.state == "active":
        known.state, known.writes = "aborted", {}
        known.save(call)


def abort_transaction(call: Call) -> Document:
    known = _load(call)
    number = _number(call)
    if known is None:
        raise unknown(number, "unknown")
    if known.state == "committed":
        raise MongoError(256, f"Transaction with {{ txnNumber: {number} }} has been committed.")
    if known.state == "aborted":
        raise unknown(number)
    abort(call)
    return {}


def commit_transaction(call: Call) -> Document:
    known = _load(call)
    number = _number(call)
    if known is None:
        raise unknown(number, "unknown")
    if known.state == "committed":
        return {}
    if known.state != "active":
        raise unknown(number)
    if call.service.engine.now_ms() > known.deadline_ms:
        abort(call)
        raise bad_value("Transaction is not active")
    if known.writes:
        try:
            _commit(call, known)
        except MongoError:
            abort(call)
            raise
    known.state, known.writes = "committed", {}
    known.save(call)
    return {}


def _commit(call: Call, known: Transaction) -> None:
    database, _, name = known.namespace.partition(".")
    collection = call.service.collections.find(database, name)
    if collection is None or known.snapshot is None:
        raise conflict()
    if collection.store.state.container != known.snapshot.container:
        raise conflict()  # dropped and made again
    session, _, number = known.key[len(PREFIX) :].decode().partition(".")
    statement = Statement(session, int(number), "c")
    operations = [recording(collection, {}, statement, {"ok": 1})]
    for item, one in known.writes.items():
        if one["op"] == "delete":
            operations.append(Operation("delete", item, if_match=quoted(one["etag"])))
        else:
            kind = one["op"]
            condition = quoted(one["etag"]) if kind == "replace" else None
            operations.append(writing(collection, kind, one["document"], if_match=condition))
    outcome = run_batch(collection.store, operations, (), call.budget)
    if isinstance(outcome, Failed):
        refusal = from_refusal(outcome.refusal)
        if outcome.position == 0 and type(refusal) is Conflict:
            return  # committed before; only the note of it was lost
        if isinstance(refusal, UniqueKeyConflict):
            at = list(known.writes.values())[outcome.position - 1]
            raise duplicate(collection, at["document"], refusal)  # again, however often it is tried
        if isinstance(refusal, Conflict | PreconditionFailed | NotFound):
            raise conflict()
        raise refusal
    call.charge(outcome)


def forget(call: Call, keys: list[bytes]) -> None:
    remove_notes(call.service.engine, keys)
