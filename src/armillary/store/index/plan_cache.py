"""Compiled index plans, found again by the JSON they were made from.

A command carries the indexing policies as JSON, because it may run in another process; compiling
one takes far longer than using it, so each process keeps the last few.
"""

from functools import lru_cache

import orjson

from armillary.encoding.documents import SYSTEM_PROPERTIES
from armillary.encoding.models import model_named
from armillary.store.index.entries import Entries, IndexPlan, compile_index, index_entries
from armillary.store.index.policy import parse_policy, parse_unique_keys
from armillary.values import JSON


def policy_json(
    indexing_policy: JSON, unique_key_policy: JSON, others: JSON = None, model: str = "json"
) -> bytes:
    """One version of what an item's index entries are made by. Without `others`, as in all policies
    before there were such indexes, there are only range and composite ones; without a model, values
    are JSON."""
    parts = [indexing_policy, unique_key_policy]
    if model != "json":
        parts += [others, model]
    elif others is not None:
        parts.append(others)
    return orjson.dumps(parts)


@lru_cache(maxsize=256)
def plan_from(policy: bytes) -> IndexPlan:
    indexing_policy, unique_key_policy, *more = orjson.loads(policy)
    others, model = (*more, None, None)[:2]
    return compile_index(
        parse_policy(indexing_policy),
        parse_unique_keys(unique_key_policy),
        others,
        model_named(model or "json"),
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
