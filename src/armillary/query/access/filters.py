"""Which part of the index can answer a filter: expressions in, lookups out.

    c.age > 3 AND c.city = "Oslo"     Lookup(/age, (3, …)) and Lookup(/city, "Oslo"); one is read or
                                      both, and the filter is checked again on what they find
    c.a = 1 OR c.b = 2                both, united
    EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = "x")        Lookup(/tags/[], "x")

A lookup finds every item that can pass (never fewer). When it is `exact` it finds no others, and
counting its entries is counting the items. Nothing here reads an index; `index_read.py` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import msgspec

from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.models import ValueModel
from armillary.query.access import term_ranges as ranges
from armillary.query.access.kinds.registry import BELOW, CALLS
from armillary.query.access.lookups import Access, Both, Either, Lookup, Places, path_at
from armillary.query.access.term_ranges import Ranges, Terms
from armillary.query.expr import nodes
from armillary.query.expr.evaluate import Scope, constant
from armillary.query.expr.queries import BoundQuery
from armillary.query.functions import FUNCTIONS
from armillary.query.plan.nodes import Plan, conjuncts, fact
from armillary.store.index.paths import ARRAY, Path
from armillary.store.rows import layout
from armillary.values import JSON, UNDEFINED

T = TypeVar("T")


def accesses(plan: Plan, scope: Scope) -> Sequence[Access]:
    """One for each conjunct of the filter that an index can help with."""
    return _once(plan, scope, "accesses", _accesses)


def exact_filter(plan: Plan, scope: Scope) -> Access | None:
    """The one access that answers the whole filter, if there is such a one: then an item passes
    exactly when it is found.
    """
    return _once(plan, scope, "exact filter", _exact_filter)


def _once(plan: Plan, scope: Scope, name: str, find: Callable[[Plan, Scope], T]) -> T:
    """What `find` says; found once for a plan whose filter says the same in every run. Each run
    spends what finding it took, so that none is charged less than the first.
    """
    if scope.model is not JSON_MODEL or not fact(plan, "says the same", _says_the_same):
        return find(plan, scope)
    budget = scope.frame.budget
    found: T
    if name in plan.known:
        found, steps = plan.known[name]
        budget.spend(steps)
    else:
        before = budget.steps
        found = find(plan, scope)
        plan.known[name] = found, budget.steps - before
    return found


def _says_the_same(plan: Plan) -> bool:
    """Whatever the parameters, the time and the policies of the container are."""
    return plan.where is None or not any(
        isinstance(node, nodes.Parameter)
        or (isinstance(node, nodes.Call) and FUNCTIONS[node.function].context)
        for node in nodes.walk(plan.where)
    )


def _accesses(plan: Plan, scope: Scope) -> Sequence[Access]:
    places = _places(plan.bound)
    if plan.base is not None or not places:
        return []
    found: list[Access] = []
    for term in conjuncts(plan.where):
        access = _Reading(scope, plan.bound).access(term, places)
        if access is not None:
            found.append(access)
    return _tightened(found)


def _tightened(found: list[Access]) -> list[Access]:
    """`c.n > 3` and `c.n < 9` → one lookup between both. Not for elements of an array: one may be
    above 3 and another below 9.
    """
    by_path: dict[Path, list[Lookup]] = {}
    others: list[Access] = []
    for access in found:
        is_range = isinstance(access, Lookup) and access.kind == layout.IX
        if not isinstance(access, Lookup) or not is_range or ARRAY in access.path:
            others.append(access)
        else:
            by_path.setdefault(access.path, []).append(access)
    return [*map(_intersection, by_path.values()), *others]


def _intersection(lookups: list[Lookup]) -> Lookup:
    """Two by two, in rounds: one after the other, a thousand `!=` would take a thousand times all
    the ranges that are left between them.
    """
    while len(lookups) > 1:
        pairs = zip(lookups[::2], lookups[1::2], strict=False)
        rest = lookups[-1:] if len(lookups) % 2 else []
        lookups = [*(_both_of(one, other) for one, other in pairs), *rest]
    return lookups[0]


def _both_of(one: Lookup, other: Lookup) -> Lookup:
    both = (one.ranges, one.exact), (other.ranges, other.exact)
    return Lookup(one.path, *ranges.intersection(*both), model=one.model)


def _exact_filter(plan: Plan, scope: Scope) -> Access | None:
    only_items = len(plan.sources) == 1 and plan.sources[0].yields == "item"
    if not only_items or plan.base is not None:
        return None
    reading, places = _Reading(scope, plan.bound), _places(plan.bound)
    parts = [reading.access(term, places) for term in conjuncts(plan.where)]
    known = [part for part in parts if part is not None and part.exact]
    found = _tightened(known)
    if len(known) < len(parts) or not found:
        return None
    return found[0] if len(found) == 1 else Both(tuple(found), exact=True)


def _places(bound: BoundQuery) -> dict[str, Path]:
    places: dict[str, Path] = {}
    for number, source in enumerate(bound.sources):
        if source.query is not None:
            if number == 0:
                return {}
            places.pop(source.alias or "", None)
            continue
        collection = source.collection
        if source.root is None:
            root = nodes.path_root(collection)
            assert root is not None
            path = path_at(collection, {root.name: ()})
        else:
            path = path_at(collection, places)
        if source.alias is None:
            continue
        places.pop(source.alias, None)
        if path is not None:
            places[source.alias] = (*path, ARRAY) if source.yields == "elements" else path
    return places


_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
_NEGATED: Final = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "=": "!=", "!=": "="}


def both_ways(
    operator: str, left: nodes.Expr, right: nodes.Expr
) -> Iterator[tuple[nodes.Expr, nodes.Expr, str]]:
    """`a < b` → (a, b, "<") and (b, a, ">"); nothing if it is no comparison."""
    if operator in _FLIPPED:
        yield left, right, operator
        yield right, left, _FLIPPED[operator]


def comparison_terms(operator: str, value: JSON, model: ValueModel) -> Terms:
    """What is at a path whose value compares so with a constant."""
    if operator == "=":
        return ranges.equal_to(value, model)
    if operator == "!=":
        return ranges.not_equal_to(value, model)
    return ranges.compared_to(operator, value, model)


@dataclass(frozen=True, slots=True)
class _Reading:
    """One filter being read. Conditions on elements of a joined array hold for a row, not for an
    item, so they are never exact.
    """

    scope: Scope
    bound: BoundQuery

    @property
    def model(self) -> ValueModel:
        return self.scope.model

    def access(self, expr: nodes.Expr, places: Places) -> Access | None:
        match expr:
            case nodes.Logical("AND", terms):
                return self._both(terms, places)
            case nodes.Logical("OR", terms):
                return self.either([self.access(term, places) for term in terms])
            case nodes.Binary(operator, left, right) if operator in _FLIPPED:
                return self._comparison(operator, left, right, places)
            case nodes.Unary("NOT", nodes.Binary(operator, left, right)) if operator in _NEGATED:
                return self._comparison(_NEGATED[operator], left, right, places)
            case nodes.Unary("NOT", operand):
                return self._flag(operand, False, places)
            case nodes.In(operand, items, negated):
                values = self.constants(items)
                if values is None:
                    return None
                listed = ranges.none_of if negated else ranges.one_of
                found = listed(values, self.model)
                return self._terms(operand, found, places)
            case nodes.Between(operand, low, high, False):
                bounds = self.constants((low, high))
                if bounds is None:
                    return None
                return self._terms(
                    operand, ranges.between(bounds[0], bounds[1], self.model), places
                )
            case nodes.Like(operand, pattern, escape, negated):
                return self._like(operand, pattern, escape or "", negated, places)
            case nodes.Call():
                return self._call(expr, places)
            case nodes.Subquery("EXISTS"):
                return self._exists(expr, places)
            case nodes.Identifier() | nodes.Member():
                return self._flag(expr, True, places)
            case nodes.AtPath():
                return self._at_path(expr, places)
        return None

    def _flag(self, expr: nodes.Expr, value: bool, places: Places) -> Access | None:
        """A filter passes the value true itself; another one that is `same` has to be looked at."""
        found, exact = ranges.equal_to(value, self.model)
        return self._terms(expr, (found, exact and self.model is JSON_MODEL), places)

    def _at_path(self, expr: nodes.AtPath, places: Places) -> Access | None:
        if expr.root not in places or not ranges.can_compare(expr.value):
            return None
        path = (*places[expr.root], *expr.path)
        found: Ranges = (self.model.everything,)
        exact = True
        if expr.operator == "defined":
            pass
        elif expr.operator == "=":
            found, exact = ranges.equal_to(expr.value, self.model)
        else:
            found, exact = ranges.compared_to(expr.operator, expr.value, self.model)
        joined = ARRAY in places[expr.root]
        return Lookup(path, found, exact and not joined and not expr.hint, model=self.model)

    # --- combinations ---

    def _both(self, terms: Sequence[nodes.Expr], places: Places) -> Access | None:
        parts = [self.access(term, places) for term in terms]
        given = [part for part in parts if part is not None]
        if not given:
            return None
        is_whole = len(given) == len(terms)
        found = tuple(_tightened(given))
        if len(found) == 1 and is_whole:
            return found[0]
        return Both(found, is_whole and all(part.exact for part in found))

    def either(self, parts: Sequence[Access | None]) -> Access | None:
        found = [part for part in parts if part is not None]
        if len(found) < len(parts):
            return None
        lookups = [part for part in found if isinstance(part, Lookup)]
        places = {(lookup.kind, lookup.path) for lookup in lookups}
        if len(lookups) == len(found) and len(places) == 1:
            united, exact = ranges.union((part.ranges, part.exact) for part in lookups)
            return msgspec.structs.replace(lookups[0], ranges=united, exact=exact)
        return Either(tuple(found))

    # --- one path against constants ---

    def _terms(self, operand: nodes.Expr, terms: Terms, places: Places) -> Lookup | None:
        path = path_at(operand, places)
        if not path:
            return None
        found, exact = terms
        is_certain = exact and (ARRAY not in path or self._is_inner(operand))
        return Lookup(path, found, is_certain, model=self.model)

    def _is_inner(self, operand: nodes.Expr) -> bool:
        """Whether an element belongs to a query inside the filter rather than to a joined row."""
        root = nodes.path_root(operand)
        return root is not None and all(root.name != each.alias for each in self.bound.sources)

    def _comparison(
        self, operator: str, left: nodes.Expr, right: nodes.Expr, places: Places
    ) -> Access | None:
        for one, other, sign in both_ways(operator, left, right):
            values = self.constants((other,))
            if values is None:
                continue
            (value,) = values
            if isinstance(one, nodes.Call) and one.function in BELOW and sign in ("<", "<="):
                return BELOW[one.function](self, one, value, places)
            if path_at(one, places) is None:
                continue
            return self._terms(one, comparison_terms(sign, value, self.model), places)
        return None

    def _like(
        self, operand: nodes.Expr, pattern: nodes.Expr, escape: str, negated: bool, places: Places
    ) -> Access | None:
        values = self.constants((pattern,))
        if values is None or len(escape) > 1 or self.model is not JSON_MODEL:
            return None
        (text,) = values
        if not isinstance(text, str):
            return self._terms(operand, ranges.NOTHING, places)
        if negated:
            return self._terms(operand, ((ranges.STRINGS,), False), places)
        beginning, rest = ranges.fixed_beginning(text, escape)
        if rest == "nothing":
            return self._terms(operand, ranges.equal_to(beginning), places)
        found, exact = ranges.beginning_with(beginning)
        return self._terms(operand, (found, exact and rest == "anything"), places)

    def constants(self, exprs: Sequence[nodes.Expr]) -> list[JSON] | None:
        values: list[JSON] = []
        for expr in exprs:
            if isinstance(expr, nodes.Literal | nodes.Parameter):
                pass  # nearly every constant: no need to look inside
            elif any(isinstance(node, nodes.VARYING) for node in nodes.walk(expr)):
                return None
            known, value = constant(expr, self.scope)
            if not known or not ranges.can_compare(value):
                return None
            values.append(value)
        return values

    # --- functions ---

    def _call(self, call: nodes.Call, places: Places) -> Access | None:
        name = call.function
        if self.model is not JSON_MODEL and name not in _ANY_MODEL:
            return None
        if name == "ISDEFINED":
            return self._terms(call.args[0], ((self.model.everything,), True), places)
        if name in ranges.TYPE_TESTS:
            return self._terms(call.args[0], (ranges.TYPE_TESTS[name], True), places)
        reader = _CALLS.get(name)
        return None if reader is None else reader(self, call, places)

    def _starts_with(self, call: nodes.Call, places: Places) -> Access | None:
        values = self.constants(call.args[1:])
        if values is None:
            return None
        prefix, *flags = values
        if not isinstance(prefix, str) or any(type(flag) is not bool for flag in flags):
            return None
        if flags and flags[0]:
            return self._terms(call.args[0], ((ranges.STRINGS,), False), places)
        return self._terms(call.args[0], ranges.beginning_with(prefix), places)

    def _string_equals(self, call: nodes.Call, places: Places) -> Access | None:
        values = self.constants(call.args[1:])
        if values is None or len(values) != 1 or not isinstance(values[0], str):
            return None
        return self._terms(call.args[0], ranges.equal_to(values[0]), places)

    def _any_string(self, call: nodes.Call, places: Places) -> Access | None:
        return self._terms(call.args[0], ((ranges.STRINGS,), False), places)

    def _array_contains(self, call: nodes.Call, places: Places) -> Access | None:
        listed = self.constants(call.args[:1])
        if listed is not None and len(call.args) == 2:
            if not isinstance(listed[0], list) or not path_at(call.args[1], places):
                return None
            return self._terms(call.args[1], self._one_of(listed[0]), places)
        values = self.constants(call.args[1:])
        if values is None or (type(values[-1]) is not bool and len(values) > 1):
            return None
        value, *flags = values
        partial = bool(flags and flags[0])
        if partial and isinstance(value, dict):
            if self.model is not JSON_MODEL:
                return None
            return self._element(call.args[0], ((ranges.equal_to({})[0]), False), places)
        return self._element(call.args[0], ranges.equal_to(value, self.model), places)

    def _array_contains_any(self, call: nodes.Call, places: Places) -> Access | None:
        values = self.constants(call.args[1:])
        if values is None or not path_at(call.args[0], places):
            return None
        return self._element(call.args[0], self._one_of(values), places)

    def _one_of(self, values: Iterable[JSON]) -> Terms:
        """A parameter may list as many values as a body has room for."""
        spend = self.scope.frame.budget.spend

        def counted() -> Iterator[JSON]:
            for value in values:
                spend()
                yield value

        return ranges.one_of(counted(), self.model)

    def _array_contains_all(self, call: nodes.Call, places: Places) -> Access | None:
        values = self.constants(call.args[1:])
        if values is None:
            return None
        terms = [ranges.equal_to(value, self.model) for value in values]
        parts = [self._element(call.args[0], each, places) for each in terms]
        found = tuple(part for part in parts if part is not None)
        if len(found) < len(parts):
            return None
        return Both(found, all(part.exact for part in found))

    def _element(self, array: nodes.Expr, terms: Terms, places: Places) -> Lookup | None:
        path = path_at(array, places)
        if not path:
            return None
        found, exact = terms
        joined = ARRAY in path and not self._is_inner(array)
        return Lookup((*path, ARRAY), found, exact and not joined, model=self.model)

    # --- inner queries ---

    def _exists(self, node: nodes.Subquery, places: Places) -> Access | None:
        """EXISTS over the elements of an array. Exact when one condition on the element is all
        there is, and when a row can't be undefined.
        """
        bound = self.bound.subquery(node)
        if bound.is_grouped or len(bound.sources) != 1 or bound.sources[0].query is not None:
            return None
        source = bound.sources[0]
        path = path_at(source.collection, places)
        if path is None or source.yields != "elements" or source.alias is None:
            return None
        inner = {**places, source.alias: (*path, ARRAY)}
        if bound.where is None:
            return None
        terms = list(conjuncts(bound.where))
        reading = _Reading(self.scope, bound)
        found = [access for term in terms if (access := self._inner(reading, term, inner))]
        if not found:
            return None
        output = bound.output
        certain = (
            isinstance(output, nodes.ObjectLiteral)
            or (isinstance(output, nodes.Literal) and output.value is not UNDEFINED)
            or (isinstance(output, nodes.Identifier) and output.name == source.alias)
        )
        first = found[0]
        if len(terms) == 1 and isinstance(first, Lookup):
            # Only a condition on the element itself: one on another name says nothing about it.
            own = first.path[: len(path) + 1] == (*path, ARRAY)
            exact = first.exact and certain and own and first.path.count(ARRAY) == 1
            return msgspec.structs.replace(first, exact=exact)
        return Both(tuple(found))

    def _inner(self, reading: _Reading, term: nodes.Expr, places: Places) -> Access | None:
        outer = _Reading(reading.scope, _no_sources(reading.bound))
        return outer.access(term, places)


def _no_sources(bound: BoundQuery) -> BoundQuery:
    """The inner query as a place to read conditions in: its own elements count as inner."""
    return replace(bound, sources=())


#: Functions that compare as the model does; the others are about JSON.
_ANY_MODEL: Final = frozenset(
    {"ISDEFINED", "ARRAYCONTAINS", "ARRAYCONTAINSANY", "ARRAYCONTAINSALL"}
)
_CALLS: Final[dict[str, Callable[[Any, nodes.Call, Places], Access | None]]] = {
    "STARTSWITH": _Reading._starts_with,
    "STRINGEQUALS": _Reading._string_equals,
    "CONTAINS": _Reading._any_string,
    "ENDSWITH": _Reading._any_string,
    "REGEXMATCH": _Reading._any_string,
    **CALLS,
    "ARRAYCONTAINS": _Reading._array_contains,
    "ARRAYCONTAINSANY": _Reading._array_contains_any,
    "ARRAYCONTAINSALL": _Reading._array_contains_all,
}
