"""findAndModify. Facts: sections 8 and 10."""

from __future__ import annotations

from typing import Any

from armillary.api.mongo.call import Call
from armillary.api.mongo.commands.deleting import remove_one
from armillary.api.mongo.commands.statements import (
    Outcome,
    need_key,
    recorded_outcome,
)
from armillary.api.mongo.commands.updating import UpdateStatement, update_one
from armillary.api.mongo.data.collections import check_collection_name
from armillary.api.mongo.data.reads import target_of
from armillary.api.mongo.errors import (
    bad_value,
    failed_to_parse,
)
from armillary.api.mongo.match.compiled import compile_filter
from armillary.api.mongo.projection import compile_projection
from armillary.api.mongo.update.apply import compile_update
from armillary.encoding.bson.values import Document


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
    collection = call.hinted_collection()
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
    done = update_one(call, collection, statement, test, record, order)
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
