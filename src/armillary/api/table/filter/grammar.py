"""The `$filter` language of OData tables: text in, a tree out. Facts: table 6.

    expr   := and ('or' and)*              and := unary ('and' unary)*
    unary  := 'not' unary | '(' expr ')' | comparison
    comparison := operand (operator operand)?      operand := literal | property

    Age ge 30 and not (City eq 'Rome')   ──▶   And(Compare("ge", Age, 30), Not(Compare(…)))

A filter is small and comes from a stranger: its length, its terms and its depth have bounds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from armillary.api.table.problems import refused
from armillary.encoding import edm_values as edm
from armillary.encoding.edm_values import Tagged
from armillary.errors import BadInput
from armillary.limits import (
    TABLE_FILTER_CHARACTERS_MAX,
    TABLE_FILTER_DEPTH_MAX,
    TABLE_FILTER_TERMS_MAX,
)

OPERATORS: Final = frozenset({"eq", "ne", "gt", "ge", "lt", "le"})
MIRRORED: Final = {"eq": "eq", "ne": "ne", "gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}
WORDS: Final = OPERATORS | {"and", "or", "not"}


@dataclass(frozen=True, slots=True)
class Literal:
    value: tuple[int, str]
    """Type and the text of its stored value: hashable, so that filters can be kept."""

    @property
    def tagged(self) -> Tagged:
        kind, text = self.value
        if kind == edm.BOOLEAN:
            return edm.tagged(kind, text == "true")
        if kind == edm.INT32:
            return edm.tagged(kind, int(text))
        if kind == edm.DOUBLE:
            return edm.store_double(float(text))
        return edm.tagged(kind, text)


@dataclass(frozen=True, slots=True)
class Property:
    name: str


@dataclass(frozen=True, slots=True)
class Compare:
    operator: str
    left: Property
    right: Property | Literal


@dataclass(frozen=True, slots=True)
class Truth:
    """A property by itself: it is true."""

    property: Property


@dataclass(frozen=True, slots=True)
class Not:
    term: Filter


@dataclass(frozen=True, slots=True)
class And:
    terms: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    terms: tuple[Filter, ...]


Filter: TypeAlias = Compare | Truth | Not | And | Or


# --- tokens -------------------------------------------------------------------------------------


class Token(NamedTuple):
    kind: str
    text: str


_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<typed>(?:datetime|guid|binary|X)'(?:[^']|'')*')
      | (?P<string>'(?:[^']|'')*')
      | (?P<number>-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?[LlDdFf]?(?![\w.]))
      | (?P<name>[^\W\d]\w*)
      | (?P<sign>[(),])
    )""",
    re.VERBOSE,
)


def _tokens(text: str) -> list[Token]:
    if len(text) > TABLE_FILTER_CHARACTERS_MAX:
        raise refused("filter")
    found: list[Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise _bad(f"unexpected character at {at}")
        found.append(Token(match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return found


def _bad(reason: str) -> BadInput:
    return refused("filter", message=f"The filter is not valid: {reason}.")


# --- grammar ------------------------------------------------------------------------------------


def parse_filter(text: str) -> Filter:
    """Raises BadInput; functions and arithmetic are real OData that no service of tables has."""
    parser = _Parser(_tokens(text))
    found = parser.expression(0)
    if parser.at != len(parser.tokens):
        raise _bad(f"unexpected {parser.tokens[parser.at].text!r}")
    return found


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.terms = 0

    def expression(self, depth: int) -> Filter:
        terms = [self._and(depth)]
        while self._word("or"):
            terms.append(self._and(depth))
        return terms[0] if len(terms) == 1 else Or(tuple(terms))

    def _and(self, depth: int) -> Filter:
        terms = [self._unary(depth)]
        while self._word("and"):
            terms.append(self._unary(depth))
        return terms[0] if len(terms) == 1 else And(tuple(terms))

    def _unary(self, depth: int) -> Filter:
        if depth > TABLE_FILTER_DEPTH_MAX:
            raise _bad(f"it is nested deeper than {TABLE_FILTER_DEPTH_MAX}")
        if self._word("not"):
            return Not(self._unary(depth + 1))
        if self._sign("("):
            inner = self.expression(depth + 1)
            if not self._sign(")"):
                raise _bad("a parenthesis is not closed")
            return inner
        return self._comparison()

    def _comparison(self) -> Filter:
        self.terms += 1
        if self.terms > TABLE_FILTER_TERMS_MAX:
            raise _bad(f"it has more than {TABLE_FILTER_TERMS_MAX} comparisons")
        left = self._operand()
        token = self._peek()
        if token is None or token.text not in OPERATORS or token.kind != "name":
            if isinstance(left, Property):
                return Truth(left)
            raise _bad("a value stands alone")
        self.at += 1
        right = self._operand()
        if isinstance(left, Property):
            return Compare(token.text, left, right)
        if isinstance(right, Property):
            return Compare(MIRRORED[token.text], right, left)
        raise _bad("a comparison needs a property")

    def _operand(self) -> Property | Literal:
        token = self._peek()
        if token is None:
            raise _bad("it ends too early")
        self.at += 1
        if token.kind == "name":
            if token.text in ("true", "false"):
                return Literal((edm.BOOLEAN, token.text))
            if token.text in WORDS or token.text == "null":
                raise _bad(f"unexpected {token.text!r}")
            if self._sign("("):
                raise refused("not implemented")
            return Property(token.text)
        try:
            return _LITERALS[token.kind](token.text)
        except (KeyError, ValueError, OverflowError) as error:
            raise _bad(f"{token.text!r} is not a value") from error

    def _peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _word(self, word: str) -> bool:
        return self._take(Token("name", word))

    def _sign(self, sign: str) -> bool:
        return self._take(Token("sign", sign))

    def _take(self, token: Token) -> bool:
        if self._peek() != token:
            return False
        self.at += 1
        return True


# --- literals -----------------------------------------------------------------------------------


def _string(text: str) -> Literal:
    return Literal((edm.STRING, text[1:-1].replace("''", "'")))


def _number(text: str) -> Literal:
    digits, suffix = (text[:-1], text[-1].upper()) if text[-1].isalpha() else (text, "")
    if suffix in ("", "L") and digits.lstrip("-").isdecimal():
        value = edm.parse_integer(digits, edm.INT64_MIN, edm.INT64_MAX)
        if suffix == "" and edm.INT32_MIN <= value <= edm.INT32_MAX:
            return Literal((edm.INT32, str(value)))
        return Literal((edm.INT64, str(value)))
    if suffix == "L":
        raise ValueError("an Int64 has no fraction")
    return Literal((edm.DOUBLE, repr(float(digits))))


def _typed(text: str) -> Literal:
    kind, _, rest = text.partition("'")
    inner = rest[:-1]
    if kind == "datetime":
        return Literal((edm.DATETIME, edm.store_ticks(edm.parse_ticks(inner))[edm.VALUE]))
    if kind == "guid":
        return Literal((edm.GUID, edm.parse_guid(inner)))
    return Literal((edm.BINARY, edm.store_binary(bytes.fromhex(inner))[edm.VALUE]))


_LITERALS: Final = {"string": _string, "number": _number, "typed": _typed}
