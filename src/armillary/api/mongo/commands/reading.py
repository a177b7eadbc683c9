"""find, getMore, killCursors, count, distinct. Facts: sections 6 and 8."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from bson.int64 import Int64

from armillary.api.mongo.aggregate.stages import sort as sort_stage
from armillary.api.mongo.call import Call
from armillary.api.mongo.collation import askable
from armillary.api.mongo.data import cursors
from armillary.api.mongo.data.collections import Collection, check_collection_name
from armillary.api.mongo.data.cursors import CursorState
from armillary.api.mongo.data.entries import counted, values_of
from armillary.api.mongo.data.hints import bounds_of, hinted_order
from armillary.api.mongo.data.reads import (
    PAGE_ITEMS,
    Target,
    ordered_target,
    read_page,
    target_of,
)
from armillary.api.mongo.errors import MongoError, bad_value, wrong_type
from armillary.api.mongo.language import MISSING, Language, rough_bytes
from armillary.api.mongo.match.compiled import compile_filter
from armillary.api.mongo.match.geo import near_of
from armillary.api.mongo.match.operators import Filter
from armillary.api.mongo.match.paths import leaves
from armillary.api.mongo.projection import Project, compile_projection
from armillary.api.mongo.sorting import parse_sort
from armillary.encoding.bson.values import Document, encode, is_text, sort_key, type_name
from armillary.limits import MONGO_FIRST_BATCH, MONGO_REPLY_BYTES_MAX

FIND_FIELDS: Final = (
    "filter sort projection hint skip limit batchSize singleBatch collation let returnKey "
    "showRecordId allowDiskUse min max noCursorTimeout tailable awaitData allowPartialResults "
    "oplogReplay ntoreturn includeQueryStatsMetrics term"
)
UNLIMITED: Final = 1 << 40


@dataclass(slots=True)
class Finding:
    """A find, compiled: what a scan cursor needs to go on."""

    collection: Collection
    query: Document
    test: Filter
    project: Project | None
    target: Target

    def wanted(self, rows: Iterable[Document]) -> Iterator[bytes]:
        project = self.project
        for document in rows:
            if self.test(document):
                yield encode(document if project is None else project(document))


def finding(
    collection: Collection,
    query: Document,
    projection: Document,
    language: Language,
    order: Document | None = None,
) -> Finding:
    """`order`: in which documents are read."""
    test, asked = compile_filter(query, language), askable(query, language.fold)
    return Finding(
        collection,
        query,
        test,
        compile_projection(projection, language, query=query) if projection else None,
        ordered_target(collection, asked, test, parse_sort(order))
        if order
        else target_of(collection, asked),
    )


def find(call: Call) -> Document:
    name = call.collection_name()
    query, projection, sort = (
        call.document("filter"),
        call.document("projection"),
        call.document("sort"),
    )
    skip, limit = call.whole("skip"), call.whole("limit", least=None)
    size = call.whole("batchSize", MONGO_FIRST_BATCH)
    single = call.flag("singleBatch")
    if limit < 0:
        limit, single = -limit, True
    language = call.language()
    namespace = f"{call.database}.{name}"
    spec = parse_sort(sort) if sort and "$natural" not in sort else []
    collection = call.collection()
    if collection is None:
        compile_filter(query, language)
        if projection:
            compile_projection(projection, language, query=query)
        return cursor_reply(namespace, 0, [])
    hint = {} if sort else hinted_order(collection, call.command.get("hint"))
    made = finding(collection, query, projection, language, hint)
    bounds = bounds_of(
        collection, call.command.get("hint"), call.document("min"), call.document("max")
    )
    if bounds is not None:
        made.test = bounds.narrowed(made.test)
    near = near_of(query)
    if spec:
        check_sort(call, collection, sort)
    backwards = "$natural" in sort and sort["$natural"] == -1
    folded = language.fold is not None
    whole = spec or near is not None or backwards or folded or bounds is not None
    if whole or call.transaction is not None:
        # Two numbers of 63 bits may add up to more than a list can have.
        end = min(skip + limit, sys.maxsize) if limit else None
        first = None if near is not None else call.first(collection, query, made.test, spec, end)
        rows = (row.document for row in call.rows(collection, query)) if first is None else ()
        matched = (one for one in rows if made.test(one))
        ordered: Iterable[Document]
        if first is not None:
            ordered = first
        elif spec:
            ordered = sort_stage(sort, language, end)(matched)
        elif near is not None:
            ordered = sorted(matched, key=near.distance)
        elif bounds is not None:
            ordered = sorted(matched, key=bounds.sort_key)
        elif hint:
            ordered = sort_stage(hint, language, end)(matched)
        else:
            ordered = list(matched)[::-1] if backwards else matched
        chosen = islice(ordered, skip, end)
        project = made.project
        found = [encode(one if project is None else project(one)) for one in chosen]
        return rows_reply(call, namespace, found, size, single=single)
    state: Document = {
        "filter": query,
        "projection": projection,
        "let": call.document("let"),
        "skip": Int64(skip),
        "limit": Int64(limit or UNLIMITED),
        "position": None,
        "done": False,
        "order": hint,
    }
    cursor = CursorState("scan", namespace, call.session, state, [])
    batch = scan_batch(call, made, cursor, size)
    if single or is_finished(made, cursor, batch, size):
        return cursor_reply(namespace, 0, batch)
    number = cursors.new_id()
    cursors.save(call.service.engine, number, cursor)
    return cursor_reply(namespace, number, batch)


def check_sort(call: Call, collection: Collection, sort: Document) -> None:
    """Strict: a sort needs an index, as in Azure Cosmos DB."""
    if not call.service.settings.strict:
        return
    names = list(sort)
    if len(names) == 1:
        for index in collection.indexes:
            key = list(index["key"])
            if key == names or "$**" in key:
                return
        raise bad_value(
            "Error=2, Details='Response status code does not indicate success: BadRequest (400); "
            "The index path corresponding to the specified order-by item is excluded."
        )
    signs = [sort[one] for one in names]
    for index in collection.indexes:
        compound: Document = index["key"]
        orders = list(compound.values())
        if list(compound) == names and (orders == signs or orders == [-one for one in signs]):
            return
    raise bad_value(
        "Error=2, Details='Response status code does not indicate success: BadRequest (400); The "
        "order by query does not have a corresponding composite index that it can be served from."
    )


def scan_batch(call: Call, made: Finding, cursor: CursorState, size: int) -> list[bytes]:
    """The next documents of a scan; what was read beyond them stays in the buffer."""
    state = cursor.state
    held = sum(map(len, cursor.buffer))
    while not state["done"] and len(cursor.buffer) < size and held < MONGO_REPLY_BYTES_MAX:
        skip, limit = int(state["skip"]), int(state["limit"])
        ask = PAGE_ITEMS
        if not made.query:
            ask = max(1, min(PAGE_ITEMS, limit + skip, size + skip))
        page = read_page(made.collection, made.target, state["position"], ask, budget=call.budget)
        call.charge(page.charge_ru)
        call.budget.spend(len(page.rows) + 1)
        for data in made.wanted(row.document for row in page.rows):
            if skip:
                skip -= 1
            elif limit:
                limit -= 1
                cursor.buffer.append(data)
                held += len(data)
            else:
                break
        state["skip"], state["limit"] = Int64(skip), Int64(limit)
        state["position"] = page.position
        state["done"] = page.position is None or not limit
    batch, cursor.buffer = cursors.take(cursor.buffer, size)
    return batch


def is_finished(made: Finding, cursor: CursorState, batch: list[bytes], size: int) -> bool:
    """A full batch is not the last, unless the limit ends with it or there can be but one document:
    the reference server does not look ahead, and clients count its batches."""
    state = cursor.state
    if cursor.buffer or not state["done"]:
        return False
    return len(batch) < size or not state["limit"] or made.target.item is not None


def cursor_reply(
    namespace: str, number: int, batch: list[bytes], key: str = "firstBatch"
) -> Document:
    return {
        "cursor": {key: cursors.array_of(batch), "id": Int64(number), "ns": namespace},
        "ok": 1.0,
    }


def rows_reply(
    call: Call, namespace: str, found: list[bytes], size: int, *, single: bool = False
) -> Document:
    """The first batch of a result that is known whole."""
    batch, rest = cursors.take(found, size)
    if (single or not rest) and not (size == 0 and found and not single):
        return cursor_reply(namespace, 0, batch)
    number = cursors.new_id()
    cursors.save(
        call.service.engine, number, CursorState("rows", namespace, call.session, {}, rest)
    )
    return cursor_reply(namespace, number, batch)


# --- cursors --------------------------------------------------------------------------------------


def get_more(call: Call) -> Document:
    number = call.command["getMore"]
    if not isinstance(number, int) or isinstance(number, bool):
        raise wrong_type("getMore.getMore", type_name(number), "long")
    name = call.command.get("collection")
    if not is_text(name):
        raise MongoError(73, "collection name has invalid type")
    size = call.whole("batchSize", 0) or UNLIMITED
    engine = call.service.engine
    cursor = cursors.load(engine, number)
    namespace = f"{call.database}.{name}"
    if cursor.namespace != namespace:
        raise MongoError(
            13,
            f"Requested getMore on namespace '{namespace}', but cursor belongs to a different "
            f"namespace {cursor.namespace}",
        )
    if cursor.kind == "change":
        from armillary.api.mongo.commands.changes import more_changes

        return more_changes(call, number, cursor, size)
    gone: list[bytes] = []
    if cursor.kind == "scan":
        collection = call.service.collections.find(call.database, name)
        if collection is None:
            cursors.remove(engine, [number])
            raise MongoError(43, f"cursor id {number} not found")
        language = call.service.language(cursor.state["let"], call.budget)
        state = cursor.state
        order = state.get("order")  # not in cursors of an earlier version
        made = finding(collection, state["filter"], state["projection"], language, order)
        batch = scan_batch(call, made, cursor, size)
        finished = is_finished(made, cursor, batch, size)
    else:
        while len(cursor.buffer) < size and sum(map(len, cursor.buffer)) < MONGO_REPLY_BYTES_MAX:
            key = cursors.next_piece(engine, number, cursor)
            if key is None:
                break
            gone.append(key)
        batch, cursor.buffer = cursors.take(cursor.buffer, size)
        finished = not cursor.buffer and not cursor.state.get("pieces")
    if finished:
        cursors.remove(engine, [number])
        return cursor_reply(namespace, 0, batch, "nextBatch")
    cursors.update(engine, number, cursor, gone)
    return cursor_reply(namespace, number, batch, "nextBatch")


def kill_cursors(call: Call) -> Document:
    numbers = call.array("cursors")
    if not numbers:
        raise bad_value("Must specify at least one cursor id in: killCursors")
    for at, one in enumerate(numbers):
        if not isinstance(one, int) or isinstance(one, bool):
            raise wrong_type(f"killCursors.cursors.{at}", type_name(one), "long")
    found = cursors.remove(call.service.engine, [int(one) for one in numbers])
    killed = [one for one, was in zip(numbers, found, strict=True) if was]
    missing = [one for one, was in zip(numbers, found, strict=True) if not was]
    return {
        "cursorsKilled": killed,
        "cursorsNotFound": missing,
        "cursorsAlive": [],
        "cursorsUnknown": [],
    }


# --- counting -------------------------------------------------------------------------------------


def count(call: Call) -> Document:
    query = call.document("query")
    skip, limit = call.whole("skip"), abs(call.whole("limit", least=None))
    test = compile_filter(query, call.language())
    collection = call.hinted_collection()
    if collection is None:
        return {"n": 0}
    total = counted(call, collection, query)
    if total is None:
        total = sum(1 for row in call.rows(collection, query) if test(row.document))
    total = max(0, total - skip)
    return {"n": min(total, limit) if limit else total}


def distinct(call: Call) -> Document:
    key = call.text("key")
    if key is None:
        raise MongoError(40414, "BSON field 'distinct.key' is missing but a required field")
    query = call.document("query")
    test = compile_filter(query, call.language())
    name = call.collection_name()
    check_collection_name(call.database, name)
    collection = call.hinted_collection()
    fold = call.language().fold
    found = None if collection is None or query else values_of(call, collection, key)
    if found is not None:
        return {"values": [one.value for one in found]}
    values: dict[Any, Any] = {}
    if collection is not None:
        parts = tuple(key.split("."))
        for row in call.rows(collection, query):
            if not test(row.document):
                continue
            for leaf in leaves(row.document, parts):
                for one in leaf if isinstance(leaf, list) else [leaf]:
                    if one is MISSING:
                        continue
                    rank = sort_key(one if fold is None else fold(one))
                    if rank not in values:
                        call.budget.hold(2 * rough_bytes(one))
                        values[rank] = one
    return {"values": [values[one] for one in sorted(values)]}
