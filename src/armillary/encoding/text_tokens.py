"""Words of a text as full-text search sees them (nosql-query 6.7): functions and index alike.

Word characters, lower-cased, without English stop words, stemmed in the language of the container's
policy. Tokens are adjacent when nothing but stop words stood between them. What this gives is on
disk: a change of it needs another version of the index's key kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

_WORD = re.compile(r"\w+")

_STOP_WORDS = frozenset(
    _WORD.findall(
        "a an and are as at be but by for if in into is it no not of on or such that the their "
        "then there these they this to was will with"
    )
)

#: First part of a policy's language tag → algorithm.
_LANGUAGES = {
    "en": "english",
    "de": "german",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "pt": "portuguese",
}


def tokens(text: str, language: str = "en-US") -> list[str]:
    words = [word for word in _WORD.findall(text.lower()) if word not in _STOP_WORDS]
    return _stemmer(_LANGUAGES.get(language[:2].lower(), "english"))(words)


@lru_cache(maxsize=8)
def _stemmer(algorithm: str) -> Callable[[Sequence[str]], list[str]]:
    import snowballstemmer  # here, because it takes a while and few queries need it

    # A stemmer keeps the word it works on inside itself, so every call gets its own: two threads
    # would spell into each other's word.
    stem = lru_cache(maxsize=20_000)(lambda word: snowballstemmer.stemmer(algorithm).stemWord(word))
    return lambda words: [stem(word) for word in words]
