"""Fewer physical partitions for a container that has more than it needs (partitioning 1.7).

    what if   which neighbours would become one, and how large they'd be
              (`partition/provisioning/merging.py`)
    ask       the plan, from the throughput of this moment, is recorded in the offer
    run       one merge after the other, with the steps of any move; each leaves the record

Less throughput applies while it runs; more throughput, or other settings of the container, cancel
what is left of it. A container that shares its database's throughput has no offer to record
anything in: its merges are run, and forgotten if the process dies between two of them.
"""

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from armillary.engine.base import CATALOG_SPACE
from armillary.errors import BadInput, Locked, NotFound, Stale
from armillary.partition.provisioning.merging import MergePlan, plan_merge
from armillary.partition.provisioning.partitions import LIMITS, PartitionLimits
from armillary.store.catalog.records import find_database
from armillary.store.items.containers import ContainerStore
from armillary.store.moves.runner import begin_merge
from armillary.store.throughput.offers import OfferRecord, ScalingRecord, find_offer
from armillary.store.throughput.provisioned import (
    May,
    cancelled,
    check_free,
    read_offer,
    save_offer,
    stored_bytes,
    update_pending,
)

MESSAGE: Final = "PartitionCoalescer Merge operation for Container"


def what_if(store: ContainerStore, *, of: PartitionLimits = LIMITS) -> MergePlan:
    """What a merge would do now. Empty when the container is no candidate."""
    offer, _ = _offer(store)
    if offer is not None and offer.shares:
        raise BadInput(
            "The throughput of this container is set for each physical partition. "
            "Distribute it evenly before you merge."
        )
    sizes = stored_bytes(store)
    state = store.refresh()
    ranges = sorted(state.table.ranges, key=lambda one: one.start)
    return plan_merge(
        0 if offer is None else offer.ru,
        [(one.ordinal, sizes.get(one.ordinal, 0)) for one in ranges],
        next_ordinal=state.record.ordinals,
        of=of,
    )


def merge(store: ContainerStore, *, of: PartitionLimits = LIMITS) -> MergePlan:
    """Ask for a merge, and run it. Reads and writes go on. Locked while another operation runs."""
    offer, is_own = _offer(store)
    if offer is not None and is_own:
        check_free(offer)
    plan = what_if(store, of=of)
    if not plan.merges:
        return plan
    groups = tuple(one.sources for one in plan.merges)
    if offer is None or not is_own:
        for group in groups:
            begin_merge(store, list(group)).run()
        return plan
    pending = ScalingRecord(
        id=offer.version,
        from_ru=offer.ru,
        to_ru=offer.ru,
        started_ms=store.engine.now_ms(),
        message=MESSAGE,
        splits=len(groups),
        merges=groups,
        settings=store.state.record.settings,
    )
    save_offer(store.engine, replace(offer, pending=pending))
    run_merges(store)
    return plan


def run_merges(store: ContainerStore, *, may: May = lambda: True) -> OfferRecord | None:
    """Go on with a merge that was asked for. None when there is none.

    Raises Locked when `may` says no, or when another runner is at one of the ranges."""
    try:
        record = read_offer(store.engine, store.refresh().record.rid)
    except NotFound:
        return None
    if record.pending is None or not record.pending.merges:
        return None
    for group in record.pending.merges:
        if not may():
            raise Locked("Another process does the background work.")
        if _is_off(store, record):
            return _call_off(store, record)
        try:
            move = begin_merge(store, list(group))
        except NotFound:
            pass  # done before, by a runner that did not live to say so; or one of them has split
        else:
            if not move.run(may, partial(_is_off, store, record)):
                return _call_off(store, record)
        try:
            record = update_pending(store.engine, record, _one_done)
        except Stale:  # called off since
            return read_offer(store.engine, record.owner)
    return record


def _offer(store: ContainerStore) -> tuple[OfferRecord | None, bool]:
    """The throughput that counts, and whether it is the container's own."""
    state = store.refresh()
    with store.engine.read(CATALOG_SPACE) as reader:
        own = find_offer(reader, state.record.rid)
        if own is not None:
            return own, True
        database = find_database(reader, store.database)
        return (None if database is None else find_offer(reader, database.rid)), False


def _is_off(store: ContainerStore, record: OfferRecord) -> bool:
    """Somebody wants more throughput, or has changed the container."""
    assert record.pending is not None
    current = read_offer(store.engine, record.owner)
    if current.pending is None or current.pending.id != record.pending.id:
        return True
    return store.refresh().record.settings != record.pending.settings


def _call_off(store: ContainerStore, record: OfferRecord) -> OfferRecord:
    with suppress(Stale):  # it has been already
        return update_pending(store.engine, record, cancelled)
    return read_offer(store.engine, record.owner)


def _one_done(record: OfferRecord, now_ms: int) -> OfferRecord:
    assert record.pending is not None
    pending = replace(
        record.pending,
        status="In Progress",
        splits_done=record.pending.splits_done + 1,
        merges=record.pending.merges[1:],
    )
    if pending.merges:
        return replace(record, pending=pending)
    done = replace(pending, status="Succeeded", finished_ms=now_ms)
    return replace(record, pending=None, history=(*record.history, done))
