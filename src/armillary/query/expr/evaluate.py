"""Expressions as Python closures: each node of the AST becomes one small function of a row.

    c.age > @a   ──make──▶   row ↦ greater(member(row[0], "age"), 30)

A row is a list with one slot per name in scope; which slot a name has is decided here, once, so a
name costs an index and no lookup. Parts without names are computed while the closure is made.
Undefined is a value like any other; only `true` passes a filter.

This module is one way to evaluate, behind two functions (`make`, `constant`); `compile.py` goes
over to a faster one where that pays. It knows nothing of stores or plans. Queries inside
expressions are in `nested.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from armillary.budget import Budget, unbounded
from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.models import ValueModel
from armillary.errors import BadInput, NotSupported
from armillary.limits import QUERY_ELEMENTS_MAX
from armillary.query.expr import nodes
from armillary.query.expr.bounds import equality, spending, weigh
from armillary.query.expr.like import like, matcher
from armillary.query.expr.model_operators import MODEL_FUNCTIONS, between_of, binary_of
from armillary.query.expr.operators import BINARY, UNARY, between, contained, element, logical_not
from armillary.query.expr.queries import BoundQuery
from armillary.query.expr.rows import StoredRow
from armillary.query.functions import FUNCTIONS, Context
from armillary.store.index.paths import ARRAY, Path
from armillary.values import JSON, UNDEFINED

Row: TypeAlias = list[Any]
Expression: TypeAlias = Callable[[Row], JSON]


@dataclass(slots=True)
class Frame:
    """How many slots a row needs. All queries inside one another share a row, none share a slot."""

    size: int = 0
    elements: int = 0
    """Of arrays, gone through by FROM and JOIN for the item at hand."""
    budget: Budget = field(default_factory=unbounded)
    """Of the operation: every loop over values takes part."""
    held: int = 0
    """Bytes held of what was made for the item at hand."""
    stored: tuple[bytes, bytes] | None = None
    """Rid and stored value of the item at hand, where an output wants them."""

    def begin_item(self) -> None:
        """What was made for the item before has been used."""
        self.elements = 0
        if self.held:
            self.budget.release(self.held)
            self.held = 0

    def hold(self, value: JSON) -> None:
        """Count a value that is kept until the item is done with."""
        if self.budget.bounds_bytes:
            size = weigh(value, self.budget.bytes_left)
            self.held += size
            self.budget.hold(size)

    def slot(self) -> int:
        self.size += 1
        return self.size - 1

    def row(self) -> Row:
        return [UNDEFINED] * self.size

    def go_through(self, count: int) -> None:
        """Joins multiply: a small item can have more combinations than anyone can wait for."""
        self.elements += count
        if self.elements > QUERY_ELEMENTS_MAX:
            raise BadInput(
                f"The query goes through more than {QUERY_ELEMENTS_MAX} array elements of one "
                "item; join fewer arrays, or filter them in subqueries before they are joined."
            )


@dataclass(frozen=True, slots=True)
class Computed:
    """A property that is an expression over the item, which it calls `root`."""

    root: str
    expr: nodes.Expr


class Scope(msgspec.Struct, frozen=True):
    """What names mean at one place of a query."""

    frame: Frame
    parameters: Mapping[str, JSON]
    context: Context
    names: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Name → slot."""
    bound: BoundQuery | None = None
    """The query around the place: it knows the queries inside its expressions."""
    aggregates: Mapping[nodes.Call, int] = msgspec.field(default_factory=dict)
    """Aggregate → the slot that holds its result, once rows have been folded."""
    computed: Mapping[str, Computed] = msgspec.field(default_factory=dict)
    items: frozenset[int] = frozenset()
    """The slots that hold the item itself: computed properties are properties of it alone."""
    model: ValueModel = JSON_MODEL
    """How values compare."""

    def named(self, name: str | None) -> tuple[Scope, int]:
        """The scope with one more name, and its slot."""
        slot = self.frame.slot()
        return (self if name is None else replace(self, names={**self.names, name: slot})), slot

    def computed_at(self, expr: nodes.Expr) -> tuple[Computed, int] | None:
        """The computed property that a path of one name speaks of, and the slot of its item."""
        if not self.computed or not isinstance(expr, nodes.Member):
            return None
        found = self.computed.get(expr.name)
        if found is None or not isinstance(expr.base, nodes.Identifier):
            return None
        slot = self.names[expr.base.name]
        return (found, slot) if slot in self.items else None

    def context_for(self, call: nodes.Call) -> Context:
        """What a function may know: the policies of the container speak of paths of its items."""
        context = self.context
        if not context.languages and not context.metrics:
            return context
        for arg in call.args[:2]:
            path = nodes.property_path(arg)
            if path is not None and self.names.get(path[0]) in self.items:
                return context.at(path[1:])
        return context


class Made(NamedTuple):
    run: Expression
    is_constant: bool


def constant(expr: nodes.Expr, scope: Scope) -> tuple[bool, JSON]:
    """(whether the expression is the same for every row, its value if so)."""
    made = make(expr, scope)
    return (True, made.run([])) if made.is_constant else (False, UNDEFINED)


def make(expr: nodes.Expr, scope: Scope) -> Made:
    return _MAKERS[type(expr)](expr, scope)


def _constant(value: JSON) -> Made:
    return Made(lambda row: value, True)


def _folded(run: Expression, parts: Iterable[Made]) -> Made:
    """The closure, or its value when it depends on nothing."""
    if not all(part.is_constant for part in parts):
        return Made(run, False)
    try:
        return _constant(run([]))
    except BadInput:  # too large a result: an error only if a row gets there
        return Made(run, False)


# --- leaves and access ----------------------------------------------------------------------------


def _literal(expr: nodes.Literal, scope: Scope) -> Made:
    return _constant(expr.value)


def _parameter(expr: nodes.Parameter, scope: Scope) -> Made:
    """A parameter that was not given is undefined (unverified)."""
    return _constant(scope.parameters.get(expr.name, UNDEFINED))


def _identifier(expr: nodes.Identifier, scope: Scope) -> Made:
    slot = scope.names[expr.name]
    return Made(lambda row: row[slot], False)


def _member(expr: nodes.Member, scope: Scope) -> Made:
    name = expr.name
    if (computed := scope.computed_at(expr)) is not None:
        found, slot = computed
        made = make(found.expr, replace(scope, names={found.root: slot}, computed={}))
        return Made(made.run, False)
    if isinstance(expr.base, nodes.Identifier):  # nearly every path: one call less
        slot = scope.names[expr.base.name]

        def of_slot(row: Row) -> JSON:
            value = row[slot]
            return value.get(name, UNDEFINED) if type(value) is dict else UNDEFINED

        return Made(of_slot, False)
    base = make(expr.base, scope)
    inner = base.run

    def of_value(row: Row) -> JSON:
        value = inner(row)
        return value.get(name, UNDEFINED) if type(value) is dict else UNDEFINED

    return _folded(of_value, [base])


def _index(expr: nodes.Index, scope: Scope) -> Made:
    base, index = make(expr.base, scope), make(expr.index, scope)
    value, at = base.run, index.run
    return _folded(lambda row: element(value(row), at(row)), [base, index])


# --- construction ---------------------------------------------------------------------------------


def _array(expr: nodes.ArrayLiteral, scope: Scope) -> Made:
    parts = [make(item, scope) for item in expr.items]
    runs = [part.run for part in parts]
    return _folded(
        lambda row: [value for run in runs if (value := run(row)) is not UNDEFINED], parts
    )


def _object(expr: nodes.ObjectLiteral, scope: Scope) -> Made:
    parts = [make(each.value, scope) for each in expr.members]
    runs = [(each.name, part.run) for each, part in zip(expr.members, parts, strict=True)]

    def run(row: Row) -> JSON:
        made: dict[str, JSON] = {}
        for name, inner in runs:
            value = inner(row)
            if value is not UNDEFINED:
                made[name] = value
        return made

    return _folded(run, parts)


# --- operators ------------------------------------------------------------------------------------


def _unary(expr: nodes.Unary, scope: Scope) -> Made:
    operand = make(expr.operand, scope)
    apply, inner = UNARY[expr.operator], operand.run
    return _folded(lambda row: apply(inner(row)), [operand])


def _binary(expr: nodes.Binary, scope: Scope) -> Made:
    left, right = make(expr.left, scope), make(expr.right, scope)
    one, other = left.run, right.run
    if scope.model is not JSON_MODEL:
        apply = binary_of(scope.model)[expr.operator]
    elif right.is_constant and not left.is_constant and expr.operator == "=":
        return Made(_equals(one, other([])), False)
    elif expr.operator in ("=", "!="):
        apply = equality(scope.frame.budget, expr.operator == "=")
    else:
        apply = BINARY[expr.operator]
    if right.is_constant and not left.is_constant:
        value = other([])
        return Made(lambda row: apply(one(row), value), False)
    return _folded(lambda row: apply(one(row), other(row)), [left, right])


def _equals(run: Expression, wanted: JSON) -> Expression:
    """`= constant`, the commonest filter: for a scalar, equal type and equal value is all."""
    kind = type(wanted)
    if kind is not str:
        equal = BINARY["="]
        return lambda row: equal(run(row), wanted)

    def equals_text(row: Row) -> JSON:
        value = run(row)
        if type(value) is kind:
            return value == wanted
        return UNDEFINED if value is UNDEFINED else False

    return equals_text


def _logical(expr: nodes.Logical, scope: Scope) -> Made:
    decides = expr.operator == "OR"  # true decides an OR, false an AND
    parts = [make(term, scope) for term in expr.terms]
    if any(isinstance(term, nodes.Native) for term in expr.terms):
        # Conditions that are there for the index alone need not be asked for each row.
        parts = [part for part in parts if not part.is_constant or part.run([]) is decides]
    runs = [part.run for part in parts]

    def run(row: Row) -> JSON:
        result: JSON = not decides
        for inner in runs:
            value = inner(row)
            if value is decides:
                return decides
            if value is not (not decides):
                result = UNDEFINED
        return result

    return _folded(run, parts)


def _between(expr: nodes.Between, scope: Scope) -> Made:
    parts = [make(each, scope) for each in (expr.operand, expr.low, expr.high)]
    value, low, high = (part.run for part in parts)
    inside = between if scope.model is JSON_MODEL else between_of(scope.model)
    found: Expression = lambda row: inside(value(row), low(row), high(row))  # noqa: E731
    return _folded(_negated(found) if expr.negated else found, parts)


def _in(expr: nodes.In, scope: Scope) -> Made:
    operand = make(expr.operand, scope)
    parts = [make(item, scope) for item in expr.items]
    value, runs = operand.run, [part.run for part in parts]
    identity, same = scope.model.identity, scope.model.same
    if all(part.is_constant for part in parts):
        wanted = frozenset(identity(each) for run in runs if (each := run([])) is not UNDEFINED)

        def among(row: Row) -> JSON:
            found = value(row)
            return identity(found) in wanted if found is not UNDEFINED else UNDEFINED

        run: Expression = among
    else:
        run = lambda row: contained(value(row), tuple(each(row) for each in runs), same)  # noqa: E731
    return _folded(_negated(run) if expr.negated else run, [operand, *parts])


def _like(expr: nodes.Like, scope: Scope) -> Made:
    operand, pattern = make(expr.operand, scope), make(expr.pattern, scope)
    value, wanted, escape = operand.run, pattern.run, expr.escape
    run: Expression = lambda row: like(value(row), wanted(row), escape)  # noqa: E731
    if pattern.is_constant and type(wanted([])) is str and len(escape or "") <= 1:
        matches = matcher(wanted([]), escape or "")

        def run(row: Row) -> JSON:
            text = value(row)
            return matches(text) if type(text) is str else UNDEFINED

    return _folded(_negated(run) if expr.negated else run, [operand, pattern])


def _negated(run: Expression) -> Expression:
    return lambda row: logical_not(run(row))


def _conditional(expr: nodes.Conditional, scope: Scope) -> Made:
    parts = [make(each, scope) for each in (expr.test, expr.then, expr.otherwise)]
    test, then, otherwise = (part.run for part in parts)
    return _folded(lambda row: then(row) if test(row) is True else otherwise(row), parts)


# --- calls and inner names ------------------------------------------------------------------------


def _call(expr: nodes.Call, scope: Scope) -> Made:
    if (slot := scope.aggregates.get(expr)) is not None:
        return Made(lambda row: row[slot], False)
    function = FUNCTIONS[expr.function]
    compute = function.run
    if scope.model is not JSON_MODEL and expr.function in MODEL_FUNCTIONS:
        compute = MODEL_FUNCTIONS[expr.function](scope.model)
    if compute is None or function.kind != "scalar":
        raise NotSupported(f"{expr.name} can't be computed here.")
    compute = spending(function, compute, scope.frame.budget)
    parts = [make(arg, scope) for arg in expr.args]
    runs = [part.run for part in parts]
    context = scope.context_for(expr) if function.context else scope.context
    if function.context:
        run: Expression = lambda row: compute(context, *[inner(row) for inner in runs])  # noqa: E731
    elif len(runs) == 1:
        only = runs[0]
        run = lambda row: compute(only(row))  # noqa: E731
    else:
        run = lambda row: compute(*[inner(row) for inner in runs])  # noqa: E731
    return _folded(run, parts) if function.deterministic else Made(run, False)


def _udf(expr: nodes.UdfCall, scope: Scope) -> Made:
    functions = scope.context.functions
    if functions is None:
        raise NotSupported(f"The user-defined function '{expr.name}' can't be called here.")
    runs = [make(arg, scope).run for arg in expr.args]
    call = functions.caller(expr.name, expr)
    if len(runs) == 1:
        only = runs[0]
        return Made(lambda row: call([only(row)]), False)
    return Made(lambda row: call([run(row) for run in runs]), False)


def _let(expr: nodes.Let, scope: Scope) -> Made:
    value = make(expr.value, scope)
    inner, slot = scope.named(expr.name)
    body = make(expr.body, inner)
    bound, run_body = value.run, body.run

    def run(row: Row) -> JSON:
        row[slot] = bound(row)
        return run_body(row)

    return Made(run, False)


def _subquery(expr: nodes.Subquery, scope: Scope) -> Made:
    from armillary.query.expr.nested import make_subquery  # the two modules need each other

    return Made(make_subquery(expr, scope), False)


# --- what front ends bring along ------------------------------------------------------------------


def _native(expr: nodes.Native, scope: Scope) -> Made:
    slot, compute = scope.names[expr.root], expr.compute
    return Made(lambda row: compute(row[slot]), False)


def _at_path(expr: nodes.AtPath, scope: Scope) -> Made:
    if expr.hint:
        return _constant(True)
    slot, path, model = scope.names[expr.root], expr.path, scope.model
    wanted = expr.value
    if expr.operator == "defined":
        test: Callable[[JSON], JSON] = lambda value: True  # noqa: E731
    else:
        compare = BINARY if model is JSON_MODEL else binary_of(model)
        apply = compare[expr.operator]
        test = lambda value: apply(value, wanted)  # noqa: E731

    def run(row: Row) -> JSON:
        return any(test(value) is True for value in values_at(row[slot], path))

    return Made(run, False)


def _stored(expr: nodes.StoredItem, scope: Scope) -> Made:
    frame = scope.frame

    def run(row: Row) -> JSON:
        return UNDEFINED if frame.stored is None else StoredRow(*frame.stored)

    return Made(run, False)


def values_at(value: JSON, path: Path) -> Iterator[JSON]:
    """Everything that an index path leads to: `ARRAY` is every element."""
    for at, segment in enumerate(path):
        if segment is ARRAY:
            if type(value) is list:
                for element in value:
                    yield from values_at(element, path[at + 1 :])
            return
        if type(value) is not dict or segment not in value:
            return
        value = value[segment]
    yield value


_MAKERS: Final[dict[type, Callable[[Any, Scope], Made]]] = {
    nodes.Literal: _literal,
    nodes.Parameter: _parameter,
    nodes.Identifier: _identifier,
    nodes.Member: _member,
    nodes.Index: _index,
    nodes.ArrayLiteral: _array,
    nodes.ObjectLiteral: _object,
    nodes.Unary: _unary,
    nodes.Binary: _binary,
    nodes.Logical: _logical,
    nodes.Between: _between,
    nodes.In: _in,
    nodes.Like: _like,
    nodes.Conditional: _conditional,
    nodes.Call: _call,
    nodes.UdfCall: _udf,
    nodes.Let: _let,
    nodes.Subquery: _subquery,
    nodes.Native: _native,
    nodes.AtPath: _at_path,
    nodes.StoredItem: _stored,
}
