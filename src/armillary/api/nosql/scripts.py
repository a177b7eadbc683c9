"""Scripts on the wire: executing a procedure, and writes with triggers. Facts: scripts 1.2, 5.

    POST sprocs/s                            ──▶ the procedure, in one logical partition
    x-ms-documentdb-pre-trigger-include: t   ──▶ a write with its triggers, in one transaction

Both wait for their turn without a thread: `begin_…` gives a future. Nothing of `armillary.scripts`
is imported before the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import orjson

from armillary.api.http.messages import Begun, Response
from armillary.api.nosql.call import Call, answered, reply
from armillary.api.nosql.items.placing import (
    item_headers,
    item_headers_at,
    place_of_key,
    placed,
    required_key,
    store_of,
)
from armillary.encoding.documents import parse_body
from armillary.encoding.partition_key import KeyValues, key_of
from armillary.errors import BadInput, DbError, NotFound, PartitionKeyMismatch
from armillary.limits import ITEM_BYTES_MAX
from armillary.store.catalog.resources import ResourceRecord, ResourceStore
from armillary.store.items.containers import ContainerStore
from armillary.store.items.preparation import Operation

if TYPE_CHECKING:
    from armillary.scripts.executing import Executed

PRE: Final = "x-ms-documentdb-pre-trigger-include"
POST: Final = "x-ms-documentdb-post-trigger-include"
TRIGGER_HEADERS: Final = (PRE, POST)
LOGGING: Final = "x-ms-documentdb-script-enable-logging"
#: Ours, for people who watch a script: asked for with `true`, answered with what it wrote.
CHANGES: Final = "x-armillary-script-changes"
CHANGES_SHOWN: Final = 20
LOG: Final = "x-ms-documentdb-script-log-results"
UNENCODED: Final = "!'()*-._~"  # what encodeURIComponent leaves as it is
ONE_TRIGGER: Final = "Only one {0} trigger may be named; the header '{1}' has {2}."


# --- procedures -----------------------------------------------------------------------------------


def execute_script(call: Call) -> Response:
    begun = begin_script(call)
    return waited(begun)


def begin_script(call: Call) -> Begun:
    from armillary.scripts.executing import ECHO, ECHO_TEXT, execute_procedure

    store = store_of(call)
    if len(call.request.body) > ITEM_BYTES_MAX:
        raise BadInput("Script request has invalid body.")
    if call.names[2] == ECHO:
        script = ResourceRecord("sproc", "", ECHO, ECHO, {"id": ECHO, "body": ECHO_TEXT}, "", 0, 0)
    else:
        script = ResourceStore(store.engine, "sproc", store.state.record.rid).read(call.names[2])
    key = required_key(call, store)
    with placed(call, store, key):
        if len(key) < len(store.state.definition.partition_key.paths):
            raise PartitionKeyMismatch
        future = execute_procedure(
            call.gateway.scripts.get(),
            store,
            script,
            key,
            call.request.body,
            logging=call.options.flag(LOGGING),
        )

    def finish() -> Response:
        executed = _result(call, store, key, future)
        headers = {LOG: log_header(executed.log), **_headers(call, store, key, executed)}
        if call.options.flag(CHANGES):
            headers[CHANGES] = changes_header(executed.changes)
        return reply(call, 200, executed.response, headers, ru=executed.charge_ru)

    return later(call, future, finish)


def changes_header(changes: Sequence[tuple[str, str]]) -> str:
    """`[["created", "id"], …]`, percent-encoded; of many the first."""
    return quote(orjson.dumps(changes[:CHANGES_SHOWN]), safe=UNENCODED)


def log_header(log: str) -> str | None:
    """Absent when nothing was logged."""
    return quote(log, safe=UNENCODED, errors="replace") if log else None


# --- triggers -------------------------------------------------------------------------------------


def has_triggers(call: Call) -> bool:
    return any(call.options.names(name) for name in TRIGGER_HEADERS)


def refuse_triggers(call: Call, what: str) -> None:
    if has_triggers(call):
        raise BadInput(f"Triggers can't be named for {what}; send the item by itself.")


def begin_triggered(
    call: Call, store: ContainerStore, operation: Operation, key: KeyValues | None
) -> tuple[Future[Executed], KeyValues]:
    """A write that names triggers. The key it belongs to is known before any of them runs."""
    from armillary.scripts.executing import Triggers, execute_write

    triggers = Triggers(_trigger(call, store, PRE, "pre"), _trigger(call, store, POST, "post"))
    if key is None:
        assert operation.body is not None
        key = key_of(parse_body(operation.body).item, store.state.definition.partition_key)
    with placed(call, store, key):
        runtime = call.gateway.scripts.get()
        return execute_write(runtime, store, operation, key, triggers), key


def finish_triggered(
    call: Call, store: ContainerStore, key: KeyValues, future: Future[Executed]
) -> tuple[Executed, dict[str, str | None]]:
    executed = _result(call, store, key, future)
    return executed, _headers(call, store, key, executed)


def _trigger(call: Call, store: ContainerStore, header: str, word: str) -> ResourceRecord | None:
    names = call.options.names(header)
    if not names:
        return None
    if len(names) > 1:
        raise BadInput(ONE_TRIGGER.format(word, header, len(names)))
    triggers = ResourceStore(store.engine, "trigger", store.state.record.rid)
    try:
        return triggers.read(names[0])
    except NotFound as error:
        raise NotFound(f"Resource Not Found. There is no trigger '{names[0]}'.") from error


# --- both -----------------------------------------------------------------------------------------


def _result(
    call: Call, store: ContainerStore, key: KeyValues, future: Future[Executed]
) -> Executed:
    try:
        with placed(call, store, key):
            return future.result()
    except DbError as error:
        if error.facts.get("log"):  # what was logged before it failed
            headers = error.facts.get("headers", {})
            error.facts["headers"] = {**headers, LOG: log_header(error.facts["log"])}
        raise


def _headers(
    call: Call, store: ContainerStore, key: KeyValues, executed: Executed
) -> dict[str, str | None]:
    if not executed.lsn:
        return item_headers_at(call, store, key)
    owner = place_of_key(store, key).owner
    version = call.gateway.session_version(owner.space)
    return item_headers(store, owner.ordinal, version, executed.lsn)


def later(call: Call, future: Future[Executed], finish: Callable[[], Response]) -> Begun:
    """The answer is made in a thread of the scripts: it may read, and a loop may not."""
    response: Future[Response] = Future()

    def answer(_: Future[Executed]) -> None:
        try:
            response.set_result(answered(call, finish))
        except BaseException as error:  # noqa: BLE001 - the server logs it and answers 500
            response.set_exception(error)

    future.add_done_callback(answer)
    return Begun(response, response.result)


def waited(begun: Begun) -> Response:
    """For a thread that may wait."""
    begun.future.exception()  # until it is done; `finish` says what became of it
    response = begun.finish()
    assert response is not None
    return response
