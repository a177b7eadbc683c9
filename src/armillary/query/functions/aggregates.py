"""Aggregates as small state machines (reference 5.1): add values, merge with another, ask.

    one = Average(); one.add(4)            # on one partition
    two = Average(); two.add(UNDEFINED)    # on another
    one.merge(two); one.result()           # 4.0

A state is what a partition sends: it holds plain values, so it survives a trip between processes,
and merging states gives what adding all values to one would. Undefined values are skipped by all.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from armillary.query.functions.base import Function, check_array, is_number
from armillary.values import JSON, UNDEFINED, identity, order_key


class Aggregate(Protocol):
    def add(self, value: JSON) -> None: ...

    def merge(self, other: Self) -> None: ...

    def result(self) -> JSON: ...


@dataclass(slots=True)
class Count:
    """Every defined value counts, null too."""

    count: int = 0

    def add(self, value: JSON) -> None:
        if value is not UNDEFINED:
            self.count += 1

    def merge(self, other: "Count") -> None:
        self.count += other.count

    def result(self) -> JSON:
        return self.count


@dataclass(slots=True)
class CountIf:
    """Rows where the test is exactly true (unverified)."""

    count: int = 0

    def add(self, value: JSON) -> None:
        if value is True:
            self.count += 1

    def merge(self, other: "CountIf") -> None:
        self.count += other.count

    def result(self) -> JSON:
        return self.count


@dataclass(slots=True)
class Sum:
    """Double addition. One value that is no number spoils the whole; the sum of nothing is 0."""

    total: float = 0.0
    count: int = 0
    spoiled: bool = False

    def add(self, value: JSON) -> None:
        if is_number(value):
            self.total += value
            self.count += 1
        elif value is not UNDEFINED:
            self.spoiled = True

    def merge(self, other: "Sum") -> None:
        self.total += other.total
        self.count += other.count
        self.spoiled = self.spoiled or other.spoiled

    def result(self) -> JSON:
        return UNDEFINED if self.spoiled else self.total


@dataclass(slots=True)
class Average(Sum):
    """Sum and count travel; the division happens once, at the end. Nothing has no average."""

    def result(self) -> JSON:
        return UNDEFINED if self.spoiled or not self.count else self.total / self.count


@dataclass(slots=True)
class Minimum:
    """Types are ordered null < boolean < number < string. One array or object spoils the whole."""

    value: JSON = UNDEFINED
    key: tuple[Any, ...] = ()
    spoiled: bool = False

    def better(self, key: tuple[Any, ...]) -> bool:
        return key < self.key

    def add(self, value: JSON) -> None:
        if value is UNDEFINED:
            return
        if type(value) is list or type(value) is dict:
            self.spoiled = True
        elif not self.key or self.better(order_key(value)):
            self.value, self.key = value, order_key(value)

    def merge(self, other: Self) -> None:
        self.add(other.value)
        self.spoiled = self.spoiled or other.spoiled

    def result(self) -> JSON:
        return UNDEFINED if self.spoiled else self.value


@dataclass(slots=True)
class Maximum(Minimum):
    def better(self, key: tuple[Any, ...]) -> bool:
        return key > self.key


@dataclass(slots=True)
class MakeList:
    values: list[JSON] = field(default_factory=list)

    def add(self, value: JSON) -> None:
        if value is not UNDEFINED:
            check_array(len(self.values) + 1)
            self.values.append(value)

    def merge(self, other: "MakeList") -> None:
        check_array(len(self.values) + len(other.values))
        self.values.extend(other.values)

    def result(self) -> JSON:
        return list(self.values)


@dataclass(slots=True)
class MakeSet:
    """Deep-distinct values, in the order they came."""

    values: dict[object, JSON] = field(default_factory=dict)

    def add(self, value: JSON) -> None:
        if value is not UNDEFINED:
            self.values.setdefault(identity(value), value)
            check_array(len(self.values))

    def merge(self, other: "MakeSet") -> None:
        for value in other.values.values():
            self.add(value)

    def result(self) -> JSON:
        return list(self.values.values())


FUNCTIONS = tuple(
    Function(name, 1, 1, state, kind="aggregate")
    for name, state in {
        "AVG": Average,
        "COUNT": Count,
        "COUNTIF": CountIf,
        "MAKELIST": MakeList,
        "MAKESET": MakeSet,
        "MAX": Maximum,
        "MIN": Minimum,
        "SUM": Sum,
    }.items()
)
