"""Words and signs of a script, with their positions. Facts: gremlin reference 7."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, TypeAlias

from armillary.api.gremlin.errors import Position, ScriptError

TokenKind: TypeAlias = Literal["name", "string", "number", "sign", "end"]


class Token(NamedTuple):
    kind: TokenKind
    text: str
    value: str | int | float | None
    start: int
    end: int


_TOKEN: Final = re.compile(
    r"""
    (?P<space>(?:\s|//[^\n]*|/\*.*?\*/)+)
  | (?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
  | (?P<hex>0[xX][0-9a-fA-F_]+[lLiIsSbBnN]?)
  | (?P<float>(?:\d[\d_]*)?\.\d[\d_]*(?:[eE][+-]?\d+)?[dDfFmM]?
      |\d[\d_]*[eE][+-]?\d+[dDfFmM]?|\d[\d_]*[dDfFmM]\b)
  | (?P<int>\d[\d_]*[lLiIsSbBnN]?)
  | (?P<string>'''|\"\"\"|'|")
  | (?P<sign>\.\.|->|==|!=|[.,()\[\]{}:;=+\-*/<>?!&|@#%^~`\\])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES: Final = {
    "b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "'": "'", "\\": "\\", "$": "$",
}  # fmt: skip
_OCTAL: Final = re.compile(r"[0-3]?[0-7]{1,2}")


def position_of(text: str, offset: int) -> Position:
    line = text.count("\n", 0, offset) + 1
    return Position(line, offset - (text.rfind("\n", 0, offset) + 1) + 1)


def tokenize(text: str) -> list[Token]:
    tokens: list[Token] = []
    at, size = 0, len(text)
    while at < size:
        found = _TOKEN.match(text, at)
        if found is None:
            raise unexpected(text, at, text[at])
        kind, end = str(found.lastgroup), found.end()
        if kind == "string":
            value, end = _string(text, at, found.group())
            tokens.append(Token("string", text[at:end], value, at, end))
        elif kind != "space":
            try:
                tokens.append(_READ[kind](found.group(), at, end))
            except ValueError as error:  # no digits, or thousands of them
                raise unexpected(text, at, found.group()[:20]) from error
        at = end
    tokens.append(Token("end", "<EOF>", None, size, size))
    return tokens


def unexpected(text: str, offset: int, token: str) -> ScriptError:
    return ScriptError(
        f"Unexpected token: '{token}'; in input: '{text}'.", "parse", position_of(text, offset)
    )


def _integer(word: str, at: int, end: int) -> Token:
    return Token("number", word, int(word.rstrip("lLiIsSbBnN").replace("_", "")), at, end)


def _hex(word: str, at: int, end: int) -> Token:
    # `b` is a digit here, so only the suffixes that are none can follow.
    return Token("number", word, int(word.rstrip("lLiIsSnN").replace("_", ""), 16), at, end)


def _float(word: str, at: int, end: int) -> Token:
    return Token("number", word, float(word.rstrip("dDfFmM").replace("_", "")), at, end)


_READ: Final[dict[str, Callable[[str, int, int], Token]]] = {
    "name": lambda word, at, end: Token("name", word, None, at, end),
    "sign": lambda word, at, end: Token("sign", word, None, at, end),
    "int": _integer,
    "hex": _hex,
    "float": _float,
}


def _string(text: str, start: int, quote: str) -> tuple[str, int]:
    """The value and where it ends. `$` in double quotes is plain: nothing is interpolated."""
    at = start + len(quote)
    parts: list[str] = []
    while True:
        end = min((i for i in (text.find(quote, at), text.find("\\", at)) if i >= 0), default=-1)
        if end < 0:
            raise unexpected(text, start, text[start : start + 20])
        parts.append(text[at:end])
        if text[end] != "\\":
            return "".join(parts), end + len(quote)
        piece, at = _escape(text, end + 1)
        parts.append(piece)


def _escape(text: str, at: int) -> tuple[str, int]:
    mark = text[at : at + 1]
    if mark in _ESCAPES:
        return _ESCAPES[mark], at + 1
    if mark == "u":
        digits = text[at + 1 : at + 5]
        if re.fullmatch(r"[0-9a-fA-F]{4}", digits):
            code, end = int(digits, 16), at + 5
            low = text[end + 2 : end + 6] if text.startswith("\\u", end) else ""
            if 0xD800 <= code < 0xDC00 and re.fullmatch(r"[dD][c-fC-F][0-9a-fA-F]{2}", low):
                code = 0x10000 + ((code - 0xD800) << 10) + int(low, 16) - 0xDC00
                end += 6
            if 0xD800 <= code < 0xE000:
                raise unexpected(text, at - 1, "\\u" + digits)
            return chr(code), end
    octal = _OCTAL.match(text, at)
    if octal is not None:
        return chr(int(octal.group(), 8)), octal.end()
    raise unexpected(text, at - 1, "\\" + mark)
