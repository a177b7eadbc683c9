"""Writing documents, one at a time. `inserts.py` has many at once.

A retryable write carries a record: one more item in the same logical partition and the same commit,
named by session, transaction number and statement. It expires by itself, and a split carries it as
it carries every item. The record stands first in its batch: a second attempt meets the first one's
record, and the client gets the answer that the record holds.

    batch  =  [record]  create / replace / delete  …      all or nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

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
from armillary.store.items.sent_batches import run_batch
from armillary.values import JSON


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
        if not shape.uniques and shape.ttl_field is None and "ttl" not in document:
            return to_item(document)
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
    made = record_item(collection.shape, document, statement, reply)

    def body_for(definition: Any) -> Body:
        if definition is collection.definition:
            return made_body(made)
        shape = shape_by(definition)
        return made_body(record_item(shape, document, statement, reply))

    return Operation("create", body_for=body_for, keyed_by=collection.definition)


def record_item(
    shape: CollectionShape, document: Document, statement: Statement, reply: Document
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
