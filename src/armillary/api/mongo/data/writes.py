"""Writing documents: inserts in batches, and one changed or removed document at a time.

A retryable write carries a record: one more item in the same logical partition and the same commit,
named by session, transaction number and statement. It expires by itself, and a split carries it as
it carries every item. The record stands first in its batch: a second attempt meets the first one's
record, and the client gets the answer that the record holds.

    batch  =  [record]  create / replace / delete  …      all or nothing
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from armillary.api.mongo.data.collections import Collection, shape_by, walk
from armillary.api.mongo.data.reads import Row
from armillary.api.mongo.errors import MongoError, mongo_error
from armillary.api.mongo.language import MISSING
from armillary.api.mongo.shown import shown
from armillary.encoding.bson.stored import (
    RECORD,
    REPLY,
    from_stored,
    item_id,
    stored_name,
    to_item,
    to_stored,
)
from armillary.encoding.bson.values import Document, same
from armillary.encoding.documents import Body, made_body
from armillary.encoding.partition_key import KeyValues
from armillary.errors import (
    BadInput,
    Conflict,
    DbError,
    NotFound,
    OwnerNotFound,
    PreconditionFailed,
    TooLarge,
    UniqueKeyConflict,
)
from armillary.limits import MONGO_RECORD_SECONDS
from armillary.store.catalog.collections import CollectionShape
from armillary.store.items.preparation import Operation
from armillary.store.items.requests import Failed, from_refusal
from armillary.store.items.sent_batches import SentBatch, finish_batch, run_batch, start_batch
from armillary.values import JSON

BATCH_ITEMS: Final = 400
BATCH_BYTES: Final = 1_000_000
UNDER_WAY_MAX: Final = 64  # batches of one command that wait for the writer at once


class Moved(Exception):
    """The document is no longer the one that was looked at: look again."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A retryable statement: what its record is named by."""

    session: str
    number: int
    index: int | str
    """`c`: the commit of a transaction."""

    @property
    def id(self) -> str:
        return f"{RECORD}{self.session}.{self.number}.{self.index}"


class Written(NamedTuple):
    charge_ru: float
    reply: Document | None = None
    """Of an earlier attempt of the same statement."""


# --- errors ---------------------------------------------------------------------------------------


def duplicate(collection: Collection, document: Document, error: DbError) -> MongoError:
    if isinstance(error, UniqueKeyConflict):
        index = collection.uniques[0] if collection.uniques else None
        key = {} if index is None else index.key
        values = {name: _or_null(walk(document, tuple(name.split(".")))) for name in key}
        name = "" if index is None else index.name
        pattern = dict(key)
    else:
        name, values, pattern = "_id_", {"_id": document["_id"]}, {"_id": 1}
    return MongoError(
        11000,
        f"E11000 duplicate key error collection: {collection.namespace} index: {name} "
        f"dup key: {shown(values)}",
        keyPattern=pattern,
        keyValue=values,
    )


def _or_null(value: Any) -> Any:
    return None if value is MISSING else value


def refused(error: DbError) -> MongoError:
    if isinstance(error, TooLarge):
        return too_large(error)
    return mongo_error(error)


def too_large(error: TooLarge) -> MongoError:
    size = error.facts.get("body_bytes", 0)
    most = error.facts.get("body_bytes_max", 2 * 1024 * 1024)
    return MongoError(10334, f"BSONObj size: {size} is invalid. Size must be between 0 and {most}")


# --- items ----------------------------------------------------------------------------------------


def item_of(collection: Collection, document: Document) -> dict[str, JSON]:
    return _item_of(collection, collection.shape, document)


def _item_of(collection: Collection, shape: CollectionShape, document: Document) -> dict[str, JSON]:
    try:
        return to_item(document, **shape.extra(document, collection.store.now_s()))
    except BadInput as error:
        code = 53 if "_id" in error.message else 15
        raise MongoError(code, error.message) from error


def writing(
    collection: Collection,
    kind: str,
    document: Document,
    item: dict[str, JSON] | None = None,
    **conditions: Any,
) -> Operation:
    """A create or replace of a document. Another server may have given the collection other indexes
    since: the item is made again then."""
    made = item_of(collection, document) if item is None else item

    def body_for(definition: Any) -> Body:
        if definition is collection.definition:
            return made_body(made)
        return made_body(_item_of(collection, shape_by(definition), document))

    return Operation(
        kind, str(made["id"]), body_for=body_for, keyed_by=collection.definition, **conditions
    )


def recording(
    collection: Collection, document: Document, statement: Statement, reply: Document
) -> Operation:
    """The create of the record of a statement, in the logical partition of the document."""
    made = _record_item(collection, collection.shape, document, statement, reply)

    def body_for(definition: Any) -> Body:
        if definition is collection.definition:
            return made_body(made)
        shape = shape_by(definition)
        return made_body(_record_item(collection, shape, document, statement, reply))

    return Operation("create", body_for=body_for, keyed_by=collection.definition)


def _record_item(
    collection: Collection,
    shape: CollectionShape,
    document: Document,
    statement: Statement,
    reply: Document,
) -> dict[str, JSON]:
    item: dict[str, JSON] = {
        "id": statement.id,
        "ttl": MONGO_RECORD_SECONDS,
        REPLY: to_stored(reply),
    }
    if shape.uniques:
        item["$unique"] = {one.name: statement.id for one in shape.uniques}
    if shape.shard is not None:
        at: dict[str, Any] = item
        parts = [stored_name(shape.shard[0]), *shape.shard[1:]]
        for part in parts[:-1]:
            at = at.setdefault(part, {})
        at[parts[-1]] = to_stored(walk(document, shape.shard))
    return item


def recorded(collection: Collection, statement: Statement, key: KeyValues) -> Document | None:
    """What an earlier attempt answered."""
    try:
        stored = collection.store.read(statement.id, key)
    except NotFound:
        return None
    reply: Document = from_stored(orjson.loads(stored.text)[REPLY])
    return reply


def record_alone(
    collection: Collection, document: Document, statement: Statement, reply: Document
) -> Written:
    """For a statement that changes nothing: a second attempt must not find something to do. Its
    answer is the earlier one, if there was one."""
    key = collection.key_of(document)
    operation = recording(collection, document, statement, reply)
    try:
        return Written(collection.store.run(operation, key).charge_ru)
    except Conflict:
        return Written(0.0, recorded(collection, statement, key))


# --- one document ---------------------------------------------------------------------------------


def write(
    collection: Collection,
    operation: Operation,
    document: Document,
    statement: Statement | None,
    reply: Document,
) -> Written:
    """One operation with its record. Raises Moved when its precondition does not hold."""
    key = collection.key_of(document)
    operations = [operation]
    if statement is not None:
        operations.insert(0, recording(collection, document, statement, reply))
    try:
        if statement is None:
            return Written(collection.store.run(operation, key).charge_ru)
        outcome = run_batch(collection.store, operations, key)
    except OwnerNotFound:
        raise  # the collection was dropped meanwhile: there is nothing to try again on
    except (PreconditionFailed, NotFound) as error:
        raise Moved from error
    except Conflict as error:
        raise duplicate(collection, document, error) from error
    except TooLarge as error:
        raise too_large(error) from error
    if not isinstance(outcome, Failed):
        return Written(outcome)
    refusal = from_refusal(outcome.refusal)
    if statement is not None and outcome.position == 0 and isinstance(refusal, Conflict):
        earlier = recorded(collection, statement, key)
        if earlier is not None:
            return Written(0.0, earlier)
    if isinstance(refusal, PreconditionFailed | NotFound):
        raise Moved from refusal
    if isinstance(refusal, Conflict):
        raise duplicate(collection, document, refusal)
    raise refusal


def replace_row(
    collection: Collection,
    row: Row,
    new: Document,
    statement: Statement | None,
    reply: Document,
) -> Written:
    check_shard_kept(collection, row.document, new)
    operation = writing(collection, "replace", new, if_match=quoted(row.etag))
    return write(collection, operation, new, statement, reply)


def delete_row(
    collection: Collection, row: Row, statement: Statement | None, reply: Document
) -> Written:
    operation = Operation("delete", item_id(row.document["_id"]), if_match=quoted(row.etag))
    return write(collection, operation, row.document, statement, reply)


def quoted(etag: str) -> str:
    return etag if etag.startswith('"') else f'"{etag}"'


def check_shard_kept(collection: Collection, old: Document, new: Document) -> None:
    if collection.shard is None:
        return
    before, after = walk(old, collection.shard), walk(new, collection.shard)
    if after is MISSING or not same(_or_null(before), _or_null(after)):
        path = ".".join(collection.shard)
        raise MongoError(
            66,
            f"Performing an update on the path '{path}' would modify the immutable field '{path}'",
        )


# --- many inserts ---------------------------------------------------------------------------------


class Insert(NamedTuple):
    at: int
    document: Document
    item: dict[str, JSON]
    key: KeyValues
    size: int


class Inserted(NamedTuple):
    done: int
    errors: list[tuple[int, MongoError]]
    charge_ru: float


def insert_all(
    collection: Collection,
    documents: Sequence[Document],
    *,
    ordered: bool,
    statement: Callable[[int], Statement] | None,
    sizes: Sequence[int],
) -> Inserted:
    """Documents of one command. Those of one logical partition go in batches; an ordered insert
    stops at the first that fails."""
    errors: list[tuple[int, MongoError]] = []
    pending: list[Insert] = []
    for index, document in enumerate(documents):
        try:
            item, key = item_of(collection, document), collection.key_of(document)
        except MongoError as error:
            errors.append((index, error))
            if ordered:
                break
            continue
        pending.append(Insert(index, document, item, key, sizes[index]))
    run = _Inserting(collection, statement, ordered)
    if ordered:
        _insert_in_order(run, pending)
    else:
        run.all(_batches(pending))
    if ordered and run.errors:
        errors = []
    errors = sorted([*run.errors, *errors], key=lambda one: one[0])
    return Inserted(run.count, errors[:1] if ordered else errors, run.charge_ru)


def _batches(pending: list[Insert]) -> list[list[Insert]]:
    by_key: dict[KeyValues, list[list[Insert]]] = {}
    sizes: dict[KeyValues, int] = {}
    for one in pending:
        batches = by_key.setdefault(one.key, [[]])
        size = sizes.get(one.key, 0) + one.size
        if batches[-1] and (len(batches[-1]) >= BATCH_ITEMS or size > BATCH_BYTES):
            batches.append([])
            size = one.size
        sizes[one.key] = size
        batches[-1].append(one)
    return [one for batches in by_key.values() for one in batches]


def _insert_in_order(run: _Inserting, pending: list[Insert]) -> None:
    """Runs of one key are batches of their own. A run over several keys is looked up first, so that
    nothing behind a duplicate is sent."""
    keys = {one.key for one in pending}
    if len(keys) <= 1:
        for batch in _batches(pending):
            run.all([batch])
            if run.errors:
                return
        return
    store = run.collection.store
    found = store.read_many([(str(one.item["id"]), one.key) for one in pending])
    seen: set[tuple[KeyValues, Any]] = set()
    stop = len(pending)
    for at, (one, stored) in enumerate(zip(pending, found, strict=True)):
        name = (one.key, one.item["id"])
        if stored is not None or name in seen:
            stop = at
            break
        seen.add(name)
    run.all(_batches(pending[:stop]))
    if not run.errors and stop < len(pending):
        run.all([[pending[stop]]])
        if not run.errors:  # it was removed since, or an earlier attempt of this command wrote it
            _insert_in_order(run, [one for one in pending[stop + 1 :] if one.at not in run.known])


class _Inserting:
    def __init__(
        self,
        collection: Collection,
        statement: Callable[[int], Statement] | None,
        ordered: bool,
    ) -> None:
        self.collection = collection
        self._ordered = ordered
        self.statement = statement
        self.count = 0
        self.charge_ru = 0.0
        self.errors: list[tuple[int, MongoError]] = []
        self.known: set[int] = set()
        """Documents that an earlier attempt wrote, by the records found so far."""

    def all(self, batches: list[list[Insert]]) -> None:
        """Several under way at once; each is one logical partition."""
        for at in range(0, len(batches), UNDER_WAY_MAX):
            sent: list[tuple[list[Insert], SentBatch | DbError]] = []
            for batch in batches[at : at + UNDER_WAY_MAX]:
                try:
                    sent.append(
                        (
                            batch,
                            start_batch(
                                self.collection.store, self._operations(batch), batch[0].key
                            ),
                        )
                    )
                except DbError as error:
                    sent.append((batch, error))
            for batch, one in sent:
                self._finish(batch, one)

    def _operations(self, batch: list[Insert]) -> list[Operation]:
        made = [writing(self.collection, "create", one.document, one.item) for one in batch]
        if self.statement is not None:
            first = batch[0]
            written = {"at": [one.at for one in batch]}
            made.insert(
                0, recording(self.collection, first.document, self.statement(first.at), written)
            )
        return made

    def _finish(self, batch: list[Insert], sent: SentBatch | DbError) -> None:
        try:
            if isinstance(sent, DbError):
                raise sent
            outcome = finish_batch(sent)
            if outcome is None:
                outcome = run_batch(self.collection.store, self._operations(batch), batch[0].key)
        except (TooLarge, BadInput) as error:
            if len(batch) == 1:
                self.errors.append((batch[0].at, refused(error)))
                return
            for one in batch:
                self.all([[one]])
                if self._ordered and self.errors:
                    return
            return
        except DbError as error:
            # What was written before stays: the client hears which documents were not.
            self.errors += [(one.at, refused(error)) for one in batch]
            return
        if not isinstance(outcome, Failed):
            self.count += len(batch)
            self.charge_ru += outcome
            return
        self._failed(batch, outcome)

    def _failed(self, batch: list[Insert], failed: Failed) -> None:
        shift = 0 if self.statement is None else 1
        refusal = from_refusal(failed.refusal)
        if self.statement is not None and failed.position == 0:
            earlier = recorded(self.collection, self.statement(batch[0].at), batch[0].key)
            if earlier is not None:  # a second attempt
                done = {int(one) for one in earlier["at"]}
                self.count += len(done)
                self.known |= done
                rest = [one for one in batch if one.at not in done]
                if rest:
                    self.all([rest])
                return
        at = failed.position - shift
        bad = batch[max(at, 0)]
        if isinstance(refusal, Conflict):
            error = duplicate(self.collection, bad.document, refusal)
        else:
            error = refused(refusal)
        if at > 0:  # nothing has happened: those before it once more, without it
            self.all([batch[:at]])
        self.errors.append((bad.at, error))
        rest = batch[at + 1 :]
        if rest and not self._ordered:
            self.all([rest])
