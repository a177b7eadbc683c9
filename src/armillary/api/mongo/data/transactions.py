"""Transactions in one unsharded collection: writes are kept aside and committed as one batch.

The state is a note of the catalog, so that statements may come over any connection to any worker:

    {state, ns, lsn, deadline, writes: {item id: {op, document, etag}}}

Reads see the documents as of the first statement, with the transaction's own writes over them. The
store keeps no old versions, so a document that another client changed since then ends the
transaction with a write conflict, as a changed document does at the commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from armillary.api.mongo.data.collections import Collection
from armillary.api.mongo.data.reads import Row, rows_of
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
from armillary.errors import Conflict, NotFound, PreconditionFailed
from armillary.limits import MONGO_TRANSACTION_OPERATIONS_MAX, MONGO_TRANSACTION_SECONDS
from armillary.store.catalog.notes import put_notes, read_note, remove_notes
from armillary.store.items.preparation import Operation
from armillary.store.items.requests import Failed, from_refusal
from armillary.store.items.sent_batches import run_batch

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
    lsn: int = 0
    writes: dict[str, Document] = field(default_factory=dict)

    # --- reading ---

    def rows(self, call: Call, collection: Collection, query: Document) -> Iterator[Row]:
        self._enter(call, collection)
        seen: set[str] = set()
        for row in rows_of(collection, {} if self.writes else query, call.charge):
            call.budget.spend()
            name = item_id(row.document["_id"])
            own = self.writes.get(name)
            if own is not None:
                seen.add(name)
                if own["op"] != "delete":
                    yield Row(own["document"], own["etag"], row.lsn)
            elif row.lsn > self.lsn:
                raise conflict()
            else:
                yield row
        for name, own in self.writes.items():
            if name not in seen and own["op"] == "create":
                yield Row(own["document"], "")

    # --- writing ---

    def insert(
        self, call: Call, collection: Collection, documents: list[Document]
    ) -> tuple[int, list[tuple[int, MongoError]]]:
        self._enter(call, collection)
        count = 0
        for at, document in enumerate(documents):
            item = item_of(collection, document)
            name = str(item["id"])
            own = self.writes.get(name)
            exists = own is not None and own["op"] != "delete"
            if own is None:
                try:
                    collection.store.read(name, collection.key_of(document))
                    exists = True
                except NotFound:
                    exists = False
            if exists:
                return count, [(at, duplicate(collection, document, Conflict()))]
            if own is not None:  # deleted before in this transaction
                self._put(name, "replace", document, own["etag"])
            else:
                self._put(name, "create", document, "")
            count += 1
        self.save(call)
        return count, []

    def replace(self, call: Call, collection: Collection, row: Row, new: Document) -> None:
        name = item_id(row.document["_id"])
        own = self.writes.get(name)
        operation = "create" if own is not None and own["op"] == "create" else "replace"
        self._put(name, operation, new, own["etag"] if own else row.etag)
        self.save(call)

    def delete(self, call: Call, collection: Collection, row: Row) -> None:
        name = item_id(row.document["_id"])
        own = self.writes.get(name)
        if own is not None and own["op"] == "create":
            del self.writes[name]
        else:
            self._put(name, "delete", row.document, own["etag"] if own else row.etag)
        self.save(call)

    def _put(self, name: str, operation: str, document: Document, etag: str) -> None:
        if len(self.writes) >= MONGO_TRANSACTION_OPERATIONS_MAX and name not in self.writes:
            raise MongoError(
                2, f"A transaction writes {MONGO_TRANSACTION_OPERATIONS_MAX} documents at most."
            )
        self.writes[name] = {"op": operation, "document": document, "etag": etag}

    def _enter(self, call: Call, collection: Collection) -> None:
        if collection.shard is not None:
            raise MongoError(
                263, "Transactions are only supported in collections that are not sharded."
            )
        if not self.namespace:
            self.namespace = collection.namespace
            self.lsn = _lsn(collection)
            self.save(call)
        elif self.namespace != collection.namespace:
            raise MongoError(263, "A transaction is about one collection only.")

    # --- state ---

    def save(self, call: Call, seconds: int = KEPT_SECONDS) -> None:
        data = encode(
            {
                "state": self.state,
                "deadline": self.deadline_ms,
                "ns": self.namespace,
                "lsn": self.lsn,
                "writes": [{"id": name, **one} for name, one in self.writes.items()],
            }
        )
        put_notes(call.service.engine, [(self.key, data)], seconds)


def _lsn(collection: Collection) -> int:
    """How far the collection is: it has one range for ever."""
    from armillary.engine.base import Reader
    from armillary.partition.ranges import EPK_MIN, Range
    from armillary.store.catalog.state import ContainerState
    from armillary.store.rows.meta import unpack_meta

    def read(state: ContainerState, owner: Range, reader: Reader) -> int:
        return unpack_meta(reader.meta).lsn

    return collection.store.look(EPK_MIN, read)


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
    return Transaction(
        key, number, found["state"], int(found["deadline"]), found["ns"], int(found["lsn"]), writes
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
    if collection is None:
        raise conflict()
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
    outcome = run_batch(collection.store, operations, ())
    if isinstance(outcome, Failed):
        refusal = from_refusal(outcome.refusal)
        if outcome.position == 0 and type(refusal) is Conflict:
            return  # committed before; only the note of it was lost
        if isinstance(refusal, Conflict | PreconditionFailed | NotFound):
            raise conflict()
        raise refusal
    call.charge(outcome)


def forget(call: Call, keys: list[bytes]) -> None:
    remove_notes(call.service.engine, keys)
