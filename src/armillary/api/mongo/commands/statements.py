"""What the write commands share: how a document is found, what a statement comes to, replies.
Facts: sections 8 and 10."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from armillary.api.mongo.aggregate.stages import sort as sort_stage
from armillary.api.mongo.call import Call
from armillary.api.mongo.data.collections import Collection
from armillary.api.mongo.data.reads import Row, target_of
from armillary.api.mongo.data.writes import (
    Statement,
    record_alone,
)
from armillary.api.mongo.errors import (
    MongoError,
    missing_field,
    mongo_error,
    unknown_field,
    wrong_type,
)
from armillary.api.mongo.language import Language
from armillary.api.mongo.sorting import parse_sort
from armillary.api.mongo.update.paths import set_at
from armillary.api.mongo.update.upserts import equalities
from armillary.encoding.bson.values import Document, type_name
from armillary.errors import DbError, OutOfTime
from armillary.limits import MONGO_WRITE_BATCH_MAX

ROUNDS_MAX: Final = 200


NO_SINGLE_KEY: Final = "query in command must target a single shard key"


@dataclass(slots=True)
class Outcome:
    matched: int = 0
    modified: int = 0
    upserted: Any = None
    has_upserted: bool = False
    old: Document | None = None
    new: Document | None = None


def recorded_outcome(reply: Document) -> Outcome:
    return Outcome(
        reply.get("n", 0),
        reply.get("nModified", 0),
        reply.get("upserted"),
        "upserted" in reply,
        reply.get("old"),
        reply.get("new"),
    )


def check_count(statements: Sequence[Any]) -> None:
    if not 1 <= len(statements) <= MONGO_WRITE_BATCH_MAX:
        raise MongoError(
            16,
            f"Write batch sizes must be between 1 and {MONGO_WRITE_BATCH_MAX}. Got "
            f"{len(statements)} operations.",
        )


def run_statements(
    call: Call, statements: Sequence[Any], run: Callable[[int, Any, Statement | None], None]
) -> list[tuple[int, MongoError]]:
    """Each with its position and what makes it retryable; what failed, and where. The first failure
    ends it if they are ordered."""
    check_count(statements)
    ordered = call.flag("ordered", True)
    named = call.statement()
    errors: list[tuple[int, MongoError]] = []
    for at, source in enumerate(statements):
        try:
            run(at, source, None if named is None else named(at))
        except (MongoError, DbError) as error:
            raise_whole(call, error)
            errors.append((at, error if isinstance(error, MongoError) else mongo_error(error)))
            if ordered:
                break
    return errors


def checked_statement(
    place: str, source: Any, known: frozenset[str], needed: Sequence[str]
) -> Document:
    """`place`: of its fields in messages."""
    if not isinstance(source, dict):
        raise wrong_type(f"{place}.0", type_name(source), "object")
    for one in source:
        if one not in known:
            raise unknown_field(f"{place}.{one}")
    for one in needed:
        if one not in source:
            raise missing_field(f"{place}.{one}")
    if not isinstance(source["q"], dict):
        raise wrong_type(f"{place}.q", type_name(source["q"]), "object")
    return source


def write_reply(reply: Document, errors: Sequence[tuple[int, MongoError]]) -> Document:
    if errors:
        reply["writeErrors"] = [error.entry(at) for at, error in errors]
    return reply


def raise_whole(call: Call, error: MongoError | DbError) -> None:
    """Some errors are of the command rather than of one statement."""
    if call.transaction is not None or isinstance(error, OutOfTime):
        raise error
    if isinstance(error, MongoError) and (
        error.code in (40414, 40415, 72, 50) or error.facts.get("whole")
    ):
        raise error


def need_key(collection: Collection, query: Document) -> None:
    if collection.shard is not None and target_of(collection, query).key is None:
        raise MongoError(61, NO_SINGLE_KEY)


def first_row(
    call: Call,
    collection: Collection,
    query: Document,
    test: Callable[[Any], bool],
    order: Document | None,
    language: Language,
) -> Row | None:
    rows = (row for row in call.rows(collection, query, language) if test(row.document))
    if not order:
        return next(rows, None)
    parse_sort(order)
    kept = list(rows)
    by_id = {id(row.document): row for row in kept}
    best = next(iter(sort_stage(order, language, 1)([row.document for row in kept])), None)
    return None if best is None else by_id[id(best)]


def nothing(
    call: Call, collection: Collection, query: Document, record: Statement | None
) -> Outcome:
    """No document matches."""
    place: Document = {}
    if collection.shard is not None and record is not None:
        set_at(place, collection.shard, equalities(query)[".".join(collection.shard)])
    return unchanged(call, collection, place, record, Outcome())


def unchanged(
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


def shard_query(collection: Collection, document: Document) -> Document:
    from armillary.api.mongo.data.collections import walk

    if collection.shard is None:
        return {}
    return {".".join(collection.shard): walk(document, collection.shard)}
