"""Requests of the NoSQL API that are right, one for each route and shape of body, on an account
that `prepared` makes. `test_each_argument.py` puts wrong values in the place of each of their
parts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from tests.support.nosql import Api, pk
from tests.support.recorded import ANYWHERE, BATCH, COLL, DOCS, KEY, QUERY, UPSERT, asked

BULK: Final = {
    "x-ms-documentdb-partitionkeyrangeid": "0",
    "x-ms-cosmos-is-batch-request": "True",
    "x-ms-cosmos-batch-continue-on-error": "True",
}
PLAN: Final = {"x-ms-cosmos-is-query-plan-request": "True"}
INDEXING: Final = {
    "indexingMode": "consistent",
    "automatic": True,
    "includedPaths": [{"path": "/*", "indexes": [{"kind": "Range", "dataType": "Number"}]}],
    "excludedPaths": [{"path": "/x/?"}],
    "compositeIndexes": [[{"path": "/a", "order": "ascending"}, {"path": "/b"}]],
    "spatialIndexes": [{"path": "/g/?", "types": ["Point"]}],
    "vectorIndexes": [{"path": "/v", "type": "flat"}],
    "fullTextIndexes": [{"path": "/t"}],
}
VECTOR: Final = {
    "path": "/v",
    "dataType": "float32",
    "distanceFunction": "cosine",
    "dimensions": 3,
}
CONTAINER: Final[dict[str, Any]] = {
    "id": "c",
    "partitionKey": KEY,
    "indexingPolicy": INDEXING,
    "vectorEmbeddingPolicy": {"vectorEmbeddings": [VECTOR]},
    "fullTextPolicy": {
        "defaultLanguage": "en-US",
        "fullTextPaths": [{"path": "/t", "language": "en-US"}],
    },
    "changeFeedPolicy": {"retentionDuration": 10},
}
WITH_ALL: Final = CONTAINER | {
    "id": "n",
    "defaultTtl": -1,
    "analyticalStorageTtl": -1,
    "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]},
    "conflictResolutionPolicy": {"mode": "LastWriterWins", "conflictResolutionPath": "/_ts"},
    "computedProperties": [{"name": "low", "query": "SELECT VALUE LOWER(c.t) FROM c"}],
    "geospatialConfig": {"type": "Geography"},
    "clientEncryptionPolicy": {
        "includedPaths": [
            {
                "path": "/s",
                "clientEncryptionKeyId": "k",
                "encryptionType": "Deterministic",
                "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
            }
        ],
        "policyFormatVersion": 1,
    },
}
ITEM: Final[dict[str, Any]] = {
    "id": "1",
    "pk": "a",
    "n": 1,
    "t": "the fox",
    "a": [1, {"b": 2}],
    "g": {"type": "Point", "coordinates": [1, 2]},
    "v": [1, 2, 3],
    "ttl": -1,
}
PATCH: Final[list[dict[str, Any]]] = [
    {"op": "add", "path": "/q", "value": 1},
    {"op": "set", "path": "/a/1/b", "value": 2},
    {"op": "replace", "path": "/t", "value": "x"},
    {"op": "incr", "path": "/n", "value": 1},
    {"op": "add", "path": "/a/-", "value": 3},
    {"op": "remove", "path": "/a/2"},
    {"op": "remove", "path": "/q"},
    {"op": "move", "from": "/n", "path": "/m"},
]
OPERATIONS: Final[list[dict[str, Any]]] = [
    {"operationType": "Create", "resourceBody": {"id": "b1", "pk": "a"}},
    {"operationType": "Read", "id": "1"},
    {"operationType": "Upsert", "resourceBody": {"id": "b2", "pk": "a"}},
    {
        "operationType": "Replace",
        "id": "1",
        "resourceBody": {"id": "1", "pk": "a"},
        "ifMatch": "x",
    },
    {
        "operationType": "Patch",
        "id": "1",
        "resourceBody": {"operations": PATCH[:1], "condition": "from c where c.n = 1"},
    },
    {"operationType": "Delete", "id": "b1"},
]
ENCRYPTION_KEY: Final = {
    "id": "k",
    "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
    "wrappedDataEncryptionKey": "AAEC",
    "keyWrapMetadata": {"type": "x", "name": "n", "value": "v", "algorithm": "RSA-OAEP"},
}
#: With a parameter that stands wherever one may.
QUERIES: Final = (
    "SELECT * FROM c WHERE c.n > @p ORDER BY c.n",
    "SELECT c.pk, COUNT(1) AS k, SUM(@p) AS s FROM c GROUP BY c.pk",
    "SELECT TOP @p * FROM c",
    "SELECT * FROM c OFFSET @p LIMIT @p",
    "SELECT DISTINCT VALUE x FROM c JOIN x IN c.a WHERE x = @p",
    "SELECT TOP 3 c.id FROM c ORDER BY VectorDistance(c.v, @p)",
    "SELECT TOP 3 c.id FROM c ORDER BY RANK FullTextScore(c.t, @p)",
    "SELECT * FROM c WHERE ST_DISTANCE(c.g, @p) < 5",
    "SELECT VALUE RegexMatch(c.t, @p) FROM c",
    "SELECT * FROM c WHERE c.n IN (@p) AND ARRAY_CONTAINS(@p, c.n, true)",
    "SELECT * FROM c WHERE c.pk = @p AND c.id = @p",
)
SCRIPTS: Final[dict[str, dict[str, str]]] = {
    "sprocs": {"id": "s", "body": "function (a) { getContext().getResponse().setBody(a) }"},
    "udfs": {"id": "s", "body": "function (a) { return a }"},
    "triggers": {
        "id": "s",
        "body": "function () {}",
        "triggerType": "Pre",
        "triggerOperation": "All",
    },
}
BY_NAME: Final = asked("SELECT * FROM r WHERE r.id = @p", p="c")


class Asked(NamedTuple):
    method: str
    target: str
    body: Any
    headers: dict[str, str]


def prepared() -> Api:
    """An account with what the requests are about."""
    api = Api()
    made = [
        api.ask("POST", "/dbs", {"id": "d"}),
        api.ask("POST", "/dbs/d/clientencryptionkeys", ENCRYPTION_KEY),
        api.ask("POST", "/dbs/d/colls", CONTAINER, {"x-ms-offer-throughput": "400"}),
        api.ask("POST", "/dbs/d/users", {"id": "u"}),
        api.ask("POST", "/dbs/d/users/u/permissions", _permission("r")),
        *(api.ask("POST", DOCS, ITEM | {"id": str(n)}, pk("a")) for n in (1, 2, 3)),
        *(api.ask("POST", f"{COLL}/{kind}", body) for kind, body in SCRIPTS.items()),
    ]
    assert [one.status for one in made] == [201] * len(made), [one.body for one in made]
    return api


def offer(api: Api) -> Asked:
    """The throughput of the container, as it is."""
    found = json.loads(api.ask("GET", "/offers").body)["Offers"][0]
    return Asked("PUT", f"/offers/{found['_rid']}", found, {})


def requests() -> Iterator[Asked]:
    yield Asked("POST", "/dbs", {"id": "new"}, {"x-ms-offer-throughput": "400"})
    for target in ("/", "/dbs", "/dbs/d", "/dbs/d/colls", COLL, f"{COLL}/pkranges", "/offers"):
        yield Asked("GET", target, None, {})
    yield Asked("POST", "/dbs/d/colls", WITH_ALL, {"x-ms-offer-throughput": "400"})
    yield Asked("PUT", COLL, CONTAINER | {"defaultTtl": -1}, {})
    yield from items()
    for text in QUERIES:
        yield Asked("POST", DOCS, asked(text, p=1), QUERY | ANYWHERE)
    yield Asked("POST", DOCS, asked(QUERIES[0], p=1), QUERY | PLAN)
    for target in ("/dbs", "/dbs/d/colls", "/offers", f"{COLL}/sprocs"):
        yield Asked("POST", target, BY_NAME, QUERY)
    for kind, body in SCRIPTS.items():
        yield Asked("POST", f"{COLL}/{kind}", body | {"id": "s2"}, {})
        yield Asked("PUT", f"{COLL}/{kind}/s", body, {})
    yield Asked("POST", f"{COLL}/sprocs/s", [1, "a", {"x": [1]}], pk("a"))
    yield Asked("POST", "/dbs/d/users", {"id": "u2"}, {})
    yield Asked("POST", "/dbs/d/users/u/permissions", _permission("r2"), {})
    yield Asked("PUT", "/dbs/d/users/u/permissions/r", _permission("r"), {})
    yield Asked("PUT", "/dbs/d/clientencryptionkeys/k", ENCRYPTION_KEY, {})


def items() -> Iterator[Asked]:
    yield Asked("POST", DOCS, ITEM | {"id": "z"}, pk("a"))
    yield Asked("POST", DOCS, ITEM, pk("a") | UPSERT)
    yield Asked("PUT", f"{DOCS}/1", ITEM, pk("a"))
    yield Asked("GET", f"{DOCS}/1", None, pk("a"))
    yield Asked("DELETE", f"{DOCS}/none", None, pk("a"))
    yield Asked("PATCH", f"{DOCS}/1", {"operations": PATCH}, pk("a"))
    yield Asked("POST", DOCS, OPERATIONS, pk("a") | BATCH)
    yield Asked("POST", DOCS, [one | {"partitionKey": '["a"]'} for one in OPERATIONS], BULK)
    yield Asked("GET", DOCS, None, {"x-ms-max-item-count": "1"})
    yield Asked("GET", DOCS, None, {"a-im": "Incremental Feed"})
    yield Asked("GET", DOCS, None, {"a-im": "Full-Fidelity Feed", "if-none-match": "*"})
    yield Asked("POST", f"{COLL}/operations/partitionkeydelete", None, pk("none"))


def _permission(name: str) -> dict[str, Any]:
    resource = {"resource": "dbs/d/colls/c", "resourcePartitionKey": ["a"]}
    return {"id": name, "permissionMode": "Read", **resource}
