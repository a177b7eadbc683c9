"""Which way vectors sort: the most alike first, so falling scores for all but euclidean distance.

The metric is an option of the call, else of the container's vector policy for the path, else
cosine (recorded plans of the original, with a policy and with an option that contradicts it).
"""

from __future__ import annotations

from armillary.encoding.paths import parse_path
from armillary.query.evaluate import Scope, constant
from armillary.query.functions.vectors import metric_of
from armillary.query.sql import ast
from armillary.values import JSON


def is_ascending(call: ast.Call, scope: Scope, policy: JSON = None) -> bool:
    if len(call.args) > 3:
        known, options = constant(call.args[3], scope)
        if known and isinstance(options, dict) and "distanceFunction" in options:
            return metric_of(options) == "euclidean"
    metrics = _metrics(policy)
    return any(metrics.get(_path(arg)) == "euclidean" for arg in call.args[:2])


def _metrics(policy: JSON) -> dict[tuple[str, ...], str]:
    embeddings = policy.get("vectorEmbeddings") if isinstance(policy, dict) else None
    return {
        parse_path(each["path"]): str(each.get("distanceFunction", "cosine")).lower()
        for each in embeddings or ()
    }


def _path(expr: ast.Expr) -> tuple[str, ...]:
    names: list[str] = []
    while isinstance(expr, ast.Member):
        names.append(expr.name)
        expr = expr.base
    return tuple(reversed(names))
