"""Provisioned throughput: reading it, changing it, and the splits that a change needs.

    change  within what the ranges can serve   → at once
            above it                           → an operation is recorded; `run_scaling` splits,
            then applies it
    while one is recorded, another change is refused (423)

A scaling operation lives in the offer, so another process can go on with it. Rules: partitioning
1.3 to 1.5.
"""

from collections.abc import Mapping
from dataclasses import replace

from armillary.encoding.etags import matches
from armillary.encoding.hashing import middle
from armillary.engine.base import CATALOG_SPACE, Command, Engine
from armillary.errors import BadInput, Locked, NotFound, NotSplittable, PreconditionFailed
from armillary.partition.distribution import check_total_may_change, redistribute
from armillary.partition.offers import check_kind_change, check_throughput, minimum_throughput
from armillary.partition.provisioning import LIMITS, OfferKind, PartitionLimits
from armillary.partition.ranges import Range
from armillary.partition.scaling import Split, plan_change
from armillary.store.containers import ContainerStore
from armillary.store.meta import unpack_meta
from armillary.store.moves import begin_split
from armillary.store.offers import (
    OfferRecord,
    ScalingRecord,
    decode_offer,
    encode_offer,
    find_offer,
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
    sizes: dict[int, int] = {}
    for owner in store.refresh().table.ranges:
        meta = store.look(owner.start, lambda state, owner, reader: unpack_meta(reader.meta))
        sizes[meta.ordinal] = meta.body_bytes + meta.index_bytes
    return sizes


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
    _check_free(record, if_match)
    if kind is not None:
        check_kind_change(record.kind, kind)
    check_total_may_change("Custom" if record.shares else "Equal")
    sizes = stored_bytes(store)
    check_throughput(ru, record.kind, minimum=minimum(record, sum(sizes.values())))
    return _ask(store, record, ru, sizes, {}, of)


def migrate_kind(
    engine: Engine, owner_rid: str, kind: OfferKind, *, if_match: str | None = None
) -> OfferRecord:
    """From manual to autoscale or back. The service picks the new value from the old one."""
    record = read_offer(engine, owner_rid)
    _check_free(record, if_match)
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
    _check_free(record, None)
    current = record.distribution([one.ordinal for one in state.table.ranges])
    plan = redistribute(current, targets, next_ordinal=state.record.ordinals, of=of)
    now = replace(record, shares=dict(plan.now.shares), ru=round(plan.now.total))
    if not plan.splits:
        return save_offer(store.engine, now)
    shares = {split.parent: targets[split.parent] for split in plan.splits}
    scaling = _started(store.engine, record, round(plan.then.total), len(shares), shares)
    return save_offer(store.engine, replace(now, pending=scaling))


def evenly_distribute(store: ContainerStore) -> OfferRecord:
    """Back to equal shares of the same total."""
    record = read_offer(store.engine, store.refresh().record.rid)
    _check_free(record, None)
    return save_offer(store.engine, replace(record, shares={}))


def run_scaling(store: ContainerStore, *, of: PartitionLimits = LIMITS) -> OfferRecord | None:
    """Do what the recorded operation needs, then apply it. None when nothing is recorded."""
    try:
        record = read_offer(store.engine, store.refresh().record.rid)
    except NotFound:
        return None
    if record.pending is None:
        return None
    if record.pending.shares:
        return _run_redistribution(store, record)
    unsplittable: set[int] = set()
    while splits := _next_round(store, record, unsplittable, of):
        for split in splits:
            owner = store.state.table.by_ordinal(split.parent)
            if owner is not None and not _split(store, owner):
                unsplittable.add(split.parent)
            record = _progressed(store.engine, record)
    assert record.pending is not None
    return _applied(store.engine, record, replace(record, ru=record.pending.to_ru))


def _next_round(
    store: ContainerStore, record: OfferRecord, unsplittable: set[int], of: PartitionLimits
) -> tuple[Split, ...]:
    """The ranges to split next, none when there are enough (or none can be)."""
    assert record.pending is not None
    plan = plan_change(
        record.pending.to_ru,
        stored_bytes(store),
        next_ordinal=store.refresh().record.ordinals,
        unsplittable=unsplittable,
        of=of,
    )
    return plan.rounds[0] if plan.rounds else ()


def _run_redistribution(store: ContainerStore, record: OfferRecord) -> OfferRecord:
    shares = dict(record.shares)
    assert record.pending is not None
    for ordinal, ru in record.pending.shares.items():
        owner = store.refresh().table.by_ordinal(ordinal)
        if owner is None:
            continue  # split before, by a runner that did not live to say so
        before = set(_ordinals(store))
        if _split(store, owner):
            del shares[ordinal]
            shares.update(dict.fromkeys(set(_ordinals(store)) - before, ru / 2))
            record = save_offer(store.engine, replace(record, shares=shares))
    return _applied(store.engine, record, replace(record, ru=round(sum(shares.values()))))


def _ordinals(store: ContainerStore) -> list[int]:
    return [one.ordinal for one in store.refresh().table.ranges]


def _split(store: ContainerStore, owner: Range) -> bool:
    """Halve a range, by bytes if it has keys to divide, else by hashes. False when it can't be."""
    definition = store.state.definition.partition_key
    try:
        move = begin_split(store, owner.ordinal)
    except NotSplittable:
        at = middle(owner.start, owner.end, definition)
        if not owner.start < at < owner.end:
            return False
        move = begin_split(store, owner.ordinal, at)
    except Locked:
        return True  # being split for another reason: that counts
    move.run()
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
    if store.state.definition.partition_key.system_key:
        raise BadInput(
            f"A container without a partition key serves at most {of.ru:,} RU/s. "
            "Move its items to a container with a partition key."
        )
    splits = sum(map(len, plan.rounds))
    pending = _started(store.engine, record, ru, splits, shares)
    parents = ", ".join(str(split.parent) for split in plan.rounds[0])
    message = f"Will split partitions {parents} into different partitions"
    return save_offer(store.engine, replace(record, pending=replace(pending, message=message)))


def _started(
    engine: Engine, record: OfferRecord, ru: int, splits: int, shares: Mapping[int, float]
) -> ScalingRecord:
    number = record.version
    return ScalingRecord(number, record.ru, ru, engine.now_ms(), splits=splits, shares=dict(shares))


def _progressed(engine: Engine, record: OfferRecord) -> OfferRecord:
    assert record.pending is not None
    done = record.pending.splits_done + 1
    pending = replace(record.pending, status="In Progress", splits_done=done)
    return save_offer(engine, replace(record, pending=pending))


def _applied(engine: Engine, record: OfferRecord, new: OfferRecord) -> OfferRecord:
    assert record.pending is not None
    done = replace(
        record.pending,
        status="Succeeded",
        message="Completed splits operation",
        finished_ms=engine.now_ms(),
    )
    return save_offer(engine, replace(new, pending=None, history=(*record.history, done)))


def _check_free(record: OfferRecord, if_match: str | None) -> None:
    if if_match is not None and not matches(if_match, record.etag):
        raise PreconditionFailed
    if record.pending is not None:
        raise Locked(
            "The throughput is being changed by another operation that has not finished: "
            f"{record.pending.from_ru} to {record.pending.to_ru} RU/s."
        )
