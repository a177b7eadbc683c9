"""The grammar of expressions. Precedence, from loose to tight (nosql-query 2.2):

    ? :    ??    OR    AND    IN LIKE    = < << …    ||    + - & | ^    * / %    - + ~ NOT    . []

Chains of one level are loops, not recursion: only brackets recurse, at five calls a level, so
that the deepest query fits Python's stack. BETWEEN is odd: its AND belongs to it, so a bare BETWEEN
can't be an operand of AND or OR at all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, cast

from armillary.query.sql import ast
from armillary.query.sql.cursor import Cursor
from armillary.values import UNDEFINED

#: Levels of the binary operators that bind tighter than IN, LIKE and BETWEEN.
BINDING: Final[dict[str, int]] = {
    **dict.fromkeys(("=", "!=", "<", ">", "<=", ">=", "<<", ">>", ">>>"), 1),
    "||": 2,
    **dict.fromkeys(("+", "-", "&", "|", "^"), 3),
    **dict.fromkeys(("*", "/", "%"), 4),
}
PREFIX: Final = frozenset({"-", "+", "~", "NOT"})
CONSTANTS: Final[dict[str, ast.Constant]] = {
    "TRUE": True,
    "FALSE": False,
    "NULL": None,
    "UNDEFINED": UNDEFINED,
}
NUMBER_WORDS: Final = {"NaN": float("nan"), "Infinity": float("inf")}
QUERY_WORDS: Final = frozenset({"ALL", "FIRST", "LAST"})
SUBQUERY_LEVELS: Final = 4  # what a subquery costs of the depth: its clauses are calls too


class ExpressionParser(Cursor, ABC):
    @abstractmethod
    def query(self) -> ast.Query:
        """The grammar of clauses, for subqueries."""

    def expression(self) -> ast.Expr:
        self.nest()
        # Tests that wait: alone for their ':', then with their first branch for the second.
        waiting: list[tuple[ast.Expr, ast.Expr | None]] = []
        while True:
            parts = [self._boolean()]
            while self.accept("??"):
                parts.append(self._boolean())
            value = _coalesce(parts)
            while waiting and self.token.kind != "?":
                test, then = waiting.pop()
                if then is None:
                    self.expect(":")
                    waiting.append((test, value))
                    break
                value = ast.Conditional(test, then, value, start=test.start, end=value.end)
            else:
                if not self.accept("?"):
                    self.unnest()
                    return value
                waiting.append((value, None))

    def expressions(self) -> tuple[ast.Expr, ...]:
        """One or more, separated by commas."""
        items = [self.expression()]
        while self.accept(","):
            items.append(self.expression())
        return tuple(items)

    # --- AND, OR, BETWEEN, IN, LIKE ---

    def _boolean(self) -> ast.Expr:
        first = self._comparison()
        negated = self.token.kind == "NOT"
        if (self.peek() if negated else self.token).kind == "BETWEEN":
            return self._between(first, negated)
        choices: list[ast.Expr] = []
        terms = [self._test(first)]
        while self.token.kind in ("AND", "OR"):
            if self.take().kind == "OR":
                choices.append(_logical("AND", terms))
                terms = []
            terms.append(self._test(self._comparison()))
        choices.append(_logical("AND", terms))
        return _logical("OR", choices)

    def _between(self, operand: ast.Expr, negated: bool) -> ast.Expr:
        if negated:
            self.take()
        self.take()
        low = self._comparison()
        self.expect("AND")
        high = self._comparison()
        return ast.Between(operand, low, high, negated, start=operand.start, end=self.end)

    def _test(self, operand: ast.Expr) -> ast.Expr:
        negated = self.token.kind == "NOT"
        kind = (self.peek() if negated else self.token).kind
        if kind not in ("IN", "LIKE"):
            return operand
        if negated:
            self.take()
        self.take()
        if kind == "IN":
            self.expect("(")
            items = self.expressions()
            self.expect(")")
            return ast.In(operand, items, negated, start=operand.start, end=self.end)
        pattern = self._comparison()
        escape = str(self.expect("string").value) if self.accept("ESCAPE") else None
        return ast.Like(operand, pattern, escape, negated, start=operand.start, end=self.end)

    # --- operators ---

    def _comparison(self) -> ast.Expr:
        """Everything tighter than IN: two stacks, so that no level costs a call."""
        operands = [self._operand()]
        operators: list[str] = []
        while (level := BINDING.get(self.token.kind, 0)) > 0:
            while operators and BINDING[operators[-1]] >= level:
                _reduce(operands, operators)
            operators.append(self.take().kind)
            operands.append(self._operand())
        while operators:
            _reduce(operands, operators)
        return operands[0]

    def _operand(self) -> ast.Expr:
        signs = []
        while self.token.kind in PREFIX:
            signs.append(self.take())
        start = self.token.start
        primary = PRIMARY.get(self._primary_kind())
        if primary is None:
            self.fail()
        value = primary(self)
        while True:
            if self.accept("."):
                value = ast.Member(value, self.name(), start=start, end=self.end)
            elif self.accept("["):
                index = self.expression()
                self.expect("]")
                value = indexed(value, index, start, self.end)
            else:
                break
        for sign in reversed(signs):
            operator = cast(ast.UnaryOperator, sign.kind)
            value = ast.Unary(operator, value, start=sign.start, end=self.end)
        return value

    # --- primaries: each is at its first token ---

    def _primary_kind(self) -> str:
        """The token's kind, but for a name what it is the name of."""
        kind = self.token.kind
        if kind != "name" or self.peek().kind != "(":
            return kind
        is_word = str(self.token.value).upper() in QUERY_WORDS
        return "subquery" if is_word and self.peek(2).kind == "SELECT" else "call"

    def _literal(self) -> ast.Expr:
        token = self.take()
        return ast.Literal(token.value, start=token.start, end=token.end)

    def _constant(self) -> ast.Expr:
        token = self.take()
        return ast.Literal(CONSTANTS[token.kind], start=token.start, end=token.end)

    def _parameter(self) -> ast.Expr:
        return self.parameter()

    def parameter(self) -> ast.Parameter:
        token = self.expect("parameter")
        return ast.Parameter(str(token.value), start=token.start, end=token.end)

    def _named(self) -> ast.Expr:
        token = self.take()
        name = str(token.value)
        if name in NUMBER_WORDS:
            return ast.Literal(NUMBER_WORDS[name], start=token.start, end=token.end)
        return ast.Identifier(name, start=token.start, end=token.end)

    def call(self) -> ast.Call | ast.UdfCall:
        # The loops here and in `_array` stand in place: a shared function would be one more call
        # on every level of nesting.
        start = self.token.start
        is_udf = self.accept("UDF")
        if is_udf:
            self.expect(".")
        token = self.expect("name") if is_udf else self.take()
        name = str(token.value)
        self.expect("(")
        args: list[ast.Expr] = []
        while self.token.kind != ")" or args:
            args.append(self.expression())
            if not self.accept(","):
                break
        self.expect(")")
        if is_udf:
            return ast.UdfCall(name, tuple(args), start=start, end=self.end)
        return ast.Call(name, tuple(args), name_end=token.end, start=start, end=self.end)

    def _array(self) -> ast.Expr:
        start = self.take().start
        items: list[ast.Expr] = []
        while self.token.kind != "]" or items:
            items.append(self.expression())
            if not self.accept(","):
                break
        self.expect("]")
        return ast.ArrayLiteral(tuple(items), start=start, end=self.end)

    def _object(self) -> ast.Expr:
        start = self.take().start
        members: list[ast.Property] = []
        while self.token.kind != "}" or members:
            name = self.take() if self.token.kind == "string" else self.expect("name")
            self.expect(":")
            value = self.expression()
            members.append(ast.Property(str(name.value), value, start=name.start, end=self.end))
            if not self.accept(","):
                break
        self.expect("}")
        return ast.ObjectLiteral(tuple(members), start=start, end=self.end)

    def _parenthesised(self) -> ast.Expr:
        if self.peek().kind == "SELECT":
            return self.subquery("SCALAR", self.token.start)
        start = self.take().start
        if self.at_word("LET") and self.peek().kind == "name":
            self.take()
            name = self.name()
            self.expect("=")
            value = self._nested_comparison()
            self.expect("IN")
            body = self._nested_comparison()
            self.expect(")")
            return ast.Let(name, value, body, start=start, end=self.end)
        inner = self.expression()
        self.expect(")")
        return inner

    def _nested_comparison(self) -> ast.Expr:
        self.nest()
        value = self._comparison()
        self.unnest()
        return value

    def _word_subquery(self) -> ast.Expr:
        token = self.take()
        kind = cast(ast.SubqueryKind, str(token.value).upper())
        return self.subquery(kind, token.start)

    def subquery(self, kind: ast.SubqueryKind, start: int) -> ast.Subquery:
        self.nest(SUBQUERY_LEVELS)
        self.expect("(")
        query = self.query()
        self.expect(")")
        self.unnest(SUBQUERY_LEVELS)
        return ast.Subquery(kind, query, start=start, end=self.end)


def indexed(base: ast.Expr, index: ast.Expr, start: int, end: int) -> ast.Member | ast.Index:
    """`base["name"]` is a member like any other."""
    if isinstance(index, ast.Literal) and isinstance(index.value, str):
        return ast.Member(base, index.value, bracketed=True, start=start, end=end)
    return ast.Index(base, index, start=start, end=end)


def _reduce(operands: list[ast.Expr], operators: list[str]) -> None:
    right = operands.pop()
    left = operands.pop()
    operator = cast(ast.BinaryOperator, operators.pop())
    operands.append(ast.Binary(operator, left, right, start=left.start, end=right.end))


def _coalesce(parts: list[ast.Expr]) -> ast.Expr:
    """From the right: `a ?? (b ?? c)`."""
    value = parts.pop()
    while parts:
        left = parts.pop()
        value = ast.Binary("??", left, value, start=left.start, end=value.end)
    return value


def _logical(operator: ast.LogicalOperator, terms: list[ast.Expr]) -> ast.Expr:
    if len(terms) == 1:
        return terms[0]
    return ast.Logical(operator, tuple(terms), start=terms[0].start, end=terms[-1].end)


#: What an operand can begin with.
PRIMARY: Final[dict[str, Callable[[ExpressionParser], ast.Expr]]] = {
    "number": ExpressionParser._literal,
    "string": ExpressionParser._literal,
    **dict.fromkeys(CONSTANTS, ExpressionParser._constant),
    "parameter": ExpressionParser._parameter,
    "name": ExpressionParser._named,
    **dict.fromkeys(("call", "LEFT", "RIGHT", "UDF"), ExpressionParser.call),
    "[": ExpressionParser._array,
    "{": ExpressionParser._object,
    "(": ExpressionParser._parenthesised,
    **dict.fromkeys(("subquery", "EXISTS", "ARRAY"), ExpressionParser._word_subquery),
}
