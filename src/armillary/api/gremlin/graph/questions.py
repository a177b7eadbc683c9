"""What a scan of the graph asks the container, as a query with parameters.

    g.V().hasLabel('person').has('age', gt(30))
    → NOT IS_DEFINED(c._isEdge) AND c.label = @a AND (EXISTS(… p._value > @b) OR c["age"] > @b)

Texts depend on the shape of the filter alone, so that their plans are kept. A condition that has no
words here is left out: the steps check every element again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from armillary.api.gremlin.graph.base import Condition
from armillary.api.gremlin.graph.elements import EDGE, RESERVED, VALUE
from armillary.api.gremlin.machine.predicates import P
from armillary.values import JSON

SIGNS: Final = {"eq": "=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
PAIRS: Final = {"between": (">=", "<"), "inside": (">", "<")}
IS_VERTEX: Final = f"NOT IS_DEFINED(c.{EDGE})"
IS_EDGE: Final = f"c.{EDGE} = true"


@dataclass(slots=True)
class Question:
    """A filter under construction."""

    terms: list[str]
    parameters: dict[str, JSON] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "SELECT * FROM c WHERE " + " AND ".join(self.terms)

    def put(self, value: Any) -> str:
        name = f"@p{len(self.parameters)}"
        self.parameters[name] = value
        return name

    def one_of(self, place: str, values: Sequence[Any]) -> str:
        if len(values) == 1:
            return f"{place} = {self.put(values[0])}"
        return f"ARRAY_CONTAINS({self.put(list(values))}, {place})"

    def _test(self, place: str, test: P) -> str | None:
        """The test on a path; None when it has no words here."""
        name, value = test.name, test.value
        if test.tests:
            if name == "negate":
                return None
            parts = [self._test(place, one) for one in test.tests]
            if any(part is None for part in parts):
                return None if name == "or" else self._some(parts)
            return "(" + f" {name.upper()} ".join(str(part) for part in parts) + ")"
        if name in SIGNS and is_plain(value):
            return f"{place} {SIGNS[name]} {self.put(value)}"
        if name in PAIRS and all(map(is_plain, value)):
            low, high = PAIRS[name]
            return f"({place} {low} {self.put(value[0])} AND {place} {high} {self.put(value[1])})"
        if name == "within" and all(map(is_plain, value)):
            return self.one_of(place, value) if value else "false"
        if name == "startingWith" and isinstance(value, str):
            return f"STARTSWITH({place}, {self.put(value)})"
        return None

    @staticmethod
    def _some(parts: Sequence[str | None]) -> str | None:
        known = [part for part in parts if part is not None]
        return "(" + " AND ".join(known) + ")" if known else None

    def add(self, condition: Condition, *, edges: bool, plain: frozenset[str]) -> None:
        """`plain`: properties that are values of their own in a vertex, not lists."""
        name = condition.name
        if name in ("~id", "~label"):
            self._add(self._test(f"c.{name[1:]}", condition.test))
            return
        if name in RESERVED and name != "_etag" and name != "_ts":
            return
        place = f"c[{json.dumps(name)}]"
        direct = self._test(place, condition.test)
        if direct is None or edges or name in plain or name in RESERVED:
            self._add(direct)
            return
        inner = self._test(f"p.{VALUE}", condition.test)
        self._add(f"(EXISTS(SELECT VALUE p FROM p IN {place} WHERE {inner}) OR {direct})")

    def _add(self, term: str | None) -> None:
        if term is not None:
            self.terms.append(term)


def is_plain(value: Any) -> bool:
    return isinstance(value, str | bool | int | float)


def fixed_values(conditions: Sequence[Condition], name: str) -> list[Any] | None:
    """The values that a property must have one of, if the conditions say so."""
    for one in conditions:
        if one.name != name:
            continue
        test = one.test
        if test.name == "eq" and is_plain(test.value):
            return [test.value]
        if test.name == "within" and all(map(is_plain, test.value)):
            return list(test.value)
    return None
