"""The error document is read by programs: its shape is the original's."""

import json
import pickle
from typing import Any

import pytest

from armillary.errors import BadInput
from armillary.query.problems import BadQuery, QueryError, RefusedQuery, syntax_error
from armillary.query.sql.binder import bind
from armillary.query.sql.parser import parse


def test_the_document_of_a_syntax_error() -> None:
    with pytest.raises(BadQuery) as caught:
        parse("SELECT FROM c")
    assert caught.value.message == (
        '{"errors":[{"severity":"Error","location":{"start":7,"end":11},"code":"SC1001",'
        '"message":"Syntax error, incorrect syntax near \'FROM\'."}]}'
    )
    assert caught.value.payload == json.loads(caught.value.message)
    assert isinstance(caught.value, BadInput)


def test_2206_is_a_number_without_a_place() -> None:
    with pytest.raises(BadQuery) as caught:
        bind(parse("SELECT * FROM c ORDER BY c.a + 1"))
    assert caught.value.payload == {
        "errors": [
            {
                "severity": "Error",
                "code": 2206,
                "message": "Unsupported ORDER BY clause. ORDER BY item expression could not be "
                "mapped to a document path.",
            }
        ]
    }


def test_an_error_without_a_known_code_has_none() -> None:
    error = QueryError(None, "No.", 1, 2)
    assert error.payload() == {
        "severity": "Error",
        "location": {"start": 1, "end": 2},
        "message": "No.",
    }


def test_a_refusal_is_a_sentence() -> None:
    with pytest.raises(RefusedQuery) as caught:
        bind(parse("SELECT VALUE t FROM t IN c.tags ORDER BY t"))
    assert caught.value.payload == {
        "Errors": ["Order-by over correlated collections is not supported."]
    }


def test_errors_hide_refusals() -> None:
    with pytest.raises(BadQuery) as caught:
        bind(parse("SELECT VALUE x FROM t IN c.tags ORDER BY t"))
    assert not isinstance(caught.value, RefusedQuery)
    assert [error.code for error in caught.value.errors] == ["SC2001"]


@pytest.mark.parametrize("kind", [BadQuery, RefusedQuery])
def test_an_error_survives_a_trip_between_processes(kind: type[BadQuery]) -> None:
    error = kind.of([QueryError("SC2001", "Identifier 'é' could not be resolved.", 1, 2)])
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert (copy.message, copy.errors, copy.payload) == (error.message, error.errors, error.payload)


def test_a_lone_surrogate_in_the_text_can_be_quoted() -> None:
    error = syntax_error("SELECT '\ud800' FROM", 7, 10)
    assert error.payload["errors"][0]["message"] == "Syntax error, incorrect syntax near ''?''."


# --- as recorded in the baselines of the .NET SDK -----------------------------------------------


def codes(text: str) -> list[Any]:
    with pytest.raises(BadQuery) as caught:
        bind(parse(text))
    return [one.code for one in caught.value.errors]


JOINS = " ".join(f"JOIN t{n} IN c.tags" for n in range(12))


def test_a_fusion_of_one_score_is_no_score() -> None:
    assert codes('SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.t, "x"))') == ["SC2221"]


def test_a_page_in_a_subquery_is_told_before_the_number_of_joins() -> None:
    inner = "(SELECT VALUE y FROM y IN c.tags OFFSET 0 LIMIT 1)"
    assert codes(f"SELECT VALUE x FROM c {JOINS} JOIN x IN {inner}") == ["SC2204"]
    assert codes(f"SELECT VALUE 1 FROM c {JOINS}") == [None]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT VALUE v FROM c JOIN (SELECT DISTINCT VALUE t FROM t IN c.tags) AS v ORDER BY v",
        "SELECT VALUE v FROM c JOIN (SELECT DISTINCT t.a FROM t IN c.tags) AS v ORDER BY v.a",
    ],
)
def test_an_order_by_a_joined_subquery_is_refused_as_correlated(text: str) -> None:
    with pytest.raises(RefusedQuery, match="Order-by over correlated collections"):
        bind(parse(text))


@pytest.mark.parametrize(
    ("text", "is_path"),
    [
        ('SELECT VALUE r FROM (SELECT VALUE {"f": c.a} FROM c) AS r ORDER BY r["f"]', True),
        ('SELECT VALUE r FROM (SELECT VALUE {"f": {"g": c.a.b}} FROM c) AS r ORDER BY r.f.g', True),
        ("SELECT VALUE r FROM (SELECT c.a AS f FROM c) AS r ORDER BY r.f", False),
        ("SELECT VALUE r FROM (SELECT VALUE c FROM c) AS r ORDER BY r.a", True),
        ("SELECT VALUE r FROM (SELECT VALUE c FROM c) AS r ORDER BY r", False),
        ('SELECT VALUE r FROM (SELECT VALUE {"f": c.a + 1} FROM c) AS r ORDER BY r.f', False),
        ('SELECT VALUE r FROM (SELECT VALUE {"f": c.a} FROM c) AS r ORDER BY r.g', False),
        ("SELECT VALUE r FROM (SELECT DISTINCT c.a FROM c) AS r ORDER BY r.a", False),
    ],
)
def test_an_order_by_a_member_of_a_built_object_is_one_by_its_path(
    text: str, is_path: bool
) -> None:
    if is_path:
        bind(parse(text))
    else:
        assert codes(text) == [2206]
