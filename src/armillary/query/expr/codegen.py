"""An expression as the text of one Python function body: names of ours, and nothing of the user's.

    c.age > 30 AND c.city = "Ulm"
    ──▶  ((t2 := type(v1 := (v0.get(k0, U) if type(v0 := row[0]) is dict else U))) is int
          or t2 is float) and v1 > k1 and (v3 := (v0.get(k2, U) if …)) == k3
         k0 = "age"  k1 = 30  k2 = "city"  k3 = "Ulm"

Values of the query (literals, parameters, names of properties, functions) become entries of the
list `constants`, which the text calls k0, k1, …; v0, v1, … are what has been computed on the way.
So queries that differ only in values have one text, and `compile.py` keeps the compiled text.

What a value means is decided by `operators.py`; what is written out here is only what is common
enough in filters. Everything else is a call: of an operator, of a function, or (for queries inside
expressions and for what is nested very deeply) of a closure that `evaluate.py` made.

A path computed before is not computed again where it has been for certain: `known` has the paths
that every way to the present place goes through.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fmod
from typing import Any, Final, TypeAlias

from armillary.query.expr import nodes, operators
from armillary.query.expr.bounds import equality, spending
from armillary.query.expr.evaluate import Scope, make
from armillary.query.expr.like import like, matcher
from armillary.query.functions import FUNCTIONS
from armillary.values import JSON, UNDEFINED, identity

#: Python bounds the brackets in one another at 200; each level here opens at most five.
DEPTH_MAX: Final = 30
#: A chain of more terms than this is left to a loop over closures.
TERMS_MAX: Final = 50


def _defined(values: tuple[JSON, ...]) -> list[JSON]:
    return [value for value in values if value is not UNDEFINED]


def _object(names: tuple[str, ...], values: tuple[JSON, ...]) -> dict[str, JSON]:
    return {n: v for n, v in zip(names, values, strict=True) if v is not UNDEFINED}


_OPERATORS: Final = {
    operator: run.__name__ if run.__name__.isidentifier() and run.__name__ != "run" else f"bits{i}"
    for i, (operator, run) in enumerate(operators.BINARY.items())
}
#: Everything that a generated text may name alongside its own variables.
NAMES: Final[dict[str, Any]] = {
    "U": UNDEFINED,
    "type": type,
    "dict": dict,
    "list": list,
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    **{_OPERATORS[operator]: run for operator, run in operators.BINARY.items()},
    **{f"unary_{run.__name__}": run for run in operators.UNARY.values()},
    "between": operators.between,
    "contained": operators.contained,
    "element": operators.element,
    "fmod": fmod,
    "identity": identity,
    "like": like,
    "defined": _defined,
    "object_of": _object,
}


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same for every row."""

    value: JSON


@dataclass(frozen=True, slots=True)
class Test:
    """`test` where `guard` holds, undefined elsewhere. `test` gives a bool and stands after
    `guard`, whose variables it uses. `true` is a shorter way to ask whether it is true.
    """

    guard: str
    test: str
    true: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """Any value."""

    text: str


Code: TypeAlias = Fixed | Test | Text

_FLIPPED: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
#: Type checks that need no call: what must hold for the variable {v}.
CHECKS: Final = {
    "ISDEFINED": "{first} is not U",
    "ISNULL": "{first} is None",
    "ISSTRING": "type({first}) is str",
    "ISBOOL": "type({first}) is bool",
    "ISBOOLEAN": "type({first}) is bool",
    "ISARRAY": "type({first}) is list",
    "ISOBJECT": "type({first}) is dict",
}
#: Tests of a text against a constant text.
TEXT_TESTS: Final = {
    "CONTAINS": "{k} in {v}",
    "STARTSWITH": "{v}.startswith({k})",
    "ENDSWITH": "{v}.endswith({k})",
}


class Writer:
    """Writes one function. Make a new one for each."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.constants: list[Any] = []
        self._variables = 0
        self.known: dict[tuple[Any, ...], str] = {}
        self._depth = 0

    # --- the two ways to ask ---

    def value(self, expr: nodes.Expr) -> str:
        """Text whose value is that of the expression."""
        return self.as_value(self.code(expr))

    def truth(self, expr: nodes.Expr, wanted: bool = True) -> str:
        """Text that is true in Python exactly when the expression is `wanted`, and false else."""
        if isinstance(expr, nodes.Unary) and expr.operator == "NOT":
            return self.truth(expr.operand, not wanted)
        if isinstance(expr, nodes.Logical) and self._may_enter(expr):
            self._depth += 1
            text = self._chain(expr, wanted)
            self._depth -= 1
            return text
        code = self.code(expr)
        if isinstance(code, Fixed):
            return "True" if code.value is wanted else "False"
        if isinstance(code, Text):
            return f"({code.text}) is {wanted}"
        if wanted:
            return code.true or _both(code.guard, code.test)
        return _both(code.guard, f"not ({code.test})")

    def members(self, expr: nodes.ObjectLiteral) -> list[tuple[str, str, str]]:
        """(name, first use, later uses) of each member, to be computed one after another."""
        return [(self.fixed(each.name), *self._variable(each.value)) for each in expr.members]

    def _chain(self, expr: nodes.Logical, wanted: bool) -> str:
        """AND is true when all are true and false when one is false; OR the other way round. No
        term after the one that settles it is looked at.
        """
        first, *others = expr.terms
        parts = [self.truth(first, wanted)]
        before = dict(self.known)
        # Who gets to a term has been through all terms before it.
        parts += [self.truth(term, wanted) for term in others]
        self.known = before
        joined = " and " if wanted is (expr.operator == "AND") else " or "
        return "(" + joined.join(f"({part})" for part in parts) + ")"

    # --- dispatch ---

    def code(self, expr: nodes.Expr) -> Code:
        if not self._may_enter(expr):
            return self._closure(expr)
        self._depth += 1
        code = self._write(expr)
        self._depth -= 1
        return code

    def _may_enter(self, expr: nodes.Expr) -> bool:
        if isinstance(expr, nodes.Logical) and len(expr.terms) > TERMS_MAX:
            return False
        return self._depth < DEPTH_MAX

    def _write(self, expr: nodes.Expr) -> Code:
        match expr:
            case nodes.Literal(value):
                return Fixed(value)
            case nodes.Parameter(name):
                return Fixed(self._scope.parameters.get(name, UNDEFINED))
            case nodes.Identifier() | nodes.Member():
                return self._path(expr)
            case nodes.Call():
                return self._call(expr)
            case nodes.Logical():
                return self._logical(expr)
            case nodes.Conditional(test, then, otherwise):
                return self._conditional(test, then, otherwise)
            case nodes.Binary("=" | "!=" | "<" | "<=" | ">" | ">="):
                return self._comparison(expr)
            case nodes.Binary("??", left, right):
                return self._coalesce(left, right)
            case nodes.Let() | nodes.Subquery() | nodes.UdfCall():
                return self._closure(expr)
            case _:
                return self._plain(expr)

    def _closure(self, expr: nodes.Expr) -> Code:
        """What is not written out: a call of what `evaluate.py` makes of it."""
        made = make(expr, self._scope)
        if made.is_constant:
            return Fixed(made.run([]))
        return Text(f"{self.fixed(made.run)}(row)")

    # --- paths ---

    def _path(self, expr: nodes.Identifier | nodes.Member) -> Code:
        key = self._key(expr)
        if key is not None and key in self.known:
            return Text(self.known[key])
        if self._scope.computed_at(expr) is not None:
            return self._closure(expr)
        if isinstance(expr, nodes.Identifier):
            return Text(f"row[{self._scope.names[expr.name]}]")
        base = self.code(expr.base)
        if isinstance(base, Fixed):
            return Fixed(operators.member(base.value, expr.name))
        first, again = self._named(base, self._key(expr.base))
        name = self.fixed(expr.name)
        return Text(f"({again}.get({name}, U) if type({first}) is dict else U)")

    def _key(self, expr: nodes.Expr) -> tuple[Any, ...] | None:
        """What the value of a path depends on: its slot and its names."""
        names: list[str] = []
        while isinstance(expr, nodes.Member):
            names.append(expr.name)
            expr = expr.base
        return (
            (self._scope.names[expr.name], *names) if isinstance(expr, nodes.Identifier) else None
        )

    def _variable(self, expr: nodes.Expr) -> tuple[str, str]:
        """(text for the first use, text for uses after it)."""
        return self._named(self.code(expr), self._key(expr))

    def _named(self, code: Code, key: tuple[Any, ...] | None = None) -> tuple[str, str]:
        text = self.as_value(code)
        if text.isidentifier():
            return text, text
        variable = self.new("v")
        if key is not None:
            self.known[key] = variable
        return f"({variable} := {text})", variable

    def new(self, letter: str) -> str:
        self._variables += 1
        return f"{letter}{self._variables}"

    def fixed(self, value: Any) -> str:
        self.constants.append(value)
        return f"k{len(self.constants) - 1}"

    def as_value(self, code: Code) -> str:
        match code:
            case Fixed(value):
                return "U" if value is UNDEFINED else self.fixed(value)
            case Text(text):
                return text
            case Test("", test):
                return f"({test})"
            case Test(guard, test):
                return f"(({test}) if {guard} else U)"

    # --- comparison ---

    def _comparison(self, expr: nodes.Binary) -> Code:
        operator, left = expr.operator, self.code(expr.left)
        key = self._key(expr.left)
        right = self.code(expr.right)
        if isinstance(left, Fixed) and isinstance(right, Fixed):
            return self._closure(expr)
        if isinstance(left, Fixed):
            operator, left, right = _FLIPPED[operator], right, left  # type: ignore[assignment]
            key = self._key(expr.right)
        if isinstance(right, Fixed):
            value = right.value
            if operator in ("=", "!="):
                code = self._equality(operator, left, key, value)
            else:
                code = self._order(operator, left, key, value)
            if code is not None:
                return code
        name = _OPERATORS[operator]
        return Text(f"{name}({self.as_value(left)}, {self.as_value(right)})")

    def _equality(
        self, operator: str, left: Code, key: tuple[Any, ...] | None, value: JSON
    ) -> Test | None:
        """For scalars: Python's equality of a value with a text, and `is` with null and booleans,
        mean the same as ours; a number needs one more look, because True == 1.
        """
        if value is UNDEFINED or type(value) in (list, dict):
            return None
        first, v = self._named(left, key)
        if value is None or type(value) is bool:
            same, other = f"{{}} is {value}", f"{v} is not {value}"
        elif type(value) is str:
            k = self.fixed(value)
            same, other = f"{{}} == {k}", f"{v} != {k}"
        else:
            k = self.fixed(value)
            same = f"{{}} == {k} and type({v}) is not bool"
            other = f"{v} != {k} or type({v}) is bool"
        guard = f"{first} is not U"
        if operator == "=":
            return Test(guard, same.format(v), true=same.format(first))
        return Test(guard, other)

    def _order(
        self, operator: str, left: Code, key: tuple[Any, ...] | None, value: JSON
    ) -> Test | None:
        if type(value) is int or type(value) is float:
            first, v = self._named(left, key)
            return Test(self._is_number(first), f"{v} {operator} {self.fixed(value)}")
        if type(value) is str and value.isascii():
            # By UTF-16 unit and by code point differ only where both texts are beyond ASCII.
            first, v = self._named(left, key)
            return Test(f"type({first}) is str", f"{v} {operator} {self.fixed(value)}")
        return None

    def _is_number(self, first: str) -> str:
        kind = self.new("t")
        return f"(({kind} := type({first})) is int or {kind} is float)"

    # --- logic ---

    def _logical(self, expr: nodes.Logical) -> Code:
        decides = expr.operator == "OR"
        codes: list[str] = []
        before: dict[tuple[Any, ...], str] | None = None
        for term in expr.terms:
            codes.append(self.value(term))
            before = dict(self.known) if before is None else before
        assert before is not None, "there are two terms at least"
        self.known = before
        variables = [self.new("v") for _ in codes]
        settled = "".join(
            f"{decides} if ({v} := {text}) is {decides} else "
            for v, text in zip(variables, codes, strict=True)
        )
        agreed = " and ".join(f"{v} is {not decides}" for v in variables)
        return Text(f"({settled}{not decides} if {agreed} else U)")

    def _conditional(self, test: nodes.Expr, then: nodes.Expr, otherwise: nodes.Expr) -> Code:
        condition = self.truth(test)
        before = dict(self.known)
        one = self.value(then)
        self.known = dict(before)
        other = self.value(otherwise)
        self.known = before
        return Text(f"({one} if {condition} else {other})")

    def _coalesce(self, left: nodes.Expr, right: nodes.Expr) -> Code:
        code = self.code(left)
        if isinstance(code, Fixed):
            return self.code(right) if code.value is UNDEFINED else code
        first, v = self._named(code, self._key(left))
        before = dict(self.known)
        other = self.value(right)
        self.known = before
        return Text(f"({v} if {first} is not U else {other})")

    # --- calls ---

    def _call(self, expr: nodes.Call) -> Code:
        slot = self._scope.aggregates.get(expr)
        if slot is not None:
            return Text(f"row[{slot}]")
        function = FUNCTIONS[expr.function]
        if function.run is None or function.kind != "scalar":
            return self._closure(expr)  # which says that it can't be
        if expr.function in CHECKS and len(expr.args) == 1:
            first, _ = self._variable(expr.args[0])
            return Test("", CHECKS[expr.function].format(first=first))
        if expr.function == "ISNUMBER" and len(expr.args) == 1:
            first, _ = self._variable(expr.args[0])
            return Test("", self._is_number(first))
        codes = [self.code(arg) for arg in expr.args]
        if function.deterministic and all(isinstance(code, Fixed) for code in codes):
            return self._closure(expr)
        if expr.function in TEXT_TESTS and len(codes) == 2:
            other = codes[1]
            if isinstance(other, Fixed) and type(other.value) is str:
                first, v = self._named(codes[0], self._key(expr.args[0]))
                test = TEXT_TESTS[expr.function].format(v=v, k=self.fixed(other.value))
                return Test(f"type({first}) is str", test)
        given = [self.as_value(code) for code in codes]
        if function.context:
            given.insert(0, self.fixed(self._scope.context_for(expr)))
        run = spending(function, function.run, self._scope.frame.budget)
        return Text(f"{self.fixed(run)}({', '.join(given)})")

    # --- the rest ---

    def _plain(self, expr: nodes.Expr) -> Code:
        """Operators that look at all their operands, always."""
        parts = [self.code(child) for child in _operands(expr)]
        if all(isinstance(part, Fixed) for part in parts):
            return self._closure(expr)
        match expr:
            case nodes.Unary(operator):
                return Text(f"unary_{operators.UNARY[operator].__name__}({self._listed(parts)})")
            case nodes.Binary("=" | "!=" as operator):
                run = equality(self._scope.frame.budget, operator == "=")
                return Text(f"{self.fixed(run)}({self._listed(parts)})")
            case nodes.Binary("%", left) if _is_divisor(parts[1]):
                first, v = self._named(parts[0], self._key(left))
                k = self.as_value(parts[1])
                return Text(f"(fmod({v}, {k}) if type({first}) is int else remainder({v}, {k}))")
            case nodes.Binary(operator):
                return Text(f"{_OPERATORS[operator]}({self._listed(parts)})")
            case nodes.Index():
                return Text(f"element({self._listed(parts)})")
            case nodes.ArrayLiteral():
                return Text(f"defined(({self._listed(parts)},))")
            case nodes.ObjectLiteral(members):
                names = self.fixed(tuple(each.name for each in members))
                return Text(f"object_of({names}, ({self._listed(parts)},))")
            case nodes.Between():
                return self._negated(self._between(expr, parts), expr.negated)
            case nodes.In():
                return self._negated(self._in(expr, parts), expr.negated)
            case nodes.Like():
                return self._negated(self._like(expr, parts), expr.negated)
        raise AssertionError(f"no text for {expr}")

    def _listed(self, parts: list[Code]) -> str:
        return ", ".join(map(self.as_value, parts))

    def _negated(self, code: Code, negated: bool) -> Code:
        if not negated:
            return code
        if isinstance(code, Test):
            return Test(code.guard, f"not ({code.test})")
        return Text(f"unary_logical_not({self.as_value(code)})")

    def _between(self, expr: nodes.Between, parts: list[Code]) -> Code:
        operand, low, high = parts
        if isinstance(low, Fixed) and isinstance(high, Fixed) and not isinstance(operand, Fixed):
            ends = low.value, high.value
            if all(type(end) in (int, float) for end in ends):
                first, v = self._named(operand, self._key(expr.operand))
                one, other = map(self.fixed, ends)
                return Test(self._is_number(first), f"{one} <= {v} <= {other}")
            if all(type(end) is str and end.isascii() for end in ends):
                first, v = self._named(operand, self._key(expr.operand))
                one, other = map(self.fixed, ends)
                return Test(f"type({first}) is str", f"{one} <= {v} <= {other}")
        return Text(f"between({self._listed(parts)})")

    def _in(self, expr: nodes.In, parts: list[Code]) -> Code:
        operand, *items = parts
        wanted = [each.value for each in items if isinstance(each, Fixed)]
        if len(wanted) < len(items):
            return Text(f"contained({self.as_value(operand)}, ({self._listed(items)},))")
        wanted = [value for value in wanted if value is not UNDEFINED]
        first, v = self._named(operand, self._key(expr.operand))
        if all(type(value) is str for value in wanted):
            k = self.fixed(frozenset(wanted))
            true = f"type({first}) is str and {v} in {k}"
            return Test(f"{first} is not U", f"type({v}) is str and {v} in {k}", true=true)
        k = self.fixed(frozenset(map(identity, wanted)))
        return Test(f"{first} is not U", f"identity({v}) in {k}")

    def _like(self, expr: nodes.Like, parts: list[Code]) -> Code:
        operand, pattern = parts
        escape = expr.escape or ""
        if isinstance(pattern, Fixed) and type(pattern.value) is str and len(escape) <= 1:
            first, v = self._named(operand, self._key(expr.operand))
            matches = self.fixed(matcher(pattern.value, escape))
            return Test(f"type({first}) is str", f"{matches}({v})")
        return Text(f"like({self._listed(parts)}, {self.fixed(expr.escape)})")


def _both(guard: str, test: str) -> str:
    return f"{guard} and ({test})" if guard else f"({test})"


def _is_divisor(code: Code) -> bool:
    """Of any integer, without a look at what it is: then `remainder` is one call."""
    return isinstance(code, Fixed) and type(code.value) in (int, float) and code.value != 0


def _operands(expr: nodes.Expr) -> tuple[nodes.Expr, ...]:
    match expr:
        case nodes.Unary(_, operand):
            return (operand,)
        case nodes.Binary(_, left, right):
            return left, right
        case nodes.Index(base, index):
            return base, index
        case nodes.ArrayLiteral(items):
            return items
        case nodes.ObjectLiteral(members):
            return tuple(each.value for each in members)
        case nodes.Between(operand, low, high):
            return operand, low, high
        case nodes.In(operand, items):
            return operand, *items
        case nodes.Like(operand, pattern):
            return operand, pattern
    raise AssertionError(f"{expr} has no plain operands")
