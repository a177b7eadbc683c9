"""Kinds of index besides ranges and unique keys, and what the store asks of them."""

from collections.abc import Mapping
from typing import Any, Final

from armillary.encoding.models import ValueModel
from armillary.store.index.kinds import composite, full_text, spatial, vector
from armillary.store.index.kinds.base import KeyIndex, Kind, OtherIndex, Row
from armillary.values import JSON

#: In the order in which policies and stored plans name them.
KINDS: Final[tuple[Kind, ...]] = (composite.KIND, spatial.KIND, full_text.KIND, vector.KIND)
_DESCRIBED: Final = [(kind, kind.describe) for kind in KINDS if kind.describe is not None]


def described(document: Mapping[str, Any]) -> dict[str, JSON] | None:
    """What index entries depend on alongside the indexing policy; None when they do not."""
    policy = document["indexingPolicy"]
    if not any(policy.get(kind.name) for kind, _ in _DESCRIBED):
        return None
    return {name: value for _, say in _DESCRIBED for name, value in say(document).items()}


def told(document: Mapping[str, Any]) -> dict[str, Any]:
    """What functions of queries are told of a container's policies."""
    return {name: value for kind in KINDS for name, value in kind.told(document).items()}


def compile_others(policy: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[OtherIndex, ...]:
    """The indexes of a policy document, by what `described` says of the container."""
    makers = [(kind.name, kind.compile) for kind in KINDS if kind.compile is not None]
    found = (make(entry, known) for name, make in makers for entry in policy.get(name) or ())
    return tuple(index for index in found if index is not None)


def compile_keyed(policy: Mapping[str, Any], model: ValueModel) -> tuple[KeyIndex, ...]:
    makers = [(kind.name, kind.compile_keys) for kind in KINDS if kind.compile_keys is not None]
    return tuple(
        make(number, entry, model)
        for name, make in makers
        for number, entry in enumerate(policy.get(name) or ())
    )


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
