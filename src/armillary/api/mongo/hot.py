"""What is answered on the event loop: a find of one document by `_id` (and shard key), and an
insert of one document on its way to the writer.

Every doubt (another argument, a transaction, a collection that nobody has asked for yet, a fault
that a test set) gives None, and the command runs in a thread, which is the reference.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import orjson
from bson.int64 import Int64
from bson.objectid import ObjectId

from armillary.api.core.streams import Begun, Event, Quick, Work
from armillary.api.mongo.call import Client
from armillary.api.mongo.commands.inserting import prepared_document
from armillary.api.mongo.data.collections import Collection
from armillary.api.mongo.data.writes import Statement, recording, writing
from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.request_lines import log_command
from armillary.api.mongo.wire.messages import Request, raw_reply, reply_bytes, single_batch
from armillary.encoding.bson.stored import from_item, item_id
from armillary.encoding.bson.values import Document, decode_exactly, encode
from armillary.encoding.partition_key import KeyValues
from armillary.errors import DbError
from armillary.partition.request_units import read_ru
from armillary.store.items.requests import Failed
from armillary.store.items.sent_batches import finish_batch, start_batch

if TYPE_CHECKING:
    from armillary.api.mongo.service import Service

FIND: Final = frozenset(
    [
        "find",
        "filter",
        "limit",
        "singleBatch",
        "lsid",
        "$db",
        "$readPreference",
        "$clusterTime",
        "batchSize",
    ]
)
INSERT: Final = frozenset(
    [
        "insert",
        "ordered",
        "lsid",
        "txnNumber",
        "$db",
        "$readPreference",
        "$clusterTime",
        "documents",
    ]
)
_IDS: Final = (ObjectId, str, int, Int64)


def hot_event(
    service: Service, client: Client, request: Request, work: Work, replies: Iterator[int]
) -> Event | None:
    name = request.name
    if name not in ("find", "insert") or not request.wants_reply or request.legacy:
        return None
    if client.may_write is None and service.settings.require_login:
        return None
    if not service.gateway.settings.quick_reads or service.gateway.shared.faults():
        return None
    try:
        if name == "find":
            return _find(service, client, request, work, replies)
        if client.may_write is not False:
            return _insert(service, client, request, work, replies)
    except (DbError, MongoError, KeyError, TypeError, ValueError, OverflowError):
        pass  # whatever it is, the thread says it properly
    return None


def _known(service: Service, request: Request) -> Collection | None:
    value = request.command[request.name]
    if not isinstance(value, str):
        return None
    return service.collections.known(request.database, value)


# --- find -----------------------------------------------------------------------------------------


def _find(
    service: Service, client: Client, request: Request, work: Work, replies: Iterator[int]
) -> Event | None:
    command = request.command
    query = command.get("filter")
    if not isinstance(query, dict) or not command.keys() <= FIND:
        return None
    if type(query.get("_id")) not in _IDS or len(query) > 2:
        return None
    if any(type(one) not in _IDS for one in query.values()):
        return None
    collection = _known(service, request)
    if collection is None:
        return None
    key: KeyValues = ()
    if collection.shard is not None:
        path = ".".join(collection.shard)
        if path not in query:
            return None
        key = collection.key_values(query[path])
    elif len(query) == 2:
        return None
    item = item_id(query["_id"])
    namespace = collection.namespace.encode()

    def run() -> bytes | None:
        started = time.perf_counter()
        try:
            stored = collection.store.read(item, key)
        except DbError:
            return None  # not there, moved, throttled: the thread says which
        data = encode(from_item(orjson.loads(stored.text)))
        _note(service, client, request, read_ru(stored.body_bytes), started)
        more = service.time_elements() if "lsid" in command else b""
        return raw_reply(request, single_batch(data, namespace, more), next(replies))

    return Quick(run, work)


def _note(
    service: Service, client: Client, request: Request, charge_ru: float, started: float
) -> None:
    elapsed_ms = (time.perf_counter() - started) * 1000
    client.statistics = (request.name, charge_ru, elapsed_ms)
    if service.gateway.settings.logs_requests:
        log_command(request, 0, charge_ru, elapsed_ms)


# --- insert ---------------------------------------------------------------------------------------


def _insert(
    service: Service, client: Client, request: Request, work: Work, replies: Iterator[int]
) -> Event | None:
    command = request.command
    if not command.keys() <= INSERT or not service.engine.never_waits:
        return None
    raw = request.arrays.get("documents")
    if raw is None or len(raw) != 1 or service.settings.strict:
        return None
    collection = _known(service, request)
    if collection is None:
        return None
    document = prepared_document(decode_exactly(raw[0]), service)
    statement = _statement(command)
    operations = [writing(collection, "create", document)]
    if statement is not None:
        operations.insert(0, recording(collection, document, statement, {"at": [0]}))
    started = time.perf_counter()
    store = collection.store
    sent = start_batch(store, operations, collection.key_of(document), store.engine.submit_soon)

    def finish() -> bytes | None:
        try:
            outcome = finish_batch(sent)
        except DbError:
            return None
        if outcome is None or isinstance(outcome, Failed):
            return None  # nothing has happened: the thread finds out why
        _note(service, client, request, sum(one.charge_ru for one in outcome), started)
        reply: Document = {"n": 1, "ok": 1.0}
        if "lsid" in command:
            reply |= service.times()
        return reply_bytes(request, reply, next(replies))

    return Begun(sent.future, finish, work)


def _statement(command: Document) -> Statement | None:
    number: Any = command.get("txnNumber")
    if number is None:
        return None
    return Statement(bytes(command["lsid"]["id"]).hex(), int(number), 0)
