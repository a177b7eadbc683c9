"""Equality, hashing and order of what a traverser may hold.

Elements are equal by partition and id, numbers by value, lists and maps by their parts. Python's
`True == 1` is not ours.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Final

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from armillary.budget import Budget

VALUE_BYTES: Final = 8  # at least, of one in a list that is written down


class Path:
    """The result of path(): what a traverser has been at, with the labels of each place."""

    __slots__ = ("labels", "objects")

    def __init__(self, objects: list[Any], labels: list[tuple[str, ...]]) -> None:
        self.objects = objects
        self.labels = labels

    def __repr__(self) -> str:
        return f"path{self.objects}"


class Entry:
    """One entry of a map, as unfold() gives it."""

    __slots__ = ("key", "value")

    def __init__(self, key: Any, value: Any) -> None:
        self.key = key
        self.value = value

    def __repr__(self) -> str:
        return f"{self.key}={self.value}"


class Map:
    """A map whose keys may be anything: elements, lists, other maps. In insertion order."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[tuple[Any, Any]] = ()) -> None:
        self._entries: dict[Hashable, tuple[Any, Any]] = {}
        for key, value in entries:
            self[key] = value

    def __setitem__(self, key: Any, value: Any) -> None:
        self._entries[key if type(key) is str else hash_key(key)] = (key, value)

    def __contains__(self, key: Any) -> bool:
        return hash_key(key) in self._entries

    def __getitem__(self, key: Any) -> Any:
        return self._entries[hash_key(key)][1]

    def get(self, key: Any, default: Any = None) -> Any:
        found = self._entries.get(hash_key(key))
        return default if found is None else found[1]

    def __len__(self) -> int:
        return len(self._entries)

    def items(self) -> Iterable[tuple[Any, Any]]:
        return self._entries.values()

    def keys(self) -> list[Any]:
        return [key for key, _ in self._entries.values()]

    def values(self) -> list[Any]:
        return [value for _, value in self._entries.values()]

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{key}={value}" for key, value in self.items()) + "}"


class Tree(Map):
    """The result of tree(): each value is the Tree below its key."""

    __slots__ = ()


def weigh(results: list[Any], budget: Budget) -> None:
    """Whether results may be written down: a list may hold one long text a million times."""
    if {*map(type, results)} == {str}:  # HOT: ids, labels, names
        budget.spend(len(results))
        _check_fits(VALUE_BYTES * len(results) + sum(map(len, results)), budget)
        return
    size = 0
    waiting: list[Any] = [results]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            size += len(one)
        elif isinstance(one, Path):
            waiting.append(one.objects)
        elif isinstance(one, Entry):
            waiting += (one.key, one.value)
        elif isinstance(one, list | tuple | set | Map):
            size += VALUE_BYTES * len(one)
            budget.spend(len(one))
            _check_fits(size, budget)
            if isinstance(one, Map):
                for pair in one.items():
                    waiting += pair
            else:
                waiting += one
    _check_fits(size, budget)


def _check_fits(size: int, budget: Budget) -> None:
    budget.hold(size)
    budget.release(size)


def hash_key(value: Any) -> Hashable:
    """Equal exactly when the values are. HOT: dedup, group, where."""
    kind = type(value)
    if kind is str or kind is int or kind is float or value is None:
        hashable: Hashable = value
        return hashable
    if kind is Vertex or kind is Edge:
        partition = value.partition
        if type(partition) is bool:
            partition = ("b", partition)
        return ("v" if kind is Vertex else "e", partition, value.id)
    if kind is bool:
        return ("b", value)
    if kind is VertexProperty:
        return ("p", hash_key(value.owner), value.key, value.id)
    if kind is Property:
        return ("q", value.key, hash_key(value.value))
    if kind is list or kind is tuple:
        return ("l", *map(hash_key, value))
    if kind is Path:
        return ("P", *map(hash_key, value.objects))
    if kind is Entry:
        return ("E", hash_key(value.key), hash_key(value.value))
    if isinstance(value, Map):
        return ("m", frozenset((hash_key(k), hash_key(v)) for k, v in value.items()))
    if isinstance(value, dict):
        return ("m", frozenset((hash_key(k), hash_key(v)) for k, v in value.items()))
    if isinstance(value, set | frozenset):
        return ("s", frozenset(map(hash_key, value)))
    return (kind.__name__, str(value))


def equal(one: Any, other: Any) -> bool:
    kind = type(one)
    if kind is str and type(other) is str:
        return bool(one == other)
    return hash_key(one) == hash_key(other)


_RANKS: Final = ((bool, 1), (int, 2), (float, 2), (str, 3))


def rank(value: Any) -> int:
    """Values of different types are ordered by type."""
    if value is None:
        return 0
    for kind, place in _RANKS:
        if isinstance(value, kind):
            return place
    return 4


def order_key(value: Any) -> tuple[int, Any]:
    """For sorting: by type, then by value; elements by id, lists by their parts."""
    place = rank(value)
    if place < 4:
        return (place, 0 if value is None else value)
    if isinstance(value, Vertex | Edge | VertexProperty):
        return (5, value.id)
    if isinstance(value, Property):
        return (6, (value.key, order_key(value.value)))
    if isinstance(value, list | tuple):
        return (7, [order_key(each) for each in value])
    if isinstance(value, Path):
        return (8, [order_key(each) for each in value.objects])
    if isinstance(value, Entry):
        return (9, (order_key(value.key), order_key(value.value)))
    raise ScriptError(f"{type_name(value)} has no order.")


def comparable(one: Any, other: Any) -> bool:
    """Whether `<` has a meaning: both numbers, both strings, or both booleans."""
    place = rank(one)
    return place == rank(other) and place < 4 and one is not None


def is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def type_name(value: Any) -> str:
    """As the service names types in its messages."""
    kind = type(value)
    if kind is bool:
        return "Boolean"
    if kind is int:
        return "Int32" if -(2**31) <= value < 2**31 else "Int64"
    return {
        float: "Double", str: "String", list: "List", dict: "Map", Map: "Map", Tree: "Tree",
        type(None): "Null",
    }.get(kind, kind.__name__)  # fmt: skip
