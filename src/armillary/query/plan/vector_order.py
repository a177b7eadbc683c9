"""Which way vectors sort: most alike first, so descending scores for all but euclidean distance.

The metric is an option of the call, else of the container's vector policy for the path, else
cosine (recorded plans of the original, with a policy and with an option that contradicts it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from armillary.query.expr import nodes
from armillary.query.expr.evaluate import Frame, Scope, constant
from armillary.query.functions import Context
from armillary.query.functions.vectors import metric_of
from armillary.query.plan.nodes import Plan, SortKey
from armillary.values import JSON


def is_ascending(
    call: nodes.Call, scope: Scope, container: str | None, metrics: Mapping[tuple[str, ...], str]
) -> bool:
    """`container` is the name of the item, `metrics` what its paths are compared by."""
    if len(call.args) > 3:
        options = _options(call.args[3], scope)
        if isinstance(options, dict) and "distanceFunction" in options:
            return metric_of(options) == "euclidean"
    paths = (nodes.property_path(arg) for arg in call.args[:2])
    found = (metrics.get(path[1:]) for path in paths if path and path[0] == container)
    return next((each for each in found if each is not None), "cosine") == "euclidean"


def _options(expr: nodes.Expr, scope: Scope) -> JSON:
    if any(isinstance(node, nodes.Identifier | nodes.Subquery) for node in nodes.walk(expr)):
        return None  # they differ from row to row; there is one direction
    return constant(expr, scope)[1]


def directed(plan: Plan, parameters: Mapping[str, JSON], context: Context) -> Plan:
    """The plan with its vectors sorted the right way, whatever direction the query says. Rows of an
    inner plan are no items: the policy says nothing of them.
    """
    if not plan.order:
        return plan
    scope = Scope(Frame(), parameters, context)
    metrics = {} if plan.base is not None else context.metrics

    def turned(key: SortKey) -> SortKey:
        if not isinstance(key.expr, nodes.Call) or key.expr.function != "VECTORDISTANCE":
            return key
        return replace(
            key, descending=not is_ascending(key.expr, scope, plan.bound.container, metrics)
        )

    order = tuple(map(turned, plan.order))
    return plan if order == plan.order else replace(plan, order=order)
