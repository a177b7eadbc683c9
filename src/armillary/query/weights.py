"""The weights of a fused rank: `RRF(score, score, [2, 1])`, written out or given as a parameter.

What is written out the binder has checked; a parameter is checked here, where its value is known.
"""

from __future__ import annotations

from armillary.query.evaluate import Scope, constant
from armillary.query.functions.base import is_number
from armillary.query.sql import ast
from armillary.query.sql.errors import BadQuery
from armillary.query.sql.ordering import wrong_weights


def fusion_weights(fusion: ast.Call, scope: Scope) -> tuple[float, ...]:
    """One per score; () when there are none. Raises BadQuery."""
    last = fusion.args[-1]
    if isinstance(last, ast.Call):
        return ()
    _, values = constant(last, scope)
    scores = len(fusion.args) - 1
    if type(values) is not list or len(values) != scores or not all(map(is_number, values)):
        raise BadQuery.of([wrong_weights(fusion)])
    return tuple(map(float, values))
