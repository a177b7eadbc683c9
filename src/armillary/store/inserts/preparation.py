"""The caller's side: items made ready for one command, without an operation for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import orjson

from armillary.encoding.documents import made_text
from armillary.limits import ITEM_BYTES_MAX
from armillary.partition.request_units import Coefficients, create_ru
from armillary.store.catalog.state import ContainerState
from armillary.store.index.entries import BSON, IndexPlan, index_entries, shape_of_paths
from armillary.store.index.plan import Node
from armillary.store.inserts.requests import NewItems
from armillary.store.rows.secondary import ID_CUT_BYTES
from armillary.values import JSON

_ABSENT: Final = object()


class Ready(NamedTuple):
    items: NewItems
    leaves: list[int]
    """Of each item: what indexing it costs."""

    def cost_ru(self, profile: Coefficients) -> float:
        sizes = zip(map(len, self.items.texts), self.leaves, strict=True)
        if len(self.leaves) == 1:
            return create_ru(*next(sizes), profile=profile)
        alike = Counter(sizes)
        return sum(create_ru(*pair, profile=profile) * count for pair, count in alike.items())


def is_plain(state: ContainerState) -> bool:
    """Whether items of this container have range entries only."""
    plan = state.plan
    return not (plan.keyed or plan.unique_keys or plan.others or state.definition.synthetic_key)


def ready(state: ContainerState, items: Sequence[dict[str, JSON]]) -> Ready | None:
    """Items that a value model of ours made, of a plain container. None: one of them has to go as
    an operation. Raises what `made_text` raises, for any of them."""
    plan = state.plan
    id_parts: list[bytes] = []
    for item in items:
        name: Any = item["id"]
        part = name.encode()
        if len(part) > ID_CUT_BYTES:
            return None
        id_parts.append(b"\x00" + part)
    texts = _all_texts(items)
    ix, leaves, shapes = _all_entries(plan, items)
    ttls: list[Any] = [item.get("ttl") or 0 for item in items]
    return Ready(NewItems(id_parts, texts, ix, shapes, ttls), leaves)


def _all_texts(items: Sequence[dict[str, JSON]]) -> list[bytes]:
    """`made_text` of each, without a call of ours for those that are as they should be."""
    try:
        texts = [*map(orjson.dumps, items)]
    except orjson.JSONEncodeError:
        texts = []
    if not texts or max(map(len, texts)) > ITEM_BYTES_MAX:
        return [*map(made_text, items)]  # which says what is wrong
    return texts


# HOT: once per item of an insert of many; `index_entries` is the reference.
def _all_entries(
    plan: IndexPlan, items: Sequence[dict[str, JSON]]
) -> tuple[list[list[bytes]], list[int], list[bytes]]:
    """Entries, how many of them are leaves, shape; of each item."""
    named = _named(plan)
    term, tags = plan.model.term, plan.model.inner_names
    ix: list[list[bytes]] = []
    leaves: list[int] = []
    shapes: list[bytes] = []
    last: list[bytes] = []
    shape = shape_of_paths(plan, ())
    for item in items:
        keys: list[bytes] = []
        is_walked = named is None
        hashes: list[bytes] = []
        for name, child in named or ():
            value: Any = item.get(name, _ABSENT)
            kind = type(value)
            if kind is list or (
                kind is dict and (len(value) != 1 or next(iter(value)) not in tags)
            ):
                is_walked = True  # there are entries inside
                break
            if value is not _ABSENT and child.included:
                hashes.append(child.hash)
                keys.append(child.prefix + term(value))
        if is_walked:
            entries = index_entries(plan, item)
            ix.append(entries.ix)
            leaves.append(entries.leaves)
            shapes.append(entries.shape)
            continue
        if hashes != last:
            shape, last = shape_of_paths(plan, tuple(hashes)), hashes
        ix.append(keys)
        leaves.append(len(keys))
        shapes.append(shape)
    return ix, leaves, shapes


def _named(plan: IndexPlan) -> list[tuple[str, Node]] | None:
    """The members that have entries, where the policy names them all."""
    if plan.model.name != BSON or plan.named is None:
        return None
    root = plan.root
    return [(name, root.children.get(name) or plan.child(root, name)) for name in plan.named]
