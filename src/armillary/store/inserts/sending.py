"""An insert of many items on its way to the writer, as `items/sent_batches.py` sends operations."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from random import Random
from typing import Any, Final, NamedTuple

from armillary.budget import Budget
from armillary.encoding.partition_key import KeyValues
from armillary.engine.base import Command, SpaceGone
from armillary.errors import Fenced, Stale
from armillary.store.catalog.state import ContainerState
from armillary.store.inserts.handler import INSERT
from armillary.store.inserts.preparation import Ready
from armillary.store.items.containers import ContainerStore, Submit
from armillary.store.items.preparation import Operation, prepare
from armillary.store.items.requests import Failed
from armillary.store.items.routing import key_in
from armillary.store.throughput.gate import Gate

_NO_CHANCE: Final = Random(0)  # only synthetic keys draw


class SentInsert(NamedTuple):
    future: Future[Any]
    gate: Gate
    items_ru: float


def start_insert(
    store: ContainerStore,
    state: ContainerState,
    first: Sequence[Operation],
    ready: Ready,
    given: KeyValues,
    submit: Submit | None = None,
    budget: Budget | None = None,
) -> SentInsert:
    """`state`: by which the items were made ready. `first` are operations of the same commit. Past
    the `budget` nothing is sent."""
    if budget is not None:
        budget.check()
    epk, key = key_in(state, given)
    owner = state.table.find(epk)
    ops = [prepare(state, one, given, _NO_CHANCE).op for one in first]
    gate = Gate(store.meter, state, owner, key.json, "batch", store.profile)
    gate.admit()
    data = (store.context(state, owner), key, ops, ready.items)
    future = (submit or store.engine.submit)(owner.space, Command(INSERT, data))
    return SentInsert(future, gate, ready.cost_ru(store.profile))


def finish_insert(sent: SentInsert) -> float | Failed | None:
    """What it cost. None: the range has moved and nothing has happened; run it as operations."""
    try:
        done, failed = sent.future.result()
    except (Fenced, SpaceGone, Stale):
        return None
    return sent.gate.passed_with(done, sent.items_ru) if failed is None else failed
