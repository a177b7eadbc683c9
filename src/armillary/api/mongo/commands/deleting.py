"""delete: one document or many. Facts: sections 8 and 10."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from armillary.api.mongo.call import Call
from armillary.api.mongo.commands import statements
from armillary.api.mongo.commands.statements import Outcome
from armillary.api.mongo.data.collections import Collection, check_collection_name
from armillary.api.mongo.data.reads import target_of
from armillary.api.mongo.data.writes import (
    Moved,
    Statement,
    delete_row,
)
from armillary.api.mongo.errors import (
    MongoError,
    failed_to_parse,
)
from armillary.api.mongo.language import Language
from armillary.api.mongo.match.compiled import compile_filter
from armillary.encoding.bson.values import Document, is_number, number_of
from armillary.errors import DbError
from armillary.store.items.preparation import Operation

DELETE_FIELDS: Final = frozenset(["q", "limit", "collation", "hint", "sampleId"])


def delete(call: Call) -> Document:
    check_collection_name(call.database, call.collection_name())
    reply: Document = {"n": 0}

    def run(at: int, source: Any, record: Statement | None) -> None:
        reply["n"] += _delete(call, source, record)

    return statements.write_reply(
        reply, statements.run_statements(call, call.array("deletes"), run)
    )


def _delete(call: Call, source: Any, record: Statement | None) -> int:
    source = statements.checked_statement("delete.deletes", source, DELETE_FIELDS, ("q", "limit"))
    query, limit = source["q"], source["limit"]
    if not is_number(limit) or number_of(limit) not in (0, 1):
        raise failed_to_parse(f"The limit field in delete objects must be 0 or 1. Got {limit}")
    many = number_of(limit) == 0
    if many and record is not None:
        raise MongoError(72, "Cannot use (or request) retryable writes with limit=0")
    language = call.collated(call.language(), source.get("collation"))
    test = compile_filter(query, language)
    collection = call.hinted_collection(source.get("hint"))
    if collection is None:
        return 0
    if many:
        return _delete_many(call, collection, query, test, language)
    statements.need_key(collection, query)
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
            return statements.recorded_outcome(earlier)
    for _ in range(statements.ROUNDS_MAX):
        row = statements.first_row(call, collection, query, test, order, language)
        if row is None:
            return statements.nothing(call, collection, query, record)
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
            return statements.recorded_outcome(written.reply)
        return Outcome(1, old=row.document)
    raise MongoError(112, "The document kept changing while it was deleted.")


def _delete_many(
    call: Call,
    collection: Collection,
    query: Document,
    test: Callable[[Any], bool],
    language: Language,
) -> int:
    total = 0
    rows = [row for row in call.rows(collection, query, language) if test(row.document)]
    if call.transaction is not None:
        for row in rows:
            call.transaction.delete(call, collection, row)
        return len(rows)
    from armillary.encoding.bson.stored import item_id
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
        outcomes = collection.store.bulk(operations, budget=call.budget)
        for row, done in zip(chunk, outcomes, strict=True):
            if isinstance(done, NotFound):
                continue
            if isinstance(done, PreconditionFailed):
                own = {
                    "_id": row.document["_id"],
                    **statements.shard_query(collection, row.document),
                }
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
