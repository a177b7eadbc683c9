"""SQL syntax → text, with the habits of the original's query-plan rewriter (nosql-rest 5.5).

One clause per line, `AS` always written; expressions as `expr/text.py` writes them.
`parse(print_query(q)) == q` for every query the parser can make.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from armillary.query.expr.text import (
    is_plain_name,
    listed,
    print_expression,
    quoted,
)
from armillary.query.sql import ast


def print_query(query: ast.Query, separator: str = "\n") -> str:
    """The whole query; subqueries inside it stay on their line."""
    return separator.join(_clauses(query))


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
        yield f"GROUP BY {listed(query.group_by)}"
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
    return f"{text} AS {item.alias if is_plain_name(item.alias) else quoted(item.alias)}"


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
