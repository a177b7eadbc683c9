"""Which hashes a filter leaves: the `queryRanges` of a query plan (nosql-query 9.1).

    WHERE c.pk = "a"                 one point
    WHERE c.pk IN ("a", "b")         two points
    WHERE c.t = "a"  (key /t, /u)    the range of everything that begins with the hash of "a"
    WHERE c.pk > "a"                 all
    WHERE c.pk = 1 AND c.pk = 2      none

A filter is read as alternatives: each says, for some levels of the key, the one value it may have.
AND combines alternatives and drops contradictions, OR lists them. What is not understood leaves
everything open, so the answer may be too wide and is never too narrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final, TypeAlias

from armillary.encoding.hashing import EPK_MAX, EPK_MIN, epk
from armillary.encoding.partition_key import (
    KeyValues,
    PartitionKeyDefinition,
    check_key,
    same_key,
)
from armillary.errors import BadInput
from armillary.limits import QUERY_KEYS_MAX
from armillary.query.expr import nodes
from armillary.query.expr.evaluate import Scope, constant
from armillary.query.expr.queries import BoundQuery
from armillary.values import JSON, UNDEFINED


@dataclass(frozen=True, slots=True, order=True)
class HashRange:
    """From `start` to `end`; a point when they are the same, and then both ends belong."""

    start: bytes
    end: bytes

    @property
    def is_point(self) -> bool:
        return self.start == self.end

    def to_json(self) -> dict[str, JSON]:
        return {
            "min": self.start.hex().upper(),
            "max": self.end.hex().upper(),
            "isMinInclusive": True,
            "isMaxInclusive": self.is_point,
        }


EVERYTHING: Final = HashRange(EPK_MIN, EPK_MAX)
#: Nothing to find: some one partition has to say so (an aggregate of nothing is still a row).
ANYWHERE: Final = HashRange(EPK_MIN, EPK_MIN)

#: Level of the key → the value it must have.
Alternative: TypeAlias = dict[int, JSON]
#: None leaves everything open; no alternatives are a contradiction.
Alternatives: TypeAlias = "list[Alternative] | None"


def is_point(ranges: Sequence[HashRange]) -> bool:
    """Whether one logical partition holds the answer."""
    return len(ranges) == 1 and ranges[0].is_point and ranges[0] != ANYWHERE


def key_ranges(
    bound: BoundQuery, scope: Scope, definition: PartitionKeyDefinition
) -> list[HashRange]:
    """Sorted and disjoint."""
    if not bound.sources:
        return [ANYWHERE]
    inner = bound.sources[0].query
    if inner is not None:
        return key_ranges(inner, scope, definition)
    if bound.where is None:
        return [EVERYTHING]
    reader = _Reader(bound.container, definition, scope)
    found = reader.read(bound.where)
    if found is None:
        return [EVERYTHING]
    return _ranges(found, definition) if found else [ANYWHERE]


def _ranges(found: Iterable[Alternative], definition: PartitionKeyDefinition) -> list[HashRange]:
    ranges: set[HashRange] = set()
    for alternative in found:
        values: list[JSON] = []
        while len(values) in alternative:
            values.append(alternative[len(values)])
        if not values:
            return [EVERYTHING]
        try:
            ranges.add(key_range(tuple(values), definition))
        except BadInput:  # no key: whether any item has it is for the filter to say
            return [EVERYTHING]
    return _disjoint(ranges)


def key_range(values: KeyValues, definition: PartitionKeyDefinition) -> HashRange:
    """The point of a key, or all that begins with a part of a hierarchical one."""
    checked = check_key(values, definition, prefix_allowed=True)
    start = epk(checked, definition)
    if len(checked) < len(definition.paths):
        return HashRange(start, start + EPK_MAX)
    return HashRange(start, start)


def _disjoint(ranges: set[HashRange]) -> list[HashRange]:
    """Without what lies inside another. Ranges of prefixes never overlap in part."""
    kept: list[HashRange] = []
    # The wider of two with one start comes first.
    for each in sorted(ranges, key=lambda one: (one.start, one.is_point)):
        if not kept or kept[-1].is_point or each.start >= kept[-1].end:
            kept.append(each)
    return kept


@dataclass(frozen=True, slots=True)
class _Reader:
    alias: str | None
    definition: PartitionKeyDefinition
    scope: Scope

    def read(self, expr: nodes.Expr) -> Alternatives:
        known, value = _constant(expr, self.scope)
        if known:
            return None if value is True else []
        match expr:
            case nodes.Logical("AND", terms):
                return reduce(_both, map(self.read, terms), None)
            case nodes.Logical("OR", terms):
                return _any([self.read(term) for term in terms])
            case nodes.Binary("=", left, right):
                found = self._equal(left, right)
                return self._equal(right, left) if found is None else found
            case nodes.In(operand, items, False):
                return _any([self._equal(operand, item) for item in items])
            case nodes.Like(operand, pattern, escape, False):
                return self._like(operand, pattern, escape)
            case nodes.Unary("NOT", operand):
                return self._is(operand, False)
        return self._is(expr, True)

    def _level(self, expr: nodes.Expr) -> int | None:
        names: list[str] = []
        while isinstance(expr, nodes.Member):
            names.append(expr.name)
            expr = expr.base
        if self.definition.system_key or not isinstance(expr, nodes.Identifier):
            return None
        path = tuple(reversed(names))
        if expr.name != self.alias or path not in self.definition.paths:
            return None
        return self.definition.paths.index(path)

    def _is(self, expr: nodes.Expr, value: JSON) -> Alternatives:
        level = self._level(expr)
        return None if level is None else [{level: value}]

    def _equal(self, path: nodes.Expr, other: nodes.Expr) -> Alternatives:
        level = self._level(path)
        known, value = _constant(other, self.scope)
        if level is None or not known:
            return None
        # An equality with undefined is never true, and no item has a key that is not a scalar.
        if value is UNDEFINED or not self.scope.model.is_scalar(value):
            return []
        try:
            return [{level: self.scope.model.key(value)}]
        except BadInput:
            return None

    def _like(self, path: nodes.Expr, pattern: nodes.Expr, escape: str | None) -> Alternatives:
        level = self._level(path)
        known, value = _constant(pattern, self.scope)
        if level is None or not known or type(value) is not str:
            return None
        text = _without_wildcards(value, escape)
        return None if text is None else [{level: text}]


def _both(left: Alternatives, right: Alternatives) -> Alternatives:
    if left is None or right is None:
        return right if left is None else left
    if len(left) * len(right) > QUERY_KEYS_MAX:
        return min(left, right, key=len)
    return [{**one, **other} for one in left for other in right if _agree(one, other)]


def _agree(one: Alternative, other: Alternative) -> bool:
    return all(same_key((one[level],), (other[level],)) for level in one.keys() & other.keys())


def _any(alternatives: list[Alternatives]) -> Alternatives:
    found: list[Alternative] = []
    for each in alternatives:
        if each is None or len(found) + len(each) > QUERY_KEYS_MAX:
            return None
        found += each
    return found


def _without_wildcards(pattern: str, escape: str | None) -> str | None:
    """The one text that a pattern matches, if it is one."""
    text: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            text.append(next(characters, character))
        elif character in "%_[":
            return None
        else:
            text.append(character)
    return "".join(text)


def _constant(expr: nodes.Expr, scope: Scope) -> tuple[bool, JSON]:
    if any(isinstance(node, nodes.VARYING) for node in nodes.walk(expr)):
        return False, UNDEFINED
    return constant(expr, scope)
