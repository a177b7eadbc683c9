"""P and TextP: a test of one value against others. Comparison across types is false."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from armillary.api.gremlin.machine.values import comparable, equal, hash_key


@dataclass(frozen=True, slots=True, eq=False)
class P:
    """`name` is a key of `TESTS`, or `and`, `or`, `negate` over other tests."""

    name: str
    value: Any = None
    tests: tuple[P, ...] = ()

    def __call__(self, given: Any) -> bool:
        if self.tests:
            return CONNECTED[self.name](given, self.tests)
        return TESTS[self.name](given, self.value)

    def with_values(self, find: Callable[[Any], Any]) -> P:
        """The same test with other values: for where(), whose values are labels."""
        if self.tests:
            return P(self.name, None, tuple(one.with_values(find) for one in self.tests))
        value = self.value
        if self.name in ("within", "without") and isinstance(value, list):
            found = find(value[0]) if len(value) == 1 else [find(one) for one in value]
            return P(self.name, found if isinstance(found, list) else [found])
        if isinstance(value, tuple):
            return P(self.name, tuple(find(one) for one in value))
        return P(self.name, find(value))


def eq(value: Any) -> P:
    return P("eq", value)


def _less(one: Any, other: Any) -> bool:
    return comparable(one, other) and bool(one < other)


def _at_most(one: Any, other: Any) -> bool:
    return comparable(one, other) and bool(one <= other)


def _within(one: Any, others: Any) -> bool:
    if len(others) < 8:
        return any(equal(one, other) for other in others)
    return hash_key(one) in {hash_key(other) for other in others}


def _text(test: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    return lambda one, other: isinstance(one, str) and isinstance(other, str) and test(one, other)


_starts = _text(lambda one, other: one.startswith(other))
_ends = _text(lambda one, other: one.endswith(other))
_contains = _text(lambda one, other: other in one)

TESTS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "eq": equal,
    "neq": lambda one, other: not equal(one, other),
    "lt": _less,
    "lte": _at_most,
    "gt": lambda one, other: _less(other, one),
    "gte": lambda one, other: _at_most(other, one),
    "inside": lambda one, pair: _less(pair[0], one) and _less(one, pair[1]),
    "outside": lambda one, pair: _less(one, pair[0]) or _less(pair[1], one),
    "between": lambda one, pair: _at_most(pair[0], one) and _less(one, pair[1]),
    "within": _within,
    "without": lambda one, others: not _within(one, others),
    "startingWith": _starts,
    "endingWith": _ends,
    "containing": _contains,
    "notStartingWith": lambda one, other: not _starts(one, other),
    "notEndingWith": lambda one, other: not _ends(one, other),
    "notContaining": lambda one, other: not _contains(one, other),
}
CONNECTED: Final[dict[str, Callable[[Any, tuple[P, ...]], bool]]] = {
    "and": lambda one, tests: all(test(one) for test in tests),
    "or": lambda one, tests: any(test(one) for test in tests),
    "negate": lambda one, tests: not tests[0](one),
}
