"""What goes in and out of the controls, as JSON schemas: the description that clients read, and
that a test holds against the server."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Schema: TypeAlias = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
INTEGER: Final[Schema] = {"type": "integer"}
BOOLEAN: Final[Schema] = {"type": "boolean"}
NUMBER: Final[Schema] = {"type": "number"}
ANY: Final[Schema] = {}

#: Answers that are not JSON.
SVG: Final = "image/svg+xml"
PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"


def one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def many(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def record(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


ERROR: Final = record({"code": TEXT, "message": TEXT})

#: What the pages about partitions and about heat say of each.
PARTITION_NOW: Final = {
    "parents": many(TEXT),
    "status": one_of("online", "splitting", "merging"),
    "bytes": INTEGER,
    "items": INTEGER,
    "ru_per_s": maybe(NUMBER),
    "consumed_ru_last_s": NUMBER,
    "normalized_ru": NUMBER,
    "throttled_last_min": INTEGER,
}
PARTITION: Final = record(
    {
        "id": TEXT,
        "min": TEXT,
        "max": TEXT,
        **PARTITION_NOW,
    }
)
TOP_KEY: Final = record({"key": ANY, "ru_share": NUMBER, "bytes": INTEGER})
PARTITIONS: Final = record(
    {
        "container": TEXT,
        "throughput": maybe(INTEGER),
        "partitions": many(PARTITION),
        "top_keys": many(TOP_KEY),
    }
)

USAGE: Final = record(
    {
        "database": TEXT,
        "container": TEXT,
        "partitions": many(
            record(
                {
                    "id": TEXT,
                    "bytes": INTEGER,
                    "requests": INTEGER,
                    "refused": INTEGER,
                    "normalized_ru": NUMBER,
                    "dearest_ru": NUMBER,
                    "dearest_operation": TEXT,
                }
            )
        ),
        "keys": many(TOP_KEY),
        "queries": many(record({"text": TEXT, "ranges": INTEGER, "ru": NUMBER})),
    }
)

HEAT: Final = record(
    {
        "database": TEXT,
        "container": TEXT,
        "partition_key": many(TEXT),
        "throughput": maybe(INTEGER),
        "limits": record(
            {"partition_bytes": INTEGER, "partition_ru": INTEGER, "logical_bytes": INTEGER}
        ),
        "now_s": INTEGER,
        "step_s": INTEGER,
        "first_s": INTEGER,
        "partitions": many(
            record(
                {
                    "id": TEXT,
                    "from": NUMBER,
                    "to": NUMBER,
                    **PARTITION_NOW,
                    "refused": INTEGER,
                    "ru": many(NUMBER),
                    "node": TEXT,
                }
            )
        ),
        "moves": many(
            record(
                {
                    "kind": one_of("split", "merge"),
                    "parents": many(TEXT),
                    "children": many(record({"id": TEXT, "from": NUMBER, "to": NUMBER})),
                }
            )
        ),
        "past": many(
            record(
                {
                    "kind": one_of("split", "merge"),
                    "parents": many(TEXT),
                    "children": many(TEXT),
                    "at_s": INTEGER,
                }
            )
        ),
        "keys": many(
            record(
                {
                    "key": ANY,
                    "ru_share": NUMBER,
                    "bytes": INTEGER,
                    "partition": TEXT,
                    "at": NUMBER,
                }
            )
        ),
    }
)

PARAMETER: Final = record({"name": TEXT, "value": ANY})
QUERY: Final = record(
    {"query": TEXT},
    {
        "parameters": many(PARAMETER),
        "partition_key": ANY,
        "max_items": INTEGER,
        "continuation": maybe(TEXT),
    },
)
QUERY_PAGE: Final = record(
    {
        "rows": many(ANY),
        "continuation": maybe(TEXT),
        "charge_ru": NUMBER,
        "elapsed_ms": NUMBER,
        "partitions": many(TEXT),
        "partitions_read": INTEGER,
        "retrieved_items": INTEGER,
        "retrieved_bytes": INTEGER,
        "output_bytes": INTEGER,
        "index": record({"used": many(TEXT), "possible": many(TEXT), "only": BOOLEAN}),
        "plan": many(TEXT),
    }
)

TRAVERSAL: Final = record({"gremlin": TEXT}, {"bindings": {"type": "object"}})
_END: Final = record({"key": ANY, "id": TEXT})
GRAPH: Final = record(
    {
        "results": many(ANY),
        "vertices": many(record({"id": TEXT, "label": TEXT, "key": ANY, "partition": TEXT})),
        "edges": many(record({"id": TEXT, "label": TEXT, "from": _END, "to": _END})),
        "is_cut": BOOLEAN,
        "charge_ru": NUMBER,
        "elapsed_ms": NUMBER,
    }
)

SPLIT: Final = record({"id": TEXT}, {"at": TEXT})
MERGE: Final = record({"ids": many(TEXT)})
REKEY: Final = record(
    {"target": TEXT},
    {
        "partitionKey": ANY,
        "syntheticKey": ANY,
        "throughput": INTEGER,
        "autoscale_max": INTEGER,
        "cut_over": BOOLEAN,
    },
)
REKEY_PROGRESS: Final = record(
    {
        "phase": TEXT,
        "copied": INTEGER,
        "source_items": INTEGER,
        "without_key": INTEGER,
        "report": maybe(
            record(
                {
                    "source_items": INTEGER,
                    "target_items": INTEGER,
                    "verified": BOOLEAN,
                    "closed": BOOLEAN,
                    "without_key": INTEGER,
                    "logical_partitions": INTEGER,
                    "different": INTEGER,
                    "left": many(record({"id": TEXT, "key": ANY, "why": TEXT})),
                }
            )
        ),
    }
)
SHARES: Final = record({"shares": {"type": "object", "additionalProperties": INTEGER}})
DISTRIBUTION: Final = record(
    {
        "throughput": INTEGER,
        "shares": {"type": "object", "additionalProperties": NUMBER},
        "pending": BOOLEAN,
    }
)
ACCEPTED: Final = record({"operation": TEXT, "status": one_of("running")})
OPERATION: Final = record(
    {
        "operation": TEXT,
        "kind": one_of("split", "merge"),
        "status": one_of("running", "succeeded", "failed"),
        "database": TEXT,
        "container": TEXT,
        "parents": many(TEXT),
        "children": many(TEXT),
    }
)

THROUGHPUT: Final = record({"kind": one_of("manual", "autoscale"), "ru": INTEGER})
ACCOUNT: Final = record(
    {
        "version": TEXT,
        "account": TEXT,
        "databases": many(
            record(
                {
                    "id": TEXT,
                    "throughput": maybe(THROUGHPUT),
                    "containers": many(
                        record(
                            {
                                "id": TEXT,
                                "partition_key": many(TEXT),
                                "synthetic_key": maybe({"type": "object"}),
                                "throughput": maybe(THROUGHPUT),
                                "shared_throughput": maybe(THROUGHPUT),
                                "partitions": INTEGER,
                                "items": INTEGER,
                                "bytes": INTEGER,
                            }
                        )
                    ),
                }
            )
        ),
    }
)

FAULT: Final = record(
    {
        "match": record({}, {"operation": TEXT, "container": TEXT}),
        "effect": one_of("delay", "429", "410", "503"),
    },
    {"value": INTEGER, "times": INTEGER},
)
FAULTS: Final = many(FAULT)
REPLICA: Final = record(
    {"address": TEXT, "reads": BOOLEAN, "lag_ms": maybe(INTEGER), "reason": TEXT}
)
REGION: Final = record(
    {"name": TEXT, "endpoint": TEXT, "writes": BOOLEAN, "replica": maybe(REPLICA)}
)
PLACED: Final = record(
    {
        "database": TEXT,
        "container": TEXT,
        "ranges": many(record({"id": TEXT, "node": TEXT})),
    }
)
TOPOLOGY: Final = record({"here": TEXT, "regions": many(REGION), "containers": many(PLACED)})
FAILOVER: Final = record({}, {"region": TEXT})
FAILED_OVER: Final = record({"from": TEXT, "to": TEXT})
ADVANCE: Final = record({}, {"advance_ms": INTEGER, "stopped": BOOLEAN})
CLOCK: Final = record({"now_ms": INTEGER, "ahead_ms": INTEGER, "stopped": BOOLEAN})

#: docs/synthetic-keys.md is its definition; the store checks it whole.
KEY_SPEC: Final = maybe({"type": "object"})
KEY_SPEC_SET: Final = record({"spec": KEY_SPEC})
RESET: Final = record({"databases": INTEGER})
DESCRIPTION: Final[Schema] = {"type": "object"}

SNAPSHOT: Final = record({"name": TEXT, "taken_ms": INTEGER, "bytes": INTEGER})
SNAPSHOTS: Final = many(SNAPSHOT)
REMOVED: Final = record({"name": TEXT})
