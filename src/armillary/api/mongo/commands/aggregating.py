"""aggregate: a pipeline over a collection. Facts: section 14.

A first `$match` narrows what is read. The rest streams through the stages; what a sort or a group
holds is bounded by the budget of the command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from armillary.api.mongo.aggregate.pipeline import check_pipeline, compile_pipeline
from armillary.api.mongo.aggregate.stages import Rows, count_of
from armillary.api.mongo.call import Call
from armillary.api.mongo.commands import changes
from armillary.api.mongo.commands.folding import folded
from armillary.api.mongo.commands.reading import rows_reply
from armillary.api.mongo.data.collections import check_collection_name
from armillary.api.mongo.data.reads import rows_of
from armillary.api.mongo.errors import MongoError, failed_to_parse, wrong_type
from armillary.api.mongo.language import Language
from armillary.api.mongo.match.compiled import compile_filter
from armillary.api.mongo.sorting import parse_sort
from armillary.encoding.bson.values import Document, encode, is_text, type_name
from armillary.limits import MONGO_FIRST_BATCH

AGGREGATE_FIELDS = (
    "pipeline cursor explain allowDiskUse hint collation let bypassDocumentValidation "
    "exchange fromMongos needsMerge runtimeConstants isMapReduceCommand"
)


class CallWorld:
    """The rest of the database, for the stages of one call."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def rows(self, collection: str, query: Document) -> Iterable[Document]:
        found = self._call.service.collections.find(self._call.database, collection)
        if found is None:
            return ()
        if self._call.transaction is not None:
            return (row.document for row in self._call.rows(found, query))
        rows = rows_of(found, query, self._call.charge, self._call.budget)
        return (row.document for row in rows)

    def replace_collection(self, database: str, name: str, rows: Rows) -> None:
        """The rows are collected first: the pipeline may read what it replaces."""
        from armillary.api.mongo.commands.inserting import prepared
        from armillary.api.mongo.data.inserts import insert_all

        database = database or self._call.database
        check_collection_name(database, name)
        made = [prepared(row, self._call) for row in rows]
        collections = self._call.service.collections
        old = collections.current(database, name)
        if old is None:
            target = collections.ensure(database, name)
        else:
            target = collections.remake(old, [dict(one) for one in old.indexes])
        sizes = [len(encode(one)) for one in made]
        done = insert_all(
            target, made, ordered=True, statement=None, sizes=sizes, budget=self._call.budget
        )
        self._call.charge(done.charge_ru)
        if done.errors:
            raise done.errors[0][1]

    def merge_into(self, argument: Any, rows: Rows, language: Language) -> None:
        from armillary.api.mongo.commands.merging import merge

        merge(self._call, argument, rows, language)


def aggregate(call: Call) -> Document:
    target = call.command["aggregate"]
    pipeline = call.command.get("pipeline")
    if pipeline is None:
        raise MongoError(40414, "BSON field 'aggregate.pipeline' is missing but a required field")
    if not isinstance(pipeline, list):
        raise wrong_type("aggregate.pipeline", type_name(pipeline), "array")
    if call.command.get("explain"):
        from armillary.api.mongo.commands.explaining import explain_aggregate

        return explain_aggregate(call)
    cursor = call.command.get("cursor")
    if cursor is None:
        raise failed_to_parse(
            "The 'cursor' option is required, except for aggregate with the explain argument"
        )
    size = call.batch_size(MONGO_FIRST_BATCH)
    language = call.language()
    stages = check_pipeline(pipeline, language)
    concern = call.command.get("readConcern")
    writes = bool(stages) and stages[-1][0] in ("$out", "$merge")
    if writes and isinstance(concern, dict) and concern.get("level") == "linearizable":
        raise MongoError(
            72, f"{stages[-1][0]} cannot be used with a 'linearizable' read concern level"
        )
    if call.transaction is not None:
        for stage in (stages[0][0], stages[-1][0]) if stages else ():
            if stage in ("$out", "$merge", "$changeStream"):
                raise MongoError(263, f"Stage not supported inside of a transaction: {stage}")
    if writes and call.client.may_write is False:
        raise MongoError(13, f"not authorized on {call.database} to execute command aggregate")
    if stages and stages[0][0] == "$changeStream":
        return changes.watch(call, pipeline)
    world = CallWorld(call)
    if not is_text(target):
        return _of_database(call, pipeline, stages, language, world, size)
    name = call.collection_name()
    namespace = f"{call.database}.{name}"
    if stages and stages[0][0] in ("$collStats", "$indexStats", "$planCacheStats"):
        rows: Iterable[Document] = _statistics(call, stages[0][0], stages[0][1])
        pipeline = pipeline[1:]
        run = compile_pipeline(pipeline, language, world)
    else:
        run = compile_pipeline(pipeline, language, world)  # also of what an index answers
        known = folded(call, pipeline)
        if known is None:
            rows = source_rows(call, pipeline)
        else:
            rows = known[0]
            run = compile_pipeline(known[1], language, world)
    found = _encoded(run(rows), call)
    return rows_reply(call, namespace, found, size)


def source_rows(call: Call, pipeline: list[Any]) -> Iterator[Document]:
    collection = call.hinted_collection()
    if collection is None:
        return iter(())
    first = pipeline[0] if pipeline else {}
    found = first.get("$match") if isinstance(first, dict) else None
    query = found if isinstance(found, dict) else {}
    sort, limit = _leading_order(pipeline[1:] if query else pipeline)
    if sort is not None:
        test = compile_filter(query, call.language())
        rows = call.first(collection, query, test, parse_sort(sort), limit)
        if rows is not None:
            return iter(rows)  # the stages that chose them change nothing of them
    return (row.document for row in call.rows(collection, query))


def _leading_order(pipeline: list[Any]) -> tuple[Document | None, int]:
    """The sort that a pipeline begins with, and how many rows the limit behind it leaves."""
    if len(pipeline) < 2 or "$sort" not in pipeline[0] or "$limit" not in pipeline[1]:
        return None, 0
    return pipeline[0]["$sort"], count_of("$limit", pipeline[1]["$limit"], 1, 5107201)


def _encoded(rows: Iterable[Document], call: Call) -> list[bytes]:
    found = []
    for row in rows:
        data = encode(row)
        call.budget.hold(len(data))
        found.append(data)
    return found


def _of_database(
    call: Call,
    pipeline: list[Any],
    stages: list[tuple[str, Any]],
    language: Language,
    world: CallWorld,
    size: int,
) -> Document:
    """`aggregate: 1`: pipelines that bring their own documents."""
    namespace = f"{call.database}.$cmd.aggregate"
    first, argument = stages[0] if stages else ("", None)
    if first in ("$documents", "$listLocalSessions"):
        from armillary.api.mongo.expressions.compiled import compile_expression, evaluate

        if first == "$documents":
            rows = evaluate(compile_expression(argument, language), {})
            if not isinstance(rows, list) or not all(isinstance(one, dict) for one in rows):
                raise MongoError(5858203, "$documents must evaluate to an array of objects")
        else:  # of a session nothing is kept: known is the one that asks
            rows = [{"_id": call.command.get("lsid"), "lastUse": language.now}]
        run = compile_pipeline(pipeline[1:], language, world)
        return rows_reply(call, namespace, _encoded(run(rows), call), size)
    raise MongoError(
        73, "{aggregate: 1} is not valid for the pipeline; it needs a collection to read from."
    )


def _statistics(call: Call, name: str, argument: Any) -> list[Document]:
    collection = call.collection()
    if collection is None:
        raise MongoError(26, f"Collection [{call.database}.{call.collection_name()}] not found.")
    if name == "$indexStats":
        return [
            {"name": one["name"], "key": one["key"], "host": "localhost", "accesses": {"ops": 0}}
            for one in collection.indexes
        ]
    if name == "$planCacheStats":
        return []
    from armillary.api.mongo.commands.diagnostics import collection_statistics

    made: Document = {"ns": collection.namespace, "host": "localhost"}
    statistics = collection_statistics(call, collection, 1)
    if isinstance(argument, dict) and "count" in argument:
        made["count"] = statistics["count"]
    if isinstance(argument, dict) and "storageStats" in argument:
        made["storageStats"] = statistics
    return [made]
