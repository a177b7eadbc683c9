"""LIKE (reference 3.2): `%` any run, `_` one character, `[a-z]` one of, `[^a-z]` none of.

A pattern is read once into segments between `%` signs; each segment is found as early as possible,
which needs no backtracking: the time is at most text × pattern, whatever the pattern. Only regular
expressions could be made to run for ever, and this does not use them.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from armillary.values import JSON, UNDEFINED, Undefined

One: TypeAlias = Callable[[str], bool]  # a test of one character
Segment: TypeAlias = "str | tuple[One, ...]"  # plain text, or one test per character


def like(value: JSON, pattern: JSON, escape: str | None = None) -> bool | Undefined:
    if type(value) is not str or type(pattern) is not str:
        return UNDEFINED
    if escape and len(escape) != 1:
        return UNDEFINED
    return matcher(pattern, escape or "")(value)


@lru_cache(maxsize=512)
def matcher(pattern: str, escape: str = "") -> Callable[[str], bool]:
    segments = _segments(pattern, escape)
    if len(segments) == 1:
        whole = segments[0]
        return lambda text: len(text) == len(whole) and _at(text, 0, whole)
    first, *middle, last = segments
    need = sum(map(len, segments))

    def matches(text: str) -> bool:
        end = len(text) - len(last)
        if len(text) < need or not _at(text, 0, first) or not _at(text, end, last):
            return False
        position = len(first)
        for segment in middle:
            found = _find(text, segment, position, end)
            if found < 0:
                return False
            position = found + len(segment)
        return True

    return matches


def _at(text: str, position: int, segment: Segment) -> bool:
    if isinstance(segment, str):
        return text.startswith(segment, position)
    return all(test(text[position + i]) for i, test in enumerate(segment))


def _find(text: str, segment: Segment, start: int, end: int) -> int:
    if isinstance(segment, str):
        return text.find(segment, start, end)
    positions = range(start, end - len(segment) + 1)
    return next((each for each in positions if _at(text, each, segment)), -1)


def _segments(pattern: str, escape: str) -> list[Segment]:
    segments: list[list[str | One]] = [[]]
    position = 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == escape and position < len(pattern):
            segments[-1].append(pattern[position])
            position += 1
        elif character == "%":
            segments.append([])
        elif character == "_":
            segments[-1].append(lambda _: True)
        elif character == "[" and (closing := _closing(pattern, position, escape)) > 0:
            segments[-1].append(_set(pattern[position:closing], escape))
            position = closing + 1
        else:  # also a `[` that is not closed, and a `]` that was not opened
            segments[-1].append(character)
    return [_simplest(each) for each in segments]


def _closing(pattern: str, position: int, escape: str) -> int:
    while position < len(pattern) and pattern[position] != "]":
        position += 2 if pattern[position] == escape else 1
    return position if position < len(pattern) else -1


def _set(content: str, escape: str) -> One:
    negated = content.startswith("^")
    characters: list[tuple[str, bool]] = []  # with: is it a range sign?
    position = 1 if negated else 0
    while position < len(content):
        escaped = content[position] == escape and position + 1 < len(content)
        position += 1 if escaped else 0
        characters.append((content[position], content[position] == "-" and not escaped))
        position += 1
    ranges: list[tuple[str, str]] = []
    while characters:
        low, _ = characters.pop(0)
        if len(characters) > 1 and characters[0][1]:
            characters.pop(0)
            ranges.append((low, characters.pop(0)[0]))
        else:
            ranges.append((low, low))
    return lambda one: any(low <= one <= high for low, high in ranges) is not negated


def _simplest(pieces: list[str | One]) -> Segment:
    if all(isinstance(each, str) for each in pieces):
        return "".join(each for each in pieces if isinstance(each, str))
    return tuple(_exactly(each) if isinstance(each, str) else each for each in pieces)


def _exactly(character: str) -> One:
    return lambda one: one == character
