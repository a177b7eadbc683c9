"""An insert of many items on its way to the writer, as `items/sent_batches.py` sends operations."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, NamedTuple

from armillary.budget import Budget
from armillary.encoding.partition_key import KeyValues
from armillary.engine.base import Command, SpaceGone
from armillary.errors import Fenced, Stale
from armillary.store.catalog.state import ContainerState
from armillary.store.inserts.handler import INSERT
from armillary.store.inserts.preparation import Ready
from armillary.store.items.containers import ContainerStore, Submit
from armillary.store.items.requests import Failed
from armillary.store.items.routing import key_in
from armillary.store.throughput.gate import Gate


class SentInsert(NamedTuple):
    future: Future[Any]
    gate: Gate
    items_ru: float


def start_insert(
    store: ContainerStore,
    state: ContainerState,
    ready: Ready,
    given: KeyValues,
    submit: Submit | None = None,
    budget: Budget | None = None,
) -> SentInsert:
    """`state`: by which the items were made ready. Past the `budget` nothing is sent."""
    if budget is not None:
        budget.check()
    epk, key = key_in(state, given)
    owner = state.table.find(epk)
    gate = Gate(store.meter, state, owner, key.json, "batch", store.profile)
    gate.admit()
    data = (store.context(state, owner), key, ready.items)
    future = (submit or store.engine.submit)(owner.space, Command(INSERT, data))
    return SentInsert(future, gate, ready.cost_ru(store.profile))


def finish_insert(sent: SentInsert) -> float | Failed | None:
    """What it cost. None: the range has moved and nothing has happened; run it as operations."""
    try:
        (failed,) = sent.future.result()
    except (Fenced, SpaceGone, Stale):
        return None
    return sent.gate.passed_for(sent.items_ru) if failed is None else failed
