"""A transactional batch made ready: every operation as plain data, before any transaction begins.

    create a · patch a · rename a → b · patch b      each patch sees what those before it will make

An operation that can't be prepared (a bad id, a body too deep) becomes one that fails at its place,
so that the caller hears which one it was and the ones before it had their turn. Facts: nosql-rest
6.5.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

import orjson

from armillary.budget import Budget
from armillary.encoding.documents import check_id
from armillary.encoding.partition_key import KeyValues
from armillary.errors import BadInput, DbError, TooLarge
from armillary.limits import BATCH_BYTES_MAX, BATCH_OPERATIONS_MAX
from armillary.store.catalog.state import ContainerState
from armillary.store.items.preparation import Operation, Seen, prepare, prepare_patch, required
from armillary.store.items.requests import Failed, Op, from_refusal, to_refusal
from armillary.store.rows.secondary import id_part
from armillary.values import UNDEFINED

WITH_BODY: Final = frozenset({"create", "upsert", "replace"})


def check_batch(operations: Sequence[Operation]) -> None:
    if not operations:
        raise BadInput("Batch request has no operations.")
    if len(operations) > BATCH_OPERATIONS_MAX:
        raise BadInput("Batch request has more operations than what is supported.")


def batch_error(failed: Failed) -> DbError:
    return from_refusal(failed.refusal)


def batch_key(
    state: ContainerState, operations: Sequence[Operation], given: KeyValues, random: Random
) -> KeyValues:
    """The logical partition of a batch: as given, or, where the client leaves a synthetic key to
    the server, that of the first operation with a body. The others are compared with it later."""
    if state.definition.synthetic_key is None or given != (UNDEFINED,):
        return given
    for operation in operations:
        if operation.kind in WITH_BODY:
            return prepare(state, operation, None, random).key
    return required(None)


def batch_ops(
    state: ContainerState,
    operations: Sequence[Operation],
    given: KeyValues,
    random: Random,
    see: Callable[[Operation], Seen],
    budget: Budget,
) -> list[Op]:
    """Each operation prepared. `see` looks up the item of a patch that the batch itself has not
    touched."""
    made: dict[str, dict[str, Any] | None] = {}
    ops: list[Op] = []
    for operation in operations:
        budget.check()
        try:
            if operation.kind == "patch":
                check_id(operation.id)
                known = operation.id in made
                seen = Seen(made[operation.id], None) if known else see(operation)
                patched = prepare_patch(state, operation, seen)
                op, item = patched.op, patched.item
            else:
                prepared = prepare(state, operation, given, random)
                op, item = prepared.op, prepared.item
        except (BadInput, TooLarge) as error:
            op, item = _refused(error), None
        if op.kind != "read":
            made[op.id] = None
        if item is not None:
            made[op.new_id] = item
        ops.append(op)
    if sum(map(_sent_bytes, operations, ops)) > BATCH_BYTES_MAX:
        raise TooLarge
    return ops


def _refused(error: DbError) -> Op:
    # Without the id, which may be what is wrong, so that it can't stand in a key.
    return Op("fail", "", id_part(""), refusal=to_refusal(error))


def _sent_bytes(operation: Operation, op: Op) -> int:
    """What a caller sends for one operation: of a patch not the item that comes out of it."""
    if operation.kind != "patch":
        return len(op.text)
    return len(orjson.dumps(operation.patch, default=str, option=orjson.OPT_NON_STR_KEYS))
