"""Addresses: our one parameter is taken out, everything else reaches libpq as it came."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict

from armillary.engine.postgres.address import SETTINGS, Address
from armillary.errors import BadInput


@pytest.mark.parametrize(
    ("url", "plain", "schema"),
    [
        ("postgresql://u@h/d", "postgresql://u@h/d", "armillary"),
        ("postgresql://u:p%40@h:5433/d?schema=own", "postgresql://u:p%40@h:5433/d", "own"),
        (
            "postgres://h/d?host=%2Ftmp%2Fx&schema=a_1&sslmode=require",
            "postgres://h/d?host=%2Ftmp%2Fx&sslmode=require",
            "a_1",
        ),
        ("postgresql:///d?schema=s", "postgresql:///d", "s"),
        ("postgresql://a,b:2/d?target_session_attrs=read-write", None, "armillary"),
    ],
)
def test_the_schema_is_ours_and_the_rest_is_libpqs(
    url: str, plain: str | None, schema: str
) -> None:
    address = Address.parse(url)
    assert address.schema == schema
    assert address.url == (plain or url)
    expected = conninfo_to_dict(plain or url)
    given = conninfo_to_dict(address.conninfo(None))
    assert {name: given[name] for name in expected} == expected


def test_a_parameter_beats_the_address() -> None:
    assert Address.parse("postgresql:///d?schema=a", "b").schema == "b"


@pytest.mark.parametrize(
    "url",
    [
        "mysql://h/d",
        "postgresql://h/d?schema=Robert'); DROP",
        "postgresql://h/d?schema=Upper",
        "postgresql://h/d?nonsense=1",
        f"postgresql://h/d?schema={'x' * 64}",
    ],
)
def test_what_cannot_work_is_refused_in_words(url: str) -> None:
    with pytest.raises(BadInput):
        Address.parse(url)


def test_a_shown_address_has_no_password() -> None:
    shown = Address.parse("postgresql://me:secret@h/d?password=secret&sslmode=require").shown
    assert "secret" not in shown
    assert shown == "postgresql://me@h/d?sslmode=require"


def test_the_caller_may_tune_settings_but_not_the_durability_promise() -> None:
    address = Address.parse("postgresql:///d?options=-c%20jit%3Don%20-c%20synchronous_commit%3Doff")
    options = conninfo_to_dict(address.conninfo("on"))["options"]
    assert isinstance(options, str)
    assert options.index("jit=off") < options.index("jit=on")
    assert options.index("synchronous_commit=off") < options.index("synchronous_commit=on")
    assert all(f"-c {name}={value}" in options for name, value in SETTINGS.items())
