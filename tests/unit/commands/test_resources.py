"""`armillary databases` and `armillary containers`, on a folder and behind a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.server_process import ServerProcess
from typer.testing import CliRunner

from armillary.cli import app
from armillary.commands.remote import KEY_ADVICE, plain


@pytest.fixture(params=["folder", "server"])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "folder":
        yield str(tmp_path / "data")
        return
    server = ServerProcess(tmp_path / "data", real=True)
    try:
        server.wait_until_ready()
        yield f"http://localhost:{server.port}"
    finally:
        server.process.terminate()
        server.process.communicate(timeout=60)


def call(*given: str, code: int = 0) -> str:
    found = CliRunner().invoke(app, list(given))
    assert found.exit_code == code, found.output
    return found.output


def asked(*given: str) -> Any:
    return json.loads(call(*given, "--json"))


def test_databases_and_containers_from_making_to_deleting(data: str) -> None:
    to = ("--data", data)
    assert "Made database shared" in call(
        "databases", "create", "shared", "--throughput", "400", *to
    )
    made = asked("containers", "create", "shop", "orders", "--key", "/customerId", *to)
    assert made == {
        "database": "shop",
        "id": "orders",
        "partition_key": ["/customerId"],
        "keyless": False,
        "throughput": {"kind": "manual", "ru": 400},
        "shared_throughput": None,
        "partitions": 1,
    }
    call("containers", "create", "shared", "a", "--key", "/t", "--key", "/u", *to)
    call("containers", "create", "shop", "old", "--fixed", *to)
    call("containers", "create", "shop", "grows", "--key", "/pk", "--autoscale", "4000", *to)
    names = [(one["database"], one["id"]) for one in asked("containers", "list", *to)]
    assert sorted(names) == [
        ("shared", "a"),
        ("shop", "grows"),
        ("shop", "old"),
        ("shop", "orders"),
    ]
    text = call("containers", "list", "shop", *to)
    assert "shop/old  no key (fixed)  400 RU/s  1 physical partition" in text
    assert "shop/grows  /pk  up to 4,000 RU/s" in text
    shown = asked("databases", "show", "shared", *to)
    assert (shown["throughput"], shown["containers"][0]["throughput"]) == (
        {"kind": "manual", "ru": 400},
        None,
    )
    assert shown["containers"][0]["shared_throughput"] == {"kind": "manual", "ru": 400}
    assert "shares 400 RU/s of its database" in call("containers", "show", "shared", "a", *to)
    assert "20,000" in call("containers", "scale", "shop", "orders", "--throughput", "20000", *to)
    call("databases", "scale", "shared", "--throughput", "500", *to)
    assert asked("databases", "list", *to)[0]["throughput"]["ru"] == 500
    shown = asked("containers", "show", "shop", "orders", *to)
    assert (shown["items"], shown["keyless"]) == (0, False)
    call("containers", "delete", "shop", "orders", "--yes", *to)
    call("databases", "delete", "shared", "--yes", *to)
    assert [one["id"] for one in asked("databases", "list", *to)] == ["shop"]


def test_what_is_wrong_is_one_line_without_noise(data: str) -> None:
    to = ("--data", data)
    assert "--key /path" in call("containers", "create", "shop", "x", *to, code=2)
    call("containers", "create", "shop", "x", "--partition-key", "/pk", *to)
    said = call("containers", "create", "shop", "x", "--partition-key", "/pk", *to, code=1)
    assert said.strip() == "There is a container shop/x already."
    said = call("databases", "create", "shop", *to, code=1)
    assert said.strip() == "There is a database shop already."
    for command in ("show", "delete", "scale"):
        said = call("containers", command, "shop", "y", *to, code=2)
        assert said.strip() == "There is no container shop/y; there are: x."
    for given in (("databases", "show", "shoop"), ("containers", "list", "shoop")):
        assert call(*given, *to, code=2).strip() == "There is no database shoop; there are: shop."
    both = ("--throughput", "400", "--autoscale", "1000")
    assert "not both" in call("databases", "create", "z", *both, *to, code=2)
    said = call("containers", "scale", "shop", "x", "--autoscale", "4000", *to, code=2)
    assert "manual throughput" in said
    assert "Aborted" in call("containers", "delete", "shop", "x", *to, code=1)


def test_an_address_in_the_place_of_a_name_is_told_where_it_goes() -> None:
    """Other commands take it first."""
    for given in (["containers", "list"], ["databases", "show"]):
        told = call(*given, "http://localhost:1", code=2)
        assert "an address goes with --data" in " ".join(told.split())
    told = call("containers", "show", "shop", "AccountEndpoint=http://localhost:1/;", code=2)
    assert "an address goes with --data" in " ".join(told.split())


def test_the_key_of_the_environment_is_used_and_a_wrong_one_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ServerProcess(tmp_path / "data", real=True)
    try:
        server.wait_until_ready()
        address = f"http://localhost:{server.port}"
        monkeypatch.setenv("ARMILLARY_KEY", "YWJj")
        assert call("databases", "list", "--data", address, code=1).strip() == KEY_ADVICE
    finally:
        server.process.terminate()
        server.process.communicate(timeout=60)


def test_messages_without_what_is_for_operators() -> None:
    text = 'Message: {"Errors":["Request size is too large"]}\r\nActivityId: 1-2, Microsoft/2.14'
    assert plain(text) == "Request size is too large"
    sized = text.replace("ActivityId", "It has 3 bytes; 2 are allowed.\r\nActivityId")
    assert plain(sized) == "Request size is too large. It has 3 bytes; 2 are allowed."
    assert (
        plain("Owner resource does not exist\r\nActivityId: 1") == "Owner resource does not exist"
    )
    offer = "Please specify a value between 400 and 1000000 in increments of 100."
    support = "Please contact https://azure.microsoft.com/support to request limit increases"
    assert plain(f"{offer} {support} beyond 1000000 RU/s.") == offer


def test_a_server_that_is_not_there_and_a_key_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    to = ("--data", "http://127.0.0.1:1")
    told = call("containers", "list", *to, code=1)
    assert told == (
        "http://127.0.0.1:1 does not answer: nothing listens there. "
        "Start a server with: armillary serve.\n"
    )
    monkeypatch.setenv("ARMILLARY_KEY", "no key!")
    told = call("containers", "list", *to, code=2)
    assert told == "ARMILLARY_KEY has a key that is not valid base64.\n"
    named = "AccountEndpoint=http://127.0.0.1:1/;AccountKey=no key!;"
    told = call("containers", "list", "--data", named, code=2)
    assert told == "The key is not valid base64.\n"
