"""Whole texts: what is wrong with the bad ones and where, how the good ones are understood."""

import re
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.golden import load, unmark

import armillary.query
from armillary.query.problems import CODES, BadQuery
from armillary.query.sql.binder import bind
from armillary.query.sql.parser import parse
from armillary.query.sql.printer import print_query

SOURCES = Path(armillary.query.__file__).parent


@pytest.mark.parametrize("case", load("sql_errors.jsonl"), ids=lambda case: str(case["name"]))
def test_each_error_has_its_code_and_place(case: dict[str, Any]) -> None:
    text, places = unmark(case["query"])
    with pytest.raises(BadQuery) as caught:
        bind(parse(text))
    errors = caught.value.errors
    assert [error.code for error in errors] == case["codes"], caught.value
    assert [(error.start, error.end) for error in errors if error.start >= 0] == places
    if "message" in case:
        assert errors[0].message == case["message"]


@pytest.mark.parametrize("case", load("sql_printed.jsonl"), ids=lambda case: str(case["query"]))
def test_each_text_is_understood_as_its_full_parentheses_say(case: dict[str, Any]) -> None:
    query = parse(case["query"])
    assert print_query(query, " ") == case["prints"]
    assert parse(case["prints"]) == query


#: nosql-query, section 8.1.
DOCUMENTED: Final = """
    SC1001 SC1010 SC2001 SC2005 SC2011 SC2040 SC2041 SC2050 SC2060 SC2061 SC2062 SC2101 SC2102
    SC2103 SC2202 SC2203 SC2204 2206 SC2213 SC2221 SC2223 SC2224 SC2225 SC2228 SC2229 SC2240 SC2990
    SC3005
"""
#: Sentences of the same section that have no code, by how they begin.
SENTENCES: Final = (
    "The SQL query exceeded the maximum number of joins.",
    "Order-by over correlated collections is not supported.",
    "The cardinality of a scalar subquery result set cannot be greater than one.",
    "Constant expression is not allowed in the ORDER BY clause.",
)


def test_every_code_is_tested_with_its_place() -> None:
    """Without this, a new code could be reported at a place that was not looked at."""
    places: dict[str | int, set[bool]] = defaultdict(set)
    for case in load("sql_errors.jsonl"):
        for code in case["codes"]:
            places[code].add("«" in case["query"])
    assert set(map(str, CODES)) >= set(DOCUMENTED.split())
    assert places.keys() - {None} == CODES.keys()
    for code, span in CODES.items():
        assert (span is not None) in places[code], f"{code} is nowhere tested with its place"


def test_every_code_in_the_source_is_in_the_table() -> None:
    found = set(DOCUMENTED.split()) - {"2206"}
    for path in SOURCES.rglob("*.py"):
        found |= set(re.findall(r"\bSC\d{4}\b", path.read_text()))
    assert found == {code for code in CODES if isinstance(code, str)}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_every_sentence_without_a_code_is_tested(sentence: str) -> None:
    cases = [case for case in load("sql_errors.jsonl") if None in case["codes"]]
    assert any(case.get("message", "").startswith(sentence) for case in cases)
