"""Filters, sorts, updates and pipelines of MongoDB: the service on documents in a store, with and
without indexes and shard keys, against the naive evaluator."""

from __future__ import annotations

from typing import Any

import pytest
from bson import encode
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.naive_mongo import Refused, compare, matches, sorted_by, updated
from tests.property.naive_mongo_pipelines import close, run_pipeline
from tests.support import mongo_strategies as made
from tests.support.mongo import Wire

Document = dict[str, Any]


class Collections:
    """The same documents three times: no index, indexes, and a shard key with a wildcard index."""

    KINDS = ("bare", "indexed", "sharded")

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.names = {kind: kind for kind in self.KINDS}
        self._run({"shardCollection": f"db.{self.names['sharded']}", "key": {"k": "hashed"}})
        for kind, keys in (
            ("indexed", [{"a": 1}, {"b": -1}, {"a.b": 1}, {"a": 1, "b": -1}]),
            ("sharded", [{"$**": 1}]),
        ):
            indexes = [{"key": key, "name": str(key)} for key in keys]
            self._run({"createIndexes": self.names[kind], "indexes": indexes})

    def fill(self, documents: list[Document]) -> None:
        for name in self.names.values():
            self._run({"delete": name, "deletes": [{"q": {}, "limit": 0}]})
            self._run({"insert": name, "documents": documents})

    def _run(self, command: Document) -> Document:
        reply = self.wire.run(command)
        assert reply["ok"] == 1, reply
        assert "writeErrors" not in reply, reply
        return reply

    def run(self, kind: str, verb: str, **arguments: Any) -> Document:
        return self.wire.run({verb: self.names[kind], **arguments})


@pytest.fixture(scope="module")
def held() -> Collections:
    return Collections(Wire())


def batch(reply: Document) -> list[Document]:
    assert reply["ok"] == 1, reply
    found: list[Document] = reply["cursor"]["firstBatch"]
    return found


def as_bytes(documents: list[Document]) -> list[bytes]:
    return [encode(one) for one in documents]


@settings(max_examples=60)
@given(documents=made.documents(), queries=st.lists(made.filters | made.keyed_filters, min_size=4,
                                                    max_size=6))  # fmt: skip
def test_filters(held: Collections, documents: list[Document], queries: list[Document]) -> None:
    held.fill(documents)
    for query in queries:
        wanted = as_bytes([one for one in documents if matches(one, query)])
        for kind in held.KINDS:
            found = as_bytes(batch(held.run(kind, "find", filter=query)))
            assert sorted(found) == sorted(wanted), (kind, query)
            count = held.run(kind, "count", query=query)["n"]
            assert count == len(wanted), (kind, query)


@settings(max_examples=50)
@given(documents=made.documents(10), spec=made.sorts, query=made.filters | st.just({}),
       skip=st.integers(0, 2), limit=st.integers(0, 4))  # fmt: skip
def test_sorts(
    held: Collections,
    documents: list[Document],
    spec: dict[str, int],
    query: Document,
    skip: int,
    limit: int,
) -> None:
    held.fill(documents)
    whole = {**spec, "_id": 1}
    wanted = sorted_by([one for one in documents if matches(one, query)], whole)
    wanted = wanted[skip : skip + limit if limit else None]
    for kind in held.KINDS:
        reply = held.run(kind, "find", filter=query, sort=whole, skip=skip, limit=limit)
        assert [one["_id"] for one in batch(reply)] == [one["_id"] for one in wanted], kind
        # Ties may come in any order: what is compared is the order by the field alone.
        alone = batch(held.run(kind, "find", filter=query, sort=spec))
        assert as_bytes(sorted_by(alone, spec)) == as_bytes(alone), kind
        assert {one["_id"] for one in alone} == {d["_id"] for d in documents if matches(d, query)}


@settings(max_examples=120)
@given(documents=made.documents(3), update=made.updates())
def test_updates(held: Collections, documents: list[Document], update: Document) -> None:
    held.fill(documents)
    for one in documents:
        try:
            wanted: Document | None = updated(one, update)
            code = 0
        except Refused as error:
            wanted, code = None, error.code
        for kind in held.KINDS:
            query = {"_id": one["_id"], "k": one["k"]}
            reply = held.run(kind, "update", updates=[{"q": query, "u": update}])
            found = batch(held.run(kind, "find", filter=query))[0]
            if wanted is None:
                assert reply["writeErrors"][0]["code"] == code, (reply, update)
                assert encode(found) == encode(one)
            else:
                assert "writeErrors" not in reply, reply
                assert close(found, wanted), update
                assert reply["nModified"] == (encode(wanted) != encode(one))


@settings(max_examples=120)
@given(documents=made.documents(), others=made.documents(3), pipeline=made.pipelines)
def test_pipelines(
    held: Collections, documents: list[Document], others: list[Document], pipeline: list[Document]
) -> None:
    held.fill(documents)
    held.wire.run({"drop": "other"})
    assert held.wire.run({"insert": "other", "documents": others})["ok"] == 1
    # A limit needs an order, else any documents are right.
    pipeline = [{"$sort": {"_id": 1}}, *pipeline]
    try:
        wanted: list[Document] | None = run_pipeline(documents, pipeline, {"other": others})
    except Refused:
        wanted = None
    for kind in held.KINDS:
        reply = held.run(kind, "aggregate", pipeline=pipeline, cursor={})
        if wanted is None:
            assert reply["ok"] == 0, reply
            continue
        found = batch(reply)
        assert len(found) == len(wanted), (kind, found, wanted)
        last = next(iter(pipeline[-1]))
        if last in ("$group", "$sortByCount"):
            found, wanted = (_without_order(one) for one in (found, wanted))
        for one, other in zip(found, wanted, strict=True):
            assert close(one, other), (kind, one, other)


def _without_order(documents: list[Document]) -> list[Document]:
    """Groups come in any order, and so do the members of a set."""
    import functools

    made_ = [
        {
            name: sorted(one, key=functools.cmp_to_key(compare)) if type(one) is list else one
            for name, one in document.items()
        }
        for document in documents
    ]
    return sorted(made_, key=lambda one: functools.cmp_to_key(compare)(one["_id"]))
