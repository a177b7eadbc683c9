"""What a write changes in the indexes of an item, without indexing what stays.

    was   {"a":1,"b":2,"_rid":…}      only /b is walked, in both versions
    now   {"a":1,"b":3}               was: /b 2      now: /b 3

Range entries follow from one property of the root each, so properties with the same JSON text have
the same entries. The texts are compared as bytes: both were written by us, in one form for each
value. A policy with other indexes, and items that have other paths now, take the general path:
`entries_of` the old version. HOT: every replace and upsert; tests/property/test_differences.py
compares the two.
"""

from __future__ import annotations

import msgspec
import orjson

from armillary.encoding.documents import SYSTEM_PROPERTIES
from armillary.store.index.entries import Entries, IndexPlan, walk_item
from armillary.values import JSON

_AFTER_BODY = b',"%b":' % SYSTEM_PROPERTIES[0].encode()
_SYSTEM_NAMES = frozenset(SYSTEM_PROPERTIES)
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def differences(
    plan: IndexPlan, was: bytes, now: bytes, entries: Entries
) -> tuple[Entries, Entries] | None:
    """Of the stored text of an item and of its next body, whose entries are given: entries of
    either that the other may not have. None: not to be told so simply."""
    if plan.composites or plan.unique_keys or plan.others:
        return None
    if was.startswith(now[:-1]) and was.startswith(_AFTER_BODY, len(now) - 1):
        return _some(entries, []), _some(entries, [])
    before, after = _parts(was), _parts(now)
    old: dict[str, JSON] = {
        name: orjson.loads(bytes(part))
        for name, part in before.items()
        if after.get(name) != part and name not in _SYSTEM_NAMES
    }
    new: dict[str, JSON] = {
        name: orjson.loads(bytes(part)) for name, part in after.items() if before.get(name) != part
    }
    old_keys, old_paths = walk_item(plan, old)
    new_keys, new_paths = walk_item(plan, new)
    if set(old_paths) != set(new_paths):
        return None
    return _some(entries, old_keys), _some(entries, new_keys)


def _some(entries: Entries, keys: list[bytes]) -> Entries:
    return Entries(ix=keys, shape=entries.shape)
