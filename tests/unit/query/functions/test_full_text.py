"""Words, stems, edits, BM25 and the fusion of ranks."""

import math

import pytest

from armillary.encoding.text_tokens import ANALYSIS, tokens
from armillary.query.functions.full_text import bm25, edits, fuse
from armillary.store.index.kinds.full_text import KIND
from armillary.values import UNDEFINED


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("The quick-brown FOXES!", "en-US", ["quick", "brown", "fox"]),
        ("running runs", "en-US", ["run", "run"]),
        ("Häuser", "de-DE", ["haus"]),
        ("chevaux", "fr-FR", ["cheval"]),
        ("", "en-US", []),
        ("naïve 42", "en-US", ["naïv", "42"]),
        ("He lived 1865 – 1959.", "en-US", ["live", "1865", "–", "1959"]),
        ("who was also well known throughout", "en-US", ["known"]),
        ("“quoted”", "en-US", ["“", "quot", "”"]),
    ],
)
def test_tokens(text: str, language: str, expected: list[str]) -> None:
    assert tokens(text, language) == expected


def test_words_without_meaning_do_not_make_a_text_longer() -> None:
    """The order in which the suite of the JavaScript SDK expects two such texts."""
    known = ("Born in 1973, she is a boxer who was also well known.", "A senator (1833 – 1898).")
    assert [len(tokens(text)) for text in known] == [4, 4]
    assert [len(tokens(text, analysis=1)) for text in known] == [8, 3]


def test_an_index_of_an_older_analysis_keeps_its_rows_and_answers_nothing() -> None:
    assert KIND.compile is not None
    assert KIND.describe is not None
    old, new = (
        KIND.compile({"path": "/text"}, {"language": "en-US", "languages": {}} | more)
        for more in ({}, {"analysis": ANALYSIS})
    )
    assert old is not None
    assert new is not None
    item = {"text": "also a boxer"}
    assert [len(list(index.rows(item))) for index in (old, new)] == [3, 2]
    assert [index.covers(("text",)) for index in (old, new)] == [False, True]
    assert KIND.describe({})["analysis"] == ANALYSIS


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [("red", "red", 0), ("red", "rod", 1), ("red", "reed", 1), ("red", "ed", 1), ("ab", "ba", 2)],
)
def test_edits(one: str, other: str, count: int) -> None:
    assert edits(one, other, 2) == count


def test_edits_stop_early() -> None:
    assert edits("bicycle", "skateboard", 2) == 3


def test_bm25_by_hand() -> None:
    """idf ln(1 + (10 - 2 + 0.5) / 2.5), one hit in a text of average length."""
    assert bm25(1, 5, 5.0, 2, 10) == pytest.approx(math.log(1 + 8.5 / 2.5))
    assert bm25(0, 5, 5.0, 2, 10) == 0


def test_fusion_ranks_are_dense_and_weighted() -> None:
    scores = fuse([[3.0, 3.0, 1.0], [0.1, 0.2, UNDEFINED]], [1.0, 2.0])
    assert scores == pytest.approx([1 / 61 + 2 / 62, 1 / 61 + 2 / 61, 1 / 62 + 2 / 63])
