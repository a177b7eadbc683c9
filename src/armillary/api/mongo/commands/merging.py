"""`$merge`: rows into another collection, by what matches and what does not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from armillary.api.mongo.aggregate.documents import UPDATE_STAGES, compile_document_stage
from armillary.api.mongo.aggregate.pipeline import split_stage
from armillary.api.mongo.call import Call
from armillary.api.mongo.data.collections import Collection, check_collection_name
from armillary.api.mongo.data.inserts import insert_all
from armillary.api.mongo.data.reads import Row, rows_of
from armillary.api.mongo.data.writes import Moved, duplicate, replace_row
from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions.compiled import compile_expression
from armillary.api.mongo.expressions.values import get_path
from armillary.api.mongo.language import MISSING, Language
from armillary.api.mongo.match.compiled import compile_filter
from armillary.encoding.bson.values import Document, encode, is_text
from armillary.errors import Conflict

MATCHED: Final = ("merge", "replace", "keepExisting", "fail")
UNMATCHED: Final = ("insert", "discard", "fail")
ROUNDS_MAX: Final = 100


def merge(call: Call, argument: Any, rows: Iterable[Document], language: Language) -> None:
    options = {"into": argument} if is_text(argument) else argument
    if not isinstance(options, dict) or "into" not in options:
        raise MongoError(51182, "$merge requires an 'into' field")
    into = options["into"]
    if is_text(into):
        database, name = call.database, into
    elif isinstance(into, dict) and is_text(into.get("coll")):
        database, name = into.get("db", call.database), into["coll"]
    else:
        raise MongoError(51178, "$merge 'into' field must specify a 'coll'")
    matched, unmatched = (
        options.get("whenMatched", "merge"),
        options.get("whenNotMatched", "insert"),
    )
    if not isinstance(matched, list) and matched not in MATCHED:
        raise MongoError(51191, f"$merge 'whenMatched' has an invalid value '{matched}'")
    if unmatched not in UNMATCHED:
        raise MongoError(51190, f"$merge 'whenNotMatched' has an invalid value '{unmatched}'")
    on = options.get("on", "_id")
    paths = [on] if is_text(on) else on
    if not isinstance(paths, list) or not paths or not all(map(is_text, paths)):
        raise MongoError(51186, "$merge 'on' field must be a string or an array of strings")
    check_collection_name(database, name)
    kept = list(rows)
    target = call.service.collections.ensure(database, name)
    for row in kept:
        call.budget.check()
        if "_id" not in row:
            row = {"_id": language.new_id(), **row}
        _merge_row(call, target, row, paths, matched, unmatched, options.get("let"), language)


def _merge_row(
    call: Call,
    target: Collection,
    row: Document,
    paths: list[str],
    matched: Any,
    unmatched: str,
    let: Any,
    language: Language,
) -> None:
    for _ in range(ROUNDS_MAX):
        old = _existing(call, target, row, paths, language)
        if old is None:
            if unmatched == "fail":
                raise MongoError(
                    13113, "$merge could not find a matching document in the target collection"
                )
            if unmatched == "insert":
                done = insert_all(
                    target,
                    [row],
                    ordered=True,
                    statement=None,
                    sizes=[len(encode(row))],
                    budget=call.budget,
                )
                call.charge(done.charge_ru)
                if done.errors:
                    raise done.errors[0][1]
            return
        if matched == "keepExisting":
            return
        if matched == "fail":
            raise duplicate(target, row, Conflict())
        new = _merged(old.document, row, matched, let, language)
        if encode(new) == encode(old.document):
            return
        try:
            call.charge(replace_row(target, old, new, None, {}).charge_ru)
        except Moved:
            continue
        return
    raise MongoError(112, "The document kept changing while it was merged.")


def _existing(
    call: Call, target: Collection, row: Document, paths: list[str], language: Language
) -> Row | None:
    query: Document = {}
    for path in paths:
        value = get_path(row, path.split("."))
        if value is MISSING or value is None:
            raise MongoError(
                51132,
                f"$merge write error: 'on' field '{path}' cannot be missing, null or undefined",
            )
        query[path] = {"$eq": value}
    test = compile_filter(query, language)
    rows = rows_of(target, query, call.charge, call.budget)
    return next((one for one in rows if test(one.document)), None)


def _merged(old: Document, row: Document, matched: Any, let: Any, language: Language) -> Document:
    if matched == "replace":
        return {"_id": old["_id"], **{k: v for k, v in row.items() if k != "_id"}}
    if matched == "merge":
        return {**old, **{k: v for k, v in row.items() if k != "_id"}}
    variables: Document = {"new": row}
    if isinstance(let, dict):
        around = {"ROOT": row, "CURRENT": row}
        variables |= {k: compile_expression(v, language)(row, around) for k, v in let.items()}
    inner = replace(language, variables={**language.variables, **variables})
    document = old
    for stage in matched:
        name, argument = split_stage(stage)
        if name not in UPDATE_STAGES:
            raise MongoError(72, f"{name} is not allowed to be used within an update")
        document = compile_document_stage(name, argument, inner)(document)
    return {"_id": old["_id"], **{k: v for k, v in document.items() if k != "_id"}}
