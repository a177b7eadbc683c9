"""The command as people type it: without this, options could be read and never passed on."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from armillary.cli import app

AT = 1_775_739_959_000


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "trace.jsonl"
    lines = [
        {
            "ts": AT + n * 10,
            "op": "create",
            "id": str(n),
            "tenant": f"t{n % 7}",
            "day": "d",
            "ru": 8,
        }
        for n in range(300)
    ]
    file.write_text("\n".join([*map(json.dumps, lines), "{broken"]))
    return file


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["replay", *map(str, arguments)])


def found(*arguments: object) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_trace_under_two_keys(trace: Path) -> None:
    answer = found(trace, "--candidates", "/tenant;/day", "--throughput", "1200")
    assert [one["key"] for one in answer["replays"]] == ["/tenant", "/day"]
    assert answer["throughput"] == 1200
    assert answer["notes"] == ["1 line was skipped: not JSON"]
    small = found(trace, "--candidates", "/day", "--throughput", "1200", "--partition-ru", "300")
    assert len(small["replays"][0]["partitions"]) > 1
    assert small["replays"][0]["throttled"] > answer["replays"][1]["throttled"]


def test_throughput_may_change_on_the_way(trace: Path) -> None:
    options = ("--candidates", "/tenant", "--partition-ru", "1000")
    answer = found(trace, *options, "--throughput", "500,2000@1")
    assert [one["cause"] for one in answer["replays"][0]["splits"]] == ["throughput"]
    assert run(trace, *options, "--throughput", "500,2000").exit_code == 2


def test_items_with_a_workload_and_a_page(tmp_path: Path) -> None:
    data, load, page = (tmp_path / name for name in ("d.jsonl", "w.json", "r.html"))
    data.write_text("\n".join(json.dumps({"id": str(n), "t": f"t{n % 40}"}) for n in range(200)))
    load.write_text(json.dumps({"operations": [{"kind": "create", "rate": 20}]}))
    options = ("--workload", load, "--candidates", "/t;/id", "--seconds", "5", "--html", page)
    answer = found(data, *options)
    assert answer["seconds"] == 5
    assert answer["operations"] == pytest.approx(100, rel=0.4)
    assert page.read_text().startswith("<!doctype html>")


def test_people_get_a_table_with_reasons(trace: Path) -> None:
    result = run(trace, "--candidates", "/tenant", "--candidates", "/day")
    assert result.exit_code == 0
    for words in ("/tenant", "/day", "Every operation asks one partition", "skipped"):
        assert words in result.output


def test_wrong_calls_say_what_is_wrong(trace: Path, tmp_path: Path) -> None:
    assert "Say which keys" in run(trace).output
    assert "can't be read" in run(tmp_path / "none", "--candidates", "/a").output
    (tmp_path / "empty").write_text("")
    assert "no operation" in run(tmp_path / "empty", "--candidates", "/a").output


def test_the_table_fits_80_columns(trace: Path) -> None:
    text = run(trace, "--candidates", "/tenant; /day").stdout
    head = next(line for line in text.splitlines() if "429s" in line)
    assert head.split()[1:] == ["429s", "lost", "p99", "busiest", "asked", "20", "GB", "RU/s"]
    assert max(map(len, text.splitlines())) <= 80
