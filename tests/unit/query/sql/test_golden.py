"""Whole texts: what is wrong with the bad ones and where, how the good ones are understood."""

from typing import Any

import pytest
from tests.support.golden import load, unmark

from armillary.query.sql.binder import bind
from armillary.query.sql.errors import BadQuery
from armillary.query.sql.parser import parse
from armillary.query.sql.printer import print_query


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
