"""From what a caller sends to the plain data of a write: everything that needs no transaction.

    body → parse, normalise, check → partition key → index entries → Op

Patches are computed here too, on what the caller saw, and guarded by the LSN of what was seen.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import TypeAlias

import msgspec

from armillary.encoding.documents import (
    Body,
    Source,
    changed_body,
    check_id,
    parse_body,
    without_system,
)
from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.partition_key import KeyValues, check_key, key_of, same_key
from armillary.encoding.paths import extract, format_path
from armillary.errors import BadInput, DbError, NotFound, PartitionKeyMismatch, PreconditionFailed
from armillary.store.catalog.definitions import ContainerDefinition
from armillary.store.catalog.state import ContainerState
from armillary.store.index.differences import differences_of
from armillary.store.index.entries import Entries, index_entries
from armillary.store.items.patch import apply_checked, changed_pointers, check_operations
from armillary.store.items.requests import Op, to_refusal
from armillary.store.rows.secondary import id_part
from armillary.values import JSON, UNDEFINED

Predicate: TypeAlias = Callable[[dict[str, JSON]], bool]


class Operation(msgspec.Struct, frozen=True):
    """One item operation as a caller asks for it."""

    kind: str
    """create, upsert, replace, patch, delete, read"""
    id: str = ""
    """Of the item to work on; create and upsert find it in the body."""
    body: Source | None = None
    if_match: str | None = None
    if_none_match: str | None = None
    patch: tuple[Mapping[str, JSON], ...] = ()
    condition: Predicate | None = None
    body_for: Callable[[ContainerDefinition], Body] | None = None
    """Makes the body, in the form of the model, by the definition at hand, which may be newer than
    the caller's: hidden members of the items of a MongoDB collection follow its indexes."""
    keyed_by: ContainerDefinition | None = None
    """The definition by which the caller took the key out of the item that `body_for` makes. While
    it is the one at hand, the key is not taken out once more."""


class Prepared(msgspec.Struct, frozen=True):
    key: KeyValues
    op: Op
    item: dict[str, JSON] | None


def prepare(
    state: ContainerState, operation: Operation, given: KeyValues | None, random: Random
) -> Prepared:
    """Everything but patch, which needs to see the item first."""
    match operation.kind:
        case "create" | "upsert" | "replace":
            return _prepare_body(state, operation, given, random)
        case "delete" | "read":
            check_id(operation.id)
            op = Op(
                operation.kind,
                operation.id,
                id_part(operation.id),
                if_match=operation.if_match,
                if_none_match=operation.if_none_match,
            )
            return Prepared(required(given), op, None)
        case kind:
            raise BadInput(f"Unknown item operation '{kind}'.")


def required(given: KeyValues | None) -> KeyValues:
    if given is None:
        raise BadInput("PartitionKey value must be supplied for this operation.")
    return given


def _prepare_body(
    state: ContainerState, operation: Operation, given: KeyValues | None, random: Random
) -> Prepared:
    is_made = operation.body_for is not None
    if operation.body_for is not None:
        body = operation.body_for(state.definition)
    elif operation.body is not None:
        body = parse_body(operation.body)
    else:
        raise BadInput(f"The {operation.kind} operation needs the item.")
    if given is not None:
        given = check_key(given, state.definition.partition_key)
    synthetic = state.definition.synthetic_key
    if synthetic is not None:
        if given == (UNDEFINED,):
            given = None  # what a client says that looked for the key in an item without it
        stored = UNDEFINED if given is None else given[0]
        drawn = synthetic.is_random and extract(body.item, synthetic.path) is UNDEFINED
        if operation.kind == "replace" and drawn:
            stored = required(given)[0]  # by chance we would hardly find the item again
        if operation.kind == "upsert" and drawn and given is None:
            path = format_path(synthetic.path)
            raise BadInput(
                f"An upsert needs the partition key '{path}': its suffix is random, so that the "
                "item could not be found by the rest, and there would be two. Send the item with "
                f"its '{path}' to replace it, or create it."
            )
        body = parse_body(synthetic.apply(body.item, random, stored=stored))
    if not is_made:
        state.model.check_body(body.item)
    if given is not None and operation.keyed_by is state.definition:
        key = given
    else:
        key = _key_of(body, state, given)
    target = operation.id if operation.kind == "replace" else body.id
    return Prepared(key, body_op(state, operation.kind, target, body, operation), body.item)


def _key_of(body: Body, state: ContainerState, given: KeyValues | None) -> KeyValues:
    definition = state.definition.partition_key
    paths = definition.paths
    if len(paths) == 1 == len(paths[0]) and state.model is JSON_MODEL:
        value = body.item.get(paths[0][0])
        if type(value) is str:  # nearly every key: what follows would find the same
            if given is None:
                return check_key((value,), definition)
            if given == (value,):
                return given
    key = key_of(body.item, definition, state.model.key)
    if given is not None and not same_key(given, key) and not same_key(given, _nulls(key)):
        raise PartitionKeyMismatch
    return key


def _nulls(key: KeyValues) -> KeyValues:
    """A hierarchical key as the Python SDK sends it for an item without one of its levels."""
    return key if len(key) < 2 else tuple(None if one is UNDEFINED else one for one in key)


def body_op(
    state: ContainerState,
    kind: str,
    target: str,
    body: Body,
    operation: Operation,
    expect_lsn: int | None = None,
    differ: tuple[set[bytes], set[bytes]] | None = None,
) -> Op:
    """`differ`: the range entries that only the version `expect_lsn` has, and that only this one
    has."""
    part = new_part = id_part(body.id)
    if target != body.id:  # which is checked already
        part = id_part(check_id(target))
    gone = None
    if differ is None:
        entries = index_entries(state.plan, body.item)
    else:
        gone, entries = list(differ[0]), Entries(ix=list(differ[1]), shape=b"")
    return Op(
        kind,
        target,
        part,
        text=body.text,
        new_id=body.id,
        new_id_part=new_part,
        ttl=body.ttl or 0,
        entries=entries,
        if_match=operation.if_match,
        if_none_match=operation.if_none_match,
        expect_lsn=expect_lsn,
        gone=gone,
    )


# --- patch --------------------------------------------------------------------------------------


class Seen(msgspec.Struct, frozen=True):
    """An item as the caller saw it: from the store (its LSN), or from earlier in the same batch. A
    Struct, because a frozen dataclass takes ten times as long to make."""

    item: dict[str, JSON] | None
    lsn: int | None
    """None: made earlier in this batch, so the store's version does not matter."""
    policy: int = 0
    """The version of the indexing policy that its entries were made by; 0: not known."""


class Patched(msgspec.Struct, frozen=True):
    op: Op
    """The replace that the patch comes to; or the refusal it comes to, which is as good only while
    the item is still the one that was seen."""
    item: dict[str, JSON] | None
    """After it."""
    paths: int = 0
    """How many it changes, for the charge."""


def prepare_patch(state: ContainerState, operation: Operation, seen: Seen) -> Patched:
    check_id(operation.id)
    try:
        if seen.item is None:
            raise NotFound
        if operation.condition is not None and not operation.condition(seen.item):
            raise PreconditionFailed
        plain = without_system(seen.item)
        checked = check_operations(operation.patch)
        item = apply_checked(plain, checked, protected=state.definition.partition_key.paths)
        pointers = changed_pointers(checked)
        changed = {pointer[0] for pointer in pointers}
        synthetic = state.definition.synthetic_key
        if synthetic is not None:  # a part of the key may have changed
            item = synthetic.apply(item, stored=extract(plain, synthetic.path))
            changed |= item.keys()
        body = changed_body(item, changed)
        state.model.check_body(body.item)
    except DbError as error:
        part = id_part(operation.id)
        refusal = to_refusal(error)
        return Patched(Op("fail", operation.id, part, expect_lsn=seen.lsn, refusal=refusal), None)
    differ = None
    if seen.lsn and seen.policy == state.record.policy and state.plan.is_plain:
        was = {name: plain[name] for name in changed if name in plain}
        now = {name: body.item[name] for name in changed if name in body.item}
        differ = differences_of(state.plan, was, now)
    op = body_op(state, "replace", operation.id, body, operation, seen.lsn, differ)
    return Patched(op, body.item, len(pointers))
