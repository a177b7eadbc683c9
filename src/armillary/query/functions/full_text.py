"""Full text (reference 6.7): words, phrases, BM25 and the fusion of ranks.

A text becomes tokens (encoding/text_tokens.py). Works on any string, with or without an index; an
index stores the same tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from armillary.encoding.text_tokens import tokens
from armillary.limits import FUZZY_DISTANCE_MAX
from armillary.query.functions.base import Context, Function, Logic, all_of, any_of, integer
from armillary.values import JSON, UNDEFINED

K1, B = 1.2, 0.75  # the usual constants of BM25 (unverified)
RANK_CONSTANT = 60  # of reciprocal rank fusion
NO_SCORE = -1.0  # of a row whose score is undefined

# --- tests ----------------------------------------------------------------------------------------


def contains(context: Context, text: JSON, term: JSON) -> Logic:
    """A word, a phrase, or `{"term": …, "distance": n}` for words a few letters away."""
    return next(_tests(context, text, (term,)))


def contains_all(context: Context, text: JSON, *terms: JSON) -> Logic:
    return all_of(_tests(context, text, terms))


def contains_any(context: Context, text: JSON, *terms: JSON) -> Logic:
    return any_of(_tests(context, text, terms))


def _tests(context: Context, text: JSON, terms: Sequence[JSON]) -> Iterator[Logic]:
    """One answer per term. The text is read once; what is no string holds no words."""
    words = tokens(text, context.language) if type(text) is str else []
    for term in terms:
        wanted, distance = wanted_term(term)
        if wanted is None or text is UNDEFINED:
            yield UNDEFINED
        else:
            yield _occurrences(words, _phrase(wanted, context.language), distance) > 0


def wanted_term(term: JSON) -> tuple[str | None, int]:
    """(the text of a term, how many letters may differ); no text when it is no term."""
    distance: int | None = 0
    if type(term) is dict:
        term, distance = term.get("term"), integer(term.get("distance", 0))
    if type(term) is not str or distance is None or not 0 <= distance <= FUZZY_DISTANCE_MAX:
        return None, 0
    return term, distance


@lru_cache(maxsize=1024)
def _phrase(term: str, language: str) -> tuple[str, ...]:
    """The tokens of a term: the same few terms are asked of every item."""
    return tuple(tokens(term, language))


def _occurrences(words: list[str], phrase: Sequence[str], distance: int) -> int:
    if not phrase:
        return 0
    if len(phrase) == 1 and not distance:
        return words.count(phrase[0])
    near: Callable[[str, str], bool] = str.__eq__
    if distance:
        near = lambda one, other: edits(one, other, distance) <= distance  # noqa: E731
    starts = range(len(words) - len(phrase) + 1)
    return sum(all(near(words[at + i], each) for i, each in enumerate(phrase)) for at in starts)


def edits(one: str, other: str, most: int) -> int:
    """Letters to insert, remove or change; anything above `most` may be reported as `most + 1`."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        before, row = row, [number]
        for column, target in enumerate(other):
            changed = before[column] + (letter != target)
            row.append(min(changed, before[column + 1] + 1, row[column] + 1))
        if min(row) > most:
            return most + 1
    return row[-1]


# --- scores ---------------------------------------------------------------------------------------


def word_count(context: Context, text: JSON) -> JSON:
    """`_FullTextWordCount`: what a client's statistics query sums (nosql-rest 5.6)."""
    return len(tokens(text, context.language)) if type(text) is str else UNDEFINED


def score(
    context: Context, text: JSON, terms: JSON, documents: JSON, words: JSON, hits: JSON
) -> JSON:
    """`_FullTextScore`: BM25 of one text. The statistics are of all items together: how many there
    are, how many words they have, and how many of them hold each term.
    """
    if type(text) is not str or type(terms) is not list or type(hits) is not list:
        return UNDEFINED
    count, total = integer(documents), integer(words)
    holders = [integer(each) for each in hits]
    if count is None or total is None or len(holders) != len(terms):
        return UNDEFINED
    found = tokens(text, context.language)
    mean = total / count if count > 0 and total > 0 else 1.0
    result = 0.0
    for term, holding in zip(terms, holders, strict=True):
        wanted, distance = wanted_term(term)
        if wanted is None or holding is None:
            return UNDEFINED
        times = _occurrences(found, _phrase(wanted, context.language), distance)
        result += bm25(times, len(found), mean, holding, count)
    return result


def bm25(times: int, length: int, mean_length: float, holders: int, documents: int) -> float:
    """How much one term says about one text: rarer terms and shorter texts say more."""
    if times == 0:
        return 0.0
    rarity = math.log(1 + max(0.0, documents - holders + 0.5) / (holders + 0.5))
    return rarity * times * (K1 + 1) / (times + K1 * (1 - B + B * length / mean_length))


def fuse(
    components: Sequence[Sequence[Any]], weights: Sequence[float] | None = None
) -> list[float]:
    """RRF: for each row its fused score, from one list of scores per component, larger is better.
    Ranks are dense: equal scores share one, and the next follows without a gap.
    """
    factors = weights or [1.0] * len(components)
    rows = len(components[0]) if components else 0
    fused = [0.0] * rows
    for scores, weight in zip(components, factors, strict=True):
        known = [NO_SCORE if each is UNDEFINED else each for each in scores]
        ranks = {value: n for n, value in enumerate(sorted(set(known), reverse=True), 1)}
        for row, value in enumerate(known):
            fused[row] += weight / (RANK_CONSTANT + ranks[value])
    return fused


FUNCTIONS = (
    Function("FullTextContains", 2, 2, contains, context=True),
    Function("FullTextContainsAll", 2, None, contains_all, context=True),
    Function("FullTextContainsAny", 2, None, contains_any, context=True),
    Function("FullTextScore", 2, None, None, kind="rank"),
    Function("RRF", 2, None, None, kind="rank"),
    Function("_FullTextScore", 5, 5, score, context=True),
    Function("_FullTextWordCount", 1, 1, word_count, context=True),
)
