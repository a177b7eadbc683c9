"""What each operation on an item means: create, upsert, replace, delete, read. Facts: nosql-rest
6.1 to 6.5.

    1  find      id → rid → item; an expired item counts as absent
    2  check     preconditions, unique keys, hash collisions, the size of the logical partition
    3  change    through `Work`

A single operation checks everything before its first write, so that a refusal disturbs no other
in its group. A batch runs in a scope that is undone alone, and answers `Failed` instead of raising.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, TypeVar, TypeVarTuple

from msgspec.structs import replace

from armillary import steps
from armillary.encoding.etags import etag_text, matches
from armillary.engine.base import Handler, Row, Writer
from armillary.errors import (
    Conflict,
    DbError,
    Fenced,
    NotFound,
    NotModified,
    PreconditionFailed,
    Stale,
    UniqueKeyConflict,
)
from armillary.store.items.requests import (
    Context,
    Done,
    Failed,
    Key,
    Op,
    Refusal,
    from_refusal,
    to_refusal,
)
from armillary.store.items.transaction import Found, Work
from armillary.store.rows import layout

WRITE: Final = "items.write"
BULK: Final = "items.bulk"

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
BulkData: TypeAlias = tuple[Context, Sequence[tuple[Key, Op]], bool]
"""With whether the caller wants the items as they are stored."""
BulkAnswer: TypeAlias = tuple[list[Done | None], dict[int, Refusal]]
"""By position; those that were refused are None in the list."""


def run_one(tx: Writer, data: tuple[Context, Key, Sequence[Op]]) -> Done:
    """A single operation."""
    context, key, (op,) = data
    work = Work(tx, context)
    done = run_operation(work, key, op)
    work.finish()
    return done


def run_batch(tx: Writer, data: tuple[Context, Key, Sequence[Op]]) -> list[Done] | Failed:
    """Operations in one logical partition: all or nothing, one LSN."""
    context, key, ops = data
    work = Work(tx, context)
    done: list[Done] = []
    try:
        with tx.nested():
            for op in ops:
                done.append(run_operation(work, key, op))
                steps.reached("batch.operation")
            work.finish()
    except Stale:
        raise
    except DbError as error:
        return Failed(len(done), to_refusal(error))
    return done


def run_writes(
    tx: Writer, many: Sequence[tuple[Context, Key, Sequence[Op]]]
) -> list[Done | DbError]:
    """Single operations of one group."""
    return run_group(tx, many, lambda work, key, ops: run_apart(work, key, ops[0]))


def run_group(
    tx: Writer,
    many: Sequence[tuple[Context, *Ts]],
    run: Callable[[Work, *Ts], T | DbError],
) -> list[T | DbError]:
    """Commands of one group, each by `run`, which undoes what a refused one changed. Meta, logical
    partitions and shapes are read and written once for all of them."""
    work: Work | None = None
    answers: list[T | DbError] = []
    for one in many:
        context, rest = one[0], one[1:]
        try:
            if work is None:
                work = Work(tx, context)
            else:
                work.adopt(context)
        except Fenced as error:
            answers.append(error)
            continue
        answers.append(run(work, *rest))
    if work is not None:
        work.finish_many()
    return answers


def run_bulk(tx: Writer, data: BulkData) -> BulkAnswer:
    """Independent operations on any keys of the space: each happens or is refused by itself."""
    context, pairs, wants_text = data
    work = Work(tx, context)
    done: list[Done | None] = []
    refused: dict[int, Refusal] = {}
    for at, (key, op) in enumerate(pairs):
        answer = run_apart(work, key, op)
        if isinstance(answer, DbError):
            refused[at] = to_refusal(answer)
            done.append(None)
        else:
            done.append(answer if wants_text else replace(answer, text=b""))
    work.finish_many()
    return done, refused


# HOT: once per write of a group.
def run_apart(work: Work, key: Key, op: Op) -> Done | DbError:
    """One of many that share their rows of totals: what a refused one changed is undone."""
    try:
        stored = work.find(key, op.id, op.id_part)
        live = work.live(stored)
        if live is stored and _is_alone(op):
            # When it is refused it has changed nothing, so that nothing is kept to undo it.
            done = _run_found(work, key, op, stored, live)
            work.advance()
            return done
    except DbError as error:
        return error
    saved = work.save_key(key.epk_key)
    try:
        with work.tx.nested():
            done = _run_found(work, key, op, stored, live)
    except DbError as error:
        work.restore_key(key.epk_key, saved)
        return error
    if op.kind != "read":
        work.advance()
    return done


def _is_alone(op: Op) -> bool:
    """Whether an operation that is not on an expired item changes no other item."""
    return (
        op.kind in PUTTING
        and op.entries is not None
        and not op.entries.ux
        and op.id_part == op.new_id_part
    )


def run_operation(work: Work, key: Key, op: Op) -> Done:
    stored = work.find(key, op.id, op.id_part)
    return _run_found(work, key, op, stored, work.live(stored))


def _run_found(work: Work, key: Key, op: Op, stored: Found | None, live: Found | None) -> Done:
    if op.expect_lsn is not None and op.expect_lsn != (live.header.lsn if live else 0):
        raise Stale
    return OPERATIONS[op.kind](work, key, op, stored, live)


def _create(work: Work, key: Key, op: Op, stored: Found | None, live: Found | None) -> Done:
    if live is not None:
        if op.if_none_match is not None and matches(op.if_none_match, _etag(live)):
            raise PreconditionFailed
        raise Conflict
    return _insert(work, key, op, stored)


def _upsert(work: Work, key: Key, op: Op, stored: Found | None, live: Found | None) -> Done:
    if live is None:
        return _insert(work, key, op, stored)
    if op.if_none_match is not None and matches(op.if_none_match, _etag(live)):
        raise PreconditionFailed
    return _overwrite(work, key, op, live)


def _replace(work: Work, key: Key, op: Op, stored: Found | None, live: Found | None) -> Done:
    if live is None:
        raise NotFound
    return _overwrite(work, key, op, live)


def _delete(work: Work, key: Key, op: Op, stored: Found | None, live: Found | None) -> Done:
    if live is None:
        raise NotFound
    _check_match(op, live)
    was = work.indexed(live)
    work.remove_item(live, was)
    return Done(
        "deleted",
        b"",
        "",
        work.lsn,
        old_bytes=live.header.body_bytes,
        leaves_removed=was.entries.leaves,
    )


def _read(work: Work, key: Key, op: Op, stored: Found | None, live: Found | None) -> Done:
    if live is None:
        raise NotFound
    _check_match(op, live)
    if op.if_none_match is not None and matches(op.if_none_match, _etag(live)):
        raise NotModified(etag=_etag(live))
    return Done("read", live.text, _etag(live), live.header.lsn, old_bytes=live.header.body_bytes)


def _fail(work: Work, key: Key, op: Op, stored: Found | None, live: Found | None) -> Done:
    assert op.refusal is not None
    raise from_refusal(op.refusal)


OPERATIONS: dict[str, Callable[[Work, Key, Op, Found | None, Found | None], Done]] = {
    "create": _create,
    "upsert": _upsert,
    "replace": _replace,
    "delete": _delete,
    "read": _read,
    "fail": _fail,
}


PUTTING: Final = frozenset({"create", "upsert", "replace"})


def _insert(work: Work, key: Key, op: Op, expired: Found | None) -> Done:
    """A new item. What lies in its way and is expired goes in the same transaction."""
    work.check_collision(key)
    assert op.entries is not None
    if expired is not None or op.entries.ux:
        gone = _expired_rivals(work, key, op, None)
        if expired is not None:
            gone[expired.rid] = expired
        for rival in gone.values():
            work.remove_item(rival, work.indexed(rival), expired=True)
    text, etag, leaves = work.add_item(key, op)
    return Done("created", text, etag, work.lsn, 0, len(op.text), 0, leaves)


def _overwrite(work: Work, key: Key, op: Op, live: Found) -> Done:
    if op.if_match is not None:
        _check_match(op, live)
    assert op.entries is not None
    gone = _expired_rivals(work, key, op, live) if op.entries.ux else {}
    if op.new_id_part != op.id_part:
        holder = work.find(key, op.new_id, op.new_id_part)
        if holder is not None and not work.is_expired(holder):
            raise Conflict
        if holder is not None:
            gone[holder.rid] = holder
    for rival in gone.values():
        work.remove_item(rival, work.indexed(rival), expired=True)
    text, etag, removed, added = work.replace_item(key, op, live)
    sizes = live.header.body_bytes, len(op.text)
    return Done("replaced", text, etag, work.lsn, *sizes, removed, added)


def _expired_rivals(work: Work, key: Key, op: Op, own: Found | None) -> dict[bytes, Found]:
    """Items that hold one of our unique keys: a live one refuses the write, expired ones may go."""
    rivals: dict[bytes, Found] = {}
    assert op.entries is not None
    for entry in op.entries.ux:
        rid = work.tx.get(layout.UX + key.epk_key + entry)
        if rid is None or (own is not None and rid == own.rid):
            continue
        rival = work.load(rid)
        if not work.is_expired(rival):
            raise UniqueKeyConflict
        rivals[rid] = rival
    return rivals


def _check_match(op: Op, live: Found) -> None:
    if op.if_match is not None and not matches(op.if_match, _etag(live)):
        raise PreconditionFailed


def _etag(found: Found) -> str:
    return etag_text(found.header.etag)


# --- what an engine with round trips can fetch ahead --------------------------------------------


def keys_of(data: tuple[Context, Key, Sequence[Op]]) -> list[bytes]:
    _, key, ops = data
    keys = [layout.META, layout.LP + key.epk_key]
    for op in ops:
        if op.entries is not None:
            keys += (layout.UX + key.epk_key + entry for entry in op.entries.ux)
            if op.entries.shape:
                keys += (layout.SHAPE + op.entries.shape,)
    return keys


def vias_of(data: tuple[Context, Key, Sequence[Op]]) -> list[Row]:
    _, key, ops = data
    parts = {part for op in ops for part in (op.id_part, op.new_id_part) if part}
    return [(layout.ID + key.epk_key + part, layout.DOC) for part in parts]


def _bulk_keys(data: BulkData) -> list[bytes]:
    context, pairs, _ = data
    return [wanted for key, op in pairs for wanted in keys_of((context, key, [op]))]


def _bulk_vias(data: BulkData) -> list[Row]:
    context, pairs, _ = data
    return [wanted for key, op in pairs for wanted in vias_of((context, key, [op]))]


# --- what may run on a full store -----------------------------------------------------------------


def only_deletes(data: tuple[Context, Key, Sequence[Op]]) -> bool:
    return all(op.kind == "delete" for op in data[2])


def _bulk_only_deletes(data: BulkData) -> bool:
    return all(op.kind == "delete" for _, op in data[1])


HANDLERS: dict[str, Handler] = {
    BULK: Handler(run_bulk, _bulk_keys, _bulk_vias, _bulk_only_deletes),
    WRITE: Handler(run_one, keys_of, vias_of, only_deletes, run_writes),
    "items.batch": Handler(run_batch, keys_of, vias_of, only_deletes),
}
