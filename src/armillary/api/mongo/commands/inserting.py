"""insert. Facts: sections 8 and 10."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bson.objectid import ObjectId
from bson.timestamp import Timestamp

from armillary.api.mongo.call import Call
from armillary.api.mongo.data.collections import check_collection_name
from armillary.api.mongo.data.inserts import insert_all
from armillary.api.mongo.data.writes import Statement
from armillary.api.mongo.errors import (
    MongoError,
    wrong_type,
)
from armillary.encoding.bson.values import Document, encode, type_name

if TYPE_CHECKING:
    from armillary.api.mongo.service import Service


from armillary.api.mongo.commands.statements import check_count, write_reply


def prepared(document: Any, call: Call) -> Document:
    return prepared_document(document, call.service)


def prepared_document(document: Any, service: Service) -> Document:
    """A document as it is inserted: with an `_id`, first."""
    if not isinstance(document, dict):
        raise wrong_type("insert.documents.0", type_name(document), "object")
    if service.settings.strict:
        for name in document:
            if name[:1] == "$":
                raise MongoError(
                    52,
                    "Document to be inserted cannot have a top-level field name that starts with "
                    f"'$': {name}",
                )
    own = document.get("_id")
    if isinstance(own, dict):
        for name in own:
            if name[:1] == "$":
                raise MongoError(
                    52, f"The dollar ($) prefixed field '{name}' in '_id.{name}' is not allowed."
                )
    if "_id" not in document:
        document = {"_id": ObjectId(), **document}
    elif next(iter(document)) != "_id":
        document = {"_id": document["_id"], **document}
    if Timestamp in map(type, document.values()):
        for name, value in document.items():
            if type(value) is Timestamp and value.time == 0 and value.inc == 0 and name != "_id":
                now = service.engine.now_ms()
                document[name] = Timestamp(now // 1000, now % 1000 + 1)
    made: Document = document
    return made


def insert(call: Call) -> Document:
    name = call.collection_name()
    check_collection_name(call.database, name)
    raw = call.request.arrays.get("documents")
    documents = call.array("documents", exact=True)
    check_count(documents)
    ordered = call.flag("ordered", True)
    sizes = (
        [len(one) for one in raw]
        if raw is not None
        else [len(encode(one)) if isinstance(one, dict) else 0 for one in documents]
    )
    made: list[Document] = []
    early: list[tuple[int, MongoError]] = []
    places: list[int] = []
    for at, one in enumerate(documents):
        try:
            made.append(prepared(one, call))
            places.append(at)
        except MongoError as error:
            early.append((at, error))
            if ordered:
                break
    collection = call.service.collections.ensure(call.database, name)
    if call.transaction is not None:
        count, errors = call.transaction.insert(call, collection, made)
    else:
        outcome = insert_all(
            collection,
            made,
            ordered=ordered,
            statement=_numbered(call.statement(), places),
            sizes=[sizes[at] for at in places],
            budget=call.budget,
        )
        call.charge(outcome.charge_ru)
        count, errors = outcome.done, outcome.errors
    errors = [(places[at], error) for at, error in errors]
    errors = sorted([*errors, *early], key=lambda one: one[0])
    return write_reply({"n": count}, errors[:1] if ordered else errors)


def _numbered(
    statement: Callable[[int], Statement] | None, places: Sequence[int]
) -> Callable[[int], Statement] | None:
    return None if statement is None else lambda index: statement(places[index])
