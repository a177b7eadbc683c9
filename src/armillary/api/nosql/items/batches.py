"""Several operations in one request: a batch (all or nothing) or a bulk (each for itself).

    JSON array  ──┐                                            ┌──▶ JSON array of results
                  ├──▶ Entry… ──▶ ContainerStore ──▶ Result… ──┤
    HybridRow   ──┘   (.NET, first byte 0x81)                  └──▶ HybridRow

Each entry of a bulk is routed by its own key, whatever range the client named: some clients compute
hashes wrongly. Facts: nosql-rest 6.5, 6.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from armillary.api.http.messages import Response
from armillary.api.nosql.call import TOO_LARGE, Call, reply
from armillary.api.nosql.items.entries import (
    Entry,
    Result,
    entries_of_json,
    result_of,
    results_json,
)
from armillary.api.nosql.items.hybridrow import entries_of_rows, is_hybrid_row, rows_of_results
from armillary.api.nosql.items.placing import (
    Place,
    container_headers,
    is_left_to_server,
    item_headers_at,
    key_of_done,
    place_headers,
    place_of_key,
    placed,
    range_of,
    required_key,
    session_headers,
    session_of,
    store_of,
)
from armillary.api.nosql.items.single import patch_operation
from armillary.api.nosql.scripts import refuse_triggers
from armillary.budget import Budget
from armillary.encoding.partition_key import KeyValues
from armillary.errors import BadInput, DbError, DependencyFailed, PartitionKeyMismatch, TooLarge
from armillary.limits import BATCH_BYTES_MAX
from armillary.partition.ranges import Range
from armillary.query.run.bounds import condition_budget
from armillary.store.items.batches import batch_error, check_batch
from armillary.store.items.containers import ContainerStore
from armillary.store.items.preparation import Operation
from armillary.store.items.requests import Done, Failed

FAILED: Final = 207


def run_batch(call: Call) -> Response:
    refuse_triggers(call, "a batch")
    store = store_of(call)
    binary = is_hybrid_row(call.request.body)
    entries = entries_of_rows(call.request.body) if binary else entries_of_json(call.json())
    check_batch([Operation(entry.kind) for entry in entries])
    run = _atomic if call.options.is_atomic or call.options.range_id is None else _bulk
    results, headers = run(call, store, entries)
    is_fine = all(200 <= one.status < 300 for one in results)
    body = rows_of_results(results) if binary else results_json(results)
    if binary:
        headers["Content-Type"] = "application/octet-stream"
    ru = sum(one.charge_ru for one in results)
    return reply(call, 200 if is_fine else FAILED, body, headers, ru=ru)


def _atomic(
    call: Call, store: ContainerStore, entries: Sequence[Entry]
) -> tuple[list[Result], dict[str, str | None]]:
    key = required_key(call, store)
    if 0 < len(key) < len(store.state.definition.partition_key.paths):
        raise PartitionKeyMismatch
    with placed(call, store, key):
        now_ms, conditions = call.gateway.engine.now_ms(), condition_budget()
        operations = [operation_of(entry, now_ms, conditions) for entry in entries]
        outcome = store.batch(operations, key, call.budget)
    if isinstance(outcome, Failed):
        error = batch_error(outcome)
        if isinstance(error, TooLarge):  # the request is, so no entry is to blame
            raise error
        return _failed(outcome, entries), _headers_at(call, store, key)
    written = next(filter(None, (key_of_done(store, one, key) for one in outcome)), key)
    where = place_of_key(store, written)
    version = call.gateway.session_version(where.owner.space)
    place = Place(where.owner, version, max(one.lsn for one in outcome))
    silent = call.options.is_minimal
    results = [result_of(one, entry, silent) for one, entry in zip(outcome, entries, strict=True)]
    return results, place_headers(store, place)


def _headers_at(call: Call, store: ContainerStore, key: KeyValues) -> dict[str, str | None]:
    if is_left_to_server(store, key):
        return container_headers(store)
    return item_headers_at(call, store, key)


def _failed(failed: Failed, entries: Sequence[Entry]) -> list[Result]:
    """The entry that failed says why, the others that they did not happen."""
    others = DependencyFailed()
    return [
        result_of(batch_error(failed) if at == failed.position else others, entry)
        for at, entry in enumerate(entries)
    ]


def _bulk(
    call: Call, store: ContainerStore, entries: Sequence[Entry]
) -> tuple[list[Result], dict[str, str | None]]:
    assert call.options.range_id is not None
    size = len(call.request.body)
    if size > BATCH_BYTES_MAX:
        raise TooLarge.of(size, BATCH_BYTES_MAX, TOO_LARGE)
    owner = range_of(store, call.options.range_id)
    now_ms, conditions = call.gateway.engine.now_ms(), condition_budget()
    asked: list[tuple[Operation, KeyValues | None]] = []
    for entry in entries:
        asked.append((operation_of(entry, now_ms, conditions), entry.key))
    budget = call.budget
    outcomes: list[Done | DbError] = (
        store.bulk(asked, budget=budget)
        if call.options.goes_on
        else _until_failure(store, asked, budget)
    )
    silent = call.options.is_minimal
    results = [result_of(one, entry, silent) for one, entry in zip(outcomes, entries, strict=True)]
    return results, _bulk_headers(call, store, owner, zip(outcomes, entries, strict=True))


def _until_failure(
    store: ContainerStore, asked: Sequence[tuple[Operation, KeyValues | None]], budget: Budget
) -> list[Done | DbError]:
    """One after the other; what comes after the first that failed is not tried."""
    outcomes: list[Done | DbError] = []
    for one in asked:
        if outcomes and isinstance(outcomes[-1], DbError):
            outcomes.append(DependencyFailed())
        else:
            outcomes += store.bulk([one], budget=budget)
    return outcomes


def _bulk_headers(
    call: Call,
    store: ContainerStore,
    named: Range,
    outcomes: Iterable[tuple[Done | DbError, Entry]],
) -> dict[str, str | None]:
    """Those of the range that the client named; when items went elsewhere, a token for all."""
    keys = [key_of_done(store, one, entry.key) for one, entry in outcomes if isinstance(one, Done)]
    owners = {place_of_key(store, key).owner for key in keys if key is not None}
    current = store.state.table.by_ordinal(named.ordinal)
    if current is not None and owners <= {current}:
        return place_headers(store, session_of(store, current))
    return session_headers(call, store, sorted(owners, key=lambda one: one.start))


def operation_of(entry: Entry, now_ms: int, budget: Budget) -> Operation:
    if entry.kind == "patch":
        return patch_operation(entry.id, entry.body, entry.if_match, now_ms, budget)
    if entry.body is not None and not isinstance(entry.body, dict):
        raise BadInput("The resourceBody of an operation must be a JSON object.")
    return Operation(
        entry.kind,
        entry.id,
        entry.body,
        if_match=entry.if_match,
        if_none_match=entry.if_none_match,
    )
