"""Provisioned throughput: reading it, changing it, and the splits that a change needs.

    change  within what the ranges can serve   → at once
            above it                           → an operation is recorded; `run_scaling` splits,
            then applies it
    while one is recorded, another change is refused (423); only a merge gives way: less throughput
    applies at once, more cancels it (`merges.py`)

A scaling operation lives in the offer, so another process can go on with it. Rules: partitioning
1.3 to 1.5.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from armillary.encoding.etags import matches
from armillary.encoding.hashing import middle
from armillary.engine.base import CATALOG_SPACE, Command, Engine
from armillary.errors import (
    BadInput,
    Locked,
    NotFound,
    NotSplittable,
    PreconditionFailed,
    Stale,
)
from armillary.limits import THROUGHPUT_RU_MAX
from armillary.partition.provisioning.distribution import check_total_may_change, redistribute
from armillary.partition.provisioning.offers import (
    check_kind_change,
    check_throughput,
    minimum_throughput,
    raised_by_storage,
)
from armillary.partition.provisioning.partitions import (
    LIMITS,
    OfferKind,
    PartitionLimits,
    partitions_needed,
)
from armillary.partition.provisioning.scaling import Split, plan_change
from armillary.store.items.containers import ContainerStore
from armillary.store.items.routing import ROUNDS_MAX
from armillary.store.moves.runner import begin_split
from armillary.store.reports.statistics import partitions
from armillary.store.throughput.offers import (
    OfferRecord,
    ScalingRecord,
    decode_offer,
    encode_offer,
    find_offer,
)

#: Asked before a piece of background work, and while it goes on: is it still ours to do?
May: TypeAlias = Callable[[], bool]


def _alone() -> bool:
    return True


FIXED_TEXT = (
    "A fixed container serves at most {0:,} RU/s. "
    "Move its items to a container that grows: one with a partition key."
)


def read_offer(engine: Engine, owner_rid: str) -> OfferRecord:
    with engine.read(CATALOG_SPACE) as reader:
        record = find_offer(reader, owner_rid)
    if record is None:
        raise NotFound
    return record


def save_offer(engine: Engine, record: OfferRecord) -> OfferRecord:
    data = (encode_offer(record), engine.now_ms() // 1000)
    return decode_offer(engine.run(CATALOG_SPACE, Command("offers.replace", data)))


def stored_bytes(store: ContainerStore) -> dict[int, int]:
    """Bytes of each range of a container, by range id."""
    return {int(one.id): one.size_bytes for one in partitions(store)}


def minimum(record: OfferRecord, size_bytes: int, shared_containers: int = 0) -> int:
    return minimum_throughput(
        record.kind,
        highest_ever=record.highest_ru,
        stored_bytes=size_bytes,
        shared_containers=shared_containers,
    )


def change_throughput(
    store: ContainerStore,
    ru: int,
    *,
    kind: OfferKind | None = None,
    if_match: str | None = None,
    of: PartitionLimits = LIMITS,
) -> OfferRecord:
    """Ask for `ru` (autoscale: a maximum of `ru`). The answer has `pending` set when splits come
    first; `run_scaling` does them."""
    record = read_offer(store.engine, store.refresh().record.rid)
    check_free(record, if_match, ru)
    if record.pending is not None and ru > record.ru:
        record = cancelled(record, store.engine.now_ms())
    if kind is not None:
        check_kind_change(record.kind, kind)
    check_total_may_change("Custom" if record.shares else "Equal")
    sizes = stored_bytes(store)
    check_throughput(ru, record.kind, minimum=minimum(record, sum(sizes.values())))
    return _ask(store, record, ru, sizes, {}, of)


def raise_for_storage(
    store: ContainerStore, size_bytes: int, may: May = _alone, *, of: PartitionLimits = LIMITS
) -> OfferRecord | None:
    """Data that has outgrown the throughput raises it (1.4). None when it has not."""
    try:
        record = read_offer(store.engine, store.state.record.rid)
    except NotFound:  # it shares the throughput of its database
        return None
    ru = min(raised_by_storage(record.ru, record.kind, size_bytes), THROUGHPUT_RU_MAX)
    if ru <= record.ru or record.pending is not None or record.shares or not may():
        return None
    return change_throughput(store, ru, of=of)


def migrate_kind(
    engine: Engine, owner_rid: str, kind: OfferKind, *, if_match: str | None = None
) -> OfferRecord:
    """From manual to autoscale or back. The service picks the new value from the old one."""
    record = read_offer(engine, owner_rid)
    check_free(record, if_match)
    if record.kind == kind:
        return record
    if kind == "autoscale":
        least = minimum_throughput("autoscale", highest_ever=record.highest_ru)
        ru = max(least, -(-record.ru // 1000) * 1000)
    else:
        ru = max(minimum_throughput("manual", highest_ever=record.highest_ru), record.ru)
    return save_offer(engine, replace(record, kind=kind, ru=ru))


def redistribute_throughput(
    store: ContainerStore, targets: Mapping[int, float], *, of: PartitionLimits = LIMITS
) -> OfferRecord:
    """RU/s for some ranges, set one by one. One above the limit of a range splits it first."""
    state = store.refresh()
    record = read_offer(store.engine, state.record.rid)
    check_free(record)
    current = record.distribution([one.ordinal for one in state.table.ranges])
    if state.is_fixed and any(ru > of.ru for ru in targets.values()):
        raise BadInput(FIXED_TEXT.format(of.ru))
    plan = redistribute(current, targets, next_ordinal=state.record.ordinals, of=of)
    now = replace(record, shares=dict(plan.now.shares), ru=round(plan.now.total))
    if not plan.splits:
        return save_offer(store.engine, now)
    shares = {split.parent: targets[split.parent] for split in plan.splits}
    total, first = round(plan.then.total), state.record.ordinals
    scaling = _started(store.engine, record, total, len(shares), shares, first)
    return save_offer(store.engine, replace(now, pending=scaling))


def evenly_distribute(store: ContainerStore) -> OfferRecord:
    """Back to equal shares of the same total."""
    record = read_offer(store.engine, store.refresh().record.rid)
    check_free(record)
    return save_offer(store.engine, replace(record, shares={}))


def run_scaling(
    store: ContainerStore, *, may: May = _alone, of: PartitionLimits = LIMITS
) -> OfferRecord | None:
    """Do what the recorded operation needs, then apply it. None when nothing is recorded.

    `may` is asked before each split, and while it runs so that a lease is renewed. Raises Locked
    when it says no, or when another runner splits one of the ranges, or as many as are needed: that
    one will go on with the rest."""
    try:
        record = read_offer(store.engine, store.refresh().record.rid)
    except NotFound:
        return None
    if record.pending is None or record.pending.merges:
        return None
    if record.shares:
        return _run_redistribution(store, record, may)
    unsplittable: set[int] = set()
    wanted = partitions_needed(record.pending.to_ru, 0, of=of)
    while splits := _next_round(store, record, unsplittable, of):
        for split in splits:
            try:
                if _split(store, split.parent, wanted, may):
                    record = update_pending(store.engine, record, _progressed)
                else:
                    unsplittable.add(split.parent)
            except NotFound:
                break  # another runner was here: plan again
    return update_pending(store.engine, record, _applied)


class Announced(NamedTuple):
    """What is about to happen to the ranges of a container."""

    scaling: int
    """The number of the operation; 0 when there is none."""
    parents: frozenset[int]
    """The ranges that it splits next, or merges."""


def announced(store: ContainerStore, *, of: PartitionLimits = LIMITS) -> Announced:
    """For those who watch: from the moment the change is accepted, not only while items move."""
    try:
        record = read_offer(store.engine, store.state.record.rid)
    except NotFound:  # it shares the throughput of its database
        return Announced(0, frozenset())
    if record.pending is None:
        return Announced(0, frozenset())
    if record.pending.merges:
        sources = (one for group in record.pending.merges for one in group)
        return Announced(record.pending.id, frozenset(sources))
    if record.shares:
        return Announced(record.pending.id, frozenset(record.pending.shares))
    splits = _next_round(store, record, set(), of)
    return Announced(record.pending.id, frozenset(split.parent for split in splits))


def _next_round(
    store: ContainerStore, record: OfferRecord, unsplittable: set[int], of: PartitionLimits
) -> tuple[Split, ...]:
    """The ranges to split next, none when there are enough (or none can be)."""
    assert record.pending is not None
    sizes = stored_bytes(store)
    state = store.refresh()
    first = record.pending.first_ordinal
    plan = plan_change(
        record.pending.to_ru,
        sizes,
        next_ordinal=state.record.ordinals,
        rounds_done={
            one.ordinal: sum(made >= first for made in (*one.parents, one.ordinal))
            for one in state.table.ranges
        },
        unsplittable=unsplittable,
        of=of,
    )
    return plan.rounds[0] if plan.rounds else ()


def _run_redistribution(store: ContainerStore, record: OfferRecord, may: May) -> OfferRecord:
    """Each split hands the shares down in the transaction that switches to the children."""
    assert record.pending is not None
    for ordinal in record.pending.shares:
        with suppress(NotFound):  # split before, by a runner that did not live to say so
            if _split(store, ordinal, may=may):
                record = update_pending(store.engine, record, _progressed)
    return update_pending(store.engine, record, _applied)


def _split(
    store: ContainerStore, ordinal: int, ranges_max: int | None = None, may: May = _alone
) -> bool:
    """Halve a range, by bytes if it has keys to divide, else by hashes. False when it can't be."""
    if not may():
        raise Locked("Another process does the background work.")
    try:
        move = begin_split(store, ordinal, ranges_max=ranges_max)
    except NotSplittable:
        owner = store.state.table.by_ordinal(ordinal)
        assert owner is not None, "begin_split has just seen it"
        at = middle(owner.start, owner.end, store.state.definition.partition_key)
        if not owner.start < at < owner.end:
            return False
        move = begin_split(store, ordinal, at, ranges_max=ranges_max)
    move.run(may)
    return True


def _ask(
    store: ContainerStore,
    record: OfferRecord,
    ru: int,
    sizes: dict[int, int],
    shares: dict[int, float],
    of: PartitionLimits,
) -> OfferRecord:
    ordinals = store.state.record.ordinals
    plan = plan_change(ru, sizes, next_ordinal=ordinals, of=of)
    if plan.instant:
        return save_offer(store.engine, replace(record, ru=ru))
    if store.state.is_fixed:
        raise BadInput(FIXED_TEXT.format(of.ru))
    splits = sum(map(len, plan.rounds))
    pending = _started(store.engine, record, ru, splits, shares, ordinals)
    parents = ", ".join(str(split.parent) for split in plan.rounds[0])
    message = f"Will split partitions {parents} into different partitions"
    return save_offer(store.engine, replace(record, pending=replace(pending, message=message)))


def _started(
    engine: Engine,
    record: OfferRecord,
    ru: int,
    splits: int,
    shares: Mapping[int, float],
    first_ordinal: int,
) -> ScalingRecord:
    return ScalingRecord(
        record.version,
        record.ru,
        ru,
        engine.now_ms(),
        splits=splits,
        shares=dict(shares),
        first_ordinal=first_ordinal,
    )


def update_pending(
    engine: Engine, record: OfferRecord, change: Callable[[OfferRecord, int], OfferRecord]
) -> OfferRecord:
    """Change an offer whose operation is running. The splits themselves change it too, and another
    runner may have ended the operation, which raises Stale."""
    assert record.pending is not None
    for _ in range(ROUNDS_MAX):
        current = read_offer(engine, record.owner)
        if current.pending is None or current.pending.id != record.pending.id:
            break
        with suppress(Stale):
            return save_offer(engine, change(current, engine.now_ms()))
    raise Stale


def _progressed(record: OfferRecord, now_ms: int) -> OfferRecord:
    assert record.pending is not None
    done = record.pending.splits_done + 1
    pending = replace(record.pending, status="In Progress", splits_done=done)
    return replace(record, pending=pending)


def _applied(record: OfferRecord, now_ms: int) -> OfferRecord:
    assert record.pending is not None
    done = replace(
        record.pending,
        status="Succeeded",
        message="Completed splits operation",
        finished_ms=now_ms,
        shares={},
    )
    ru = round(sum(record.shares.values())) if record.shares else record.pending.to_ru
    return replace(record, ru=ru, pending=None, history=(*record.history, done))


def cancelled(record: OfferRecord, now_ms: int) -> OfferRecord:
    """Without its pending operation, which did not end well."""
    assert record.pending is not None
    ended = replace(record.pending, status="Cancelled", finished_ms=now_ms, merges=())
    return replace(record, pending=None, history=(*record.history, ended))


def check_free(record: OfferRecord, if_match: str | None = None, ru: int | None = None) -> None:
    """May the offer be changed now? A change of RU/s alone (`ru`) need not wait for a merge."""
    if if_match is not None and not matches(if_match, record.etag):
        raise PreconditionFailed
    if record.pending is not None and not (record.pending.merges and ru is not None):
        raise Locked(
            "The throughput is being changed by another operation that has not finished: "
            f"{record.pending.from_ru} to {record.pending.to_ru} RU/s."
        )
