"""A position in a list of tokens: look, take, expect, fail; and how deep we are.

The parser's grammar is in `expressions.py` and `parser.py`; this is what both stand on.
"""

from __future__ import annotations

from typing import NoReturn

from armillary import limits
from armillary.query.problems import BadQuery, QueryError, syntax_error
from armillary.query.sql.lexer import Token, tokenize, unreadable


def too_deep(start: int, end: int) -> BadQuery:
    message = (
        f"The SQL query is nested too deeply. The allowed limit is {limits.QUERY_DEPTH_MAX} levels."
    )
    return BadQuery.of([QueryError(None, message, start, end)])


class Cursor:
    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = tokenize(text)
        self._at = 0
        self.token = self._tokens[0]
        self.end = 0  # where the last taken token ended
        self._depth = 0

    def peek(self, ahead: int = 1) -> Token:
        """The token after this one; the last token repeats for ever."""
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def take(self) -> Token:
        taken = self.token
        self.end = taken.end
        if taken.kind != "end":
            self._at += 1
            self.token = self._tokens[self._at]
        return taken

    def accept(self, kind: str) -> bool:
        if self.token.kind != kind:
            return False
        self.take()
        return True

    def expect(self, kind: str) -> Token:
        if self.token.kind != kind:
            self.fail()
        return self.take()

    def fail(self) -> NoReturn:
        if self.token.kind == "broken":
            raise unreadable(self.text, self.token)
        raise syntax_error(self.text, self.token.start, self.token.end)

    def at_word(self, word: str) -> bool:
        """At a name that is a keyword in this place only (LET, RANK, FIRST, ...)."""
        return self.token.kind == "name" and str(self.token.value).upper() == word

    def name(self) -> str:
        return str(self.expect("name").value)

    def nest(self, levels: int = 1) -> None:
        """Enter a bracket. Recursion happens only through brackets, so this bounds it."""
        self._depth += levels
        if self._depth > limits.QUERY_DEPTH_MAX:
            raise too_deep(self.token.start, self.token.end)

    def unnest(self, levels: int = 1) -> None:
        self._depth -= levels
