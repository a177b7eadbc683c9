"""The error document is read by programs: its shape is the original's."""

import json
import pickle

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
