"""What a container's policies say to functions: shapes, languages of texts, metrics of vectors.

Policies speak of paths of items (`/text` is French, `/vector` is compared by euclidean distance),
functions get values. So which language or metric a call has is decided where its closure is made,
by the path that its argument is (`evaluate.Scope.context_for`). What there is to say, the kinds of
index know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from armillary.query.functions import Context
from armillary.store.catalog.state import ContainerState
from armillary.store.index.kinds.registry import told
from armillary.values import JSON


def context_of(state: ContainerState, now_ticks: int, random: Callable[[], float]) -> Context:
    """For the queries of one container."""
    return Context(now_ticks=now_ticks, random=random, **state.told)


def metrics_of(policy: JSON) -> Mapping[tuple[str, ...], str]:
    """Path → distance function, of a `vectorEmbeddingPolicy`."""
    found: Mapping[tuple[str, ...], str] = told({"vectorEmbeddingPolicy": policy})["metrics"]
    return found
