"""Without these, the commands could end with 0 when they failed, or with a traceback."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import armillary
from armillary.cli import app


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with armillary.open(tmp_path / "data", housekeeping=False) as account:
        orders = account.create_database("shop").create_container("orders", "/pk")
        orders.bulk(("create", ({"id": str(n), "pk": n},)) for n in range(10))
    return tmp_path / "data"


def test_out_and_in_again(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "orders.jsonl"
    assert run("export", file, "--data", data).exit_code == 0
    done = run("import", file, "--data", data, "--json")
    assert (done.exit_code, json.loads(done.stdout)["items"]) == (0, 10)


def on_a_terminal(*words: str | Path) -> list[str]:
    """The lines that a command leaves there."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "armillary", *map(str, words)]
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    written = b""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environ
    ) as process:
        os.close(theirs)
        try:
            while part := os.read(ours, 65536):
                written += part
        except OSError:  # how a terminal ends on Linux
            pass
    os.close(ours)
    assert process.returncode == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode())
    return [line.rpartition("\r")[2] for line in plain.replace("\r\n", "\n").split("\n") if line]


def test_the_result_stands_below_the_bar(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "orders.jsonl"
    bar, result = on_a_terminal("export", file, "--data", data)
    assert "10/10" in bar
    assert result.endswith(f"{file.name}: 10 items, 180 B.")
    bar, result = on_a_terminal("import", file, "--data", data)
    assert "10/10" in bar
    assert result == f"Imported 10 items from {file}."


def test_backup_restore_compact_doctor(data: Path, tmp_path: Path) -> None:
    assert run("backup", tmp_path / "copy", "--data", data).exit_code == 0
    assert run("restore", tmp_path / "copy", "--data", tmp_path / "back").exit_code == 0
    assert run("compact", "--data", tmp_path / "back").exit_code == 0
    well = run("doctor", "--data", tmp_path / "back", "--json")
    assert {one["what"]: one["well"] for one in json.loads(well.stdout)["findings"]}["shop/orders"]


def test_some_refused_is_3_and_says_which(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "orders.jsonl"
    file.write_text('{"id": "a", "pk": 1}\nnonsense\n', "utf-8")
    done = run("import", file, "--data", data)
    assert done.exit_code == 3
    assert "Imported 1 item from" in done.stdout
    assert "item 2: It is not JSON" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("backup", "T/copy", "--data", "T/none"), 2, "no account"),
        (("restore", "T/none", "--data", "T/back"), 2, "no backup"),
        (("restore", "T/none"), 2, "no backup"),
        (("compact", "--data", "T/none"), 2, "no data"),
        (("doctor", "--data", "T/none"), 2, "no account"),
        (("export", "T/out.jsonl", "--data", "T/none"), 2, "no data folder"),
        (("export", "T/out.jsonl", "--data", "T/data", "--container", "x"), 2, "x"),
        (("export", "T/no/where.jsonl", "--data", "T/data"), 1, "No such file"),
        (("import", "T/none.jsonl", "--data", "T/data"), 2, "no file"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_what_is_wrong_is_said_and_is_not_0(
    data: Path, tmp_path: Path, words: tuple[str, ...], code: int, text: str, as_json: bool
) -> None:
    given = [word.replace("T/", f"{tmp_path}/") for word in words]
    done = run(*given, *["--json"] * as_json)
    assert done.exit_code == code, done.output
    said = json.loads(done.stderr)["error"] if as_json else {"message": done.stderr}
    assert text in said["message"]
    if as_json:
        assert said["exit_code"] == code
    assert not isinstance(done.exception, ValueError | KeyError | TypeError)
