"""Expressions as text: what plans and errors show, and what the SQL printer writes.

Strings and member names in double quotes with JSON escapes, every operator expression in
parentheses. A `Parameter` is written as it stands, so a placeholder may be one. An inner query's
text is that of its front end (`syntax_text`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from functools import singledispatch
from typing import Final, assert_never

from armillary.query.expr import nodes
from armillary.store.index.paths import ARRAY
from armillary.values import UNDEFINED

_RESERVED_WORDS = """
    AND ARRAY AS ASC BETWEEN BY CASE CAST CONVERT CROSS DESC DISTINCT ELSE END ESCAPE EXISTS FALSE
    FOR FROM GROUP HAVING IN INNER INSERT INTO IS JOIN LEFT LIKE LIMIT NOT NULL OFFSET ON OR ORDER
    OUTER OVER RIGHT SELECT SET THEN TOP TRUE UDF UNDEFINED UPDATE VALUE WHEN WHERE WITH
"""
RESERVED: Final = frozenset(_RESERVED_WORDS.split())

_SURROGATE = re.compile("[\ud800-\udfff]")
#: What can stand before `.name` and `[index]` without parentheses of its own.
_PATH_BASES: Final = (
    nodes.Identifier,
    nodes.Member,
    nodes.Index,
    nodes.Call,
    nodes.UdfCall,
    nodes.Parameter,
    nodes.ArrayLiteral,
    nodes.ObjectLiteral,
    nodes.Subquery,
)


@singledispatch
def syntax_text(query: nodes.Node) -> str:
    """An inner query on one line; front ends register theirs."""
    return "query"


def print_expression(expr: nodes.Expr) -> str:
    match expr:
        case nodes.Literal(value):
            return _constant(value)
        case nodes.Parameter(name) | nodes.Identifier(name):
            return name
        case nodes.Member() | nodes.Index():
            return _path(expr)
        case nodes.ArrayLiteral(items):
            return f"[{listed(items)}]"
        case nodes.ObjectLiteral(members):
            inner = (f"{quoted(each.name)}: {print_expression(each.value)}" for each in members)
            return "{" + ", ".join(inner) + "}"
        case nodes.Call(name, args):
            return f"{name}({listed(args)})"
        case nodes.UdfCall(name, args):
            return f"udf.{name}({listed(args)})"
        case nodes.Unary():
            return _unary(expr)
        case nodes.Binary(operator, left, right):
            return f"({print_expression(left)} {operator} {print_expression(right)})"
        case nodes.Logical(operator, terms):
            return "(" + f" {operator} ".join(map(print_expression, terms)) + ")"
        case nodes.Between() | nodes.In() | nodes.Like():
            return _test(expr)
        case nodes.Conditional(test, then, otherwise):
            branches = f"{print_expression(then)} : {print_expression(otherwise)}"
            return f"({print_expression(test)} ? {branches})"
        case nodes.Let(name, value, body):
            return f"(LET {name} = {print_expression(value)} IN {print_expression(body)})"
        case nodes.Subquery(kind, query):
            return f"{'' if kind == 'SCALAR' else kind}({syntax_text(query)})"
        case nodes.Native(label=label):
            return f"<{label}>"
        case nodes.StoredItem():
            return "stored item"
        case nodes.AtPath():
            return _at_path(expr)
        case _:
            assert_never(expr)


def _at_path(expr: nodes.AtPath) -> str:
    steps = ("[]" if step is ARRAY else f".{step}" for step in expr.path)
    path = f"{expr.root}{''.join(steps)}"
    if expr.operator == "defined":
        return f"(some {path})"
    value = json.dumps(expr.value, ensure_ascii=False, default=str)
    return f"({path} {expr.operator} {value})"


def listed(items: Iterable[nodes.Expr]) -> str:
    return ", ".join(map(print_expression, items))


def quoted(value: str) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _SURROGATE.sub(lambda half: f"\\u{ord(half.group()):04x}", text)


def _constant(value: nodes.Constant) -> str:
    if value is UNDEFINED:
        return "undefined"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "-Infinity" if value < 0 else "Infinity"
    return json.dumps(value)


def _path(expr: nodes.Member | nodes.Index) -> str:
    # Down to the root first: a path is a chain, and long ones should not recurse.
    steps: list[str] = []
    base: nodes.Expr = expr
    while isinstance(base, nodes.Member | nodes.Index):
        if isinstance(base, nodes.Index):
            steps.append(f"[{print_expression(base.index)}]")
        elif base.bracketed or not is_plain_name(base.name):
            steps.append(f"[{quoted(base.name)}]")
        else:
            steps.append(f".{base.name}")
        base = base.base
    text = print_expression(base)
    # What has parentheses already needs no second pair; `1.a` would be a number.
    needs = not isinstance(base, _PATH_BASES) and not text.startswith("(")
    return (f"({text})" if needs else text) + "".join(reversed(steps))


def _unary(expr: nodes.Unary) -> str:
    operand = print_expression(expr.operand)
    if expr.operator == "NOT":
        return f"(NOT {operand})"
    # A plain number keeps its sign without parentheses, unless two signs would make a comment.
    if isinstance(expr.operand, nodes.Literal) and not operand.startswith("-"):
        return f"{expr.operator}{operand}"
    return f"({expr.operator}{' ' if operand[0] in '-+' else ''}{operand})"


def _test(expr: nodes.Between | nodes.In | nodes.Like) -> str:
    operand = print_expression(expr.operand) + (" NOT" if expr.negated else "")
    match expr:
        case nodes.Between(_, low, high):
            return f"({operand} BETWEEN {print_expression(low)} AND {print_expression(high)})"
        case nodes.In(_, items):
            return f"({operand} IN ({listed(items)}))"
        case nodes.Like(_, pattern, escape):
            tail = "" if escape is None else f" ESCAPE {quoted(escape)}"
            return f"({operand} LIKE {print_expression(pattern)}{tail})"
        case _:
            assert_never(expr)


def is_plain_name(name: str) -> bool:
    """Whether `name` can be written as an identifier, without brackets or quotes."""
    return name.isascii() and name.isidentifier() and name.upper() not in RESERVED
