"""Sort specifications: `{a: 1, "b.c": -1}`. A missing field sorts as null; of an array the smallest
element counts ascending, the largest descending; an empty array is below null."""

from __future__ import annotations

from collections.abc import Callable
from functools import total_ordering
from typing import Any

from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.language import MISSING
from armillary.api.mongo.match.paths import leaves
from armillary.encoding.bson.codec import UndefinedValue
from armillary.encoding.bson.values import is_number, number_of, sort_key, type_name

Spec = list[tuple[tuple[str, ...], bool]]
"""(path, descending)"""


def parse_sort(source: Any) -> Spec:
    if not isinstance(source, dict):
        raise MongoError(15973, "the $sort key specification must be an object")
    spec: Spec = []
    for name, order in source.items():
        if isinstance(order, dict) and "$meta" in order:
            raise MongoError(2, "$meta sort is not supported")
        if not is_number(order):
            raise MongoError(15974, f"Illegal key in $sort specification: {name}: {order}")
        if number_of(order) not in (1, -1):
            raise MongoError(
                15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)"
            )
        if not name:
            raise MongoError(40352, "FieldPath cannot be constructed with empty string")
        if name[0] == "$":
            raise MongoError(
                16410,
                "FieldPath field names may not start with '$'. Consider "
                "using $getField or $setField.",
            )
        spec.append((tuple(name.split(".")), number_of(order) < 0))
    return spec


@total_ordering
class Descending:
    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: Descending) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)


def field_key(document: Any, path: tuple[str, ...], descending: bool) -> Any:
    keys = [_value_key(one) for one in field_values(document, path)]
    return max(keys) if descending else min(keys)


def field_value(document: Any, path: tuple[str, ...], descending: bool) -> Any:
    """The value that counts; MISSING: none."""
    values = field_values(document, path)
    return max(values, key=_value_key) if descending else min(values, key=_value_key)


def field_values(document: Any, path: tuple[str, ...]) -> list[Any]:
    """Every value that an index would have, at least one; an empty array is undefined."""
    values: list[Any] = []
    for leaf in leaves(document, path):
        if type(leaf) is list:
            values += leaf or [UndefinedValue()]
        else:
            values.append(leaf)
    return values or [MISSING]


def _value_key(value: Any) -> Any:
    return sort_key(None if value is MISSING else value)


def sort_function(spec: Spec, fold: Callable[[Any], Any] | None = None) -> Callable[[Any], Any]:
    """A key for `sorted`, over all fields at once; `fold` is of a collation."""
    if fold is not None:
        folded, plain = fold, sort_function(spec)
        return lambda document: plain(folded(document))
    if len(spec) == 1 and not spec[0][1]:
        path = spec[0][0]
        return lambda document: field_key(document, path, False)

    def key(document: Any) -> Any:
        return tuple(
            Descending(field_key(document, path, True))
            if down
            else field_key(document, path, False)
            for path, down in spec
        )

    return key


def check_type(value: Any, field: str) -> None:
    if not isinstance(value, dict):
        raise MongoError(
            14,
            f"BSON field '{field}' is the wrong type '{type_name(value)}', expected type 'object'",
        )
