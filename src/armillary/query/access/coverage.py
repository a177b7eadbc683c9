"""Which indexes have entries of every item. An index is used for a path only while no item is
indexed under an older policy, or that policy covers the path as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armillary.store.index.kinds.base import OtherIndex
from armillary.store.index.paths import Path
from armillary.store.index.plan_cache import plan_from

if TYPE_CHECKING:
    from armillary.query.run.items import StoreView


def covers(view: StoreView, path: Path) -> bool:
    state = view.state
    if (path and path[0] in view.computed) or not state.plan.covers(path):
        return False
    if not view.meta.stale_items:
        return True
    return all(plan_from(policy).covers(path) for _, policy in state.policies)


def other_index(view: StoreView, kind: bytes, path: Path) -> OtherIndex | None:
    """The index of a kind in which every item has its entries of a path."""
    state = view.state
    found = state.plan.other(kind, path)
    if found is None or path[0] in view.computed:
        return None
    if view.meta.stale_items:
        others = (plan_from(policy).other(kind, path) for _, policy in state.policies)
        return found if all(other == found for other in others) else None
    return found
