"""AST → text, with the habits of the original's query-plan rewriter (nosql-rest 5.5).

One clause per line, `AS` always written, strings and member names in double quotes with JSON
escapes, every operator expression in parentheses. `parse(print_query(q)) == q` for every query the
parser can make. A `Parameter` is written as it stands, so a placeholder may be one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Final, assert_never

from armillary.query.sql import ast
from armillary.query.sql.lexer import is_plain_name
from armillary.values import UNDEFINED

_SURROGATE = re.compile("[\ud800-\udfff]")
#: What can stand before `.name` and `[index]` without parentheses of its own.
_PATH_BASES: Final = (
    ast.Identifier,
    ast.Member,
    ast.Index,
    ast.Call,
    ast.UdfCall,
    ast.Parameter,
    ast.ArrayLiteral,
    ast.ObjectLiteral,
    ast.Subquery,
)


def print_query(query: ast.Query, separator: str = "\n") -> str:
    """The whole query; subqueries inside it stay on their line."""
    return separator.join(_clauses(query))


def print_expression(expr: ast.Expr) -> str:
    match expr:
        case ast.Literal(value):
            return _constant(value)
        case ast.Parameter(name) | ast.Identifier(name):
            return name
        case ast.Member() | ast.Index():
            return _path(expr)
        case ast.ArrayLiteral(items):
            return f"[{_listed(items)}]"
        case ast.ObjectLiteral(members):
            inner = (f"{_string(each.name)}: {print_expression(each.value)}" for each in members)
            return "{" + ", ".join(inner) + "}"
        case ast.Call(name, args):
            return f"{name}({_listed(args)})"
        case ast.UdfCall(name, args):
            return f"udf.{name}({_listed(args)})"
        case ast.Unary():
            return _unary(expr)
        case ast.Binary(operator, left, right):
            return f"({print_expression(left)} {operator} {print_expression(right)})"
        case ast.Logical(operator, terms):
            return "(" + f" {operator} ".join(map(print_expression, terms)) + ")"
        case ast.Between() | ast.In() | ast.Like():
            return _test(expr)
        case ast.Conditional(test, then, otherwise):
            branches = f"{print_expression(then)} : {print_expression(otherwise)}"
            return f"({print_expression(test)} ? {branches})"
        case ast.Let(name, value, body):
            return f"(LET {name} = {print_expression(value)} IN {print_expression(body)})"
        case ast.Subquery(kind, query):
            return f"{'' if kind == 'SCALAR' else kind}({print_query(query, ' ')})"
        case _:
            assert_never(expr)


def _listed(items: Iterable[ast.Expr]) -> str:
    return ", ".join(map(print_expression, items))


def _string(value: str) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _SURROGATE.sub(lambda half: f"\\u{ord(half.group()):04x}", text)


def _constant(value: ast.Constant) -> str:
    if value is UNDEFINED:
        return "undefined"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "-Infinity" if value < 0 else "Infinity"
    return json.dumps(value)


def _path(expr: ast.Member | ast.Index) -> str:
    # Down to the root first: a path is a chain, and long ones should not recurse.
    steps: list[str] = []
    base: ast.Expr = expr
    while isinstance(base, ast.Member | ast.Index):
        if isinstance(base, ast.Index):
            steps.append(f"[{print_expression(base.index)}]")
        elif base.bracketed or not is_plain_name(base.name):
            steps.append(f"[{_string(base.name)}]")
        else:
            steps.append(f".{base.name}")
        base = base.base
    text = print_expression(base)
    # What has parentheses already needs no second pair; `1.a` would be a number.
    needs = not isinstance(base, _PATH_BASES) and not text.startswith("(")
    return (f"({text})" if needs else text) + "".join(reversed(steps))


def _unary(expr: ast.Unary) -> str:
    operand = print_expression(expr.operand)
    if expr.operator == "NOT":
        return f"(NOT {operand})"
    # A plain number keeps its sign without parentheses, unless two signs would make a comment.
    if isinstance(expr.operand, ast.Literal) and not operand.startswith("-"):
        return f"{expr.operator}{operand}"
    return f"({expr.operator}{' ' if operand[0] in '-+' else ''}{operand})"


def _test(expr: ast.Between | ast.In | ast.Like) -> str:
    operand = print_expression(expr.operand) + (" NOT" if expr.negated else "")
    match expr:
        case ast.Between(_, low, high):
            return f"({operand} BETWEEN {print_expression(low)} AND {print_expression(high)})"
        case ast.In(_, items):
            return f"({operand} IN ({_listed(items)}))"
        case ast.Like(_, pattern, escape):
            tail = "" if escape is None else f" ESCAPE {_string(escape)}"
            return f"({operand} LIKE {print_expression(pattern)}{tail})"
        case _:
            assert_never(expr)


# --- clauses ---


def _clauses(query: ast.Query) -> Iterable[str]:
    distinct = "DISTINCT " if query.distinct else ""
    top = f"TOP {print_expression(query.top.count)} " if query.top else ""
    yield f"SELECT {distinct}{top}{_selection(query.select)}"
    if query.source:
        first, *joined = query.source.sources
        yield f"FROM {_source(first)}"
        yield from (f"JOIN {_source(source)}" for source in joined)
    if query.where is not None:
        yield f"WHERE {print_expression(query.where)}"
    if query.group_by:
        yield f"GROUP BY {_listed(query.group_by)}"
    if query.order_by:
        yield f"ORDER BY {_order(query.order_by)}"
    if query.page:
        offset, limit = query.page.offset, query.page.limit
        yield f"OFFSET {print_expression(offset)} LIMIT {print_expression(limit)}"


def _selection(select: ast.Selection) -> str:
    match select:
        case ast.SelectStar():
            return "*"
        case ast.SelectValue(expr):
            return f"VALUE {print_expression(expr)}"
        case ast.SelectList(items):
            return ", ".join(map(_item, items))
        case _:
            assert_never(select)


def _item(item: ast.SelectItem) -> str:
    text = print_expression(item.expr)
    if item.alias is None:
        return text
    return f"{text} AS {item.alias if is_plain_name(item.alias) else _string(item.alias)}"


def _source(source: ast.Source) -> str:
    collection = print_expression(source.collection)
    if source.alias is None:
        return collection
    if source.iterates:
        return f"{source.alias.name} IN {collection}"
    return f"{collection} AS {source.alias.name}"


def _order(order: ast.OrderBy | ast.OrderByRank) -> str:
    if isinstance(order, ast.OrderByRank):
        direction = {None: "", False: " ASC", True: " DESC"}[order.descending]
        return f"RANK {print_expression(order.score)}{direction}"
    return ", ".join(
        print_expression(item.expr) + (" DESC" if item.descending else "") for item in order.items
    )
