"""VectorDistance (reference 6.8). Cosine and dot product say "more alike" with larger numbers,
euclidean with smaller ones. The metric is an option of the call, else what the container's vector
policy says of the path, else cosine. Computed in doubles whatever the stored type. The third
argument asks to ignore a vector index and changes no result.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from armillary.query.functions.base import Context, Function, is_number
from armillary.values import JSON, UNDEFINED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NUMBERS = frozenset((int, float))
METRICS = ("cosine", "dotproduct", "euclidean")
_TYPES = ("float32", "float16", "int8", "uint8")
_MULTIPLIERS = ("searchListSizeMultiplier", "quantizedVectorListMultiplier")


_NO_OPTIONS: dict[str, JSON] = {}


def distance(
    context: Context,
    left: JSON,
    right: JSON,
    brute_force: JSON = False,
    options: JSON = _NO_OPTIONS,
) -> JSON:
    """Different lengths or something that is no vector: undefined (unverified)."""
    metric = metric_of(options, context.metric)
    if metric is None or type(brute_force) is not bool:
        return UNDEFINED
    if not is_vector(left) or not is_vector(right) or len(left) != len(right):
        return UNDEFINED
    import numpy as np  # here, because it takes a while and few queries need it

    a, b = np.asarray(left, np.float64), np.asarray(right, np.float64)
    with np.errstate(all="ignore"):
        if metric == "euclidean":
            return float(np.sqrt(_dot(a - b, a - b)))
        product = _dot(a, b)
        if metric == "dotproduct":
            return product
        lengths = _dot(a, a) * _dot(b, b)
    return (
        product / math.sqrt(lengths) if lengths else UNDEFINED
    )  # nothing points nowhere (unverified)


def metric_of(options: JSON, default: str = "cosine") -> str | None:
    """The distance function an options object asks for, or None when it asks for nonsense."""
    if type(options) is not dict:
        return None
    metric, kind = options.get("distanceFunction", default), options.get("dataType", "float32")
    if type(metric) is not str or type(kind) is not str or kind.lower() not in _TYPES:
        return None
    for name in _MULTIPLIERS:
        factor = options.get(name, 1)
        if not is_number(factor) or not 1 <= factor <= 100:
            return None
    return metric.lower() if metric.lower() in METRICS else None


def is_vector(value: JSON) -> bool:
    return type(value) is list and _NUMBERS.issuperset(map(type, value))


def _dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    return float(a.dot(b))


FUNCTIONS = (Function("VectorDistance", 2, 4, distance, context=True),)
