"""Splits and merges in the catalog: beginning one, taking one over, and the switch.

Every change is a compare-and-set on the move's epoch. A runner that takes a move over bumps the
epoch first, so the runner before it, however late it wakes up, can't switch any more.

    begin      parents stay owners; children get spaces and range ids
    take over  a new epoch, new spaces; the old ones are dropped
    switch     one row: parents out, children in; throughput that was set range by range goes along
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from armillary.engine.base import Handler, Writer, always
from armillary.errors import BadInput, Locked, NotFound, Stale
from armillary.limits import FORMER_RANGES_REMEMBERED, MOVES_REMEMBERED
from armillary.store.catalog.records import (
    ContainerRecord,
    FormerRange,
    MoveRecord,
    PastMove,
    RangeRecord,
    doom_spaces,
    find_container,
    new_spaces,
    own_spaces,
    save_container,
)
from armillary.store.throughput.offers import find_offer, store_offer

#: A move may take longer than the clean-up waits; its record says whose the spaces are.
NEVER_ORPHANED = 0xFFFFFFFF


class Target(NamedTuple):
    database: str
    container: str
    rid: str


def _record(tx: Writer, target: Target) -> ContainerRecord:
    record = find_container(tx, target.database, target.container)
    if record is None or record.rid != target.rid:
        raise NotFound
    return record


def _move(record: ContainerRecord, epoch: int) -> MoveRecord:
    for move in record.moves:
        if move.epoch == epoch:
            return move
    raise Stale


def begin(
    tx: Writer,
    data: tuple[Target, list[int], list[str], int, int | None, Sequence[int] | None],
) -> tuple[bytes, int]:
    """`parents` (adjacent range ids) are to become the ranges between the inner `bounds` (hex).
    Answers the record and the move's epoch. Refused when there would be more than `ranges_max`,
    once the moves under way have ended: two runners of one scaling each know only their own."""
    target, parents, bounds, now_ms, ranges_max, chosen = data
    record = _record(tx, Target(*target))
    owners = sorted((r for r in record.ranges if r.ordinal in parents), key=lambda r: r.start)
    if len(owners) != len(parents):
        raise NotFound(f"The container has no physical partitions {parents}.")
    if any(left.end != right.start for left, right in pairwise(owners)):
        raise BadInput("Only neighbouring physical partitions can be merged.")
    if any(set(parents) & set(move.parents) for move in record.moves):
        raise Locked("A split or merge of this physical partition is in progress.")
    coming = sum(len(move.children) - len(move.parents) for move in record.moves)
    there_will_be = len(record.ranges) + coming + len(bounds) + 1 - len(parents)
    if ranges_max is not None and there_will_be > ranges_max:
        raise Locked("Others split as many physical partitions as are needed.")
    edges = [owners[0].start, *bounds, owners[-1].end]
    if edges != sorted(set(edges)):
        raise BadInput("A split point must lie inside the physical partition.")
    spaces = new_spaces(tx, len(edges) - 1, NEVER_ORPHANED, chosen)
    ancestors = tuple(dict.fromkeys(p for r in owners for p in (*r.parents, r.ordinal)))
    children = tuple(
        RangeRecord(record.ordinals + i, space, edges[i], edges[i + 1], 1, ancestors)
        for i, space in enumerate(spaces)
    )
    epoch = record.move_epoch + 1
    move = MoveRecord(epoch, tuple(r.ordinal for r in owners), children, now_ms)
    record = replace(
        record,
        moves=(*record.moves, move),
        move_epoch=epoch,
        ordinals=record.ordinals + len(children),
    )
    return save_container(tx, record), epoch


def take_over(tx: Writer, data: tuple[Target, int, int, Sequence[int] | None]) -> tuple[bytes, int]:
    """The same move from the start, under a new epoch and into new spaces."""
    target, epoch, now_ms, chosen = data
    record = _record(tx, Target(*target))
    move = _move(record, epoch)
    doom_spaces(tx, [child.space for child in move.children])
    spaces = new_spaces(tx, len(move.children), NEVER_ORPHANED, chosen)
    children = tuple(
        replace(child, space=space, ordinal=record.ordinals + i)
        for i, (child, space) in enumerate(zip(move.children, spaces, strict=True))
    )
    new = replace(move, epoch=record.move_epoch + 1, children=children, beat_ms=now_ms)
    moves = tuple(new if one is move else one for one in record.moves)
    record = replace(
        record, moves=moves, move_epoch=new.epoch, ordinals=record.ordinals + len(children)
    )
    return save_container(tx, record), new.epoch


def beat(tx: Writer, data: tuple[Target, int, int]) -> None:
    """The runner is alive."""
    target, epoch, now_ms = data
    record = _record(tx, Target(*target))
    move = _move(record, epoch)
    moves = tuple(replace(one, beat_ms=now_ms) if one is move else one for one in record.moves)
    save_container(tx, replace(record, moves=moves))


def switch(tx: Writer, data: tuple[Target, int, int]) -> bytes:
    """The children are the container's ranges now, the parents are orphans."""
    target, epoch, now_ms = data
    record = _record(tx, Target(*target))
    move = _move(record, epoch)
    own_spaces(tx, [child.space for child in move.children])
    leave = [one for one in record.ranges if one.ordinal in move.parents]
    doom_spaces(tx, [one.space for one in leave])
    former = (
        *record.former,
        *(FormerRange(one.ordinal, one.space, one.start, one.end, now_ms) for one in leave),
    )
    stay = [one for one in record.ranges if one.ordinal not in move.parents]
    past = PastMove(move.parents, tuple(one.ordinal for one in move.children), now_ms)
    record = replace(
        record,
        ranges=(*stay, *move.children),
        moves=tuple(one for one in record.moves if one is not move),
        past_moves=(*record.past_moves, past)[-MOVES_REMEMBERED:],
        former=former[-FORMER_RANGES_REMEMBERED:],
    )
    _hand_down_shares(tx, record.rid, move)
    return save_container(tx, record)


def _hand_down_shares(tx: Writer, owner_rid: str, move: MoveRecord) -> None:
    """With RU/s set range by range, children get what their parents had: a split the half each, or
    the half of what the parent was promised; a merge the sum."""
    offer = find_offer(tx, owner_rid)
    if offer is None or not offer.shares:
        return
    shares = dict(offer.shares)
    promised = dict(offer.pending.shares) if offer.pending else {}
    had = [promised.pop(parent, shares.get(parent, 0.0)) for parent in move.parents]
    for parent in move.parents:
        shares.pop(parent, None)
    each = math.fsum(had) / len(move.children)
    shares.update({child.ordinal: each for child in move.children})
    pending = offer.pending and replace(offer.pending, shares=promised)
    store_offer(tx, replace(offer, shares=shares, pending=pending))


def cancel(tx: Writer, data: tuple[Target, int]) -> bytes:
    target, epoch = data
    record = _record(tx, Target(*target))
    move = _move(record, epoch)
    doom_spaces(tx, [child.space for child in move.children])
    moves = tuple(one for one in record.moves if one is not move)
    return save_container(tx, replace(record, moves=moves))


def find_move(record: ContainerRecord, epoch: int) -> MoveRecord:
    return _move(record, epoch)


HANDLERS: dict[str, Handler] = {
    "catalog.begin_move": Handler(begin),
    # A move that meets a full disk is given up, or ended if it has its copy: both give room back.
    "catalog.take_over_move": Handler(take_over, frees=always),
    "catalog.beat_move": Handler(beat, frees=always),
    "catalog.switch_move": Handler(switch, frees=always),
    "catalog.cancel_move": Handler(cancel, frees=always),
}
