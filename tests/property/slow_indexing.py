"""What an item puts into the index, written to be checked by eye: list every value with its path,
ask every policy path about it, and take the one that is most precise.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from armillary.encoding.terms import term
from armillary.store.index.entries import path_hash
from armillary.store.index.paths import ARRAY, IndexPath, Segment
from armillary.store.index.policy import IndexPolicy
from armillary.store.rows.layout import IX

SYSTEM = ("_rid", "_self", "_etag", "_attachments", "_ts", "_lsn")


def slow_values(value: Any, path: tuple[Segment, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Every value below, with its path."""
    steps: Sequence[tuple[Segment, Any]] = ()
    if isinstance(value, dict):
        steps = list(value.items())
    if isinstance(value, list):
        steps = [(ARRAY, each) for each in value]
    for segment, below in steps:
        yield (*path, segment), below
        yield from slow_values(below, (*path, segment))


def slow_covers(policy: IndexPolicy, path: tuple[Segment, ...]) -> bool:
    if policy.mode == "none" or not path:
        return False
    if path in (("id",), ("_ts",)):
        return True
    if path[0] in (*SYSTEM, "id"):
        return False
    said = [(_precision(rule, path), True) for rule in policy.included]
    said += [(_precision(rule, path), False) for rule in policy.excluded]
    return max(said)[1] if said and max(said)[0] > (-1, 0) else False


def _precision(rule: IndexPath, path: tuple[Segment, ...]) -> tuple[int, int]:
    """How closely a policy path describes this one: deeper first, then /? before /*."""
    if rule.kind == "scalar" and rule.segments == path:
        return len(path), 1
    if rule.kind == "subtree" and path[: len(rule.segments)] == rule.segments:
        return len(rule.segments), 0
    return -1, 0


def slow_entries(
    policy: IndexPolicy, item: dict[str, Any]
) -> tuple[set[bytes], int, frozenset[bytes]]:
    """The ix keys, the number of leaves, and the paths."""
    values = [
        (path, value)
        for path, value in slow_values(item)
        if path[0] != "_ts" and slow_covers(policy, path)
    ]
    keys = {IX + path_hash(path) + term(value) for path, value in values}
    leaves = sum(not isinstance(value, dict | list) for _, value in values)
    paths = {path_hash(path) for path, _ in values}
    if policy.mode == "consistent":
        paths.add(path_hash(("_ts",)))
    return keys, leaves, frozenset(paths)
