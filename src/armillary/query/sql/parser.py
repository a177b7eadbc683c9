"""Text → AST: the grammar of clauses, and the way in.

    query = SELECT … [FROM …] [WHERE …] [GROUP BY …] [ORDER BY …] [OFFSET … LIMIT …]

Written by hand, one function per rule of nosql-query 2.1, so that the first token that cannot stand
where it stands is the one the error names. Names, functions and everything that takes knowledge of
the rest of the query are the binder's business.
"""

from __future__ import annotations

from typing import Final

from armillary import limits
from armillary.query.sql import ast
from armillary.query.sql.cursor import too_deep
from armillary.query.sql.expressions import SUBQUERY_LEVELS, ExpressionParser, indexed

#: Nodes that cost no level: they are parts of the node above. A subquery costs what it takes to
#: walk through its clauses.
_LEVELS: Final[dict[type[ast.Node], int]] = {
    **dict.fromkeys(
        (
            ast.Query,
            ast.SelectList,
            ast.SelectItem,
            ast.SelectValue,
            ast.From,
            ast.Source,
            ast.OrderBy,
            ast.OrderItem,
        ),
        0,
    ),
    # As deep as the brackets that the printer writes, so that printed text can be read again.
    ast.In: 2,
    ast.Subquery: SUBQUERY_LEVELS + 1,
}


def parse(text: str) -> ast.Query:
    """The query a text means. Raises BadQuery with the position of the first token that fits
    nowhere.
    """
    parser = _Parser(text)
    query = parser.query()
    parser.expect("end")
    _check_height(query)
    return query


def parse_condition(text: str) -> ast.Query:
    """The condition of a patch, `FROM c WHERE …`: a query that lacks its SELECT."""
    parser = _Parser(text)
    query = parser.condition()
    parser.expect("end")
    _check_height(query)
    return query


class _Parser(ExpressionParser):
    def query(self) -> ast.Query:
        start = self.expect("SELECT").start
        distinct = self.accept("DISTINCT")
        top = self._top() if self.token.kind == "TOP" else None
        select = self._selection()
        source = self._from() if self.token.kind == "FROM" else None
        where = self.expression() if self.accept("WHERE") else None
        group_by = self._group_by() if self.token.kind == "GROUP" else ()
        order_by = self._order_by() if self.token.kind == "ORDER" else None
        page = self._page() if self.token.kind == "OFFSET" else None
        return ast.Query(
            select, source, where, group_by, order_by, page, distinct, top,
            start=start, end=self.end,
        )  # fmt: skip

    def condition(self) -> ast.Query:
        start = self.token.start
        source = self._from()
        where = self.expression() if self.accept("WHERE") else None
        return ast.Query(ast.SelectStar(), source, where, start=start, end=self.end)

    # --- SELECT ---

    def _top(self) -> ast.Top:
        start = self.take().start
        return ast.Top(self._count(), start=start, end=self.end)

    def _count(self, *, integer: bool = False) -> ast.Literal | ast.Parameter:
        if self.token.kind == "parameter":
            return self.parameter()
        if integer and not self._at_integer():
            self.fail()
        token = self.expect("number")
        return ast.Literal(token.value, start=token.start, end=token.end)

    def _at_integer(self) -> bool:
        """By its text: one too large for 64 bits has become a double, and the binder says so."""
        token = self.token
        return isinstance(token.value, int) or self.text[token.start : token.end].isdigit()

    def _selection(self) -> ast.Selection:
        start = self.token.start
        if self.accept("*"):
            return ast.SelectStar(start=start, end=self.end)
        if self.accept("VALUE"):
            expr = self.expression()
            # The documents allow an alias here; it has no meaning.
            self._alias()
            return ast.SelectValue(expr, start=start, end=self.end)
        items = [self._item()]
        while self.accept(","):
            items.append(self._item())
        return ast.SelectList(tuple(items), start=start, end=self.end)

    def _item(self) -> ast.SelectItem:
        start = self.token.start
        expr = self.expression()
        alias = self._alias()
        return ast.SelectItem(expr, alias, start=start, end=self.end)

    def _alias(self) -> str | None:
        if not self.accept("AS") and self.token.kind not in ("name", "string"):
            return None
        token = self.take() if self.token.kind == "string" else self.expect("name")
        return str(token.value)

    # --- FROM ---

    def _from(self) -> ast.From:
        self.expect("FROM")
        start = self.token.start
        sources = [self._source()]
        while self.accept("JOIN"):
            sources.append(self._source())
        return ast.From(tuple(sources), start=start, end=self.end)

    def _source(self) -> ast.Source:
        start = self.token.start
        if self.token.kind == "name" and self.peek().kind == "IN":
            alias = self._source_alias()
            self.take()
            return ast.Source(self._collection(), alias, True, start=start, end=self.end)
        collection = self._collection()
        named = self.accept("AS") or self.token.kind == "name"
        given = self._source_alias() if named else None
        return ast.Source(collection, given, start=start, end=self.end)

    def _source_alias(self) -> ast.Alias:
        token = self.expect("name")
        return ast.Alias(str(token.value), start=token.start, end=token.end)

    def _collection(self) -> ast.Identifier | ast.Member | ast.Index | ast.Subquery:
        start = self.token.start
        if self.token.kind == "(":
            return self.subquery("SCALAR", start)
        path: ast.Identifier | ast.Member | ast.Index
        path = ast.Identifier(self.name(), start=start, end=self.end)
        while True:
            if self.accept("."):
                path = ast.Member(path, self.name(), start=start, end=self.end)
            elif self.accept("["):
                token = self.take() if self.token.kind == "string" else self.expect("number")
                index = ast.Literal(token.value, start=token.start, end=token.end)
                self.expect("]")
                path = indexed(path, index, start, self.end)
            else:
                return path

    # --- GROUP BY, ORDER BY, OFFSET ---

    def _group_by(self) -> tuple[ast.Expr, ...]:
        self.take()
        self.expect("BY")
        return self.expressions()

    def _order_by(self) -> ast.OrderBy | ast.OrderByRank:
        start = self.take().start
        self.expect("BY")
        if self.at_word("RANK") and self._at_call(1):
            self.take()
            return ast.OrderByRank(self.call(), self._direction(), start=start, end=self.end)
        items = [self._order_item()]
        while self.accept(","):
            items.append(self._order_item())
        return ast.OrderBy(tuple(items), start=start, end=self.end)

    def _at_call(self, ahead: int) -> bool:
        kind = self.peek(ahead).kind
        return kind == "UDF" or (
            kind in ("name", "LEFT", "RIGHT") and self.peek(ahead + 1).kind == "("
        )

    def _order_item(self) -> ast.OrderItem:
        start = self.token.start
        expr, direction = self.expression(), self._direction()
        given = direction is not None
        return ast.OrderItem(expr, direction or False, given, start=start, end=self.end)

    def _direction(self) -> bool | None:
        if self.accept("DESC"):
            return True
        return False if self.accept("ASC") else None

    def _page(self) -> ast.OffsetLimit:
        clause = self.take()
        offset = self._count(integer=True)
        self.expect("LIMIT")
        limit = self._count(integer=True)
        return ast.OffsetLimit(offset, limit, start=clause.start, end=self.end)


def _check_height(query: ast.Query) -> None:
    """Refuse what later recursion could not walk: a chain such as `1+1+1+…` needs no brackets but
    makes a tree as tall as it is long.
    """
    waiting: list[tuple[ast.Node, int]] = [(query, 0)]
    while waiting:
        node, above = waiting.pop()
        height = above + _LEVELS.get(type(node), 1)
        if height > limits.QUERY_DEPTH_MAX:
            raise too_deep(node.start, node.end)
        waiting.extend((child, height) for child in ast.children(node))
