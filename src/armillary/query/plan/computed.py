"""Properties of items that are expressions: how a plan and the decoder take them.

Wherever a plan says `c.name` of the item itself and `name` is computed, the expression is evaluated
instead of looking at the item. Definitions are SQL texts: `sql/computed.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from armillary.query.expr.decoding import Path, paths_in
from armillary.query.expr.evaluate import Computed
from armillary.query.plan.nodes import Plan


def with_computed(plan: Plan, computed: Mapping[str, Computed]) -> Plan:
    """The plan, in which the names of computed properties mean what they stand for. Only where
    items are read: the rows of an inner plan are not items.
    """
    if not computed:
        return plan
    if plan.base is not None:
        return replace(plan, base=with_computed(plan.base, computed))
    return replace(plan, computed=computed)


def widened(
    paths: frozenset[Path] | None, computed: Mapping[str, Computed]
) -> frozenset[Path] | None:
    """What has to be decoded of an item so that these paths can be evaluated."""
    if paths is None:
        return None
    for name in {path[0] for path in paths} & computed.keys():
        more = paths_in(computed[name].expr, frozenset({computed[name].root}))
        if more is None:
            return None
        paths |= more
    return paths
