"""Entity group transactions: `POST /$batch`. All of it or nothing, in one partition of one table,
on the store's own batch. Facts: table 8.

The answer of a batch that failed is 202 as well; inside is one part: the error of the operation
that failed, its text led by the number of that operation.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from armillary.api.errors import table_wire
from armillary.api.http.messages import Request, Response
from armillary.api.table import changes, entities
from armillary.api.table.auth.authorization import authorize_change
from armillary.api.table.call import Call, error_body, reply
from armillary.api.table.changes import Change, Seen
from armillary.api.table.entities import answer, store_of
from armillary.api.table.names import check_reference
from armillary.api.table.problems import refused
from armillary.api.table.wire.multipart import Answer, Part, format_batch, parse_batch
from armillary.api.table.wire.targets import parse_parameters, parse_target, split_target
from armillary.errors import DbError, OwnerNotFound, Stale, Throttled, TooLarge
from armillary.limits import BATCH_OPERATIONS_MAX, TABLE_MERGE_ROUNDS_MAX
from armillary.store.items.batches import batch_error
from armillary.store.items.containers import ContainerStore
from armillary.store.items.requests import Done, Failed

BATCH_TYPE: Final = "multipart/mixed; boundary=batchresponse_{0}"

Read = Callable[[Call], Response]


@dataclass(frozen=True, slots=True)
class Asked:
    """An operation of the batch: its request, and the change that it comes to."""

    call: Call
    change: Change
    content_id: str


class _Failure(Exception):
    """An operation of the batch failed; `index` is None when it is not to blame alone."""

    def __init__(self, error: DbError, index: int | None) -> None:
        self.error = error
        self.index = index


def run_batch(call: Call, read: Read) -> Response:
    """`read` answers a GET, which must be alone."""
    body = call.request.body
    parts = parse_batch(call.headers.get("content-type", ""), body)
    if len(parts) == 1 and parts[0].method == "GET" and not parts[0].in_changeset:
        return _read_alone(call, parts[0], read)
    if not parts:
        raise refused("input", hint="The batch has no operations.")
    token = str(uuid.uuid4())
    try:
        answers, ru = _run(call, parts)
    except _Failure as failure:
        if isinstance(failure.error, Throttled):
            raise failure.error from failure  # so that clients wait and send the whole again
        answers, ru = [_failed(call, failure)], 0.0
    headers = {"Content-Type": BATCH_TYPE.format(token)}
    return reply(call, 202, format_batch(answers, token), headers, ru=ru)


def _run(call: Call, parts: Sequence[Part]) -> tuple[list[Answer], float]:
    if len(parts) > BATCH_OPERATIONS_MAX:
        raise _Failure(refused("batch operations"), 0)
    if len(call.request.body) > 2 * call.flavour.batch_bytes_max:
        raise refused("batch size")
    asked = [_asked(call, part, index) for index, part in enumerate(parts)]
    _check_group(asked)
    try:
        store = store_of(call, asked[0].call.target.table)
    except OwnerNotFound as error:
        raise _Failure(error, None) from error
    done = _apply(store, asked)
    answers = [_done(one, each) for one, each in zip(asked, done, strict=True)]
    return answers, sum(one.charge_ru for one in done)


def _asked(call: Call, part: Part, index: int) -> Asked:
    inner = inner_call(call, part)
    try:
        change = _change(inner)
        authorize_change(inner, change)
    except DbError as error:
        if error.facts.get("problem") in ("url", "url segments"):
            raise
        raise _Failure(error, index) from error
    # Cosmos DB counts from 1 (recorded answers), whatever the client sent.
    return Asked(inner, change, str(index + 1))


def inner_call(call: Call, part: Part) -> Call:
    path, query = split_target(part.target)
    known = (call.account, call.target.account) if call.target.account else (call.account,)
    target = parse_target(path, known)
    if target.table:
        check_reference(call, target.table)
    headers = {**part.headers, "host": call.headers.get("host", "")}
    whole = call.request
    request = Request(part.method, part.target, headers, part.body, whole.secure, whole.budget)
    method = headers.get("x-http-method", part.method).upper()
    return replace(
        call,
        request=request,
        target=target,
        parameters=parse_parameters(query),
        method=method,
    )


#: Kind of target and method → the change that it asks for.
CHANGES: Final[dict[tuple[str, str], Callable[[Call], Change]]] = {
    ("entities", "POST"): entities.insertion_of,
    ("entity", "PUT"): entities.replacement_of,
    ("entity", "PATCH"): entities.merge_of,
    ("entity", "MERGE"): entities.merge_of,
    ("entity", "DELETE"): entities.deletion_of,
}


def _change(inner: Call) -> Change:
    change_of = CHANGES.get((inner.target.kind, inner.method))
    if change_of is None:
        raise refused("url")
    return change_of(inner)


def _check_group(asked: Sequence[Asked]) -> None:
    first = asked[0]
    rows: set[str] = set()
    for index, one in enumerate(asked):
        same = (one.call.target.table, one.change.partition_key)
        if same != (first.call.target.table, first.change.partition_key):
            raise _Failure(refused("batch partitions"), index)
        if one.change.row_key in rows:
            raise _Failure(refused("batch duplicate"), index)
        rows.add(one.change.row_key)


# --- on the store -------------------------------------------------------------------------------


def _apply(store: ContainerStore, asked: Sequence[Asked]) -> list[Done]:
    """Merges and conditions are made of what is seen; the batch fails when any of it has changed
    since, and begins again if that was no condition of the client."""
    flavour = asked[0].call.flavour
    budget = asked[0].call.budget
    for _ in range(TABLE_MERGE_ROUNDS_MAX):
        operations = []
        for index, one in enumerate(asked):
            try:
                seen: Seen | None = None
                if one.change.looks_first:
                    seen = changes.see(store, one.change)
                operations.append(changes.operation_of(one.change, seen, flavour))
            except DbError as error:
                raise _Failure(
                    error, None if isinstance(error, OwnerNotFound) else index
                ) from error
        try:
            outcome = store.batch(operations, (asked[0].change.partition_key,), budget)
        except TooLarge as error:
            raise refused("batch size") from error
        except DbError as error:
            raise _Failure(error, None) from error
        if not isinstance(outcome, Failed):
            return outcome
        found = batch_error(outcome)
        if not changes.has_raced(asked[outcome.position].change, found):
            if isinstance(found, TooLarge):
                raise refused("batch size") from found
            raise _Failure(found, outcome.position) from found
    raise _Failure(Stale(), None)


# --- answers ------------------------------------------------------------------------------------


def _done(asked: Asked, done: Done) -> Answer:
    response = answer(asked.call, asked.change, done)
    kept = ("Content-Type", "ETag", "Location", "Preference-Applied")
    headers = {name: response.headers[name] for name in kept if name in response.headers}
    headers["Content-ID"] = asked.content_id
    return Answer(response.status, headers, response.body)


def _failed(call: Call, failure: _Failure) -> Answer:
    found = table_wire(failure.error, storage=call.flavour.is_storage)
    body = error_body(found, call.flavour, str(uuid.uuid4()), failure.index)
    headers = {
        "Content-Type": call.flavour.content_type_of("minimalmetadata"),
        "DataServiceVersion": "3.0;",
    }
    if failure.index is not None:
        headers["Content-ID"] = str(failure.index + 1)
    return Answer(found.status, headers, body)


def _read_alone(call: Call, part: Part, read: Read) -> Response:
    response = read(inner_call(call, part))
    token = str(uuid.uuid4())
    kept = ("Content-Type", "ETag")
    headers = {name: response.headers[name] for name in kept if name in response.headers}
    found = Answer(response.status, headers, response.body)
    content = format_batch([found], token, changeset=False)
    return reply(call, 202, content, {"Content-Type": BATCH_TYPE.format(token)}, ru=0.0)
