"""The terms of a synthetic key, from text: `/date+"."+hash(/vin,400)` → path, text, function.

A path segment with characters of this grammar in it stands in quotes, as in every path of ours:
`/"a+b"`. White space between terms is ignored.
"""

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from armillary.encoding.paths import Path, parse_path
from armillary.errors import BadInput
from armillary.keys.buckets import BUCKETS, ISO, UNITS


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Randomly:
    k: int


@dataclass(frozen=True, slots=True)
class Hashed:
    source: Path
    k: int


@dataclass(frozen=True, slots=True)
class Bucketed:
    bucket: str
    path: Path
    unit: str


Term: TypeAlias = Path | Text | Randomly | Hashed | Bucketed

_SPACE: Final = re.compile(r"\s*")
_SEGMENT: Final = r"""/(?:"(?:[^"\\]|\\.)+"|'(?:[^'\\]|\\.)+'|[^/"'*?\[\]\\+,()\s]+)"""
_PATH: Final = re.compile(f"(?:{_SEGMENT})+")
_TEXT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_CALL: Final = re.compile(rf"([a-z]+)\(\s*({_PATH.pattern})?\s*,?\s*(\w+)?\s*\)")
_FUNCTIONS: Final = f"random(k), hash(/path,k), {', '.join(BUCKETS)}(/path)"


def parse_terms(text: str) -> list[Term]:
    """The terms between the plus signs."""
    terms: list[Term] = []
    at = _blank(text, 0)
    while True:
        term, at = _term(text, at)
        terms.append(term)
        at = _blank(text, at)
        if at == len(text):
            return terms
        if text[at] != "+":
            raise _bad(text, at, "'+' is expected")
        at = _blank(text, at + 1)


def _term(text: str, at: int) -> tuple[Term, int]:
    if found := _PATH.match(text, at):
        return parse_path(found[0]), found.end()
    if found := _TEXT.match(text, at):
        return Text(re.sub(r"\\(.)", r"\1", found[1])), found.end()
    if found := _CALL.match(text, at):
        return _call(text, at, found[1], found[2], found[3]), found.end()
    raise _bad(text, at, "a path, a text in double quotes or a function is expected")


def _call(text: str, at: int, name: str, path: str | None, argument: str | None) -> Term:
    number = int(argument) if argument and argument.isascii() and argument.isdigit() else None
    if name == "random" and path is None and number is not None:
        return Randomly(number)
    if name == "hash" and path is not None and number is not None:
        return Hashed(parse_path(path), number)
    unit = argument or ISO
    if name in BUCKETS and path is not None and unit in UNITS:
        return Bucketed(name, parse_path(path), unit)
    raise _bad(
        text, at, f"the functions are {_FUNCTIONS}; the units of an instant {', '.join(UNITS)}"
    )


def _blank(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _bad(text: str, at: int, why: str) -> BadInput:
    return BadInput(
        f"The candidate '{text}' can't be read at position {at}: {why}. Examples: /a   /a,/b   "
        '/a+"-"+/b   /date+"."+random(400)   /date+"."+hash(/vin,400)   /a+"."+month(/ts)'
    )
