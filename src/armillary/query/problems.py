"""What is wrong with a query text: codes, sentences and positions as the original reports them.

One `QueryError` per problem; a `BadQuery` carries all that were found. A syntax error stops at the
first, checks of meaning are collected. Codes and sentences are those of `nosql-query` section 8,
which has two codes for text that can't be read; the service itself seems to tell more cases apart
(docs/compatibility.md). An error without a known code has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from armillary.errors import BadInput

SYNTAX = "SC1001"
INVALID_STRING = "SC1010"

#: Every code we report, with what its location spans (None: it has no location).
CODES: Final[Mapping[str | int, str | None]] = {
    SYNTAX: "the token that cannot stand there, or the end of the text",
    INVALID_STRING: "the literal, from its quote",
    "SC2001": "the identifier",
    "SC2005": "the name of the function",
    "SC2011": "the second alias",
    "SC2040": "the star",
    "SC2041": "the star",
    "SC2050": "the call",
    "SC2060": "the number",
    "SC2061": "the number",
    "SC2062": "the number",
    "SC2101": "the outer call",
    "SC2102": "the reference",
    "SC2103": "the reference",
    "SC2202": "the ORDER BY clause",
    "SC2203": "TOP and its number",
    "SC2204": "the clause",
    2206: None,
    "SC2213": "the call",
    "SC2221": "the call",
    "SC2223": "the source",
    "SC2224": "all of FROM",
    "SC2225": "the subquery",
    "SC2228": "the clause",
    "SC2229": "the call",
    "SC2240": "the call",
    "SC2990": "the expression in brackets",
    "SC3005": "the query",
}


@dataclass(frozen=True, slots=True)
class QueryError:
    """`start` is -1 where the original gives no location; `code` is a number for 2206 only."""

    code: str | int | None
    message: str
    start: int = -1
    end: int = -1

    def payload(self) -> dict[str, Any]:
        body: dict[str, Any] = {"severity": "Error"}
        if self.start >= 0:
            body["location"] = {"start": self.start, "end": self.end}
        if self.code is not None:
            body["code"] = self.code
        body["message"] = self.message
        return body


class BadQuery(BadInput):
    """The text is not a query we can run. The message is the original's JSON document."""

    @classmethod
    def of(cls, errors: Iterable[QueryError]) -> BadQuery:
        found = tuple(errors)
        return cls(_json({"errors": [error.payload() for error in found]}), errors=found)

    @property
    def errors(self) -> tuple[QueryError, ...]:
        found: tuple[QueryError, ...] = self.facts["errors"]
        return found

    @property
    def payload(self) -> dict[str, Any]:
        document: dict[str, Any] = orjson.loads(self.message)
        return document


class RefusedQuery(BadQuery):
    """A correct query that the planner does not serve: sentences only, no codes or positions."""

    @classmethod
    def of(cls, errors: Iterable[QueryError]) -> RefusedQuery:
        found = tuple(errors)
        return cls(_json({"Errors": [error.message for error in found]}), errors=found)


def _json(document: dict[str, Any]) -> str:
    # The text of a query may hold a lone surrogate, which is not JSON; it is only quoted here.
    text = _encodable(document)
    return orjson.dumps(text).decode()


def _encodable(value: Any) -> Any:
    """The same document with lone surrogates replaced, so that it can be encoded."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {key: _encodable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_encodable(each) for each in value]
    return value


def syntax_error(text: str, start: int, end: int) -> BadQuery:
    """The token at start..end cannot stand there; at the end of the text there is none."""
    if start >= len(text):
        message = "Syntax error, unexpected end-of-file."
        return BadQuery.of([QueryError(SYNTAX, message, len(text), len(text))])
    message = f"Syntax error, incorrect syntax near '{text[start:end]}'."
    return BadQuery.of([QueryError(SYNTAX, message, start, end)])
