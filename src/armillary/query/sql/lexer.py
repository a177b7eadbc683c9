"""Text → tokens. One pass, linear in the text, because no pattern can go back.

A token's `kind` is what the parser compares: the operator itself, a reserved word in upper case,
or one of the six classes `name`, `number`, `string`, `parameter`, `broken` and `end`. LET, RANK,
NaN, Infinity and the names of functions are names: only the parser knows where they mean more.
Facts: nosql-query, section 1.

What is no token ends the list as `broken`. No rule of the grammar takes it, so the parser comes to
it unless something before it is wrong: the first mistake in the text is the one that is reported.

Not here: signs (they are operators), `udf.` and everything else that needs two tokens.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from armillary import limits
from armillary.query.expr.text import RESERVED
from armillary.query.problems import INVALID_STRING, BadQuery, QueryError, syntax_error

# Possessive quantifiers (`*+`) never give characters back: hostile text costs one look per
# character.
_TOKEN = re.compile(
    r"""
      (?P<space>      (?: \s++ | --[^\r\n]*+ )++ )
    | (?P<name>       [A-Za-z_][A-Za-z0-9_]*+ )
    | (?P<hex>        0[xX][0-9A-Fa-f]++ )
    | (?P<double>     (?: (?: 0 | [1-9][0-9]*+ ) (?: \.[0-9]*+ (?: [eE][+-]?[0-9]++ )?+
                                                 | [eE][+-]?[0-9]++ )
                        | \.[0-9]++ (?: [eE][+-]?[0-9]++ )?+ ) )
    | (?P<integer>    0 | [1-9][0-9]*+ )
    | (?P<string>     "(?: [^"\\\x00-\x1f]++ | \\. )*+"
                    | '(?: [^'\\\x00-\x1f]++ | \\. )*+' )
    | (?P<parameter>  @[A-Za-z_][A-Za-z0-9_]*+ )
    | (?P<comment>    /\* )
    | (?P<operator>   >>> | >> | << | != | <> | <= | >= | \|\| | \?\?
                    | [()\[\]{}.,:*+\-/%&|^~=<>?] )
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"""\\(?:u([0-9A-Fa-f]{4})|(['"\\/bfnrt]))""")
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_STRING_END: Final = {
    quote: re.compile(rf"{quote}(?:[^{quote}\\]++|\\.)*+{quote}", re.DOTALL) for quote in "'\""
}
INT64_MAX: Final = 2**63 - 1


class Token(NamedTuple):
    kind: str
    value: str | int | float
    start: int
    end: int


def tokenize(text: str) -> list[Token]:
    """Every token up to the first thing that is none, then one of kind `end`."""
    if len(text) > limits.QUERY_CHARACTERS_MAX:
        raise _too_long(f"{limits.QUERY_CHARACTERS_MAX} characters", 0, len(text))
    tokens: list[Token] = []
    position, length = 0, len(text)
    while position < length:
        found = _TOKEN.match(text, position)
        if found is None:
            tokens.append(_broken(text, position))
            break
        kind, piece, end = found.lastgroup, found.group(), found.end()
        if kind == "name":
            upper = piece.upper()
            kind = upper if upper in RESERVED else "name"
            tokens.append(Token(kind, piece, position, end))
        elif kind == "operator":
            tokens.append(Token("!=" if piece == "<>" else piece, piece, position, end))
        elif kind == "parameter":
            tokens.append(Token("parameter", piece, position, end))
        elif kind == "string":
            value = _unescape(piece)
            if value is None:
                tokens.append(Token("broken", piece, position, end))
                break
            tokens.append(Token("string", value, position, end))
        elif kind == "comment":
            end = text.find("*/", end) + 2
            if end == 1:
                tokens.append(Token("broken", "", length, length))
                break
        elif kind != "space":
            tokens.append(Token("number", _number(kind or "", piece), position, end))
        position = end
        if len(tokens) > limits.QUERY_TOKENS_MAX:
            raise _too_long(f"{limits.QUERY_TOKENS_MAX} words and signs", *tokens[-1][2:])
    tokens.append(Token("end", "", length, length))
    return tokens


def _too_long(most: str, start: int, end: int) -> BadQuery:
    message = f"The SQL query text exceeded the maximum limit of {most}."
    return BadQuery.of([QueryError(None, message, start, end)])


def _number(kind: str, piece: str) -> int | float:
    """Exact up to 64 bits, a double beyond."""
    if kind == "double":
        return float(piece)
    if kind == "hex":
        value = int(piece, 16)
        if value <= INT64_MAX:
            return value
        return float(value) if value.bit_length() <= 1023 else float("inf")
    # Nineteen digits may be too large, twenty always are; Python refuses to read thousands.
    if len(piece) > 19 or (value := int(piece)) > INT64_MAX:
        return float(piece)
    return value


def _unescape(piece: str) -> str | None:
    """None where a backslash begins no escape."""
    body = piece[1:-1]
    if "\\" not in body:
        return body
    parts: list[str] = []
    position = 0
    while (slash := body.find("\\", position)) >= 0:
        parts.append(body[position:slash])
        found = _ESCAPE.match(body, slash)
        if found is None:
            return None
        code, plain = found.groups()
        parts.append(chr(int(code, 16)) if code else _ESCAPES.get(plain, plain))
        position = found.end()
    parts.append(body[position:])
    # Two \u escapes may be the halves of one character.
    joined = "".join(parts).encode("utf-16-le", "surrogatepass")
    return joined.decode("utf-16-le", "surrogatepass")


def _broken(text: str, position: int) -> Token:
    end = position + 1
    if text[position] in _STRING_END:
        found = _STRING_END[text[position]].match(text, position)
        end = found.end() if found else len(text)
    return Token("broken", text[position:end], position, end)


def unreadable(text: str, token: Token) -> BadQuery:
    """For a `broken` token: no string literal, no character we know, no end of a comment."""
    if text[token.start : token.start + 1] not in _STRING_END:
        return syntax_error(text, token.start, token.end)
    message = f"Syntax error, invalid string literal token '{token.value}'."
    return BadQuery.of([QueryError(INVALID_STRING, message, token.start, token.end)])
