"""Words of a text as full-text search sees them (nosql-query 6.7): functions and index alike.

Words and signs, lower-cased, without English stop words, stemmed in the language of the container's
policy. Tokens are adjacent when nothing but stop words stood between them.

What counts as a word decides the length of a text, and so its score. The service does not publish
its rules; these give the order of every ranked query in the suites of the JavaScript and Python
SDKs (a text with "1865 – 1959" is one longer than its words, "also", "well" and "throughout" are
not counted), and "do" is a stop word there (azure-cosmos-dotnet-v3 issue 5943).

What this gives is on disk, so each index knows the analysis that made it: 1 (the 33 stop words of
Lucene, no signs) is still here for the rows of older indexes, which answer no query until they are
built again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

ANALYSIS: Final = 2

_WORDS: Final = {
    1: re.compile(r"\w+"),
    2: re.compile(r"\w+|[^\w\s\x00-\x7f]+"),
}

_LUCENE: Final = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with"
)
_ARTICLES: Final = (
    "all another any both each either every neither none other others own same some those"
)
_PRONOUNS: Final = (
    "i me my mine myself we our ours ourselves you your yours yourself yourselves he him his "
    "himself she her hers herself its itself them theirs themselves who whom whose which what "
    "whoever whichever whatever anyone anything everyone everything someone something nobody "
    "nothing"
)
_VERBS: Final = (
    "am were been being have has had having do does did doing done can cannot could may might must "
    "shall should would"
)
_PREPOSITIONS: Final = (
    "about above across after against along among around before behind below beneath beside "
    "besides between beyond down during except from off onto out over per since through throughout "
    "till toward towards under until up upon via within without"
)
_CONJUNCTIONS: Final = (
    "although because else hence however moreover nor otherwise so than therefore though thus "
    "unless when whenever where whereas wherever whether while yet"
)
_ADVERBS: Final = (
    "again almost already also always enough even ever few further here how just least less many "
    "more most much never now often once only perhaps quite rather really several still too very "
    "well why"
)
_STOP_WORDS: Final = {
    1: frozenset(_LUCENE.split()),
    2: frozenset(
        " ".join(
            (_LUCENE, _ARTICLES, _PRONOUNS, _VERBS, _PREPOSITIONS, _CONJUNCTIONS, _ADVERBS)
        ).split()
    ),
}

#: First part of a policy's language tag → algorithm.
_LANGUAGES = {
    "en": "english",
    "de": "german",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "pt": "portuguese",
}


def tokens(text: str, language: str = "en-US", analysis: int = ANALYSIS) -> list[str]:
    stop_words = _STOP_WORDS[analysis]
    words = [word for word in _WORDS[analysis].findall(text.lower()) if word not in stop_words]
    return _stemmer(_LANGUAGES.get(language[:2].lower(), "english"))(words)


@lru_cache(maxsize=8)
def _stemmer(algorithm: str) -> Callable[[Sequence[str]], list[str]]:
    import snowballstemmer  # here, because it takes a while and few queries need it

    # A stemmer keeps the word it works on inside itself, so every call gets its own: two threads
    # would spell into each other's word.
    stem = lru_cache(maxsize=20_000)(lambda word: snowballstemmer.stemmer(algorithm).stemWord(word))
    return lambda words: [stem(word) for word in words]
