"""What an index says of a collection without its documents: how many match a query, which values a
field has. None: it can't say, and the documents are read.

Records of retryable writes are items too, and have the shard key as documents do; what has an entry
at `$reply` is one of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from armillary.api.mongo.call import Call
from armillary.api.mongo.data.collections import Collection, walk
from armillary.api.mongo.data.index_conditions import exact_condition, indexed_paths
from armillary.api.mongo.data.reads import target_of
from armillary.api.mongo.language import MISSING
from armillary.encoding.bson.stored import REPLY, from_item, stored_name
from armillary.encoding.bson.values import Document
from armillary.query.expr import nodes
from armillary.query.run.entries import count_of, runs_of
from armillary.query.run.metrics import QueryMetrics

_RECORDS = nodes.AtPath((REPLY,), "defined")


class Value(NamedTuple):
    """One value of a field, as the first document that has it writes it."""

    value: Any
    documents: int


def _is_plain(call: Call) -> bool:
    return call.transaction is None and call.language().fold is None


def counted(call: Call, collection: Collection, query: Document) -> int | None:
    """How many documents match."""
    if not _is_plain(call):
        return None
    where = exact_condition(collection, query) if query else None
    if query and where is None:
        return None
    target = target_of(collection, query)
    if target.item is not None:
        return None  # one read says it
    metrics = QueryMetrics(collection.store.profile)

    def count(asked: nodes.Expr | None) -> int | None:
        return count_of(collection.store, asked, target.key or None, metrics, call.budget)

    shard = ".".join(collection.shard or ())
    found = count(where)
    if found and not query.keys() - {shard}:
        records = count(_RECORDS if where is None else nodes.Logical("AND", (where, _RECORDS)))
        found = None if records is None else found - records
    call.charge(metrics.charge_ru())
    return found


def values_of(call: Call, collection: Collection, field: str) -> list[Value] | None:
    """The values of a field of documents, in their order. None also where some document has an
    array or a document there."""
    is_shard = collection.shard is not None and field == collection.shard[0]  # of records too
    if "." in field or is_shard or field not in indexed_paths(collection) or not _is_plain(call):
        return None
    metrics = QueryMetrics(collection.store.profile)
    runs = runs_of(collection.store, (stored_name(field),), metrics, call.budget)
    call.charge(metrics.charge_ru())
    if runs is None:
        return None
    made: list[Value] = []
    for run in runs:
        value = walk(from_item(orjson.loads(run.first.text)), (field,))
        if value is MISSING:
            return None
        made.append(Value(value, run.items))
    return made
