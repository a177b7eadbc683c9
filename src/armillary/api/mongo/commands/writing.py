"""insert, update, delete, findAndModify. Facts: sections 8, 10, 13."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bson.objectid import ObjectId
from bson.timestamp import Timestamp

from armillary.api.mongo.aggregate.stages import sort as sort_stage
from armillary.api.mongo.call import Call
from armillary.api.mongo.data.collections import Collection, check_collection_name
from armillary.api.mongo.data.reads import Row, target_of
from armillary.api.mongo.data.writes import (
    Moved,
    Statement,
    Written,
    delete_row,
    insert_all,
    item_of,
    record_alone,
    replace_row,
    write,
)
from armillary.api.mongo.errors import (
    MongoError,
    bad_value,
    failed_to_parse,
    missing_field,
    mongo_error,
    unknown_field,
    wrong_type,
)
from armillary.api.mongo.language import Language
from armillary.api.mongo.match.compiled import compile_filter
from armillary.api.mongo.projection import compile_projection
from armillary.api.mongo.sorting import parse_sort
from armillary.api.mongo.update.apply import Update, compile_update
from armillary.api.mongo.update.paths import set_at
from armillary.api.mongo.update.upserts import base_document, equalities
from armillary.encoding.bson_values import Document, encode, is_number, number_of, type_name
from armillary.errors import DbError
from armillary.limits import MONGO_WRITE_BATCH_MAX
from armillary.store.items.preparation import Operation

if TYPE_CHECKING:
    from armillary.api.mongo.service import Service

ROUNDS_MAX: Final = 200
DUPLICATES_MAX: Final = 10
NO_SINGLE_KEY: Final = "query in command must target a single shard key"


# --- insert ---------------------------------------------------------------------------------------


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
    for name, value in document.items():
        if isinstance(value, Timestamp) and value.time == 0 and value.inc == 0 and name != "_id":
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


def check_count(statements: Sequence[Any]) -> None:
    if not 1 <= len(statements) <= MONGO_WRITE_BATCH_MAX:
        raise MongoError(
            16,
            f"Write batch sizes must be between 1 and {MONGO_WRITE_BATCH_MAX}. Got "
            f"{len(statements)} operations.",
        )


def write_reply(reply: Document, errors: Sequence[tuple[int, MongoError]]) -> Document:
    if errors:
        reply["writeErrors"] = [error.entry(at) for at, error in errors]
    return reply


# --- update ---------------------------------------------------------------------------------------

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


@dataclass(slots=True)
class Outcome:
    matched: int = 0
    modified: int = 0
    upserted: Any = None
    has_upserted: bool = False
    old: Document | None = None
    new: Document | None = None


def update(call: Call) -> Document:
    name = call.collection_name()
    check_collection_name(call.database, name)
    statements = call.array("updates")
    check_count(statements)
    ordered = call.flag("ordered", True)
    named = call.statement()
    totals = {"n": 0, "nModified": 0}
    upserted: list[Document] = []
    errors: list[tuple[int, MongoError]] = []
    for at, source in enumerate(statements):
        try:
            statement = _update_statement(call, source)
            if named is not None and statement.multi:
                raise MongoError(72, "Cannot use (or request) retryable writes with multi=true")
            outcome = run_update(call, name, statement, None if named is None else named(at))
        except MongoError as error:
            _raise_whole(call, error)
            errors.append((at, error))
        except DbError as error:
            _raise_whole(call, error)
            errors.append((at, mongo_error(error)))
        else:
            totals["n"] += outcome.matched + outcome.has_upserted
            totals["nModified"] += outcome.modified
            if outcome.has_upserted:
                upserted.append({"index": at, "_id": outcome.upserted})
        if errors and ordered:
            break
    reply: Document = dict(totals)
    if upserted:
        reply["upserted"] = upserted
    return write_reply(reply, errors)


def _raise_whole(call: Call, error: MongoError | DbError) -> None:
    """Some errors are of the command rather than of one statement."""
    if call.transaction is not None:
        raise error
    if isinstance(error, MongoError) and (
        error.code in (40414, 40415, 72, 50) or error.facts.get("whole")
    ):
        raise error


def _update_statement(call: Call, source: Any) -> UpdateStatement:
    if not isinstance(source, dict):
        raise wrong_type("update.updates.0", type_name(source), "object")
    for one in source:
        if one not in UPDATE_FIELDS:
            raise unknown_field(f"update.updates.{one}")
    for one in ("q", "u"):
        if one not in source:
            raise missing_field(f"update.updates.{one}")
    if not isinstance(source["q"], dict):
        raise wrong_type("update.updates.q", type_name(source["q"]), "object")
    language = call.language()
    if isinstance(source.get("c"), dict):
        language = call.service.language({**language.variables, **source["c"]}, call.budget)
    multi = bool(source.get("multi"))
    filters = source.get("arrayFilters") or ()
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
    return _update_one(call, collection, statement, test, record)


def need_key(collection: Collection, query: Document) -> None:
    if collection.shard is not None and target_of(collection, query).key is None:
        raise MongoError(61, NO_SINGLE_KEY)


def _update_one(
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
                return _nothing(call, collection, statement.query, record)
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


def _nothing(
    call: Call, collection: Collection, query: Document, record: Statement | None
) -> Outcome:
    """No document matches."""
    place: Document = {}
    if collection.shard is not None and record is not None:
        set_at(place, collection.shard, equalities(query)[".".join(collection.shard)])
    return _unchanged(call, collection, place, record, Outcome())


def _unchanged(
    call: Call,
    collection: Collection,
    place: Document,
    record: Statement | None,
    outcome: Outcome,
) -> Outcome:
    """Nothing to write but the record, in the logical partition of `place`."""
    if record is None:
        return outcome
    reply: Document = {"n": outcome.matched, "nModified": 0}
    if outcome.new is not None and call.name != "update":
        reply |= {"old": outcome.old, "new": outcome.new}
    written = record_alone(collection, place, record, reply)
    call.charge(written.charge_ru)
    return outcome if written.reply is None else recorded_outcome(written.reply)


def first_row(
    call: Call,
    collection: Collection,
    query: Document,
    test: Callable[[Any], bool],
    order: Document | None,
    language: Language,
) -> Row | None:
    rows = (row for row in call.rows(collection, query) if test(row.document))
    if not order:
        return next(rows, None)
    parse_sort(order)
    kept = list(rows)
    by_id = {id(row.document): row for row in kept}
    best = next(iter(sort_stage(order, language, 1)([row.document for row in kept])), None)
    return None if best is None else by_id[id(best)]


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
        return _unchanged(call, collection, row.document, record, same)
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


def recorded_outcome(reply: Document) -> Outcome:
    return Outcome(
        reply.get("n", 0),
        reply.get("nModified", 0),
        reply.get("upserted"),
        "upserted" in reply,
        reply.get("old"),
        reply.get("new"),
    )


def _update_many(
    call: Call,
    collection: Collection,
    statement: UpdateStatement,
    test: Callable[[Any], bool],
) -> Outcome:
    outcome = Outcome()
    # Read whole first: a document that an update moves behind us must not be met again.
    rows = [row for row in call.rows(collection, statement.query) if test(row.document)]
    for row in rows:
        found: Row | None = row
        for _ in range(ROUNDS_MAX):
            if found is None:
                break
            try:
                done = change(call, collection, found, statement, None)
            except Moved:
                query = {"_id": row.document["_id"], **_shard_query(collection, row.document)}
                again = (one for one in call.rows(collection, query) if test(one.document))
                found = next(again, None)
                continue
            outcome.matched += done.matched
            outcome.modified += done.modified
            break
        call.budget.check()
    return outcome


def _shard_query(collection: Collection, document: Document) -> Document:
    from armillary.api.mongo.data.collections import walk

    if collection.shard is None:
        return {}
    return {".".join(collection.shard): walk(document, collection.shard)}


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
    operation = Operation("create", body=item_of(collection, new))
    reply = {"n": 0, "nModified": 0, "upserted": new["_id"]}
    if call.name != "update":
        reply["new"] = new
    written = write(collection, operation, new, record, reply)
    call.charge(written.charge_ru)
    if written.reply is not None:
        return recorded_outcome(written.reply)
    return Outcome(0, 0, new["_id"], True, None, new)


# --- delete ---------------------------------------------------------------------------------------

DELETE_FIELDS: Final = frozenset(["q", "limit", "collation", "hint", "sampleId"])


def delete(call: Call) -> Document:
    name = call.collection_name()
    check_collection_name(call.database, name)
    statements = call.array("deletes")
    check_count(statements)
    ordered = call.flag("ordered", True)
    named = call.statement()
    total = 0
    errors: list[tuple[int, MongoError]] = []
    for at, source in enumerate(statements):
        try:
            total += _delete(call, source, None if named is None else named(at))
        except MongoError as error:
            _raise_whole(call, error)
            errors.append((at, error))
        except DbError as error:
            _raise_whole(call, error)
            errors.append((at, mongo_error(error)))
        if errors and ordered:
            break
    return write_reply({"n": total}, errors)


def _delete(call: Call, source: Any, record: Statement | None) -> int:
    if not isinstance(source, dict):
        raise wrong_type("delete.deletes.0", type_name(source), "object")
    for one in source:
        if one not in DELETE_FIELDS:
            raise unknown_field(f"delete.deletes.{one}")
    for one in ("q", "limit"):
        if one not in source:
            raise missing_field(f"delete.deletes.{one}")
    query, limit = source["q"], source["limit"]
    if not isinstance(query, dict):
        raise wrong_type("delete.deletes.q", type_name(query), "object")
    if not is_number(limit) or number_of(limit) not in (0, 1):
        raise failed_to_parse(f"The limit field in delete objects must be 0 or 1. Got {limit}")
    many = number_of(limit) == 0
    if many and record is not None:
        raise MongoError(72, "Cannot use (or request) retryable writes with limit=0")
    language = call.language()
    test = compile_filter(query, language)
    collection = call.collection()
    if collection is None:
        return 0
    if many:
        return _delete_many(call, collection, query, test)
    need_key(collection, query)
    done = remove_one(call, collection, query, test, None, record, language)
    return done.matched


def remove_one(
    call: Call,
    collection: Collection,
    query: Document,
    test: Callable[[Any], bool],
    order: Document | None,
    record: Statement | None,
    language: Language,
) -> Outcome:
    if record is not None:
        # The document may be gone because an earlier attempt removed it.
        from armillary.api.mongo.data.writes import recorded

        key = target_of(collection, query).key
        earlier = None if key is None else recorded(collection, record, key)
        if earlier is not None:
            return recorded_outcome(earlier)
    for _ in range(ROUNDS_MAX):
        row = first_row(call, collection, query, test, order, language)
        if row is None:
            return _nothing(call, collection, query, record)
        if call.transaction is not None:
            call.transaction.delete(call, collection, row)
            return Outcome(1, old=row.document)
        try:
            reply = {"n": 1} if call.name == "delete" else {"n": 1, "old": row.document}
            written = delete_row(collection, row, record, reply)
        except Moved:
            call.budget.check()
            continue
        call.charge(written.charge_ru)
        if written.reply is not None:
            return recorded_outcome(written.reply)
        return Outcome(1, old=row.document)
    raise MongoError(112, "The document kept changing while it was deleted.")


def _delete_many(
    call: Call, collection: Collection, query: Document, test: Callable[[Any], bool]
) -> int:
    total = 0
    rows = [row for row in call.rows(collection, query) if test(row.document)]
    if call.transaction is not None:
        for row in rows:
            call.transaction.delete(call, collection, row)
        return len(rows)
    from armillary.encoding.bson_stored import item_id
    from armillary.errors import NotFound, PreconditionFailed

    for at in range(0, len(rows), 500):
        chunk = rows[at : at + 500]
        operations = [
            (
                Operation("delete", item_id(row.document["_id"]), if_match=_quoted(row.etag)),
                collection.key_of(row.document),
            )
            for row in chunk
        ]
        for row, done in zip(chunk, collection.store.bulk(operations), strict=True):
            if isinstance(done, NotFound):
                continue
            if isinstance(done, PreconditionFailed):
                language = call.language()
                own = {"_id": row.document["_id"], **_shard_query(collection, row.document)}
                total += remove_one(call, collection, own, test, None, None, language).matched
            elif isinstance(done, DbError):
                raise done
            else:
                call.charge(done.charge_ru)
                total += 1
        call.budget.check()
    return total


def _quoted(etag: str) -> str:
    from armillary.api.mongo.data.writes import quoted

    return quoted(etag)


# --- findAndModify --------------------------------------------------------------------------------


def find_and_modify(call: Call) -> Document:
    name = call.collection_name()
    check_collection_name(call.database, name)
    command = call.command
    query, order = call.document("query"), call.document("sort")
    fields = call.document("fields")
    remove, new, make = call.flag("remove"), call.flag("new"), call.flag("upsert")
    source = command.get("update")
    if remove:
        if source is not None:
            raise failed_to_parse("Cannot specify both an update and remove=true")
        if make:
            raise failed_to_parse("Cannot specify both upsert=true and remove=true")
        if new:
            raise failed_to_parse(
                "Cannot specify both new=true and remove=true; 'remove' "
                "always returns the deleted document"
            )
    elif source is None:
        raise failed_to_parse("Either an update or remove=true must be specified")
    if call.service.settings.strict and len(order) > 1:
        raise bad_value("findAndModify sorts by one field only")
    language = call.language()
    test = compile_filter(query, language)
    project = compile_projection(fields, language, query=query) if fields else None
    named = call.statement()
    record = None if named is None else named(0)
    collection = call.collection()
    if collection is None:
        if not make:
            return _modified(None, {"n": 0} if remove else {"n": 0, "updatedExisting": False})
        collection = call.service.collections.ensure(call.database, name)
    need_key(collection, query)
    if remove:
        done = remove_one(call, collection, query, test, order, record, language)
        value = None if done.old is None or project is None else project(done.old)
        return _modified(done.old if project is None else value, {"n": done.matched})
    filters = call.get("arrayFilters", (list,), (), "array")
    made = compile_update(source, language, array_filters=filters)
    statement = UpdateStatement(query, made, language, False, make)
    if record is not None:
        from armillary.api.mongo.data.writes import recorded

        key = target_of(collection, query).key
        earlier = None if key is None else recorded(collection, record, key)
        if earlier is not None:
            done = recorded_outcome(earlier)
            return _answer(done, new, project)
    done = _update_one(call, collection, statement, test, record, order)
    return _answer(done, new, project)


def _answer(done: Outcome, new: bool, project: Any) -> Document:
    last: Document = {"n": done.matched + done.has_upserted, "updatedExisting": bool(done.matched)}
    if done.has_upserted:
        last["upserted"] = done.upserted
    value = done.new if new else done.old
    if value is not None and project is not None:
        value = project(value)
    return _modified(value, last)


def _modified(value: Document | None, last: Document) -> Document:
    return {"lastErrorObject": last, "value": value}
