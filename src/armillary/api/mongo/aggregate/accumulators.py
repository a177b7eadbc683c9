"""Accumulators of `$group` and `$bucket`: each makes a fresh state per group.

    maker(argument) → (add(value), result())

The argument has been evaluated for each row; MISSING comes through.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from bson.decimal128 import Decimal128

from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions.compiled import ARRAY_ACCUMULATORS
from armillary.api.mongo.expressions.values import (
    DECIMALS,
    add,
    exact,
    is_nothing,
    to_double,
)
from armillary.api.mongo.language import MISSING, rough_bytes
from armillary.encoding.bson.values import is_number, sort_key, type_name


class Accumulator(Protocol):
    kept: int
    """Bytes that it holds beyond a few numbers, roughly."""

    def add(self, value: Any) -> None: ...

    def result(self) -> Any: ...


class Sum:
    kept = 0

    def __init__(self) -> None:
        self._whole = 0
        self._long = False
        self._doubles: list[float] = []
        self._rest: list[Any] = []

    def add(self, value: Any) -> None:
        kind = type(value)
        if kind is int:
            self._whole += value
        elif kind is float:
            self._doubles.append(value)
            if len(self._doubles) > 1000:
                self._doubles = [_fsum(self._doubles)]
        elif is_number(value):
            if isinstance(value, Decimal128):
                self._rest = [add([*self._rest, value])]
            else:
                self._whole += int(value)
                self._long = True

    def result(self) -> Any:
        from bson.int64 import Int64

        total: Any = Int64(self._whole) if self._long and abs(self._whole) < 2**63 else self._whole
        if not self._doubles and not self._rest:
            return add([total]) if abs(self._whole) < 2**63 else float(self._whole)
        return add(
            [
                float(total) if self._doubles and not self._rest else total,
                *([_fsum(self._doubles)] if self._doubles else []),
                *self._rest,
            ]
        )


def _fsum(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):
        return sum(values)


class Average:
    kept = 0

    def __init__(self) -> None:
        self._sum = Sum()
        self._count = 0

    def add(self, value: Any) -> None:
        if is_number(value):
            self._sum.add(value)
            self._count += 1

    def result(self) -> Any:
        if not self._count:
            return None
        total = self._sum.result()
        if isinstance(total, Decimal128):
            return Decimal128(DECIMALS.divide(exact(total), exact(self._count)))
        return to_double(total) / self._count


class Edge:
    """`$first` and `$last`."""

    def __init__(self, last: bool) -> None:
        self._last = last
        self._seen = False
        self._value: Any = None
        self.kept = 0

    def add(self, value: Any) -> None:
        if self._last or not self._seen:
            self._value, self._seen = value, True
            self.kept = rough_bytes(value)

    def result(self) -> Any:
        return None if self._value is MISSING else self._value


class Extreme:
    """`$min` and `$max`; null and missing do not count."""

    def __init__(self, largest: bool) -> None:
        self._largest = largest
        self._key: Any = None
        self._value: Any = None
        self.kept = 0

    def add(self, value: Any) -> None:
        if is_nothing(value):
            return
        key = sort_key(value)
        if self._key is None or (key > self._key if self._largest else key < self._key):
            self._key, self._value = key, value
            self.kept = 2 * rough_bytes(value)

    def result(self) -> Any:
        return self._value


class Push:
    def __init__(self) -> None:
        self._values: list[Any] = []
        self.kept = 0

    def add(self, value: Any) -> None:
        if value is not MISSING:
            self._values.append(value)
            self.kept += rough_bytes(value)

    def result(self) -> Any:
        return self._values


class AddToSet:
    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}
        self.kept = 0

    def add(self, value: Any) -> None:
        if value is MISSING:
            return
        key = sort_key(value)
        if key not in self._values:
            self._values[key] = value
            self.kept += 2 * rough_bytes(value)

    def result(self) -> Any:
        return list(self._values.values())


class Deviation:
    """By the mean so far and the squares around it (Welford): nothing is kept of the values."""

    kept = 0

    def __init__(self, sample: bool) -> None:
        self._sample = sample
        self._count = 0
        self._mean = 0.0
        self._squares = 0.0

    def add(self, value: Any) -> None:
        if is_number(value):
            plain = to_double(value)
            self._count += 1
            away = plain - self._mean
            self._mean += away / self._count
            self._squares += away * (plain - self._mean)

    def result(self) -> Any:
        if self._count < (2 if self._sample else 1):
            return None
        return math.sqrt(self._squares / (self._count - self._sample))


class MergeObjects:
    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        self.kept = 0

    def add(self, value: Any) -> None:
        if is_nothing(value):
            return
        if not isinstance(value, dict):
            raise MongoError(
                40400,
                "$mergeObjects requires object inputs, but input "
                f"{value} is of type {type_name(value)}",
            )
        fresh = {name: one for name, one in value.items() if name not in self._made}
        self._made |= value
        self.kept += rough_bytes(fresh)

    def result(self) -> Any:
        return self._made


class Count:
    kept = 0

    def __init__(self) -> None:
        self._count = 0

    def add(self, value: Any) -> None:
        self._count += 1

    def result(self) -> Any:
        return self._count


ACCUMULATORS: Final[dict[str, Callable[[], Accumulator]]] = {
    "$sum": Sum,
    "$avg": Average,
    "$first": lambda: Edge(False),
    "$last": lambda: Edge(True),
    "$min": lambda: Extreme(False),
    "$max": lambda: Extreme(True),
    "$push": Push,
    "$addToSet": AddToSet,
    "$stdDevPop": lambda: Deviation(False),
    "$stdDevSamp": lambda: Deviation(True),
    "$mergeObjects": MergeObjects,
    "$count": Count,
}


def of_values(name: str, values: list[Any]) -> Any:
    """The same over the arguments of an expression: `{$sum: ["$a", "$b"]}`, or of one array."""
    state = ACCUMULATORS[name]()
    given = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    for one in given:
        state.add(one)
    return state.result()


for _name in ("$sum", "$avg", "$min", "$max", "$stdDevPop", "$stdDevSamp"):
    ARRAY_ACCUMULATORS[_name] = partial(of_values, _name)
