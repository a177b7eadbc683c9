"""What a container's policies say to functions: shapes, languages of texts, metrics of vectors.

Policies speak of paths of items (`/text` is French, `/vector` is compared by euclidean distance),
functions get values. So which language or metric a call has is decided where its closure is made,
by the path that its argument is (`evaluate.Scope.context_for`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from armillary.encoding.paths import parse_path
from armillary.query.functions import Context
from armillary.store.index.kinds.full_text import languages
from armillary.store.index.kinds.spatial import is_geometry
from armillary.values import JSON


def context_of(
    document: Mapping[str, JSON], now_ticks: int, random: Callable[[], float]
) -> Context:
    """For the queries of one container, by its definition."""
    language, by_path = languages(document)
    return Context(
        now_ticks=now_ticks,
        random=random,
        geography=not is_geometry(document),
        language=language,
        languages={parse_path(path): each for path, each in by_path.items()},
        metrics=metrics_of(document.get("vectorEmbeddingPolicy")),
    )


def metrics_of(policy: JSON) -> dict[tuple[str, ...], str]:
    """Path → distance function, of a `vectorEmbeddingPolicy`."""
    embeddings = policy.get("vectorEmbeddings") if isinstance(policy, dict) else None
    return {
        parse_path(each["path"]): str(each.get("distanceFunction", "cosine")).lower()
        for each in embeddings or ()
    }
