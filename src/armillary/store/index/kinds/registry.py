"""Kinds of index besides ranges, composites and unique keys, and what the store asks of them."""

from collections.abc import Mapping
from typing import Any, Final

from armillary.store.index.kinds import full_text, spatial, vector
from armillary.store.index.kinds.base import Kind, OtherIndex, Row
from armillary.values import JSON

#: In the order in which policies and stored plans name them.
KINDS: Final[tuple[Kind, ...]] = (spatial.KIND, full_text.KIND, vector.KIND)
BY_NAME: Final = {kind.name: kind for kind in KINDS}


def described(document: Mapping[str, Any]) -> dict[str, JSON] | None:
    """What index entries depend on alongside the indexing policy; None when they do not."""
    policy = document["indexingPolicy"]
    if not any(policy.get(kind.name) for kind in KINDS):
        return None
    return {name: value for kind in KINDS for name, value in kind.describe(document).items()}


def told(document: Mapping[str, Any]) -> dict[str, Any]:
    """What functions of queries are told of a container's policies."""
    return {name: value for kind in KINDS for name, value in kind.told(document).items()}


def compile_others(policy: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[OtherIndex, ...]:
    """The indexes of a policy document, by what `described` says of the container."""
    found = (kind.compile(entry, known) for kind in KINDS for entry in policy.get(kind.name) or ())
    return tuple(index for index in found if index is not None)


def other_rows(indexes: tuple[OtherIndex, ...], item: dict[str, JSON]) -> list[Row]:
    rows: dict[bytes, bytes] = {}
    for index in indexes:
        rows.update(index.rows(item))
    return list(rows.items())


def changed_indexes(was: list[Row], now: list[Row]) -> tuple[int, int]:
    """(removed, added): each index whose rows changed counts once, as one leaf of an item does."""
    before, after = set(was), set(now)
    prefixes = [{key[:9] for key, _ in rows} for rows in (before - after, after - before)]
    return len(prefixes[0]), len(prefixes[1])
