"""What a write changes in the indexes of an item.

    was   {"a":1,"b":2,"_rid":…}      only /b is walked, in both versions
    now   {"a":1,"b":3}               gone: /b 2      new: /b 3

The entries of the new version are known: who sent it made them. Those of the old one are made here.
A small item of JSON is walked whole: that takes less than finding out what differs. Of others only
the properties that differ are: range entries follow from one property of the root each, so
properties with the same JSON text have the same entries. The texts are compared as bytes: both were
written by us, in one form for each value. A policy with other indexes, and items that have other
paths now, take the general path: `entries_of` the old version. HOT: every replace and upsert;
tests/property/test_differences.py compares the two.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec
import orjson

from armillary.encoding.documents import SYSTEM_PROPERTIES, cut_system, without_system
from armillary.encoding.framed_model import SHARED_END
from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.terms import ARRAY_TERM, OBJECT_TERM
from armillary.store.index.entries import Entries, IndexPlan, shape_of_paths, walk_item
from armillary.store.index.kinds.registry import changed_indexes
from armillary.values import JSON

#: Of the stored JSON: up to this an item is walked whole.
WALKED_BYTES: Final = 3_000

_AFTER_BODY = b',"%b":' % SYSTEM_PROPERTIES[0].encode()
_SYSTEM_NAMES = frozenset(SYSTEM_PROPERTIES)
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

_NODE_TERMS = (ARRAY_TERM, OBJECT_TERM)
_NODE_BYTES = 1 + 8 + 1  # kind, path, type: the entry of an array or object, not of a leaf
_FRAMED_NODE_BYTES = _NODE_BYTES + len(SHARED_END)  # the same under a framed value model


def differences(
    plan: IndexPlan, was: bytes, body_bytes: int, now: bytes, entries: Entries
) -> tuple[set[bytes], set[bytes]] | None:
    """Of the stored text of an item, with the length of its body, and of its next body, whose
    entries are given: the range entries that only the one has, and those that only the other has.
    None: not to be told so simply."""
    if not plan.is_plain:
        return None
    if was.startswith(now[:-1]) and was.startswith(_AFTER_BODY, len(now) - 1):
        return set(), set()
    if len(was) <= WALKED_BYTES and plan.model is JSON_MODEL:
        item = without_system(orjson.loads(cut_system(was, 0, body_bytes)))
        keys, paths = walk_item(plan, item)
        if shape_of_paths(plan, tuple(paths)) != entries.shape:
            return None
        old, new = set(keys), set(entries.ix)
        return old - new, new - old
    return of_parts(plan, _parts(was), _parts(now))


def of_parts(
    plan: IndexPlan, before: dict[str, msgspec.Raw], after: dict[str, msgspec.Raw]
) -> tuple[set[bytes], set[bytes]] | None:
    was: dict[str, JSON] = {
        name: orjson.loads(bytes(part))
        for name, part in before.items()
        if after.get(name) != part and name not in _SYSTEM_NAMES
    }
    now: dict[str, JSON] = {
        name: orjson.loads(bytes(part)) for name, part in after.items() if before.get(name) != part
    }
    return differences_of(plan, was, now)


def differences_of(
    plan: IndexPlan, was: dict[str, JSON], now: dict[str, JSON]
) -> tuple[set[bytes], set[bytes]] | None:
    """The same, of the properties that differ."""
    old_keys, old_paths = walk_item(plan, was)
    new_keys, new_paths = walk_item(plan, now)
    if old_paths != new_paths and set(old_paths) != set(new_paths):
        return None
    old, new = set(old_keys), set(new_keys)
    return old - new, new - old


def changed_leaves(was: Entries, now: Entries) -> tuple[int, int]:
    """(removed, added) leaf entries: what a write is charged for besides its size."""
    before, after = set(was.ix), set(now.ix)
    removed, added = leaves(before - after), leaves(after - before)
    if was.others or now.others:
        less, more = changed_indexes(was.others, now.others)
        return removed + less, added + more
    return removed, added


def leaves(entries: Collection[bytes]) -> int:
    if min(map(len, entries), default=0) > _FRAMED_NODE_BYTES:
        return len(entries)
    short = [entry for entry in entries if len(entry) <= _FRAMED_NODE_BYTES]
    return len(entries) - sum(map(_is_node, short))


def _is_node(entry: bytes) -> bool:
    if len(entry) == _NODE_BYTES:
        return entry[-1:] in _NODE_TERMS
    return len(entry) == _FRAMED_NODE_BYTES and entry.endswith(SHARED_END)
