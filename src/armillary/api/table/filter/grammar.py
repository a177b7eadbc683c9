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
from armillary.encoding.edm import values as edm
from armillary.encoding.edm.values import Tagged
from armillary.errors import BadInput
from armillary.limits import (
    TABLE_FILTER_CHARACTERS_MAX,
    TABLE_FILTER_DEPTH_MAX,
    TABLE_FILTER_TERMS_MAX,
)

OPERATORS: Final = frozenset({"eq", "ne", "gt", "ge", "lt", "le"})
MIRRORED: Final = {"eq": "eq", "ne": "ne", "gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}
SHOWN_CHARACTERS: Final = 20  # of what is wrong
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
    at: int
    """Where it begins, from 1: what people count."""


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
        most = f"{TABLE_FILTER_CHARACTERS_MAX:,}"
        raise refused("filter", hint=f"$filter has {len(text):,} characters; {most} are allowed.")
    found: list[Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            raise _bad(_strange(text, at), at + 1)
        group = match.lastgroup
        found.append(Token(group, match[group], match.start(group) + 1))
        at = match.end()
    return found


def _strange(text: str, at: int) -> str:
    if text[at] == "'":
        return "this text has no closing quote"
    if text[at] in "=<>!":
        return "comparisons are written eq, ne, gt, ge, lt, le"
    if text[at] in "&|":
        return "conditions are joined by and, or"
    return f"unexpected {text[at : at + SHOWN_CHARACTERS]!r}"


def _bad(reason: str, at: int) -> BadInput:
    return refused("filter", hint=f"$filter, character {at}: {reason}.")


# --- grammar ------------------------------------------------------------------------------------


def parse_filter(text: str) -> Filter:
    """Raises BadInput; functions and arithmetic are real OData that no service of tables has."""
    parser = _Parser(_tokens(text), len(text) + 1)
    found = parser.expression(0)
    if parser.at != len(parser.tokens):
        raise parser.unexpected(parser.tokens[parser.at], "and, or, or the end")
    return found


class _Parser:
    def __init__(self, tokens: list[Token], end: int) -> None:
        self.tokens = tokens
        self.end = end
        """Where the text ends."""
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
            why = f"it is nested deeper than {TABLE_FILTER_DEPTH_MAX}"
            raise _bad(why, self._place())
        if self._word("not"):
            return Not(self._unary(depth + 1))
        if self._sign("("):
            opened = self.tokens[self.at - 1].at
            inner = self.expression(depth + 1)
            if not self._sign(")"):
                raise _bad("this parenthesis is not closed", opened)
            return inner
        return self._comparison()

    def _comparison(self) -> Filter:
        self.terms += 1
        if self.terms > TABLE_FILTER_TERMS_MAX:
            why = f"it has more than {TABLE_FILTER_TERMS_MAX} comparisons"
            raise _bad(why, self._place())
        began = self._place()
        left = self._operand()
        token = self._peek()
        if token is None or token.text not in OPERATORS or token.kind != "name":
            if isinstance(left, Property):
                if token is not None and token.kind == "name" and token.text not in WORDS:
                    raise self.unexpected(token, "eq, ne, gt, ge, lt, le")
                return Truth(left)
            raise _bad("a value has to be compared with a property", began)
        self.at += 1
        right = self._operand()
        if isinstance(left, Property):
            return Compare(token.text, left, right)
        if isinstance(right, Property):
            return Compare(MIRRORED[token.text], right, left)
        raise _bad("one side of a comparison is a property", began)

    def _operand(self) -> Property | Literal:
        token = self._peek()
        if token is None:
            raise _bad("a property or a value is missing", self.end)
        self.at += 1
        if token.kind == "name":
            if token.text in ("true", "false"):
                return Literal((edm.BOOLEAN, token.text))
            if token.text in WORDS or token.text == "null":
                raise self.unexpected(token, "a property or a value")
            if self._sign("("):
                hint = f"$filter, character {token.at}: there are no functions ({token.text})."
                raise refused("not implemented", hint=hint)
            return Property(token.text)
        try:
            return _LITERALS[token.kind](token.text)
        except KeyError as error:
            raise self.unexpected(token, "a property or a value") from error
        except (ValueError, OverflowError) as error:
            raise _bad(f"{token.text[:SHOWN_CHARACTERS]!r} is not a value", token.at) from error

    def unexpected(self, token: Token, wanted: str) -> BadInput:
        shown = token.text[:SHOWN_CHARACTERS]
        return _bad(f"unexpected {shown!r}; {wanted} is expected", token.at)

    def _place(self) -> int:
        token = self._peek()
        return self.end if token is None else token.at

    def _peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _word(self, word: str) -> bool:
        return self._take("name", word)

    def _sign(self, sign: str) -> bool:
        return self._take("sign", sign)

    def _take(self, kind: str, text: str) -> bool:
        token = self._peek()
        if token is None or (token.kind, token.text) != (kind, text):
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
