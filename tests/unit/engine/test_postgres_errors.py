"""The border: every psycopg exception has an answer, and none goes further up."""

from __future__ import annotations

import psycopg
import pytest

from armillary.engine.postgres.errors import BY_CLASS, BY_STATE, kind_of, translated
from armillary.errors import DbError, FormatMismatch, ReadOnlyStore, StorageFull, Unavailable


@pytest.mark.parametrize(
    ("error", "kind", "again"),
    [
        (psycopg.errors.DiskFull("x"), StorageFull, False),
        (psycopg.errors.DeadlockDetected("x"), Unavailable, True),
        (psycopg.errors.SerializationFailure("x"), Unavailable, True),
        (psycopg.errors.AdminShutdown("x"), Unavailable, True),
        (psycopg.errors.QueryCanceled("x"), Unavailable, False),
        (psycopg.errors.ReadOnlySqlTransaction("x"), ReadOnlyStore, False),
        (psycopg.errors.UndefinedTable("x"), FormatMismatch, False),
        (psycopg.errors.ConnectionFailure("x"), Unavailable, True),
        (psycopg.errors.InvalidPassword("x"), Unavailable, False),
        (psycopg.OperationalError("server closed the connection"), Unavailable, True),
        (psycopg.OperationalError(), Unavailable, True),
    ],
)
def test_errors_are_named_by_their_remedy(
    error: psycopg.Error, kind: type[DbError], again: bool
) -> None:
    assert type(translated(error)) is kind
    found = kind_of(error)
    assert found is not None
    assert found.again is again


def test_states_are_real_and_classes_have_two_characters() -> None:
    for state in BY_STATE:
        psycopg.errors.lookup(state)
    assert all(len(name) == 2 for name in BY_CLASS)


@pytest.mark.parametrize(
    "error", [psycopg.errors.SyntaxError("x"), psycopg.DataError("x"), psycopg.InterfaceError("x")]
)
def test_a_wrong_statement_is_a_bug(error: psycopg.Error) -> None:
    assert isinstance(translated(error), AssertionError)
