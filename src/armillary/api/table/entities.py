"""Single entities on the wire: insert, read, update, merge, delete. Facts: table 3, 5."""

from __future__ import annotations

from typing import Final

import orjson

from armillary.api.http.messages import Begun, Response
from armillary.api.table import changes
from armillary.api.table.auth.authorization import authorize_change
from armillary.api.table.call import Call, document, entity_link, refusal, reply, with_preference
from armillary.api.table.changes import Change
from armillary.api.table.names import existing
from armillary.api.table.problems import refused
from armillary.api.table.wire.etags import etag_of
from armillary.api.table.wire.forms import read_entity
from armillary.api.table.wire.presenting import selected, view_of
from armillary.encoding.edm.values import item_id
from armillary.errors import DbError, OwnerNotFound
from armillary.store.catalog.tables import TABLES_DB
from armillary.store.items.containers import ContainerStore, Sent
from armillary.store.items.reading import Stored
from armillary.store.items.requests import Done

NO_CONTENT: Final = "return-no-content"


def store_of(call: Call, table: str | None = None) -> ContainerStore:
    """The container of the table; OwnerNotFound when there is none."""
    name = call.target.table if table is None else table
    try:
        return call.gateway.container(TABLES_DB, name)
    except OwnerNotFound:
        if not call.flavour.is_storage:
            raise
    return call.gateway.container(TABLES_DB, existing(call, name))


def read_one(call: Call) -> Response:
    target = call.target
    if not call.flavour.is_storage and not (target.partition_key and target.row_key):
        raise refused("keys empty")
    store = store_of(call)
    value, _, _, ru = store.read_placed(item_id(target.row_key), (target.partition_key,))
    item = orjson.loads(Stored(value).text)
    body = view_of(call, target.table, selected(call)).show_alone(item)
    return document(call, 200, body, {"ETag": etag_of(item["_etag"])}, ru=ru)


# --- writing ------------------------------------------------------------------------------------


def insertion_of(call: Call) -> Change:
    change = changes.insertion(read_entity(call.request.body, call.flavour), call.flavour)
    authorize_change(call, change)  # its keys are in the body
    return change


def replacement_of(call: Call) -> Change:
    return _update_of(call, "replace")


def merge_of(call: Call) -> Change:
    return _update_of(call, "merge")


def deletion_of(call: Call) -> Change:
    keys = call.target.partition_key, call.target.row_key
    return changes.deletion(keys, call.headers.get("if-match"))


def _update_of(call: Call, kind: changes.Kind) -> Change:
    target = call.target
    entity = read_entity(call.request.body or b"{}", call.flavour)
    keys = target.partition_key, target.row_key
    return changes.update(kind, keys, entity, call.headers.get("if-match"), call.flavour)


def write_one(call: Call, change: Change) -> Response:
    return answer(call, change, changes.run(store_of(call), change, call.flavour))


def begin_one(call: Call, change: Change) -> Begun:
    """As `write_one`, as far as it goes without waiting for the writer."""
    store = store_of(call)
    sent = changes.start(store, change, call.flavour)

    return Begun(sent.future, lambda: finish_one(call, store, change, sent))


def finish_one(call: Call, store: ContainerStore, change: Change, sent: Sent) -> Response | None:
    """When the future is done. None: nothing has happened; begin again."""
    try:
        done = store.finish(sent)
    except DbError as error:
        return None if changes.has_raced(change, error) else refusal(call, error)
    return None if done is None else answer(call, change, done)


def answer(call: Call, change: Change, done: Done) -> Response:
    """What a client hears of a change that happened."""
    if change.kind == "delete":
        return reply(call, 204, ru=done.charge_ru)
    headers = {"ETag": etag_of(done.etag)}
    if change.kind != "insert":
        return reply(call, 204, headers=headers, ru=done.charge_ru)
    table = call.target.table
    link = entity_link(table, change.partition_key, change.row_key)
    headers["Location"] = f"{call.base_url}/{link}"
    with_preference(call, headers)
    if call.preference == NO_CONTENT:
        return reply(call, 204, headers=headers, ru=done.charge_ru)
    body = view_of(call, table).show_alone(orjson.loads(done.text))
    return document(call, 201, body, headers, ru=done.charge_ru)
