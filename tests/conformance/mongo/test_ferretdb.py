"""Filters, sorts, updates and pipelines: what we answer against what FerretDB 1.24 answers. It
builds a Go program, so it runs in `make conformance` only.

FerretDB settles what it has: what it refuses as not implemented, or hangs up on, says nothing.
Where it is known to differ from MongoDB's documentation, the documentation holds (`KNOWN`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from bson import Decimal128, encode
from bson.codec_options import CodecOptions, DatetimeConversion
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError
from tests.property.naive_mongo_pipelines import close
from tests.property.test_mongo_language import _without_order
from tests.support import mongo_strategies as made
from tests.support.compiled import only_in_conformance
from tests.support.ferretdb import ferretdb
from tests.support.mongo import Wire

Document = dict[str, Any]
pytestmark = only_in_conformance("go")
OPTIONS: CodecOptions[Document] = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)
SAYS_NOTHING = (238, -1)
#: (our code, theirs) → what MongoDB does.
KNOWN = {
    (40, 2): "conflicts of paths are found before the update is tried on a document",
    (40, 14): "the same",
    (40, 28): "the same",
    (40, 9): "the same",
    (0, 2): "a pattern and an operator beside `$elemMatch` with fields are allowed",
}
EXAMPLES = settings(max_examples=150, deadline=None, phases=[Phase.generate])


class Pair:
    """The same commands to both."""

    def __init__(self, uri: str) -> None:
        self._wire = Wire()
        self.client: MongoClient[Document] = MongoClient(uri)
        self._theirs = self.client.get_database("db", codec_options=OPTIONS)

    def run(self, command: Document) -> tuple[Document, Document]:
        return self._wire.run(dict(command)), self._ask(command)

    def _ask(self, command: Document) -> Document:
        try:
            found: Document = self._theirs.command(command, codec_options=OPTIONS)
            return found
        except OperationFailure as error:
            return {"ok": 0.0, **(error.details or {}), "code": error.code}
        except PyMongoError as error:
            return {"ok": 0.0, "code": -1, "errmsg": str(error)}

    def fill(self, documents: list[Document]) -> None:
        assume(not _beyond(documents))
        self.run({"drop": "c"})
        for reply in self.run({"insert": "c", "documents": documents}):
            assert reply["n"] == len(documents), reply


def _beyond(value: Any) -> bool:
    """Decimals and arrays in arrays, which FerretDB does not have."""
    if isinstance(value, dict):
        return any(map(_beyond, value.values()))
    if isinstance(value, list):
        return any(isinstance(one, list) or _beyond(one) for one in value if one is not value)
    return isinstance(value, Decimal128)


def _code(reply: Document) -> int:
    errors = reply.get("writeErrors")
    return int((errors[0] if errors else reply).get("code", 0))


def settled(ours: Document, theirs: Document, what: Any) -> bool:
    """Whether there is an answer of both to compare."""
    codes = _code(ours), _code(theirs)
    if codes[1] in SAYS_NOTHING or codes in KNOWN:
        return False
    assert codes[0] == codes[1], (what, ours, theirs)
    return codes == (0, 0)


def batch(reply: Document) -> list[Document]:
    found: list[Document] = reply["cursor"]["firstBatch"]
    return found


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with ferretdb() as uri:
        made_ = Pair(uri)
        yield made_
        made_.client.close()


def documents(most: int = 6) -> st.SearchStrategy[list[Document]]:
    return made.documents(most).filter(lambda found: not any(map(_beyond_each, found)))


def _beyond_each(document: Document) -> bool:
    return _beyond(list(document.values()))


@EXAMPLES
@given(found=documents(), queries=st.lists(made.filters, min_size=3, max_size=5))
def test_filters(pair: Pair, found: list[Document], queries: list[Document]) -> None:
    pair.fill(found)
    for query in queries:
        if _beyond(query):
            continue
        ours, theirs = pair.run({"find": "c", "filter": query, "sort": {"_id": 1}})
        if settled(ours, theirs, query):
            assert [encode(one) for one in batch(ours)] == [encode(one) for one in batch(theirs)]


@EXAMPLES
@given(found=documents(10), spec=made.sorts)
def test_sorts(pair: Pair, found: list[Document], spec: dict[str, int]) -> None:
    pair.fill(found)
    ours, theirs = pair.run({"find": "c", "sort": {**spec, "_id": 1}})
    if settled(ours, theirs, spec):
        assert [one["_id"] for one in batch(ours)] == [one["_id"] for one in batch(theirs)]


def _pushes_nothing(argument: Any) -> bool:
    return isinstance(argument, dict) and argument.get("$each") == []


@EXAMPLES
@given(found=documents(3), update=made.updates())
def test_updates(pair: Pair, found: list[Document], update: Document) -> None:
    assume(not _beyond(update))
    pair.fill(found)
    for document in found:
        query = {"_id": document["_id"]}
        ours, theirs = pair.run({"update": "c", "updates": [{"q": query, "u": update}]})
        if _code(ours) == 40 and "$rename" in update:
            return  # both names of a rename are paths that it updates, which FerretDB overlooks
        if not settled(ours, theirs, (document, update)):
            return
        if any(_pushes_nothing(one) for one in update.get("$push", {}).values()):
            return  # it makes an empty array of a missing field, which FerretDB does not
        (one,), (other,) = map(batch, pair.run({"find": "c", "filter": query}))
        assert close(one, other), (document, update, one, other)
        if encode(one) != encode(document):  # FerretDB counts an `$inc` by 0
            assert ours["nModified"] == theirs["nModified"], (document, update)


@EXAMPLES
@given(found=documents(), pipeline=made.pipelines)
def test_pipelines(pair: Pair, found: list[Document], pipeline: list[Document]) -> None:
    assume(not _beyond(pipeline))
    pair.fill(found)
    pipeline = [{"$sort": {"_id": 1}}, *pipeline]
    ours, theirs = pair.run({"aggregate": "c", "pipeline": pipeline, "cursor": {}})
    if not settled(ours, theirs, pipeline):
        return
    one, other = batch(ours), batch(theirs)
    if next(iter(pipeline[-1])) in ("$group", "$sortByCount"):
        one, other = _without_order(one), _without_order(other)
    assert len(one) == len(other)
    assert all(close(*both) for both in zip(one, other, strict=True)), (pipeline, one, other)
