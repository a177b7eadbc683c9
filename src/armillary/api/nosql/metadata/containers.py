"""Containers on the wire, and their ranges. Facts: nosql-rest 2.5, 4.5."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

import orjson

from armillary.api.http.messages import Response
from armillary.api.nosql.call import NONE, Call, Headers, feed_body, reply, resource
from armillary.api.nosql.metadata.databases import check_match
from armillary.api.nosql.metadata.listing import list_page
from armillary.api.nosql.metadata.presenting import container_json, range_json
from armillary.api.nosql.metadata.throughput import asked_throughput, keep_increment
from armillary.budget import Budget, unbounded
from armillary.encoding.etags import matches
from armillary.encoding.rids import parse_rid
from armillary.engine.base import SpaceGone
from armillary.errors import BadInput
from armillary.limits import FUNCTIONS_MAX, STORED_PROCEDURES_MAX, TRIGGERS_MAX
from armillary.store.catalog.records import ContainerRecord
from armillary.store.catalog.resources import ResourceStore
from armillary.store.items.containers import ContainerStore
from armillary.store.reports import statistics
from armillary.store.rows.meta import unpack_meta
from armillary.store.throughput.provisioned import announced
from armillary.values import JSON

KEYS_SHOWN: Final = 3  # of the largest logical partitions, per physical one
INDEXED: Final = "x-ms-documentdb-collection-index-transformation-progress"
SCRIPTS: Final = {"udf": "functions", "sproc": "storedProcedures", "trigger": "triggers"}
KEY_REQUIRED_SINCE: Final = "2018-12-31"
API: Final = "x-armillary-api"
APIS: Final = ("nosql", "gremlin")
"""What can be made here: a graph is a container with a rule for its key."""
KIND: Final = "x-armillary-kind"
KINDS: Final = ("unlimited", "fixed")
"""What a client asks for, as in 2018; `container_kind` says what it then is."""


def list_containers(call: Call) -> Response:
    owner = call.gateway.owner_database(call.names[0])
    records = call.gateway.account.list_containers(owner.id, call.budget)
    rows = [(parse_rid(one.rid).number, container_json(one)) for one in records]
    return list_page(call, owner.rid, "DocumentCollections", rows)


def create_container(call: Call) -> Response:
    owner = call.gateway.owner_database(call.names[0])
    body = call.document()
    version = call.request.headers.get("x-ms-version", KEY_REQUIRED_SINCE)
    fixed = _one_of(call, KIND, KINDS) == "fixed"
    if not body.get("partitionKey") and version >= KEY_REQUIRED_SINCE and not fixed:
        raise BadInput(
            "The partition key definition is missing: "
            "a container needs a 'partitionKey' with 'paths'."
        )
    _check_computed(body)
    throughput = asked_throughput(call.options)
    record = call.gateway.account.create_container(
        owner.id, body, throughput=throughput, fixed=fixed, api=_one_of(call, API, APIS)
    )
    keep_increment(call, record.rid)
    return _answer(call, 201, record, container_json(record))


def _one_of(call: Call, header: str, choices: tuple[str, ...]) -> str:
    """What a header of ours says, or the first choice without it."""
    found = call.request.headers.get(header, choices[0])
    if found not in choices:
        raise BadInput(f"'{header}' is one of {', '.join(choices)}.")
    return found


def read_container(call: Call) -> Response:
    record = call.gateway.container_record(*call.names)
    document = container_json(record)
    store = call.gateway.container(record.database, record.id)
    budget = call.budget
    headers: dict[str, str | None] = {INDEXED: str(statistics.index_progress(store, budget))}
    options = call.options
    wants_quota = options.flag("x-ms-documentdb-populatequotainfo")
    wants_statistics = options.flag("x-ms-documentdb-populatepartitionstatistics")
    if wants_quota or wants_statistics:
        headers |= quota_headers(call, store) if wants_quota else {}
        if wants_statistics:
            document["statistics"] = partition_statistics(store, budget)
    return _answer(call, 200, record, document, headers)


def replace_container(call: Call) -> Response:
    current = call.gateway.container_record(*call.names)
    body = call.document()
    if body.get("id") != current.id:
        raise BadInput("The id of a container can't be changed.")
    _check_computed(body)
    record = call.gateway.account.replace_container(
        current.database, body, if_match=call.options.if_match, build=False
    )
    store = call.gateway.container(record.database, record.id)
    progress = statistics.index_progress(store, unbounded())  # the change is made
    if progress < 100:
        call.gateway.index_later(store)
    return _answer(call, 200, record, container_json(record), {INDEXED: str(progress)})


def delete_container(call: Call) -> Response:
    record = call.gateway.container_record(*call.names)
    check_match(call, record.etag)
    call.gateway.account.delete_container(record.database, record.id)
    call.gateway.forget(record.database, record.id)
    return reply(call, 204)


def _answer(
    call: Call,
    status: int,
    record: ContainerRecord,
    document: dict[str, JSON],
    headers: Headers = NONE,
) -> Response:
    """On a container the path headers name its parent."""
    paths = {
        "x-ms-alt-content-path": "dbs/" + quote(record.database, safe=""),
        "x-ms-content-path": parse_rid(record.rid).parent,
    }
    return resource(call, status, document, {**paths, **headers})


# --- what a container holds ---------------------------------------------------------------------


def quota_headers(call: Call, store: ContainerStore) -> dict[str, str | None]:
    """In KB, as the original counts."""
    budget, scripts = call.budget, ""
    for kind, word in SCRIPTS.items():
        known = ResourceStore(call.gateway.engine, kind, store.state.record.rid).list(budget)
        scripts += f"{word}={len(known)};"
    parts = statistics.partitions(store, budget)
    size_kb = sum(one.size_bytes for one in parts) // 1024
    body_kb = sum(one.body_bytes for one in parts) // 1024
    items = sum(one.items for one in parts)
    room_kb = call.gateway.account.limits.bytes // 1024  # of each physical partition
    return {
        "x-ms-resource-quota": (
            f"functions={FUNCTIONS_MAX};storedProcedures={STORED_PROCEDURES_MAX};"
            f"triggers={TRIGGERS_MAX};documentSize=10240;"
            f"documentsSize={room_kb};documentsCount=-1;collectionSize={room_kb};"
        ),
        "x-ms-resource-usage": (
            f"{scripts}documentSize=0;documentsSize={body_kb};documentsCount={items};collectionSize={size_kb};"
        ),
    }


def partition_statistics(store: ContainerStore, budget: Budget) -> list[JSON]:
    parts = statistics.partitions(store, budget)
    keys = statistics.logical_partitions(store, KEYS_SHOWN * max(1, len(parts)), budget)
    return [
        {
            "id": part.id,
            "sizeInKB": part.size_bytes // 1024,
            "documentCount": part.items,
            "sampledDistinctPartitionKeyCount": sum(one.partition == part.id for one in keys),
            "partitionKeys": [
                {"partitionKey": one.key, "sizeInKB": one.size_bytes // 1024}
                for one in keys
                if one.partition == part.id
            ][:KEYS_SHOWN],
        }
        for part in parts
    ]


# --- ranges -------------------------------------------------------------------------------------


def list_ranges(call: Call) -> Response:
    """The etag changes with the topology, and when a change of it is announced. A client with the
    current one gets 304: the SDKs ask until they do."""
    store = call.gateway.container(*call.names)
    record = store.refresh().record
    coming = announced(store, of=call.gateway.account.limits)
    etag = f'"{record.rid}-{record.version}-{coming.scaling}"'
    asked = call.options.if_none_match
    if asked is not None and matches(asked, etag):
        return reply(call, 304, headers={"etag": etag})
    lsns: dict[int, int] = {}
    for one in record.ranges:
        try:
            with call.gateway.engine.read(one.space) as reader:
                lsns[one.ordinal] = unpack_meta(reader.meta).lsn
        except SpaceGone:  # split since we looked; the client will ask again
            continue
    ranges = range_json(record, lsns, coming.parents)
    body = feed_body(record.rid, "PartitionKeyRanges", map(orjson.dumps, ranges))
    return reply(call, 200, body, {"etag": etag, "x-ms-item-count": str(len(ranges))})


def _check_computed(body: dict[str, JSON]) -> None:
    if "computedProperties" in body:
        from armillary.query.sql.computed import check_computed  # with the first, see `later.py`

        check_computed(body)
