"""Counts, distinct values and groups that an index answers, against the same collection without
that index, where documents are read."""

from __future__ import annotations

from typing import Any

from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.objectid import ObjectId
from hypothesis import given
from hypothesis import strategies as st
from tests.support.mongo import Wire

from armillary.encoding.bson.values import Document, sort_key

SESSION = {"id": b"0123456789abcdef"}
scalars: st.SearchStrategy[Any] = st.sampled_from(
    [0, 1, 1.0, Int64(1), Decimal128("1"), 2.5, -3, float("nan"), float("inf"), float("-inf"),
     True, False, None, "", "a", "b", "x" * 600, "x" * 600 + "y", ObjectId(b"0" * 12),
     DatetimeMS(5), DatetimeMS(-1), {"k": 1}, {}]
)  # fmt: skip
values = scalars | st.lists(scalars, max_size=3)
documents = st.fixed_dictionaries({}, optional={"a": values, "b": values, "c": values})
comparisons = st.dictionaries(
    st.sampled_from(["$eq", "$gt", "$gte", "$lt", "$lte"]), scalars, min_size=1, max_size=2
) | st.fixed_dictionaries({"$in": st.lists(scalars, min_size=1, max_size=3)})
queries = st.dictionaries(st.sampled_from(["a", "b", "s"]), scalars | comparisons, max_size=2)


def filled(made: list[Document], *indexes: str, sharded: bool) -> Wire:
    wire = Wire()
    if sharded:
        wire.run({"shardCollection": "db.c", "key": {"s": "hashed"}}, "admin")
    else:
        wire.run({"create": "c"})
    for name in indexes:
        wire.run({"createIndexes": "c", "indexes": [{"key": {name: 1}, "name": name}]})
    for at, one in enumerate(made):
        retryable = {"lsid": SESSION, "txnNumber": Int64(at)} if at % 2 else {}
        document = {"_id": at, "s": at % 2, **one}
        assert wire.run({"insert": "c", "documents": [document], **retryable})["n"] == 1
    return wire


def rows(wire: Wire, *pipeline: Document) -> list[Document]:
    reply = wire.run({"aggregate": "c", "pipeline": list(pipeline), "cursor": {}})
    found: list[Document] = reply["cursor"]["firstBatch"]
    return sorted(found, key=lambda row: sort_key(row["_id"]))


@given(st.lists(documents, max_size=8), st.lists(queries, max_size=4), st.booleans())
def test_an_index_counts_as_documents_do(
    made: list[Document], asked: list[Document], sharded: bool
) -> None:
    quick, slow = filled(made, "a", "b", sharded=sharded), filled(made, sharded=sharded)
    count = {"$group": {"_id": 1, "n": {"$sum": 1}}}
    for query in [{}, *asked]:
        wanted = slow.run({"find": "c", "filter": query, "batchSize": 100})
        found = quick.run({"count": "c", "query": query})
        assert found.get("code") == wanted.get("code")
        if "cursor" not in wanted:
            continue
        number = len(wanted["cursor"]["firstBatch"])
        assert found["n"] == number
        groups = rows(quick, {"$match": query}, count)
        assert groups == ([{"_id": 1, "n": number}] if number else [])


@given(st.lists(documents, max_size=8), st.booleans())
def test_an_index_knows_the_values_of_a_field(made: list[Document], sharded: bool) -> None:
    quick, slow = filled(made, "a", "b", sharded=sharded), filled(made, sharded=sharded)
    for name in ("a", "b", "s", "_id"):
        found, wanted = (one.run({"distinct": "c", "key": name})["values"] for one in (quick, slow))
        assert [sort_key(one) for one in found] == [sort_key(one) for one in wanted]
        group = {"$group": {"_id": f"${name}", "n": {"$sum": 1}, "m": {"$count": {}}}}
        found, wanted = rows(quick, group), rows(slow, group)
        assert [sort_key(one) for one in found] == [sort_key(one) for one in wanted]


def test_nothing_is_read_where_an_index_knows() -> None:
    made: list[Document] = [{"a": at % 3, "text": "x" * 2_000} for at in range(60)]
    charges = []
    for wire in (filled(made, "a", sharded=False), filled(made, sharded=False)):
        for command in (
            {"count": "c", "query": {"a": 1}},
            {"distinct": "c", "key": "a"},
            {"aggregate": "c", "cursor": {}, "pipeline": [
                {"$group": {"_id": "$a", "n": {"$sum": 1}}}]},
        ):  # fmt: skip
            assert wire.run(command)["ok"] == 1.0
            charges.append(wire.run({"getLastRequestStatistics": 1})["RequestCharge"])
    assert all(one < 0.6 * other for one, other in zip(charges[:3], charges[3:], strict=True))
