"""`hint`, `min` and `max`: an index that the client names, and bounds of its keys.

The plan chooses indexes by itself; of a hint it takes the order, where no sort asks for another.
`min` (included) and `max` (not included) choose documents by their keys in that index.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from armillary.api.mongo.data.collections import Collection
from armillary.api.mongo.errors import MongoError, bad_value, wrong_type
from armillary.api.mongo.language import MISSING
from armillary.api.mongo.match.operators import Filter
from armillary.api.mongo.sorting import Descending, field_values, parse_sort, sort_function
from armillary.encoding.bson.values import Document, is_text, number_of, sort_key, type_name


def hinted(collection: Collection, hint: Any) -> Document | None:
    """The index of a hint; None: the order in which documents were made."""
    if not isinstance(hint, str | dict):
        raise wrong_type("hint", type_name(hint), "string", "object")
    if isinstance(hint, dict) and ("$natural" in hint or not hint):
        return None
    for index in collection.indexes:
        if hint == index["name"]:
            return index
        if isinstance(hint, dict) and list(hint.items()) == list(index["key"].items()):
            return index
    raise bad_value(
        "error processing query: planner returned error :: caused by :: hint provided does not "
        "correspond to an existing index"
    )


def hinted_order(collection: Collection, hint: Any) -> Document:
    """The order of the documents of a find without a sort; empty: that in which they were made."""
    index = None if hint is None else hinted(collection, hint)
    key: Document = {} if index is None else index["key"]
    if "$**" in "".join(key) or any(is_text(one) for one in key.values()):
        return {}  # wildcards, places: such an index has no one order
    return {path: 1 if number_of(one) > 0 else -1 for path, one in key.items()}


class Bounds:
    """Documents between two keys of an index."""

    def __init__(self, index: Document, low: Document, high: Document) -> None:
        self.order = index["key"]
        self._spec = parse_sort(
            {path: 1 if number_of(one) > 0 else -1 for path, one in self.order.items()}
        )
        self._low = self._key(low) if low else None
        self._high = self._key(high) if high else None

    def _key(self, bound: Document) -> Any:
        if list(bound) != list(self.order):
            raise MongoError(51174, "The index chosen is not compatible with min/max")
        return self._ordered([bound[name] for name in bound])

    def _ordered(self, values: Any) -> Any:
        pairs = zip(values, self._spec, strict=True)
        keys = [(sort_key(None if one is MISSING else one), down) for one, (_, down) in pairs]
        return tuple(Descending(key) if down else key for key, down in keys)

    def passes(self, document: Document) -> bool:
        choices = product(*(field_values(document, path) for path, _ in self._spec))
        return any(self._within(self._ordered(one)) for one in choices)

    def _within(self, key: Any) -> bool:
        return (self._low is None or key >= self._low) and (self._high is None or key < self._high)

    def narrowed(self, test: Filter) -> Filter:
        return lambda document: test(document) and self.passes(document)

    @property
    def sort_key(self) -> Callable[[Any], Any]:
        return sort_function(self._spec)


def bounds_of(collection: Collection, hint: Any, low: Document, high: Document) -> Bounds | None:
    """Checks the hint, too."""
    index = None if hint is None else hinted(collection, hint)
    if not low and not high:
        return None
    if index is None or any(is_text(one) for one in index["key"].values()):
        raise MongoError(
            51173, "When using min()/max() a hint of which index to use must be provided"
        )
    return Bounds(index, low, high)
