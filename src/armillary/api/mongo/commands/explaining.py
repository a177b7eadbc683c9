"""explain, in the form of Azure Cosmos DB: the command is run and measured. Facts: section 21."""

from __future__ import annotations

import time
import uuid
from typing import Any

from armillary.api.mongo.call import Call
from armillary.api.mongo.data.collections import Collection
from armillary.api.mongo.data.hints import hinted
from armillary.api.mongo.errors import MongoError, wrong_type
from armillary.api.mongo.match.compiled import compile_filter, is_condition
from armillary.encoding.bson.values import Document, encode, is_text, type_name


def explain(call: Call) -> Document:
    inner = call.command["explain"]
    if not isinstance(inner, dict) or not inner:
        raise MongoError(14, "explain needs the command to explain")
    name = next(iter(inner))
    if name in ("find", "count", "distinct"):
        query = inner.get("filter", inner.get("query", {}))
    elif name == "aggregate":
        query = _first_match(inner.get("pipeline", []))
    elif name in ("update", "delete", "findAndModify"):
        statements = inner.get("updates", inner.get("deletes"))
        first = statements[0] if isinstance(statements, list) and statements else {}
        query = inner.get("query", first.get("q") if isinstance(first, dict) else first)
    else:
        raise MongoError(59, f"Explain failed due to unknown command: {name}")
    collection = inner[name]
    if not is_text(collection):
        raise MongoError(73, "collection name has invalid type")
    query = {} if query is None else query
    if not isinstance(query, dict):
        raise wrong_type(f"explain.{name}.query", type_name(query), "object")
    return _explained(call, inner, query)


def explain_aggregate(call: Call) -> Document:
    call.collection_name()  # raises what is wrong with it
    return _explained(call, call.command, _first_match(call.command["pipeline"]))


def _first_match(pipeline: Any) -> Document:
    if not isinstance(pipeline, list):
        raise wrong_type("explain.aggregate.pipeline", type_name(pipeline), "array")
    first = pipeline[0] if pipeline else {}
    found = first.get("$match", {}) if isinstance(first, dict) else {}
    return found if isinstance(found, dict) else {}


def _explained(call: Call, inner: Document, query: Document) -> Document:
    name = inner[next(iter(inner))]
    started = time.perf_counter()
    test = compile_filter(query, call.language())
    compiled_ms = (time.perf_counter() - started) * 1000
    collection = call.service.collections.find(call.database, name)
    hint = inner.get("hint")
    if collection is not None and hint is not None:
        hinted(collection, hint)
    read = matched = read_bytes = out_bytes = 0
    if collection is not None:
        for row in call.rows(collection, query):
            read += 1
            read_bytes += row.size
            if test(row.document):
                matched += 1
                out_bytes += len(encode(row.document))
    took_ms = (time.perf_counter() - started) * 1000
    indexed, others = _paths(collection, query)
    details: Document = {
        "database": call.database,
        "collection": name,
        "query": _shown(query),
        "pathsIndexed": indexed,
        "pathsNotIndexed": others,
        "shardInformation": [
            {
                "activityId": str(uuid.uuid4()),
                "shardKeyRangeId": str(one.ordinal),
                "durationMS": took_ms,
                "preemptions": 1,
                "outputDocumentCount": matched,
                "retrievedDocumentCount": read,
            }
            for one in (collection.store.state.table.ranges if collection is not None else ())
        ],
        "queryMetrics": {
            "retrievedDocumentCount": read,
            "retrievedDocumentSizeBytes": read_bytes,
            "outputDocumentCount": matched,
            "outputDocumentSizeBytes": out_bytes,
            "indexHitRatio": matched / read if read else 1.0,
            "totalQueryExecutionTimeMS": took_ms,
            "queryPreparationTimes": {
                "queryCompilationTimeMS": compiled_ms,
                "logicalPlanBuildTimeMS": 0.0,
                "physicalPlanBuildTimeMS": 0.0,
                "queryOptimizationTimeMS": 0.0,
            },
            "indexLookupTimeMS": 0.0,
            "documentLoadTimeMS": took_ms - compiled_ms,
            "vmExecutionTimeMS": took_ms,
            "runtimeExecutionTimes": {
                "queryEngineExecutionTimeMS": took_ms,
                "systemFunctionExecutionTimeMS": 0.0,
                "userDefinedFunctionExecutionTimeMS": 0.0,
            },
            "documentWriteTimeMS": 0.0,
        },
    }
    stage: Document = {
        "stage": "$query",
        "timeInclusiveMS": took_ms,
        "timeExclusiveMS": took_ms,
        "in": read,
        "out": matched,
        "dependency": {"getNextPageCount": 1, "count": 1, "time": 0.0, "bytes": read_bytes},
        "details": details,
    }
    return {
        "command": f"db.runCommand({{explain: {name}}})",
        "stages": [stage],
        "estimatedDelayFromRateLimitingInMilliseconds": 0.0,
        "continuation": {"hasMore": False},
    }


def _shown(query: Document) -> Document:
    return {
        name: value if name[:1] == "$" or is_condition(value) else {"$eq": value}
        for name, value in query.items()
    }


def _paths(collection: Collection | None, query: Document) -> tuple[list[str], list[str]]:
    if collection is None:
        return [], []
    known = {path for index in collection.indexes for path in index["key"]}
    if collection.shard is not None:
        known.add(".".join(collection.shard))
    names = sorted(_names(query))
    wild = "$**" in known
    return (
        [one for one in names if wild or one in known],
        [one for one in names if not wild and one not in known],
    )


def _names(query: Document) -> set[str]:
    found: set[str] = set()
    for name, value in query.items():
        if name in ("$and", "$or", "$nor") and isinstance(value, list):
            for one in value:
                found |= _names(one)
        elif name[:1] != "$":
            found.add(name)
    return found
