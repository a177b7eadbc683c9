"""Regular expressions (reference 6.5): PCRE search with a bound on its time.

The `regex` package rather than the standard module: it has most of PCRE (possessive quantifiers,
recursion, `\\K`, POSIX classes), releases the other threads while it works, and can be stopped. A
pattern that backtracks for ever ends in `BadInput` after `REGEX_SECONDS_MAX`. `_translated` turns
the few places where the two dialects differ; an invalid pattern is undefined, never an error.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from armillary.errors import BadInput
from armillary.limits import (
    QUERY_ARRAY_ITEMS_MAX,
    REGEX_CHARACTERS_MAX,
    REGEX_KEPT_CHARACTERS_MAX,
    REGEX_SECONDS_MAX,
)
from armillary.query.functions.base import Function, Logic, integer
from armillary.values import JSON, UNDEFINED

if TYPE_CHECKING:
    from regex import Pattern

_FLAGS = {"m": "MULTILINE", "s": "DOTALL", "i": "IGNORECASE", "x": "VERBOSE"}


def matches(text: JSON, pattern: JSON, modifiers: JSON = "") -> Logic:
    compiled = _compiled(pattern, modifiers)
    if type(text) is not str or compiled is None:
        return UNDEFINED
    try:
        return compiled.search(text, timeout=REGEX_SECONDS_MAX) is not None
    except TimeoutError:
        raise _too_slow(pattern) from None


def extract(text: JSON, pattern: JSON, modifiers: JSON = "", group: JSON = 0) -> JSON:
    """The first match, or one group of it; undefined without one. The engine's token list names
    it, the meaning is ours (unverified).
    """
    found = extract_all(text, pattern, modifiers, group, most=1)
    return found[0] if found else UNDEFINED


def extract_all(
    text: JSON,
    pattern: JSON,
    modifiers: JSON = "",
    group: JSON = 0,
    *,
    most: int = QUERY_ARRAY_ITEMS_MAX,
) -> JSON:
    compiled, number = _compiled(pattern, modifiers), integer(group)
    if type(text) is not str or compiled is None or number is None:
        return UNDEFINED
    if not 0 <= number <= compiled.groups:
        return UNDEFINED
    found: list[JSON] = []
    try:
        for match in compiled.finditer(text, timeout=REGEX_SECONDS_MAX):
            if match.group(number) is not None:
                found.append(match.group(number))
            if len(found) == most:
                break
    except TimeoutError:
        raise _too_slow(pattern) from None
    return found


def _too_slow(pattern: str) -> BadInput:
    return BadInput(
        f"The regular expression '{pattern[:100]}' took longer than {REGEX_SECONDS_MAX} seconds "
        "on one value. Avoid nested repetition such as (a+)+."
    )


def _compiled(pattern: JSON, modifiers: JSON) -> Pattern[str] | None:
    if type(pattern) is not str or type(modifiers) is not str:
        return None
    if len(pattern) > REGEX_CHARACTERS_MAX:
        raise BadInput(
            f"A regular expression has {len(pattern)} characters; "
            f"at most {REGEX_CHARACTERS_MAX} are allowed."
        )
    kept = _short if len(pattern) <= REGEX_KEPT_CHARACTERS_MAX else _long
    return kept(pattern, "".join(sorted(set(modifiers))))


def _compile(pattern: str, modifiers: str) -> Pattern[str] | None:
    import regex  # here, because it takes a while and few queries need it

    if not set(modifiers) <= _FLAGS.keys():
        return None
    flags = regex.VERSION0
    for letter in modifiers:
        flags |= getattr(regex, _FLAGS[letter])
    try:
        return regex.compile(_translated(pattern), flags, cache_pattern=False)
    except (regex.error, ValueError, OverflowError, RecursionError):
        return None


#: A pattern of full length takes most of a megabyte once it is compiled.
_short = lru_cache(maxsize=256)(_compile)
_long = lru_cache(maxsize=8)(_compile)


def _translated(pattern: str) -> str:
    """PCRE → `regex`: `\\z` is `\\Z`, `\\Z` allows a last newline, `\\Q…\\E` quotes, and a brace
    that is no count is itself (`regex` would take `{e<=1}` for fuzzy matching).
    """
    import regex

    pieces: list[str] = []
    in_class = False
    for token in _tokens().finditer(pattern):
        piece = token.group()
        if piece.startswith("\\Q"):
            piece = regex.escape(token.group("quoted"), special_only=True)
        elif piece == "\\z" and not in_class:
            piece = "\\Z"
        elif piece == "\\Z" and not in_class:
            piece = "(?=\\n?\\Z)"
        elif piece == "{" and not in_class:
            piece = "\\{"
        elif piece.startswith("[") and not in_class:
            in_class = True
        elif piece == "]":
            in_class = False
        pieces.append(piece)
    return "".join(pieces)


@lru_cache(maxsize=1)
def _tokens() -> Pattern[str]:
    import regex

    return regex.compile(
        r"""
        \\Q(?P<quoted>.*?)(?:\\E|\Z)         # quoted text
        | \\[pPNgkxo]\{[^}]*\}               # \p{L}: these braces belong to the escape
        | \\.                                # any other escape
        | \[:\^?\w+:\]                       # a POSIX class
        | \[\^?\]?                           # a class begins; a ] right behind is a member
        | \{\d+(?:,\d*)?\}                   # a count
        | .
        """,
        regex.VERBOSE | regex.DOTALL,
    )


FUNCTIONS = (
    Function("RegexExtract", 2, 4, extract),
    Function("RegexExtractAll", 2, 4, extract_all),
    Function("RegexMatch", 2, 3, matches),
)
