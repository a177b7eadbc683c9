"""Items on the wire: one at a time. Facts: nosql-rest 6.1 to 6.4.

    POST docs      create, or upsert when the header says so
    GET doc        read; 304 when the client's copy is current
    PUT, PATCH     replace, patch
    DELETE doc     delete; POST operations/partitionkeydelete: all items of a key

Every answer says which range gave it and how far that range is, failures too: without it a client
would lose its session.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import orjson

from armillary.api.http.messages import Begun, Response
from armillary.api.nosql.call import TOO_LARGE, Call, Headers, answered, quoted, reply
from armillary.api.nosql.items.placing import (
    Place,
    at_level,
    barrier_of,
    check_barrier_at,
    item_headers_at,
    key_of_done,
    place_headers,
    place_of_key,
    placed,
    required_key,
    store_of,
)
from armillary.api.nosql.scripts import (
    begin_triggered,
    finish_triggered,
    has_triggers,
    later,
    refuse_triggers,
    waited,
)
from armillary.budget import Budget
from armillary.encoding.partition_key import KeyValues
from armillary.encoding.rids import parse_rid
from armillary.engine.base import Reader, SpaceGone
from armillary.errors import BadInput, Fenced, NotFound, NotModified, TooLarge
from armillary.limits import ITEM_BYTES_MAX
from armillary.partition.ranges import Range
from armillary.partition.request_units import delete_ru
from armillary.query.run.bounds import condition_budget
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore, Sent
from armillary.store.items.preparation import Operation
from armillary.store.items.reading import Stored
from armillary.store.items.requests import Done
from armillary.store.rows import layout
from armillary.store.rows.meta import unpack_meta
from armillary.store.upkeep import containers as upkeeping
from armillary.values import JSON

STATUS: Final = {"created": 201, "replaced": 200, "deleted": 204, "read": 200}


# --- reading ------------------------------------------------------------------------------------


def read_item(call: Call) -> Response:
    return at_level(call, partial(_read_item, call))


def _read_item(call: Call, store: ContainerStore) -> Response:
    key = required_key(call, store)
    item_id = item_id_of(call, store, key)
    with placed(call, store, key):
        try:
            condition = call.options.if_none_match
            value, owner, row, ru = store.read_placed(item_id, key, if_none_match=condition)
        except (NotFound, NotModified):
            check_barrier_at(call, store, key)
            raise
        meta = unpack_meta(row)
        place = Place(owner, meta.session, meta.lsn)
        place.check(barrier_of(call))
        stored = Stored(value)
    headers = written_headers(stored.etag, stored.lsn, place_headers(store, place))
    return reply(call, 200, stored.text, headers, ru=ru)


def item_id_of(call: Call, store: ContainerStore, key: KeyValues) -> str:
    """The id in the path; or of the item whose rid is in the path, when it is one of rids."""
    text = call.names[2]
    if call.names[1] == store.name:
        return text
    try:
        rid = parse_rid(text)
    except (BadInput, ValueError):
        return text
    if rid.kind != "item":
        return text
    number = rid.number.to_bytes(8, "big")

    def look(state: ContainerState, owner: Range, reader: Reader) -> bytes | None:
        return reader.get(layout.DOC + number)

    value = store.look(place_of_key(store, key).epk, look)
    if value is None:
        raise NotFound
    return str(orjson.loads(Stored(value).text)["id"])


# --- writing ------------------------------------------------------------------------------------


def create_item(call: Call) -> Response:
    kind = "upsert" if call.options.is_upsert else "create"
    return _write(call, kind, "")


def replace_item(call: Call) -> Response:
    return _write(call, "replace", None)


def delete_item(call: Call) -> Response:
    return _write(call, "delete", None)


def patch_item(call: Call) -> Response:
    return _write(call, "patch", None)


def begin_create(call: Call) -> Begun | None:
    return _begin(call, "upsert" if call.options.is_upsert else "create", "")


def begin_replace(call: Call) -> Begun | None:
    return _begin(call, "replace", None)


def begin_delete(call: Call) -> Begun | None:
    return _begin(call, "delete", None)


def begin_patch(call: Call) -> Begun | None:
    return _begin(call, "patch", None)


def _begin(call: Call, kind: str, item_id: str | None) -> Begun | None:
    """As `_write`, as far as it goes without waiting for the writer. None: `_write`."""
    store, operation, key = _asked(call, kind, item_id)
    if has_triggers(call):
        return _triggered(call, store, operation, key)
    if operation.condition is not None:
        return None  # a query may take its time
    with placed(call, store, key):
        try:
            sent = store.start(operation, key)
        except (Fenced, SpaceGone):  # where the item was, which a patch reads
            return None
    return Begun(sent.future, partial(ended, call, store, key, sent))


def ended(call: Call, store: ContainerStore, key: KeyValues | None, sent: Sent) -> Response | None:
    """The answer to a write whose future is done. None: nothing has happened."""

    def finish() -> Response | None:
        with placed(call, store, key):
            done = store.finish(sent)
        return None if done is None else written(call, store, done, key)

    return answered(call, finish)


def _write(call: Call, kind: str, item_id: str | None) -> Response:
    store, operation, key = _asked(call, kind, item_id)
    if has_triggers(call):
        return waited(_triggered(call, store, operation, key))
    with placed(call, store, key):
        done = store.run(operation, key)
    return written(call, store, done, key)


def _asked(
    call: Call, kind: str, item_id: str | None
) -> tuple[ContainerStore, Operation, KeyValues | None]:
    if kind == "patch":
        refuse_triggers(call, "a patch")
    store = store_of(call)
    # A synthetic key is computed from a whole item, so who sends one need not know it.
    computed = kind == "replace" and store.state.definition.synthetic_key is not None
    key = call.options.key
    if kind not in ("create", "upsert") and not computed:
        key = required_key(call, store)
    if item_id is None:
        item_id = call.names[2] if key is None else item_id_of(call, store, key)
    return store, operation_of(call, kind, item_id), key


def operation_of(call: Call, kind: str, item_id: str) -> Operation:
    options = call.options
    if kind == "patch":
        now_ms = call.gateway.engine.now_ms()
        return patch_operation(item_id, call.json(), options.if_match, now_ms)
    body = None if kind == "delete" else call.request.body
    if body is not None and len(body) > ITEM_BYTES_MAX:  # as sent: escapes count
        raise TooLarge.of(len(body), ITEM_BYTES_MAX, TOO_LARGE)
    return Operation(kind, item_id, body, options.if_match, options.if_none_match)


def patch_operation(
    item_id: str, body: JSON, if_match: str | None, now_ms: int, budget: Budget | None = None
) -> Operation:
    """`{"operations": […], "condition": "from c where …"}`, or the bare list."""
    if isinstance(body, list):
        body = {"operations": body}
    if not isinstance(body, dict) or not isinstance(body.get("operations"), list):
        raise BadInput("A patch must be a JSON object with a list of 'operations'.")
    for one in body["operations"]:
        if not isinstance(one, dict):
            raise BadInput("Each operation of a patch must be a JSON object.")
    given = body.get("condition")
    condition = None
    if given is not None:
        from armillary.api.core.simple_query import condition_of  # with the first, see `later.py`

        condition = condition_of(given, now_ms, budget or condition_budget())
    return Operation(
        "patch",
        item_id,
        if_match=if_match,
        patch=tuple(body["operations"]),
        condition=condition,
    )


def written(call: Call, store: ContainerStore, done: Done, key: KeyValues | None) -> Response:
    place = place_of_done(call, store, done, key)
    empty = done.outcome == "deleted" or call.options.is_minimal
    etag = None if done.outcome == "deleted" else done.etag
    headers = written_headers(etag, done.lsn, place_headers(store, place))
    body = b"" if empty else done.text
    return reply(call, STATUS[done.outcome], body, headers, ru=done.charge_ru)


def written_headers(etag: str | None, lsn: int | str, place: Headers) -> dict[str, str | None]:
    """Of one item, as it was read or written. Texts: marks of a form."""
    return {"etag": None if etag is None else quoted(etag), "x-ms-item-lsn": f"{lsn}", **place}


def place_of_done(call: Call, store: ContainerStore, done: Done, key: KeyValues | None) -> Place:
    """Where a write ended: its own LSN, because the session needs no more."""
    written_key = key_of_done(store, done, key)
    assert written_key is not None, "only a delete has no item, and it needs the key"
    where = place_of_key(store, written_key)
    version = call.gateway.session_version(where.owner.space)
    return Place(where.owner, version, done.lsn)


def _triggered(
    call: Call, store: ContainerStore, operation: Operation, key: KeyValues | None
) -> Begun:
    future, own_key = begin_triggered(call, store, operation, key)

    def finish() -> Response:
        executed, headers = finish_triggered(call, store, own_key, future)
        done = executed.done
        assert done is not None
        empty = done.outcome == "deleted" or call.options.is_minimal
        headers["etag"] = None if done.outcome == "deleted" else quoted(done.etag)
        body = b"" if empty else executed.response
        return reply(call, STATUS[done.outcome], body, headers, ru=executed.charge_ru)

    return later(call, future, finish)


def delete_by_key(call: Call) -> Response:
    store = store_of(call)
    key = required_key(call, store)
    with placed(call, store, key):
        deleted = upkeeping.delete_by_key(store, key, call.budget)
    headers = item_headers_at(call, store, key)
    return reply(call, 200, headers=headers, ru=1.0 + delete_ru(0, 0) * deleted)
