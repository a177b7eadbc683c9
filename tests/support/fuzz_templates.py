"""Valid bodies, headers and names, from which fuzz_requests.py makes nearly valid ones."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, Final

GOLDEN = Path(__file__).resolve().parents[1] / "golden"

VARIANTS: Final[dict[str, dict[str, str]]] = {
    "": {},
    "query": {"x-ms-documentdb-isquery": "true", "content-type": "application/query+json"},
    "plan": {"x-ms-cosmos-is-query-plan-request": "true"},
    "batch": {"x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true"},
    "changes": {"a-im": "Incremental feed"},
}
#: Headers that handlers read, with values that make sense.
HEADERS: Final[dict[str, tuple[str, ...]]] = {
    "x-ms-documentdb-partitionkey": ('["a"]', '["b"]', "[]", "[{}]", "[null]", '["a","b"]', "[1]"),
    "x-ms-documentdb-partitionkeyrangeid": ("0", "1", "7", "x,0"),
    "x-ms-start-epk": ("", "1F", "00000000000000000000000000000000"),
    "x-ms-end-epk": ("FF", "20", "3FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"),
    "x-ms-max-item-count": ("1", "-1", "2", "1000", "99999999999999999999"),
    "x-ms-continuation": ("",),
    "x-ms-session-token": ("0:1#3", "0:-1#5,1:0#1#4=2", "0:0#0"),
    "x-ms-consistency-level": ("Session", "Eventual", "Strong"),
    "x-ms-documentdb-query-enablecrosspartition": ("True", "false"),
    "x-ms-documentdb-query-parallelizecrosspartitionquery": ("True",),
    "x-ms-documentdb-populatequerymetrics": ("True",),
    "x-ms-cosmos-populateindexmetrics": ("True",),
    "x-ms-cosmos-populateindexmetrics-v2": ("True",),
    "x-ms-documentdb-populatequotainfo": ("True",),
    "x-ms-documentdb-populatepartitionstatistics": ("True",),
    "x-ms-cosmos-supported-query-features": ("Aggregate, Distinct, OrderBy, GroupBy", "None"),
    "x-ms-cosmos-batch-atomic": ("True", "False"),
    "x-ms-cosmos-batch-continue-on-error": ("True",),
    "x-ms-documentdb-is-upsert": ("True",),
    "x-ms-documentdb-isquery": ("True",),
    "x-ms-cosmos-intended-collection-rid": ("AAAAAAAAAAA=",),
    "x-ms-offer-throughput": ("400", "10000", "1000000", "-1"),
    "x-ms-cosmos-offer-autopilot-settings": ('{"maxThroughput":4000}', "{}"),
    "x-ms-offer-type": ("S1", "Invalid"),
    "x-ms-documentdb-expiry-seconds": ("600", "18000", "0"),
    "x-ms-indexing-directive": ("Include", "Exclude"),
    "x-ms-documentdb-pre-trigger-include": ("t",),
    "x-ms-cosmos-allow-tentative-writes": ("true",),
    "x-ms-version": ("2018-12-31", "2014-08-21", "2020-07-15"),
    "x-ms-activity-id": ("11111111-1111-1111-1111-111111111111",),
    "if-match": ('"00000000-0000-0000-0000-000000000000"', "*"),
    "if-none-match": ("*", '"3"', "0"),
    "if-modified-since": ("Thu, 27 Apr 2017 00:51:12 GMT", "Mon, 01 Jan 0001 00:00:00 GMT"),
    "a-im": ("Incremental feed", "Full-Fidelity Feed"),
    "prefer": ("return=minimal",),
    "host": ("localhost:8081", ""),
    "origin": ("http://localhost:3000",),
    "access-control-request-headers": ("x-ms-date, authorization",),
    "date": ("Thu, 27 Apr 2017 00:51:12 GMT",),
    "x-forwarded-proto": ("https",),
    "x-forwarded-host": ("example.com",),
}

ITEM: Final[dict[str, Any]] = {
    "id": "1",
    "pk": "a",
    "n": 1,
    "t": [1, "x"],
    "o": {"p": None},
    "ttl": 60,
    "where": {
        "point": {"type": "Point", "coordinates": [1, 2]},
        "line": {"type": "LineString", "coordinates": [[1, 2], [3, 4]]},
        "area": {"type": "MultiPolygon", "coordinates": [[[[0, 0], [1, 0], [1, 1], [0, 0]]]]},
    },
    "text": "a small fox",
    "v": [1, 2, 3],
}
CONTAINER: Final[dict[str, Any]] = {
    "id": "c",
    "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
    "defaultTtl": -1,
    "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]},
    "conflictResolutionPolicy": {"mode": "LastWriterWins", "conflictResolutionPath": "/_ts"},
    "changeFeedPolicy": {"retentionDuration": 5},
    "computedProperties": [{"name": "low", "query": "SELECT VALUE LOWER(c.pk) FROM c"}],
    "fullTextPolicy": {
        "defaultLanguage": "en-US",
        "fullTextPaths": [{"path": "/text", "language": "en-US"}],
    },
    "vectorEmbeddingPolicy": {
        "vectorEmbeddings": [
            {"path": "/v", "dataType": "float32", "dimensions": 3, "distanceFunction": "cosine"}
        ]
    },
    "indexingPolicy": {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [{"path": '/"_etag"/?'}],
        "compositeIndexes": [[{"path": "/n", "order": "ascending"}, {"path": "/pk"}]],
        "spatialIndexes": [{"path": "/where/*", "types": ["Point", "Polygon"]}],
        "vectorIndexes": [{"path": "/v", "type": "flat"}],
        "fullTextIndexes": [{"path": "/text"}],
    },
}
PATCH: Final[dict[str, Any]] = {
    "condition": "FROM c WHERE c.n > 0",
    "operations": [
        {"op": "add", "path": "/x", "value": 1},
        {"op": "incr", "path": "/n", "value": 2},
        {"op": "move", "from": "/x", "path": "/y"},
        {"op": "remove", "path": "/t/0"},
    ],
}
BATCH: Final[list[dict[str, Any]]] = [
    {"operationType": "Create", "resourceBody": {"id": "9", "pk": "a"}, "partitionKey": '["a"]'},
    {"operationType": "Read", "id": "1", "partitionKey": '["a"]'},
    {"operationType": "Patch", "id": "1", "resourceBody": PATCH, "partitionKey": '["a"]'},
    {"operationType": "Upsert", "resourceBody": ITEM, "ifMatch": "x", "partitionKey": '["a"]'},
    {"operationType": "Replace", "id": "1", "resourceBody": ITEM, "partitionKey": '["a"]'},
    {"operationType": "Delete", "id": "9", "partitionKey": '["a"]'},
]
#: By what the path ends in, stars left out: a body that creates or replaces.
BODIES: Final[dict[str, Any]] = {
    "dbs": {"id": "d"},
    "colls": CONTAINER,
    "docs": ITEM,
    "sprocs": {"id": "s", "body": "function () {}"},
    "triggers": {
        "id": "t",
        "body": "function () {}",
        "triggerType": "Pre",
        "triggerOperation": "All",
    },
    "udfs": {"id": "u", "body": "function () {}"},
    "users": {"id": "ada"},
    "permissions": {
        "id": "p",
        "permissionMode": "All",
        "resource": "dbs/d/colls/c",
        "resourcePartitionKey": ["a"],
    },
    "clientencryptionkeys": {
        "id": "k",
        "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
        "wrappedDataEncryptionKey": base64.b64encode(b"k" * 16).decode(),
        "keyWrapMetadata": {"type": "t", "name": "n", "value": "v", "algorithm": "RSA-OAEP"},
    },
    "offers": {
        "id": "o",
        "offerVersion": "V2",
        "offerType": "Invalid",
        "content": {"offerThroughput": 500, "offerAutopilotSettings": {"maxThroughput": 4000}},
        "resource": "dbs/d/colls/c",
        "offerResourceId": "x",
    },
}
CONTROL_BODIES: Final[dict[str, Any]] = {
    "split": {"id": "0", "at": "1F"},
    "merge": {"ids": ["0", "1"]},
    "replaceFaults": [
        {"match": {"operation": "read", "container": "c"}, "effect": "429", "value": 5, "times": 1}
    ],
    "advanceClock": {"advance_ms": 1},
    "writeKeySpec": {
        "properties": ["/tenant"],
        "buckets": 4,
        "into": "/pk",
    },
}
#: What there is, by the word before it in a path.
KNOWN: Final[dict[str, tuple[str, ...]]] = {
    "dbs": ("d",),
    "colls": ("c", "c", "c", "h", "v1"),
    "docs": tuple(map(str, range(12))),
    "sprocs": ("s",),
    "triggers": ("t",),
    "udfs": ("u",),
    "users": ("ada",),
    "permissions": ("p",),
    "clientencryptionkeys": ("k",),
    "conflicts": ("x",),
    "offers": (),
}
NAMES: Final = ("d", "c", "1", "0", "s", "t", "u", "ada", "p", "k", "nope", "shared", "h", "v1")


def golden_queries() -> list[dict[str, Any]]:
    """Every query that tests know, with parameters where a case has them."""
    found: list[dict[str, Any]] = []
    for path in sorted(GOLDEN.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            case = json.loads(line)
            if isinstance(case.get("query"), str):
                query = case["query"].replace("«", "").replace("»", "")
                parameters = case.get("parameters", [])
                if isinstance(parameters, dict):
                    parameters = [{"name": name, "value": one} for name, one in parameters.items()]
                found.append({"query": query, "parameters": parameters})
    assert len(found) > 300
    return found


def golden_calls() -> list[tuple[str, list[str]]]:
    """Every function with arguments that tests know: its name, and the text of each argument."""
    found = []
    for line in (GOLDEN / "functions.txt").read_text("utf-8").splitlines():
        call = line.partition(" -> ")[0]
        name, opened, rest = call.partition("(")
        if opened and call.endswith(")") and name.replace("_", "").isalnum():
            found.append((name, _pieces(rest[:-1])))
    assert len(found) > 500
    return found


def _pieces(text: str) -> list[str]:
    """What commas divide outside of brackets and strings."""
    found, depth, quote = [""], 0, ""
    for one in text:
        if quote:
            quote = "" if one == quote else quote
        elif one in "'\"":
            quote = one
        else:
            depth += (one in "([{") - (one in ")]}")
        if one == "," and not depth and not quote:
            found.append("")
        else:
            found[-1] += one
    return [one.strip() for one in found if one.strip()]
