"""Expressions as compiled Python: `codegen.py` writes the text, here it becomes a function.

    expression ──Writer──▶ text, constants ──compiled once per text──▶ factory(constants) ──▶ f(row)

The text holds no value of a query, so it is the query with every literal made a parameter, and the
key of the bounded cache: the same question with other numbers costs no compilation. The same
text always means the same, because it is all that is compiled.

`compile_expression` is `evaluate.make`, faster: wherever that gives a value this gives the same. It
may give one where that fails (a result too long, two rows of a scalar query), because it does not
look at operands that can't matter. Very small and very large expressions stay closures: the first
gain nothing, the second would take longer to compile than to run.

`make_expression` begins with closures and compiles when an expression has been used often: to
compile takes as long as some hundred rows (a first time: a thousand) take to be evaluated by
closures.

HOT: once per item per predicate; numbers in bench/evaluate.py; reference
tests/property/test_compile.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final, TypeAlias

from armillary.encoding.json_model import JSON_MODEL
from armillary.query.expr import nodes
from armillary.query.expr.alternatives import make_alternatives
from armillary.query.expr.codegen import NAMES, Writer
from armillary.query.expr.evaluate import Expression, Row, Scope, make
from armillary.values import JSON

Factory: TypeAlias = Callable[..., Any]
Compiler: TypeAlias = Callable[[nodes.Expr, Scope], Expression]

#: Rows that closures evaluate before it pays to compile.
ROWS_FIRST: Final = 500
#: The same where the text was compiled before and is only written again.
ROWS_AGAIN: Final = 100
#: Compiled texts that are kept.
TEXTS_MAX: Final = 256
#: Larger expressions are not compiled. Compiling costs some 15 µs per node.
NODES_MAX: Final = 300


def make_expression(expr: nodes.Expr, scope: Scope) -> Expression:
    """Closures, until it has been used often enough to be worth compiling."""
    return _tiered(expr, scope, compile_expression)


def make_filter(expr: nodes.Expr, scope: Scope) -> Expression:
    """The same for who asks only whether it is true: false and undefined may be mixed up."""
    found = make_alternatives(expr, scope) if scope.model is JSON_MODEL else None
    return found or _tiered(expr, scope, compile_filter)


def _tiered(expr: nodes.Expr, scope: Scope, compiled: Compiler) -> Expression:
    """Closures that are compiled once the expression has seen `ROWS_FIRST` rows."""
    closure = make(expr, scope).run
    if _is_small(expr) or scope.model is not JSON_MODEL:
        return closure
    current, left = closure, ROWS_FIRST

    def run(row: Row) -> JSON:
        nonlocal current, left
        if left:
            left -= 1
            if not left and not any(isinstance(node, _IN_SLOTS) for node in nodes.walk(expr)):
                current = compiled(expr, scope)
        return current(row)

    return run


def compile_expression(expr: nodes.Expr, scope: Scope) -> Expression:
    """The value of the expression for a row."""
    if _is_small(expr) or is_large(expr):
        return make(expr, scope).run
    writer = Writer(scope)
    if isinstance(expr, nodes.ObjectLiteral) and expr.members:
        lines = ["made = {}"]
        for name, first, again in writer.members(expr):
            lines += [f"if {first} is not U: made[{name}] = {again}"]
        lines.append("return made")
    else:
        lines = [f"return {writer.value(expr)}"]
    return _function(lines, writer)


def compile_filter(expr: nodes.Expr, scope: Scope) -> Callable[[list[Any]], bool]:
    """Whether the expression is true for a row. False and undefined are the same here, which is
    what makes a filter cheaper than a value.
    """
    if is_large(expr):
        run = make(expr, scope).run
        return lambda row: run(row) is True
    writer = Writer(scope)
    return _function([f"return {writer.truth(expr)}"], writer)


def _function(lines: list[str], writer: Writer) -> Expression:
    made: Expression = function_of("row", lines, writer)
    return made


def function_of(arguments: str, lines: Iterable[str], writer: Writer) -> Any:
    """The function with such a body, from the cache when its text is known."""
    names = ", ".join(f"k{number}" for number in range(len(writer.constants)))
    body = "\n".join(f"  {line}" for line in lines)
    text = f"def make({names}):\n def run({arguments}):\n{body}\n return run\n"
    return _factory(text)(*writer.constants)


@lru_cache(maxsize=TEXTS_MAX)
def _factory(text: str) -> Factory:
    # Without builtins: a text can do what its vocabulary can, and that is known.
    names: dict[str, Any] = {"__builtins__": {}, **NAMES}
    exec(compile(text, "<query>", "exec"), names)
    factory: Factory = names["make"]
    return factory


def _is_small(expr: nodes.Expr) -> bool:
    """A name, a constant, a property: one closure, and not slower than a function."""
    if isinstance(expr, nodes.Member):
        return isinstance(expr.base, nodes.Identifier)
    return isinstance(expr, _LEAVES)


def is_closed(expr: nodes.Expr) -> bool:
    """Whether what is made of it needs nothing but rows: no parameter, no time, no place in a row
    of its own, and no budget, which comparisons of arrays spend on.
    """
    return all(isinstance(node, _CLOSED) and not _spends(node) for node in nodes.walk(expr))


def _spends(node: nodes.Node) -> bool:
    if not isinstance(node, nodes.Binary) or node.operator not in ("=", "!="):
        return False
    return not isinstance(node.left, nodes.Literal) and not isinstance(node.right, nodes.Literal)


def is_large(expr: nodes.Expr) -> bool:
    count = 0
    waiting: list[nodes.Node] = [expr]
    while waiting:
        node = waiting.pop()
        count += 1
        if count > NODES_MAX:
            return True
        if isinstance(node, nodes.In) and all(isinstance(i, _PLAIN) for i in node.items):
            waiting.append(node.operand)  # the list becomes one constant
        elif not isinstance(node, nodes.Subquery):  # which is not compiled
            waiting.extend(nodes.children(node))
    return False


_PLAIN: Final = (nodes.Literal, nodes.Parameter)
_LEAVES: Final = (nodes.Identifier, *_PLAIN)
_CLOSED: Final = (
    nodes.Literal, nodes.Identifier, nodes.Member, nodes.Binary, nodes.Unary, nodes.Logical,
    nodes.Between, nodes.In,
)  # fmt: skip
#: The first two take slots of the row when they are made: once there are rows it is too late. The
#: others are functions already.
_IN_SLOTS: Final = (nodes.Subquery, nodes.Let, nodes.Native, nodes.AtPath)
