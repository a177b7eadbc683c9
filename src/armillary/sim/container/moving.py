"""What moves ranges in a simulation: their size, another throughput, other shares, merges.

    full ──▶ Move ─ bytes / bandwidth ─▶ two children ──▶ full again?
    throughput ──▶ at once, or a round of Moves ──▶ the next round ──▶ … ──▶ the new throughput

Which range splits, into how many, and who gets how much is decided by `partition/`. Here is only
the time that it takes, and that one change has to wait for another (423).
"""

from collections.abc import Mapping

import numpy as np

from armillary.errors import BadInput, NotSplittable
from armillary.partition.provisioning import distribution, merging, offers, scaling
from armillary.partition.provisioning import partitions as provisioning
from armillary.sim.container.placing import Floats
from armillary.sim.container.state import Cause, Change, Merging, Move, State


def advance(state: State, t0: float, t1: float) -> None:
    """Everything that begins or ends in this step."""
    while True:
        _begin_full(state, t0, t1)
        ended = sorted(
            (move for move in state.moving.values() if move.finish_s <= t1),
            key=lambda move: (move.finish_s, move.parent),
        )
        merged = state.merging if state.merging and state.merging.finish_s <= t1 else None
        if ended:
            _end_splits(state, ended)
        if merged is not None:
            state.merge(merged)
            state.say(
                merged.finish_s,
                "merge",
                status="succeeded",
                merges=len(merged.plan.merges),
                partitions=len(state.layout),
            )
        if not ended and merged is None:
            return
        if state.change is not None:
            _next_round(state, max((move.finish_s for move in ended), default=t1))


def _begin_full(state: State, t0: float, t1: float) -> None:
    sizes = state.sizes(t1)
    full = _full(state, sizes)
    if not full:
        return
    before = state.sizes(t0)
    limit = float(state.split_limits.bytes)
    for i in full:
        ordinal = int(state.layout.ordinals[i])
        grown = float(sizes[i] - before[i])
        crossed = t0
        if before[i] < limit and grown > 0:
            crossed = t0 + (t1 - t0) * min(1.0, (limit - float(before[i])) / grown)
        start = max(crossed, state.born.get(ordinal, t0), t0)
        size = float(before[i]) + grown * (start - t0) / (t1 - t0) if t1 > t0 else float(sizes[i])
        _begin(state, i, start, size, "storage")


def _full(state: State, sizes: Floats) -> list[int]:
    """Indices of ranges that the product would split now; the rule is asked from the fullest down,
    until it says no."""
    busy = set(state.moving) | state.unsplittable
    if state.merging is not None:
        busy |= {source for one in state.merging.plan.merges for source in one.sources}
    found = []
    if not provisioning.needs_split(float(sizes.max()), of=state.split_limits):
        return []
    for i in np.argsort(-sizes, kind="stable"):
        if not provisioning.needs_split(float(sizes[i]), of=state.split_limits):
            break
        if int(state.layout.ordinals[i]) not in busy:
            found.append(int(i))
    return sorted(found)


def _begin(
    state: State,
    i: int,
    start: float,
    size: float,
    cause: Cause,
    child_ru: float | None = None,
) -> bool:
    ordinal = int(state.layout.ordinals[i])
    tail = float(state.tail_bytes[i]) * state.growth.live(start)
    try:
        at = state.layout.cut(i, tail, state.heavy_bytes(start), state.owners)
    except NotSplittable:
        state.unsplittable.add(ordinal)
        state.say(start, "unsplittable", partition=ordinal, bytes=round(size))
        return False
    finish = max(start, state.writes_from_s) + size / state.scenario.bandwidth
    state.moving[ordinal] = Move(ordinal, cause, start, finish, size, at, child_ru)
    return True


def _end_splits(state: State, ended: list[Move]) -> None:
    done = state.split(ended)
    count = len(state.layout) - len(done)
    for split, move in zip(done, ended, strict=True):
        count += 1
        if state.change is not None:
            cuts = state.change.rounds_done.pop(split.parent, 0) + 1
            state.change.rounds_done |= dict.fromkeys(split.children, cuts)
        state.say(
            move.finish_s,
            "split",
            cause=move.cause,
            parent=split.parent,
            children=list(split.children),
            bytes=round(move.bytes),
            seconds=round(move.finish_s - move.start_s, 1),
            partitions=count,
        )


# --- throughput -----------------------------------------------------------------------------------


def change_throughput(state: State, t: float, ru: float) -> None:
    busy = state.change is not None or any(m.cause != "storage" for m in state.moving.values())
    if busy:
        reason = "another change of the throughput is under way"
        state.say(t, "throughput", status="refused", code=423, asked=ru, reason=reason)
        return
    kind = state.scenario.kind
    stored = float(state.sizes(t).sum())
    least = offers.minimum_throughput(kind, highest_ever=state.highest_ever, stored_bytes=stored)
    try:
        distribution.check_total_may_change(state.shares.policy)
        offers.check_throughput(
            int(ru), kind, minimum=least, maximum=int(state.scenario.throughput_max)
        )
    except BadInput as error:
        state.say(t, "throughput", status="refused", code=400, asked=ru, reason=str(error))
        return
    if state.merging is not None and ru > state.throughput:
        state.merging = None
        state.say(t, "merge", status="cancelled", reason="the throughput was raised")
    state.change = Change(ru, t)
    _next_round(state, t)


def _next_round(state: State, t: float) -> None:
    """The next round of splits, or the end."""
    change = state.change
    assert change is not None
    if any(move.cause == "throughput" for move in state.moving.values()):
        return
    plan = scaling.plan_change(
        change.ru,
        state.sizes_by_id(t),
        next_ordinal=state.layout.next_ordinal,
        rounds_done=change.rounds_done,
        unsplittable={*state.unsplittable, *state.moving},
        of=state.limits,
    )
    if plan.rounds:
        index = state.layout.index()
        sizes = state.sizes(t)
        begun = sum(
            _begin(state, index[split.parent], t, float(sizes[index[split.parent]]), "throughput")
            for split in plan.rounds[0]
        )
        change.rounds += 1
        number = change.rounds
        state.say(t, "throughput", status="round", asked=change.ru, splits=begun, round=number)
        if begun:
            return
        _next_round(state, t)
        return
    if plan.short and state.moving:
        return  # what is being split for its size will count when it is done
    state.change = None
    state.throughput = change.ru
    state.highest_ever = max(state.highest_ever, change.ru)
    state.shares = distribution.equal(change.ru, map(int, state.layout.ordinals))
    state.say(
        t,
        "throughput",
        status="succeeded",
        ru=change.ru,
        rounds=change.rounds,
        seconds=round(t - change.start_s, 1),
        partitions=len(state.layout),
        **({"short": plan.short} if plan.short else {}),
    )


def raise_by_storage(state: State, t: float, stored: float) -> None:
    """The least that so much data needs."""
    kind = state.scenario.kind
    raised = offers.raised_by_storage(int(state.throughput), kind, stored)
    if raised <= state.throughput or state.change is not None or state.shares.policy != "Equal":
        return
    if raised > provisioning.instant_maximum(len(state.layout), of=state.limits):
        change_throughput(state, t, raised)
        return
    state.throughput = float(raised)
    state.highest_ever = max(state.highest_ever, state.throughput)
    state.shares = distribution.equal(state.throughput, map(int, state.layout.ordinals))


# --- shares and merges ----------------------------------------------------------------------------


def redistribute(state: State, t: float, targets: Mapping[int, float]) -> None:
    try:
        plan = distribution.redistribute(
            state.shares, targets, next_ordinal=state.layout.next_ordinal, of=state.limits
        )
    except BadInput as error:
        state.say(t, "redistribute", status="refused", code=400, reason=str(error))
        return
    state.shares = plan.now
    index = state.layout.index()
    sizes = state.sizes(t)
    for split in plan.splits:
        i = index[split.parent]
        if split.parent not in state.moving:
            child_ru = targets[split.parent] / 2
            _begin(state, i, t, float(sizes[i]), "redistribution", child_ru)
    state.throughput = state.shares.total
    state.say(t, "redistribute", status="succeeded", ru=state.throughput, splits=len(plan.splits))


def evenly(state: State, t: float) -> None:
    state.throughput = state.shares.total
    state.shares = distribution.equal(state.throughput, map(int, state.layout.ordinals))
    state.say(t, "evenly", status="succeeded", ru=state.throughput)


def merge(state: State, t: float) -> None:
    if state.moving or state.change is not None or state.merging is not None:
        state.say(t, "merge", status="refused", code=423, reason="ranges are being moved")
        return
    sizes = [(ordinal, round(size)) for ordinal, size in state.sizes_by_id(t).items()]
    plan = merging.plan_merge(
        state.throughput, sizes, next_ordinal=state.layout.next_ordinal, of=state.limits
    )
    if not plan.merges:
        state.say(t, "merge", status="refused", code=400, reason="nothing would be gained")
        return
    moved = float(sum(one.bytes for one in plan.merges))
    longest = max(one.bytes for one in plan.merges) / state.scenario.bandwidth
    state.merging = Merging(plan, t, t + longest, moved)
    state.say(t, "merge", status="started", merges=len(plan.merges), expected=len(plan.layout))
