"""Which ranges of today came from which former ones, and where a counted key lies today: what
`partition/usage/inheritance.py` asks about a container."""

from collections.abc import Callable

import orjson

from armillary.encoding.hashing import epk
from armillary.encoding.partition_key import coerce
from armillary.errors import DbError
from armillary.store.catalog.state import ContainerState


def descendants_in(state: ContainerState) -> dict[int, list[int]]:
    """By range id, in the order of hashes."""
    found: dict[int, list[int]] = {}
    for one in state.table.ranges:
        for ancestor in one.parents:
            found.setdefault(ancestor, []).append(one.ordinal)
    return found


def place_in(state: ContainerState) -> Callable[[str], int | None]:
    """From a key as the counters keep it to the id of its range."""
    definition = state.definition.partition_key

    def place(key: str) -> int | None:
        try:
            return state.table.find(epk(coerce(orjson.loads(key)), definition)).ordinal
        except (DbError, ValueError):  # a part of a key: a query over its beginning
            return None

    return place
