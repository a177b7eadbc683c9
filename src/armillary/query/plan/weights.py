"""The weights of a fused rank: `RRF(score, score, [2, 1])`, written out or given as a parameter.

What is written out the binder has checked; a parameter is checked here, where its value is known.
"""

from __future__ import annotations

from armillary.query.expr import nodes
from armillary.query.expr.evaluate import Scope, constant
from armillary.query.functions.base import is_number
from armillary.query.problems import BadQuery, QueryError


def fusion_weights(fusion: nodes.Call, scope: Scope) -> tuple[float, ...]:
    """One per score; () when there are none. Raises BadQuery."""
    last = fusion.args[-1]
    if isinstance(last, nodes.Call):
        return ()
    _, values = constant(last, scope)
    scores = len(fusion.args) - 1
    if type(values) is not list or len(values) != scores or not all(map(is_number, values)):
        raise BadQuery.of([wrong_weights(fusion)])
    return tuple(map(float, values))


def wrong_weights(fusion: nodes.Call) -> QueryError:
    message = (
        "The last parameter of the RRF function is an optional array of weights. It must be "
        "an array of literal numbers, one for each scoring function."
    )
    return QueryError("SC2229", message, fusion.start, fusion.end)
