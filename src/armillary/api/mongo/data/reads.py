"""Documents of a collection that a query may match, a page at a time.

    _id and shard key known   one point read
    shard key known           one logical partition
    else                      the whole container

Each way gives every document that matches and maybe others: the filter is the caller's. The first
few of an order (`first_rows`) are a plan of their own, filter included, which an index of that
order ends early.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import orjson
from bson.regex import Regex

from armillary.api.mongo.data.collections import Collection
from armillary.api.mongo.data.index_conditions import condition_of, indexed_paths
from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.language import MISSING
from armillary.api.mongo.match.compiled import is_condition
from armillary.api.mongo.match.operators import Filter
from armillary.api.mongo.sorting import Spec, field_value
from armillary.api.mongo.update.upserts import equalities
from armillary.budget import Budget
from armillary.encoding.bson.stored import RECORD, from_item, item_id, stored_name, to_stored
from armillary.encoding.bson.values import Document
from armillary.encoding.partition_key import KeyValues
from armillary.errors import BadInput, NotFound
from armillary.partition.request_units import feed_ru, read_ru
from armillary.query.expr import nodes
from armillary.query.plan.nodes import Plan, SortKey, simple_plan
from armillary.query.run.pages import run_plan
from armillary.store.items.paging import read_items, read_items_of_key
from armillary.store.items.positions import decode_position, encode_position
from armillary.store.items.reading import Stored
from armillary.values import JSON, UNDEFINED

PAGE_ITEMS: Final = 500
_RECORD_START: Final = b'{"id":"' + RECORD.encode()


class Row(NamedTuple):
    document: Document
    etag: str
    """Empty: made in the transaction that reads it."""
    lsn: int = 0
    size: int = 0


class Page(NamedTuple):
    rows: list[Row]
    position: str | None
    charge_ru: float


class Target(NamedTuple):
    """Where the documents of a query can be."""

    key: KeyValues | None
    """None: anywhere."""
    item: str | None
    """The id of the one item it can be."""
    plan: Plan | None = None
    """What an index finds; None: no index helps."""


def is_record(stored: Stored) -> bool:
    return stored.text.startswith(_RECORD_START)


def row_of(stored: Stored) -> Row:
    document = from_item(orjson.loads(stored.text))
    return Row(document, stored.etag, stored.lsn, stored.body_bytes)


def target_of(collection: Collection, query: Document) -> Target:
    if not query:
        return Target(() if collection.shard is None else None, None)
    known = _plain_equalities(query)
    key: KeyValues | None = None
    if collection.shard is None:
        key = ()
    elif (path := ".".join(collection.shard)) in known and not isinstance(known[path], list):
        key = collection.key_values(known[path])
    item: str | None = None
    if "_id" in known and key is not None:
        try:
            item = item_id(known["_id"])
        except BadInput:
            item = None
    if item is not None:
        return Target(key, item)
    condition = condition_of(collection, query)
    if condition is None:
        return Target(key, None)
    return Target(key, None, simple_plan(condition, stored=True))


def _plain_equalities(query: Document) -> Document:
    if len(query) == 1 and "_id" in query:  # the usual
        value = query["_id"]
        if not is_condition(value) and not isinstance(value, Regex):
            return query
    try:
        return equalities(query)
    except MongoError:
        return {}


def read_one(collection: Collection, item: str, key: KeyValues) -> Row | None:
    try:
        return row_of(collection.store.read(item, key))
    except NotFound:
        return None


def read_page(
    collection: Collection,
    target: Target,
    position: str | None,
    limit: int = PAGE_ITEMS,
    *,
    budget: Budget,
) -> Page:
    """Documents from a position on; the first page has none."""
    store = collection.store
    if target.item is not None and target.key is not None:
        row = read_one(collection, target.item, target.key)
        size = 0 if row is None else row.size
        return Page([] if row is None else [row], None, read_ru(size))
    if target.plan is not None:
        found = run_plan(
            store,
            target.plan,
            partition_key=target.key or None,
            continuation=position,
            max_items=limit,
            budget=budget,
        )
        stored = [Stored(one.value) for one in found.rows]
        rows = [row_of(one) for one in stored if not is_record(one)]
        return Page(rows, found.continuation, found.metrics.charge_ru())
    at = None if position is None else decode_position(position)
    if target.key is not None:
        page = read_items_of_key(store, target.key, at, limit, budget)
    else:
        page = read_items(store, at, limit, budget)
    rows = [row_of(one) for one in page.items if not is_record(one)]
    after = None if page.position is None else encode_position(page.position)
    return Page(rows, after, feed_ru(one.body_bytes for one in page.items))


def rows_of(collection: Collection, query: Document, charge: Any, budget: Budget) -> Iterator[Row]:
    """Every document that the query may match; `charge` is given what each page costs."""
    target = target_of(collection, query)
    position: str | None = None
    while True:
        page = read_page(collection, target, position, budget=budget)
        charge(page.charge_ru)
        for row in page.rows:
            budget.spend()
            yield row
        if page.position is None:
            return
        position = page.position


# --- the first of an order ------------------------------------------------------------------------


def has_order(collection: Collection, spec: Spec) -> bool:
    """Whether an index is about the fields of a sort, in this order."""
    names = [".".join(path) for path, _ in spec]
    if len(names) == 1:
        return names[0] in indexed_paths(collection)
    return any(list(one["key"]) == names for one in collection.indexes)


def first_rows(
    collection: Collection,
    query: Document,
    test: Filter,
    spec: Spec,
    count: int,
    charge: Any,
    budget: Budget,
) -> list[Row]:
    """The first `count` documents that match, in the order of a sort."""
    target = target_of(collection, query)
    plan = _ordered_plan(collection, query, test, spec, count)
    rows: list[Row] = []
    position: str | None = None
    while True:
        found = run_plan(
            collection.store,
            plan,
            partition_key=target.key or None,
            continuation=position,
            max_items=count,
            budget=budget,
        )
        charge(found.metrics.charge_ru())
        rows += [row_of(Stored(one.value)) for one in found.rows]
        position = found.continuation
        if position is None or len(rows) >= count:
            return rows[:count]


def ordered_target(collection: Collection, query: Document, test: Filter, spec: Spec) -> Target:
    """The documents that match in an order, page by page."""
    found = target_of(collection, query)
    if found.item is not None:
        return found
    return Target(found.key, None, _ordered_plan(collection, query, test, spec, None))


def _ordered_plan(
    collection: Collection, query: Document, test: Filter, spec: Spec, count: int | None
) -> Plan:
    return simple_plan(
        _where(collection, query, test),
        stored=True,
        order=tuple(SortKey(_sort_value(*one), one[1]) for one in spec),
        limit=count,
    )


def _where(collection: Collection, query: Document, test: Filter) -> nodes.Expr:
    """What an index can say of the filter, and the filter itself."""

    def passes(item: Any) -> bool:
        return not str(item.get("id", "")).startswith(RECORD) and test(from_item(item))

    native = nodes.Native(passes, None, "filter")
    known = condition_of(collection, query)
    return native if known is None else nodes.Logical("AND", (known, native))


def _sort_value(path: tuple[str, ...], descending: bool) -> nodes.Native:
    def value(item: Any) -> JSON:
        found = field_value(from_item(item), path, descending)
        return UNDEFINED if found is MISSING else to_stored(found)

    label = ".".join(path)
    stored = (stored_name(path[0]), *path[1:])
    return nodes.Native(value, None, label, path=stored, among=("_id",))
