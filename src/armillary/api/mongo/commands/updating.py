"""update: one document or many, and upserts. Facts: sections 8, 10, 13."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from bson.objectid import ObjectId

from armillary.api.mongo.call import Call
from armillary.api.mongo.commands.statements import (
    ROUNDS_MAX,
    Outcome,
    checked_statement,
    first_row,
    need_key,
    nothing,
    recorded_outcome,
    run_statements,
    shard_query,
    unchanged,
    write_reply,
)
from armillary.api.mongo.data.collections import Collection, check_collection_name
from armillary.api.mongo.data.reads import Row
from armillary.api.mongo.data.writes import (
    Moved,
    Statement,
    Written,
    replace_row,
    write,
    writing,
)
from armillary.api.mongo.errors import (
    MongoError,
    wrong_type,
)
from armillary.api.mongo.language import Language
from armillary.api.mongo.match.compiled import compile_filter
from armillary.api.mongo.update.apply import Update, compile_update
from armillary.api.mongo.update.upserts import base_document, equalities
from armillary.encoding.bson.values import Document, encode, type_name

DUPLICATES_MAX: Final = 10


UPDATE_FIELDS: Final = frozenset(
    [
        "q",
        "u",
        "multi",
        "upsert",
        "arrayFilters",
        "collation",
        "hint",
        "c",
        "sampleId",
        "upsertSupplied",
    ]
)


@dataclass(frozen=True, slots=True)
class UpdateStatement:
    query: Document
    update: Update
    language: Language
    multi: bool
    upsert: bool


def update(call: Call) -> Document:
    name = call.collection_name()
    check_collection_name(call.database, name)
    totals = {"n": 0, "nModified": 0}
    upserted: list[Document] = []

    def run(at: int, source: Any, record: Statement | None) -> None:
        statement = _update_statement(call, source)
        if record is not None and statement.multi:
            raise MongoError(72, "Cannot use (or request) retryable writes with multi=true")
        outcome = run_update(call, name, statement, record)
        totals["n"] += outcome.matched + outcome.has_upserted
        totals["nModified"] += outcome.modified
        if outcome.has_upserted:
            upserted.append({"index": at, "_id": outcome.upserted})

    errors = run_statements(call, call.array("updates"), run)
    reply: Document = dict(totals)
    if upserted:
        reply["upserted"] = upserted
    return write_reply(reply, errors)


def _update_statement(call: Call, source: Any) -> UpdateStatement:
    source = checked_statement("update.updates", source, UPDATE_FIELDS, ("q", "u"))
    language = call.language()
    if isinstance(source.get("c"), dict):
        language = call.service.language({**language.variables, **source["c"]}, call.budget)
    language = call.collated(language, source.get("collation"))
    call.hinted_collection(source.get("hint"))
    multi = bool(source.get("multi"))
    filters = source.get("arrayFilters")
    filters = () if filters is None else filters
    if not isinstance(filters, list | tuple):
        raise wrong_type("update.updates.arrayFilters", type_name(filters), "array")
    made = compile_update(source["u"], language, array_filters=filters, multi=multi)
    return UpdateStatement(source["q"], made, language, multi, bool(source.get("upsert")))


def run_update(
    call: Call, name: str, statement: UpdateStatement, record: Statement | None
) -> Outcome:
    test = compile_filter(statement.query, statement.language)
    collection = call.collection()
    if collection is None:
        if not statement.upsert:
            return Outcome()
        collection = call.service.collections.ensure(call.database, name)
    if not statement.multi or statement.upsert:
        need_key(collection, statement.query)
    if statement.multi:
        outcome = _update_many(call, collection, statement, test)
        if not outcome.matched and statement.upsert:
            return upsert(call, collection, statement, record)
        return outcome
    return update_one(call, collection, statement, test, record)


def update_one(
    call: Call,
    collection: Collection,
    statement: UpdateStatement,
    test: Callable[[Any], bool],
    record: Statement | None,
    order: Document | None = None,
) -> Outcome:
    duplicates = 0
    for _ in range(ROUNDS_MAX):
        row = first_row(call, collection, statement.query, test, order, statement.language)
        if row is None:
            if not statement.upsert:
                return nothing(call, collection, statement.query, record)
            try:
                return upsert(call, collection, statement, record)
            except MongoError as error:
                # Somebody inserted it since we looked, unless the query can't find it at all.
                duplicates += 1
                if (
                    error.code != 11000
                    or duplicates > DUPLICATES_MAX
                    or not _may_find(collection, statement.query)
                ):
                    raise
                call.budget.check()
                continue
        try:
            return change(call, collection, row, statement, record)
        except Moved:
            call.budget.check()
    raise MongoError(112, "The document kept changing while it was updated.")


def _may_find(collection: Collection, query: Document) -> bool:
    """Whether the query asks for the values of a unique index: what met our insert may match."""
    asked = equalities(query).keys()
    return "_id" in query or any(
        index.key and index.key.keys() <= asked for index in collection.uniques
    )


def change(
    call: Call,
    collection: Collection,
    row: Row,
    statement: UpdateStatement,
    record: Statement | None,
) -> Outcome:
    new = statement.update.run(row.document, False, statement.query)
    if encode(new) == encode(row.document):
        same = Outcome(1, 0, old=row.document, new=row.document)
        return unchanged(call, collection, row.document, record, same)
    reply = {"n": 1, "nModified": 1, "old": row.document, "new": new}
    if record is not None and call.name == "update":
        reply = {"n": 1, "nModified": 1}
    if call.transaction is not None:
        call.transaction.replace(call, collection, row, new)
        written = Written(0.0)
    else:
        written = replace_row(collection, row, new, record, reply)
    call.charge(written.charge_ru)
    if written.reply is not None:
        return recorded_outcome(written.reply)
    return Outcome(1, 1, old=row.document, new=new)


def _update_many(
    call: Call,
    collection: Collection,
    statement: UpdateStatement,
    test: Callable[[Any], bool],
) -> Outcome:
    outcome = Outcome()
    # Read whole first: a document that an update moves behind us must not be met again.
    rows = [
        row
        for row in call.rows(collection, statement.query, statement.language)
        if test(row.document)
    ]
    for row in rows:
        found: Row | None = row
        for _ in range(ROUNDS_MAX):
            if found is None:
                break
            try:
                done = change(call, collection, found, statement, None)
            except Moved:
                query = {"_id": row.document["_id"], **shard_query(collection, row.document)}
                again = (one for one in call.rows(collection, query) if test(one.document))
                found = next(again, None)
                continue
            outcome.matched += done.matched
            outcome.modified += done.modified
            break
        call.budget.check()
    return outcome


def upsert(
    call: Call, collection: Collection, statement: UpdateStatement, record: Statement | None
) -> Outcome:
    base = base_document(statement.query)
    if statement.update.kind == "replacement":
        base = {"_id": base["_id"]} if "_id" in base else {}
    new = statement.update.run(base, True, statement.query)
    if "_id" not in new:
        new = {"_id": ObjectId(), **new}
    elif next(iter(new)) != "_id":
        new = {"_id": new["_id"], **new}
    if collection.shard is not None and statement.update.kind == "replacement":
        collection.key_of(new)
    if call.transaction is not None:
        _, errors = call.transaction.insert(call, collection, [new])
        if errors:
            raise errors[0][1]
        return Outcome(0, 0, new["_id"], True, None, new)
    operation = writing(collection, "create", new)
    reply = {"n": 0, "nModified": 0, "upserted": new["_id"]}
    if call.name != "update":
        reply["new"] = new
    written = write(collection, operation, new, record, reply)
    call.charge(written.charge_ru)
    if written.reply is not None:
        return recorded_outcome(written.reply)
    return Outcome(0, 0, new["_id"], True, None, new)
