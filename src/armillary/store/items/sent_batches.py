"""Batches on their way to the writer: as `ContainerStore.batch`, without waiting, and without the
bounds that a request over HTTP has. What was written does not come back.

    operations ─▶ prepared ─▶ one command to the owner's space ─▶ SentBatch ─▶ its charge, or Failed

Several may be under way at once, each for its own logical partition. Past a `budget` nothing is
sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from random import Random
from typing import Any, Final, NamedTuple

from armillary.budget import Budget, checked
from armillary.encoding.partition_key import KeyValues
from armillary.engine.base import Command, SpaceGone
from armillary.errors import Fenced, Stale
from armillary.partition.ranges import Range
from armillary.store.catalog.state import ContainerState
from armillary.store.items.atomic import ATOMIC
from armillary.store.items.containers import ContainerStore, Submit
from armillary.store.items.preparation import Operation, prepare
from armillary.store.items.requests import Failed, Key, Op
from armillary.store.items.routing import key_in
from armillary.store.throughput.gate import Gate

_NO_CHANCE: Final = Random(0)  # only synthetic keys draw


class SentBatch(NamedTuple):
    future: Future[Any]
    gate: Gate


def start_batch(
    store: ContainerStore,
    operations: Sequence[Operation],
    key: KeyValues,
    submit: Submit | None = None,
    budget: Budget | None = None,
) -> SentBatch:
    state = store.state
    epk, made = key_in(state, key)
    owner = state.table.find(epk)
    return _send(store, state, owner, made, operations, key, submit, checked(budget))


def _send(
    store: ContainerStore,
    state: ContainerState,
    owner: Range,
    key: Key,
    operations: Sequence[Operation],
    given: KeyValues,
    submit: Submit | None,
    budget: Budget,
) -> SentBatch:
    ops: list[Op] = []
    for one in operations:
        budget.spend()
        ops.append(prepare(state, one, given, _NO_CHANCE).op)
    gate = Gate(store.meter, state, owner, key.json, "batch", store.profile)
    gate.admit()
    data = (store.context(state, owner), key, ops)
    return SentBatch((submit or store.engine.submit)(owner.space, Command(ATOMIC, data)), gate)


def finish_batch(sent: SentBatch) -> float | Failed | None:
    """What it cost. None: the range has moved and nothing has happened; run it again."""
    try:
        return _answer(sent)
    except (Fenced, SpaceGone, Stale):
        return None


def _answer(sent: SentBatch) -> float | Failed:
    done, failed = sent.future.result()
    return sent.gate.passed_unread(done) if failed is None else failed


def run_batch(
    store: ContainerStore,
    operations: Sequence[Operation],
    key: KeyValues,
    budget: Budget | None = None,
) -> float | Failed:
    within = checked(budget)

    def attempt(state: ContainerState, owner: Range, made: Key) -> float | Failed:
        submit = store.engine.submit_now
        return _answer(_send(store, state, owner, made, operations, key, submit, within))

    return store.retrying_key(key, attempt)
