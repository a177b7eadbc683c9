"""An insert of one batch, sent to the writer from the event loop: what `commands/inserting.py`
does, without a thread that waits. A batch is one document or some hundred small ones, of one
logical partition; larger inserts would hold the loop too long.

Every doubt (another argument, a transaction, a collection that was not asked for yet, a fault
that a test set) gives None, and the command runs in a thread, which is the reference.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from bson.int64 import Int64

from armillary.api.core.streams import Begun, Event, Work
from armillary.api.mongo.call import Client
from armillary.api.mongo.commands.inserting import prepared_document
from armillary.api.mongo.data.collections import Collection
from armillary.api.mongo.data.inserts import (
    Statements,
    finish_inserts,
    one_batch,
    start_inserts,
)
from armillary.api.mongo.data.writes import Statement
from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.request_lines import log_command
from armillary.api.mongo.wire.messages import Request, reply_bytes
from armillary.encoding.bson.values import Document, decode_all_exactly
from armillary.errors import DbError
from armillary.store.items.requests import Failed

if TYPE_CHECKING:
    from armillary.api.mongo.service import Service

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
DOCUMENTS_MAX: Final = 200
BYTES_MAX: Final = 64 * 1024
PLAIN: Final[dict[str, tuple[type, ...]]] = {"ordered": (bool,), "txnNumber": (int, Int64)}


def insert_event(
    service: Service, client: Client, request: Request, work: Work, replies: Iterator[int]
) -> Event | None:
    if request.name != "insert" or not request.wants_reply or request.legacy:
        return None
    if not client.may_write and (client.may_write is False or service.settings.require_login):
        return None
    if not service.gateway.settings.quick_reads or service.gateway.shared.faults():
        return None
    try:
        return _insert(service, client, request, work, replies)
    except (DbError, MongoError, KeyError, TypeError, ValueError, OverflowError):
        return None  # whatever it is, the thread says it properly


def _known(service: Service, request: Request) -> Collection | None:
    value = request.command[request.name]
    if not isinstance(value, str):
        return None
    return service.collections.known(request.database, value)


def _note(
    service: Service, client: Client, request: Request, charge_ru: float, started: float
) -> None:
    elapsed_ms = (time.perf_counter() - started) * 1000
    client.statistics = (request.name, charge_ru, elapsed_ms)
    if service.gateway.settings.logs_requests:
        log_command(request, 0, charge_ru, elapsed_ms)


def _insert(
    service: Service, client: Client, request: Request, work: Work, replies: Iterator[int]
) -> Event | None:
    command = request.command
    if not command.keys() <= INSERT or not service.engine.never_waits:
        return None
    if not all(type(command[one]) in kinds for one, kinds in PLAIN.items() if one in command):
        return None
    raw = request.arrays.get("documents")
    if raw is None or not 1 <= len(raw) <= DOCUMENTS_MAX or service.settings.strict:
        return None
    if len(raw) > 1 and sum(map(len, raw)) > BYTES_MAX:
        return None
    collection = _known(service, request)
    if collection is None:
        return None
    started = time.perf_counter()
    documents = [prepared_document(one, service) for one in decode_all_exactly(raw)]
    batch = one_batch(collection, documents, [*map(len, raw)])
    if batch is None:
        return None
    submit = collection.store.engine.submit_soon
    sent = start_inserts(collection, batch, _statements(command), submit)

    def finish() -> bytes | None:
        try:
            outcome = finish_inserts(sent)
        except DbError:
            return None
        if outcome is None or isinstance(outcome, Failed):
            return None  # nothing has happened: the thread finds out why
        _note(service, client, request, outcome, started)
        reply: Document = {"n": len(batch), "ok": 1.0}
        if "lsid" in command:
            reply |= service.times()
        return reply_bytes(request, reply, next(replies))

    return Begun(sent.future, finish, work)


def _statements(command: Document) -> Statements | None:
    number: Any = command.get("txnNumber")
    if number is None:
        return None
    session: Any = command["lsid"]["id"]
    if not isinstance(session, bytes):
        raise TypeError  # a number would become so many bytes
    session = session.hex()
    return lambda at: Statement(session, int(number), at)
