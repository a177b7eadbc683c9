"""`armillary scripts`, on a folder and on a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.http_bridge import bridged
from typer.testing import CliRunner

import armillary
from armillary.api.core.gateway import Gateway
from armillary.api.nosql.service import NosqlService
from armillary.cli import app
from armillary.clock import SystemClock

TRANSFER = "function (a, b) { console.log('sum'); getContext().getResponse().setBody(a + b); }"


@pytest.fixture(params=["folder", "server"])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "folder":
        with armillary.open(tmp_path / "data") as account:
            account.create_database("d").create_container("c", "/pk")
        yield str(tmp_path / "data")
        return
    with armillary.open(":memory:") as account:
        account.create_database("d").create_container("c", "/pk")
        gateway = Gateway(account.store, wall=SystemClock())
        with bridged(NosqlService(gateway)) as (url, _):
            yield url.rstrip("/")
        gateway.close()


def call(*given: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["scripts", *given])
    assert done.exit_code == code, done.output
    return done.stdout


def test_put_list_run_delete(data: str, tmp_path: Path) -> None:
    file = tmp_path / "transfer.js"
    file.write_text(TRANSFER)
    check = tmp_path / "check.js"
    check.write_text("function () {}")
    assert "procedure transfer" in call("put", str(file), "--data", data)
    call("put", str(file), "--data", data)  # again: replaced
    call("put", str(check), "--kind", "trigger", "--type", "Post", "--data", data)
    listed = call("list", "--data", data)
    assert listed.splitlines() == ["procedure transfer", "trigger   check  Post All"]
    assert json.loads(call("run", "transfer", "ada", "1", "2.5", "--data", data)) == 3.5
    answer = json.loads(
        call("run", "transfer", "ada", '"x"', "y", "--log", "--json", "--data", data)
    )
    assert (answer["value"], answer["log"]) == ("xy", "sum")
    assert answer["charge_ru"] > 0
    call("delete", "transfer", "--data", data)
    call("run", "transfer", "ada", "--data", data, code=2)


def test_wrong_calls(data: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.js"
    file.write_text("function () { throw new Error(7, 'no'); }")
    call("put", str(file), "--kind", "strange", "--data", data, code=2)
    call("put", str(file), "--kind", "trigger", "--type", "Mid", "--data", data, code=2)
    call("put", str(file), "--data", data)
    call("run", "bad", "ada", "--data", data, code=2)
    call("delete", "none", "--data", data, code=2)
