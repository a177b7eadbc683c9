"""Export and import through a running server. Without these, people could take their data out of a
Cosmos DB account only with another tool, and a refusal would end the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.server_process import ServerProcess
from typer.testing import CliRunner

from armillary.account import open_account
from armillary.api.core.settings import EMULATOR_KEY
from armillary.cli import app
from armillary.commands.remote import Remote, path_of

KEY = {"paths": ["/tenant", "/user"], "kind": "MultiHash", "version": 2}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path_factory.mktemp("remote") / "data", real=True)
    try:
        server.wait_until_ready()
        with Remote(f"http://127.0.0.1:{server.port}") as remote:
            remote.rest("POST", "dbs", {"id": "my shop"})
            # 400 RU/s: the import below is refused with 429 many times and has to wait.
            made = {"id": "in", "partitionKey": KEY}
            remote.rest("POST", path_of("dbs", "my shop", "colls"), made)
        yield server
    finally:
        server.close()


def run(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, words)
    return done.exit_code, done.stdout, done.stderr


def test_items_go_in_and_come_out_through_a_server(server: ServerProcess, tmp_path: Path) -> None:
    connection = f"AccountEndpoint=http://127.0.0.1:{server.port}/;AccountKey={EMULATOR_KEY};"
    items: list[dict[str, object]] = [
        {"id": str(n), "tenant": "ä" if n % 2 else None, "n": n} for n in range(150)
    ]
    items += [{"id": "refused", "tenant": ["a list"]}, {"id": "no key"}]
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in items))
    where = ["--database", "my shop", "--container", "in", "--json"]
    code, out, errors = run("import", str(tmp_path / "in.jsonl"), "--data", connection, *where)
    assert code == 3, (out, errors)
    told = json.loads(out)
    assert (told["items"], told["refused"]) == (151, 1)
    assert told["refusals"][0]["item"] == 151
    assert "array" in told["refusals"][0]["why"]
    target = tmp_path / "out.jsonl"
    code, out, errors = run("export", str(target), "--data", connection, *where)
    assert (code, json.loads(out)["items"]) == (0, 151), errors
    found = {one["id"]: one for one in map(json.loads, target.read_text().splitlines())}
    assert found == {one["id"]: one for one in items if one["id"] != "refused"}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("http://127.0.0.1:1", "does not answer"),
        ("AccountEndpoint=http://127.0.0.1:{port}/;AccountKey=no!", "not valid base64"),
        ("AccountEndpoint=http://127.0.0.1:{port}/;AccountKey=aGVsbG8=;", "401"),
        ("AccountEndpoint=http://127.0.0.1:{port}/", "AccountKey"),
    ],
)
def test_a_wrong_connection_is_said_and_nothing_is_written(
    server: ServerProcess, tmp_path: Path, data: str, why: str
) -> None:
    target = tmp_path / "out.jsonl"
    there = data.format(port=server.port)
    code, out, errors = run("export", str(target), "--data", there, "--container", "in")
    assert code in (1, 2), out
    assert why in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "rest"),
    [
        ("export", ["x.csv", "--data"]),
        ("import", ["x.csv", "--data"]),
        ("query", ["SELECT 1", "--data"]),
        ("partitions", []),
    ],
)
def test_a_container_that_is_not_there_is_said(
    server: ServerProcess, tmp_path: Path, command: str, rest: list[str]
) -> None:
    (tmp_path / "x.csv").write_text("id\n1\n")
    rest = [str(tmp_path / one) if one == "x.csv" else one for one in rest]
    rest.append(f"http://127.0.0.1:{server.port}")
    where = ["--database", "my shop", "--container", "none"]
    code, _, errors = run(command, *rest, *where)
    assert (code, "There is no container my shop/none; there are: " in errors) == (2, True), errors
    code, _, errors = run(command, *rest, "--database", "none")
    assert (code, "There is no database none; there are: my shop" in errors) == (2, True), errors


@pytest.mark.parametrize("folder", [False, True])
def test_a_container_that_is_not_there_is_not_rekeyed(
    server: ServerProcess, tmp_path: Path, folder: bool
) -> None:
    there = f"http://127.0.0.1:{server.port}"
    if folder:
        there = str(tmp_path / "data")
        with open_account(there, housekeeping=False) as account:
            account.create_database("my shop").create_container("in", "/tenant")
    code, _, errors = run("rekey", "none", "new", "--key", "/user", "--data", there)
    assert (code, "There is no container my shop/none; there are: in" in errors) == (2, True), (
        errors
    )


def test_a_container_behind_a_server_is_advised_on(server: ServerProcess, tmp_path: Path) -> None:
    """By its connection string, with the key it has now; the same without an answer is said."""
    connection = f"AccountEndpoint=http://127.0.0.1:{server.port}/;AccountKey={EMULATOR_KEY};"
    made = {"id": "tickets", "partitionKey": {"paths": ["/state"], "kind": "Hash", "version": 2}}
    with Remote(connection) as remote:
        remote.rest("POST", path_of("dbs", "my shop", "colls"), made)
    items = [{"id": str(n), "state": "ab"[n % 2], "user": f"u{n % 25}"} for n in range(60)]
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in items))
    where = ["--database", "my shop", "--container", "tickets", "--json"]
    assert run("import", str(tmp_path / "in.jsonl"), "--data", connection, *where)[0] == 0
    code, out, errors = run("advise", connection, *where, "--no-replay")
    assert code == 0, errors
    answer = json.loads(out)
    assert (answer["inputs"]["items"], answer["inputs"]["current_key"]) == (60, "/state")
    assert answer["recommended"]["definition"]["id"] == "tickets"
    code, _, errors = run("advise", connection, "--database", "none", "--json")
    assert code != 0
    assert json.loads(errors)["error"]["message"]
