"""Batches of one logical partition on their way from a protocol that does not read back what it
wrote: all or nothing, one LSN, as `operations.run_batch`.

Batches of one group share their rows of totals, as single writes do; their answers travel without
the items, and without a pickle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from armillary import steps
from armillary.engine.base import Handler, Writer
from armillary.errors import DbError, Stale
from armillary.store.items import operations
from armillary.store.items.requests import Context, Done, Failed, Key, Op, to_refusal
from armillary.store.items.transaction import Work

ATOMIC: Final = "items.atomic"

AtomicData: TypeAlias = tuple[Context, Key, Sequence[Op]]
AtomicAnswer: TypeAlias = tuple[list[Done], Failed | None]
"""What each did, or which of them was refused."""


def run_alone(tx: Writer, data: AtomicData) -> AtomicAnswer:
    (answer,) = run_many(tx, [data])
    if isinstance(answer, DbError):
        raise answer
    return answer


def run_many(tx: Writer, many: Sequence[AtomicData]) -> list[AtomicAnswer | DbError]:
    return operations.run_group(tx, many, run_on)


def run_on(work: Work, key: Key, ops: Sequence[Op]) -> AtomicAnswer | DbError:
    """One of several that share their rows of totals: what a refused one changed is undone."""
    saved = work.save_key(key.epk_key)
    done: list[Done] = []
    try:
        with work.tx.nested():
            for op in ops:
                done.append(replace(operations.run_operation(work, key, op), text=b""))
                steps.reached("batch.operation")
    except DbError as error:
        work.restore_key(key.epk_key, saved)
        return error if isinstance(error, Stale) else ([], Failed(len(done), to_refusal(error)))
    if any(op.kind != "read" for op in ops):
        work.advance()
    return done, None


HANDLERS: dict[str, Handler] = {
    ATOMIC: Handler(
        run_alone, operations.keys_of, operations.vias_of, operations.only_deletes, run_many
    )
}
