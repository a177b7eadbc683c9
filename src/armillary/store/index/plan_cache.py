"""Compiled index plans, found again by the JSON they were made from.

A command carries the indexing policies as JSON, because it may run in another process; compiling
one takes far longer than using it, so each process keeps the last few.
"""

from functools import lru_cache

import orjson

from armillary.encoding.documents import SYSTEM_PROPERTIES
from armillary.store.index.entries import Entries, IndexPlan, compile_index, index_entries
from armillary.store.index.policy import parse_policy, parse_unique_keys
from armillary.values import JSON


def policy_json(indexing_policy: JSON, unique_key_policy: JSON, others: JSON = None) -> bytes:
    """One version of what an item's index entries are made by. Without `others`, as in all policies
    before there were such indexes, there are only range and composite ones."""
    parts = [indexing_policy, unique_key_policy]
    return orjson.dumps(parts if others is None else [*parts, others])


@lru_cache(maxsize=256)
def plan_from(policy: bytes) -> IndexPlan:
    indexing_policy, unique_key_policy, *others = orjson.loads(policy)
    return compile_index(
        parse_policy(indexing_policy),
        parse_unique_keys(unique_key_policy),
        others[0] if others else None,
    )


def plan_of(policies: tuple[tuple[int, bytes], ...], version: int) -> IndexPlan:
    """The plan an item was indexed under, newest first because that is nearly always it."""
    for known, policy in reversed(policies):
        if known == version:
            return plan_from(policy)
    raise AssertionError(f"indexing policy {version} is not among {[v for v, _ in policies]}")


def entries_of(plan: IndexPlan, text: bytes) -> Entries:
    """The entries of a stored item."""
    return item_entries(plan, orjson.loads(text))


def item_entries(plan: IndexPlan, item: dict[str, JSON]) -> Entries:
    """The same, of its parsed form. Its system properties were not there when they were made."""
    for name in SYSTEM_PROPERTIES:
        item.pop(name, None)
    return index_entries(plan, item)
