"""Change streams over the change feed of a container. Facts: section 16.

A position names hashes and LSNs, so a resume token stays good over splits, merges and restarts.
Each document appears as it is now, once per look (no deletes, no versions in between), in the order
of its logical partition. In strict mode the pipeline must be the one Azure Cosmos DB asks for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson
from bson.datetime_ms import DatetimeMS
from bson.int64 import Int64
from bson.timestamp import Timestamp

from armillary.api.core.streams import Later
from armillary.api.mongo.aggregate.pipeline import compile_pipeline
from armillary.api.mongo.call import Call
from armillary.api.mongo.data import cursors
from armillary.api.mongo.data.collections import Collection, walk
from armillary.api.mongo.data.cursors import CursorState
from armillary.api.mongo.errors import MongoError, bad_value
from armillary.encoding.bson.stored import RECORD, from_item
from armillary.encoding.bson.values import Document, encode, is_number, is_text, number_of
from armillary.errors import BadInput
from armillary.limits import MONGO_FIRST_BATCH, MONGO_OPERATION_SECONDS, MONGO_REPLY_BYTES_MAX
from armillary.store.feed.reading import FeedEntry
from armillary.store.items import paging
from armillary.store.items.positions import (
    Position,
    Segment,
    are_sound,
    decode_position,
    encode_position,
)
from armillary.store.items.routing import key_in

AWAIT_MS: Final = 1000
STEP_SECONDS: Final = 0.02
ALLOWED_AFTER: Final = frozenset(
    [
        "$match",
        "$project",
        "$addFields",
        "$set",
        "$unset",
        "$replaceRoot",
        "$replaceWith",
        "$redact",
    ]
)
OPTIONS: Final = frozenset(
    [
        "fullDocument",
        "resumeAfter",
        "startAfter",
        "startAtOperationTime",
        "allChangesForCluster",
        "fullDocumentBeforeChange",
        "showExpandedEvents",
    ]
)


def watch(call: Call, pipeline: list[Any]) -> Document:
    (options,) = pipeline[0].values()
    if not isinstance(options, dict):
        raise MongoError(6188500, "the $changeStream specification must be an object")
    for one in options:
        if one not in OPTIONS:
            raise MongoError(40415, f"BSON field '$changeStream.{one}' is an unknown field.")
    if not is_text(call.command["aggregate"]) or options.get("allChangesForCluster"):
        raise MongoError(
            115, "A change stream is about one collection; name the collection to watch."
        )
    full = options.get("fullDocument", "default")
    if full not in ("default", "updateLookup", "whenAvailable", "required"):
        raise bad_value(
            f"Enumeration value '{full}' for field "
            "'$changeStream.fullDocument' is not a valid value."
        )
    if call.service.settings.strict and full != "updateLookup":
        raise bad_value(
            "Change streams are only supported with the fullDocument option updateLookup."
        )
    for stage in pipeline[1:]:
        if next(iter(stage)) not in ALLOWED_AFTER:
            raise MongoError(
                20, f"{next(iter(stage))} is not permitted in a $changeStream pipeline"
            )
    compile_pipeline(pipeline[1:], call.language(), None)  # type: ignore[arg-type]
    given = [one for one in ("resumeAfter", "startAfter", "startAtOperationTime") if one in options]
    if len(given) > 1:
        raise MongoError(
            40674, "Only one type of resume option is allowed, but multiple were found."
        )
    name = call.collection_name()
    collection = call.service.collections.current(call.database, name)
    if collection is None:
        # MongoDB waits for it to be made: an empty collection has the same changes.
        collection = call.service.collections.ensure(call.database, name)
    position = _start(call, collection, options)
    state: Document = {
        "pipeline": pipeline[1:],
        "position": encode_position(position),
        "rid": collection.store.state.record.rid,
    }
    namespace = f"{call.database}.{name}"
    cursor = CursorState("change", namespace, call.session, state, [])
    number = cursors.new_id()
    size = call.batch_size(MONGO_FIRST_BATCH)
    batch: list[bytes] = []
    if given and size:
        batch = _look(call, collection, cursor, size)
    cursors.save(call.service.engine, number, cursor)
    return _reply(call, number, cursor, batch, "firstBatch")


def _start(call: Call, collection: Collection, options: Document) -> Position:
    store = collection.store
    token = options.get("resumeAfter", options.get("startAfter"))
    if token is not None:
        return position_of(collection, token)
    moment = options.get("startAtOperationTime")
    if moment is not None:
        if not isinstance(moment, Timestamp):
            raise MongoError(
                14,
                "BSON field '$changeStream.startAtOperationTime' is the "
                "wrong type, expected type 'timestamp'",
            )
        return paging.feed_since(store, "latest", moment.time, budget=call.budget)
    return paging.feed_now(store, "latest", budget=call.budget)


def token_of(collection: Collection, position: Position) -> Document:
    """As the service makes them: JSON in binary data."""
    body = {
        "V": 2,
        "Rid": collection.store.state.record.rid,
        "Continuation": [
            {
                "FeedRange": {
                    "type": "Effective Partition Key Range",
                    "value": {"min": one.start.hex().upper(), "max": one.end.hex().upper()},
                },
                "State": {"type": "continuation", "value": f'"{one.at}"'},
            }
            for one in position.segments
        ],
    }
    return {"_data": orjson.dumps(body), "_kind": 1}


def position_of(collection: Collection, token: Any) -> Position:
    try:
        data = token["_data"]
        body = orjson.loads(data if isinstance(data, bytes) else b"")
        segments = tuple(
            Segment(
                bytes.fromhex(one["FeedRange"]["value"]["min"]),
                bytes.fromhex(one["FeedRange"]["value"]["max"]),
                int(one["State"]["value"].strip('"')),
            )
            for one in body["Continuation"]
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MongoError(260, "The resume token is not one of this server.") from error
    if body.get("Rid") != collection.store.state.record.rid:
        raise MongoError(26, "The resume token belongs to a collection that was dropped.")
    if not are_sound(segments):
        raise MongoError(260, "The resume token is not one of this server.")
    return Position("latest", segments)


def _look(call: Call, collection: Collection, cursor: CursorState, size: int) -> list[bytes]:
    """What has changed since the position, through the stages of the client."""
    position = decode_position(cursor.state["position"], ["latest"])
    language = call.service.language({}, call.budget)
    stages = compile_pipeline(cursor.state["pipeline"], language, None)  # type: ignore[arg-type]
    found: list[bytes] = []
    held = 0
    while len(found) < size and held < MONGO_REPLY_BYTES_MAX // 2:
        page, at_end = paging.read_feed(collection.store, position, min(size, 100), call.budget)
        assert page.position is not None
        call.budget.spend(len(page.items) + 1)
        position = page.position
        events = list(_events(collection, page.items, position))
        for one in stages(events):
            if "_id" not in one:
                raise MongoError(
                    280,
                    "Encountered an event whose _id field, which contains the resume token, was "
                    "modified by the pipeline.",
                    labels=("NonResumableChangeStreamError",),
                )
            data = encode(one)
            held += len(data)
            found.append(data)
        cursor.state["position"] = encode_position(position)
        if at_end:
            break
    return found


def _events(
    collection: Collection, entries: Sequence[FeedEntry], position: Position
) -> Iterator[Document]:
    """The events of a page that ends at a position. Each has the token of its own place, so that a
    client that stops in the middle of a page loses nothing. Documents of one batch share a place:
    behind all but the last of them the batch comes again."""
    last = len(entries) - 1
    for at, entry in enumerate(entries):
        item = orjson.loads(entry.text)
        if str(item.get("id", "")).startswith(RECORD):
            continue
        document = from_item(item)
        place = position
        if at < last:
            is_shared = entries[at + 1].lsn == entry.lsn
            place = _moved(collection, document, position, entry.lsn - is_shared)
        yield _event(collection, entry, document, place)


def _moved(collection: Collection, document: Document, position: Position, lsn: int) -> Position:
    """The position with the segment of a document at an LSN."""
    epk, _ = key_in(collection.store.state, collection.key_of(document))
    segments = (
        replace(one, at=lsn) if one.start <= epk < one.end else one for one in position.segments
    )
    return replace(position, segments=tuple(segments))


def _event(
    collection: Collection, entry: FeedEntry, document: Document, position: Position
) -> Document:
    key: Document = {"_id": document["_id"]}
    if collection.shard is not None:
        key[".".join(collection.shard)] = walk(document, collection.shard)
    kind = "insert" if entry.change == "create" else "replace"
    return {
        "_id": token_of(collection, position),
        "operationType": kind,
        "clusterTime": Timestamp(entry.ts, 1),
        "wallTime": DatetimeMS(entry.ts * 1000),
        "fullDocument": document,
        "ns": {"db": collection.database, "coll": collection.name},
        "documentKey": key,
    }


def more_changes(call: Call, number: int, cursor: CursorState, size: int) -> Document:
    """Waits for changes, not longer than the client said, and not in a thread; a stream never ends
    by itself."""
    wait_ms = call.command.get("maxTimeMS", AWAIT_MS)
    if not is_number(wait_ms):
        wait_ms = AWAIT_MS
    attempt, now = call.attempt, time.monotonic()
    assert attempt.began is not None
    is_waiting = now - attempt.began < min(60.0, float(number_of(wait_ms)) / 1000)
    attempt.budget.deadline = now + MONGO_OPERATION_SECONDS  # waiting is not work
    database, _, name = cursor.namespace.partition(".")
    collection = call.service.collections.current(database, name)
    if collection is None or collection.store.state.record.rid != cursor.state["rid"]:
        cursors.remove(call.service.engine, [number])
        raise MongoError(26, f"ns does not exist: {cursor.namespace}")
    before = cursor.state["position"]
    cursor.state["position"] = attempt.position or before
    batch = _look(call, collection, cursor, min(size, 1000))
    if is_waiting and not (batch or call.service.closing):
        attempt.position = cursor.state["position"]
        raise Later(STEP_SECONDS)
    if cursor.state["position"] != before or batch:
        cursors.update(call.service.engine, number, cursor, [])
    elif cursors.load(call.service.engine, number) is None:  # killed meanwhile
        raise MongoError(43, f"cursor id {number} not found")
    return _reply(call, number, cursor, batch, "nextBatch")


def _reply(call: Call, number: int, cursor: CursorState, batch: list[bytes], key: str) -> Document:
    database, _, name = cursor.namespace.partition(".")
    collection = call.service.collections.need(database, name)
    try:
        token = token_of(collection, decode_position(cursor.state["position"]))
    except BadInput as error:
        raise MongoError(280, error.message) from error
    now = call.service.engine.now_ms()
    return {
        "cursor": {
            key: cursors.array_of(batch),
            "postBatchResumeToken": token,
            "id": Int64(number),
            "ns": cursor.namespace,
        },
        "operationTime": Timestamp(now // 1000, 1),
    }


def tokens(call: Call, collection: Collection, moment: Timestamp | None) -> list[Document]:
    """One resume token per physical partition."""
    made: list[Document] = []
    store, budget = collection.store, call.budget
    for one in store.refresh().table.ranges:
        if moment is None:
            position = paging.feed_now(store, "latest", one.start, one.end, budget)
        else:
            position = paging.feed_since(store, "latest", moment.time, one.start, one.end, budget)
        made.append(token_of(collection, position))
    return made
