"""A request whose time is over, or whose client has left, ends with the error of its protocol and
leaves nothing half written, whatever it asks for. `tests/unit/test_budgets.py` has the operations
of the store; here is that each protocol hands its budget to them and maps what comes back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.mongo import Wire
from tests.support.nosql import Api, pk
from tests.support.nosql import api as nosql_api
from tests.support.table import table_api
from tests.unit.api.table.test_table_batches import TYPE, batch_body

import armillary
from armillary.api.gremlin.graph.base import Ask, NewProperty
from armillary.api.gremlin.graph.store import StoreGraph
from armillary.api.http.messages import Request, Response
from armillary.api.mongo.call import Attempt
from armillary.api.mongo.wire.messages import Request as MongoRequest
from armillary.budget import Budget
from armillary.encoding.bson.values import Document
from armillary.errors import Abandoned

DOCS = "/dbs/d/colls/c/docs"
ITEMS = 3


def over() -> Budget:
    """Past any deadline."""
    return Budget(deadline=0.0, now=lambda: math.inf)


def cancelled() -> Budget:
    budget = Budget()
    budget.cancel()
    return budget


# --- NoSQL and the controls ----------------------------------------------------------------------

CREATE = {"operationType": "Create", "resourceBody": {"id": "new", "pk": "a"}}
PATCH = {
    "operationType": "Patch",
    "id": "0",
    "resourceBody": {"operations": [{"op": "set", "path": "/m", "value": 1}]},
    "partitionKey": '["a"]',
}
ATOMIC = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
BULK = {
    "x-ms-cosmos-is-batch-request": "True",
    "x-ms-cosmos-batch-continue-on-error": "True",
    "x-ms-documentdb-partitionkeyrangeid": "0",
}
FEED = {"a-im": "Incremental feed"}
Asked = tuple[str, str, dict[str, str], Any]
ASKED: dict[str, Asked] = {
    "list items": ("GET", DOCS, {}, None),
    "list a key": ("GET", DOCS, pk("a"), None),
    "changes": ("GET", DOCS, FEED, None),
    "changes from now": ("GET", DOCS, FEED | {"if-none-match": "*"}, None),
    "changes since": (
        "GET",
        DOCS,
        FEED | {"if-modified-since": "Wed, 01 Jan 2020 00:00:00 GMT"},
        None,
    ),
    "batch": ("POST", DOCS, ATOMIC | pk("a"), [CREATE, PATCH]),
    "query": (
        "POST",
        DOCS,
        {
            "x-ms-documentdb-isquery": "true",
            "content-type": "application/query+json",
            "x-ms-documentdb-query-enablecrosspartition": "true",
        },
        {"query": "SELECT * FROM c"},
    ),
    "databases": ("GET", "/dbs", {}, None),
    "containers": ("GET", "/dbs/d/colls", {}, None),
    "offers": ("GET", "/offers", {}, None),
    "users": ("GET", "/dbs/d/users", {}, None),
    "procedures": ("GET", "/dbs/d/colls/c/sprocs", {}, None),
    "statistics": (
        "GET",
        "/dbs/d/colls/c",
        {"x-ms-documentdb-populatepartitionstatistics": "true"},
        None,
    ),
    "delete a key": ("POST", "/dbs/d/colls/c/operations/partitionkeydelete", pk("a"), b""),
}


@pytest.fixture(scope="module")
def nosql() -> Iterator[Api]:
    with nosql_api() as made:
        for number in range(ITEMS):
            assert made.item({"id": str(number), "pk": "a"}).status == 201
        yield made


def ask(api: Api, asked: Asked, budget: Budget | None) -> Response:
    method, target, headers, body = asked
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    request = Request(method, target, api.signed(method, target) | headers, raw)
    request.budget = budget
    return api.port.handle(request)


def items_of(api: Api) -> Any:
    return json.loads(ask(api, ASKED["list items"], None).body)["Documents"]


@pytest.mark.parametrize("name", ASKED)
def test_nosql_answers_408(nosql: Api, name: str) -> None:
    before = items_of(nosql)
    assert len(before) == ITEMS
    for budget in (over(), cancelled()):
        found = ask(nosql, ASKED[name], budget)
        assert found.status == 408, found.body
        assert json.loads(found.body)["code"] == "RequestTimeout"
    assert items_of(nosql) == before


@pytest.mark.parametrize("goes_on", ["True", "False"])
def test_each_operation_of_a_bulk_answers_408(nosql: Api, goes_on: str) -> None:
    """Each stands for itself: a client learns of every one whether it has happened."""
    before = items_of(nosql)
    headers = BULK | {"x-ms-cosmos-batch-continue-on-error": goes_on}
    entries = [CREATE | {"partitionKey": '["a"]'}, PATCH]
    found = ask(nosql, ("POST", DOCS, headers, entries), over())
    assert found.status == 207
    statuses = [one["statusCode"] for one in json.loads(found.body)]
    assert statuses == ([408, 408] if goes_on == "True" else [408, 424])
    assert items_of(nosql) == before


@pytest.mark.parametrize(
    "path", ["account", "topology", "metrics", "dbs/d/colls/c/partitions", "dbs/d/colls/c/heat"]
)
def test_the_controls_answer_408(nosql: Api, path: str) -> None:
    target = f"/_armillary/{path}"
    request = Request("GET", target, nosql.signed("GET", target), b"")
    assert nosql.port.handle(request).status == 200
    request.budget = over()
    assert nosql.port.handle(request).status == 408


# --- Table ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/Tables", "/t()", "/$batch"])
def test_tables_time_out(path: str) -> None:
    with table_api() as api:
        plain = api.service.handle

        def handle(request: Request) -> Response:
            request.budget = over()
            return plain(request)

        api.service.handle = handle  # type: ignore[method-assign]
        if path == "/$batch":
            entity = {"PartitionKey": "a", "RowKey": "1"}
            body = batch_body([("POST", "/t", entity, {})])
            found = api.ask("POST", path, body, {"content-type": TYPE})
            assert found.status == 202
        else:
            found = api.ask("GET", path)
            assert found.status == 500
        assert b"OperationTimedOut" in found.body
        api.service.handle = plain  # type: ignore[method-assign]
        assert api.query("t") == []


# --- MongoDB -------------------------------------------------------------------------------------

COMMANDS: dict[str, Document] = {
    "find": {"find": "c", "filter": {"s": "a"}},
    "find by index": {"find": "c", "filter": {"n": {"$gte": 0}}},
    "count": {"count": "c", "query": {"s": "a"}},
    "distinct": {"distinct": "c", "key": "s"},
    "lookup": {
        "aggregate": "c",
        "pipeline": [{"$lookup": {"from": "c", "as": "x", "localField": "s", "foreignField": "s"}}],
        "cursor": {},
    },
    "watch": {"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}},
    "insert": {"insert": "c", "documents": [{"_id": n} for n in range(100, 600)]},
    "insert of many keys": {
        "insert": "sharded",
        "documents": [{"_id": n, "k": n} for n in range(100, 600)],
        "ordered": False,
    },
    "update": {"update": "c", "updates": [{"q": {}, "u": {"$inc": {"n": 1}}, "multi": True}]},
    "delete": {"delete": "c", "deletes": [{"q": {}, "limit": 0}]},
    "collStats": {"collStats": "c"},
    "listDatabases": {"listDatabases": 1, "$db": "admin"},
    "listCollections": {"listCollections": 1},
    "currentOp": {"currentOp": 1, "$db": "admin"},
    "filemd5": {"filemd5": 1, "root": "fs"},
}


@pytest.fixture(scope="module")
def mongo() -> Wire:
    made = Wire()
    documents = [{"_id": n, "n": n, "s": "a"} for n in range(ITEMS)]
    assert made.run({"insert": "c", "documents": documents})["n"] == ITEMS
    assert made.run({"createIndexes": "c", "indexes": [{"key": {"n": 1}, "name": "n_1"}]})["ok"]
    shard = {"shardCollection": "db.sharded", "key": {"k": "hashed"}}
    assert made.run(shard, "admin")["ok"] == 1.0
    assert made.run({"insert": "fs.chunks", "documents": [{"files_id": 1, "n": 0}]})["n"] == 1
    return made


def documents_of(wire: Wire) -> Any:
    return [wire.run({"find": one})["cursor"]["firstBatch"] for one in ("c", "sharded")]


@pytest.mark.parametrize("name", COMMANDS)
def test_mongo_says_that_the_time_is_over(mongo: Wire, name: str) -> None:
    before = documents_of(mongo)
    command = COMMANDS[name]
    request = MongoRequest(1, command if "$db" in command else {**command, "$db": "db"}, b"")
    late = Attempt(Budget(now=lambda: math.inf))
    found = mongo.service.run(mongo.session._client, request, late)  # type: ignore[attr-defined]
    assert (found.get("code"), found.get("codeName")) == (50, "MaxTimeMSExpired"), found
    assert documents_of(mongo) == before


# --- Gremlin -------------------------------------------------------------------------------------


def test_a_graph_gives_up_with_its_traversal() -> None:
    with armillary.open(":memory:", housekeeping=False) as account:
        account.create_database("d").create_container("g", "/pk", api="gremlin")
        store = account.store.container("d", "g")
        graph = StoreGraph(store, "pk", lambda: "new")
        key = NewProperty("pk", "a")
        vertices = [graph.add_vertex("v", f"v{at}", [key]) for at in range(ITEMS)]
        graph.add_edge("e", "e", vertices[0], vertices[1], [])
        left = StoreGraph(store, "pk", lambda: "new", budget=cancelled())
        refs = [("a", f"v{at}") for at in range(ITEMS)]
        for work in (
            lambda: list(left.vertices(Ask())),
            lambda: list(left.edges(Ask())),
            lambda: list(left.vertices(Ask(ids=tuple(refs)))),
            lambda: left.find(refs),
            lambda: left.adjacent(vertices, "out", ()),
            lambda: left.ends(vertices, "in", ()),
            lambda: left.add_vertex("v", "more", [key]),
            lambda: left.writer.delete(vertices),
            lambda: left.drop(vertices),
        ):
            with pytest.raises(Abandoned):
                work()
        assert sum(map(len, graph.vertices(Ask()))) == ITEMS
        assert sum(map(len, graph.edges(Ask()))) == 1
