"""Regular expressions of queries, with a bound on the time of one match."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import regex
from bson.regex import Regex

from armillary.api.mongo.errors import MongoError, bad_value
from armillary.budget import Budget
from armillary.encoding.bson.values import is_text
from armillary.limits import REGEX_CHARACTERS_MAX, REGEX_KEPT_CHARACTERS_MAX, REGEX_SECONDS_MAX

FLAGS: Final = {
    "i": regex.IGNORECASE,
    "m": regex.MULTILINE,
    "x": regex.VERBOSE,
    "s": regex.DOTALL,
    "u": 0,
    "l": 0,
}
STEP_CHARACTERS: Final = 64  # that cost as much as one value of another kind
CHARACTER_BYTES: Final = 200  # of a pattern, compiled
_NUMBERS: Final = {2: "i", 8: "m", 16: "s", 32: "u", 64: "x", 4: "l"}


def options_of(value: Regex[Any]) -> str:
    return "".join(letter for number, letter in _NUMBERS.items() if value.flags & number)


def compiled(pattern: str, options: str = "") -> regex.Pattern[str]:
    return (_short if len(pattern) <= REGEX_KEPT_CHARACTERS_MAX else _long)(pattern, options)


def _compiled(pattern: str, options: str) -> regex.Pattern[str]:
    if len(pattern) > REGEX_CHARACTERS_MAX:
        raise MongoError(
            51091,
            f"Regular expression is invalid: it has {len(pattern)} characters; at most "
            f"{REGEX_CHARACTERS_MAX} are allowed",
        )
    if "\x00" in pattern:
        raise bad_value("Regular expression cannot contain an embedded null byte")
    flags = 0
    for letter in options:
        if letter not in FLAGS:
            raise MongoError(51108, f"invalid flag in regex options: {letter}")
        flags |= FLAGS[letter]
    try:
        return regex.compile(pattern, flags, cache_pattern=False)
    except (regex.error, ValueError, OverflowError, RecursionError) as error:
        raise MongoError(51091, f"Regular expression is invalid: {error}") from error


#: A pattern of full length takes most of a megabyte once it is compiled.
_short: Final = lru_cache(maxsize=256)(_compiled)
_long: Final = lru_cache(maxsize=8)(_compiled)


def search(
    pattern: regex.Pattern[str], text: str, budget: Budget, at: int = 0
) -> regex.Match[str] | None:
    budget.spend(1 + len(text) // STEP_CHARACTERS)
    try:
        return pattern.search(text, at, timeout=min(REGEX_SECONDS_MAX, budget.seconds_left))
    except TimeoutError as error:
        raise MongoError(50, "A regular expression took too long.") from error


def part(value: Any, budget: Budget, options: Any = None) -> regex.Pattern[str]:
    """One of a filter, which keeps it: compiling takes some milliseconds."""
    made = parse(value, options)
    budget.check()
    budget.hold(CHARACTER_BYTES * len(made.pattern))
    return made


def parse(value: Any, options: Any = None) -> regex.Pattern[str]:
    """Of `$regex`: a text or a regular expression, and `$options`."""
    if options is not None and not is_text(options):
        raise bad_value("$options has to be a string")
    if isinstance(value, Regex):
        if options is not None and value.flags:
            raise MongoError(51075, "options set in both $regex and $options")
        return compiled(str(value.pattern), options or options_of(value))
    if not is_text(value):
        raise bad_value("$regex has to be a string")
    return compiled(value, options or "")
