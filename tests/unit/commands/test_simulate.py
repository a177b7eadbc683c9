"""`armillary simulate` as a user calls it."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from armillary.cli import app

QUICK = ["--days", "1", "--windows", "1", "--window", "5s", "--keys", "1e5"]


def ask(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["simulate", *words])
    assert done.exit_code == code, done.output
    return done.output


def test_flags_make_a_scenario_and_json_says_all() -> None:
    answer = json.loads(
        ask(*QUICK, "--storage", "2TB", "--throughput", "1M", "--skew", "zipf:1.0", "--json")
    )
    assert answer["summary"]["partitions"] >= 100
    assert answer["scenario"]["skew"] == "zipf:1"
    assert answer["arithmetic"]["partitions"] == 100
    assert {"series", "windows", "heat", "alarms", "events"} <= set(answer)
    assert answer["windows"][0]["keys"]
    assert len(answer["heat"]["nru"]) == len(answer["heat"]["t"]) == 1


def test_a_file_under_flags(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'storage = "100GB"\nthroughput = 20000\nkeys = 1000\ndays = 1\nwindows = 0\n'
        '[workload]\nitem = "2KB"\n[[events]]\nat = "2h"\nthroughput = 30000\n'
    )
    more = tmp_path / "more.jsonl"
    more.write_text('{"at": "4h", "load": 2, "for": "1h"}\n')
    answer = json.loads(ask(str(file), "--events", str(more), "--seed", "9", "--json"))
    assert answer["scenario"]["name"] == "mine"
    assert answer["scenario"]["seed"] == 9
    assert [event["event"] for event in answer["events"]] == ["throughput", "load"]


def test_the_terminal_the_page_and_the_log(tmp_path: Path) -> None:
    html, log = tmp_path / "page.html", tmp_path / "log.jsonl"
    text = ask("--scenario", "bad-key", *QUICK[:6], "--html", str(html), "--log", str(log))
    assert "physical partitions" in text
    assert "key 1" in text
    page = html.read_text("utf-8")
    assert page.count("<svg") == page.count("<figure") >= 9
    assert not re.search(r"""(src|href)=|url\(|@import|<script|https?://""", page)
    assert all(json.loads(line)["event"] for line in log.read_text().splitlines())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--storage", "10XB"], "unit 'XB'"),
        (["--throughput", "450"], "steps of 100"),
        (["--throughput", "1500", "--autoscale"], "steps of 1000"),
        (["--skew", "heavy"], "uniform, zipf:S or hot:SHARE"),
        (["--growth", "fast"], "1TB/day"),
        (["--growth", "to:1GB"], "ends below"),
        (["--days", "0"], "above 0"),
        (["--storage", "9999PB"], "physical partitions"),
        (["--scenario", "none"], "There is no scenario"),
        (["missing.toml"], "can't be read"),
        (["--mix", "read=1,fly=2"], "'fly'"),
        (["--regions", "a,a"], "twice"),
        (["--keys", "0"], "from 1"),
    ],
)
def test_wrong_input_is_one_line_and_code_2(words: list[str], message: str) -> None:
    text = ask(*words, code=2)
    assert message in text
    assert len(text.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "can't be read"),
        ('{"at": "1d"}', "needs 'at' and one of"),
        ('{"at": "1d", "load": 2}', "needs 'for'"),
        ('{"at": "1d", "region": "mars", "for": "1h"}', "region 'mars'"),
        ('{"at": "1d", "merge": 1}', "has to be true"),
        ('{"at": "1d", "throughput": 1000, "x": 1}', "unknown 'x'"),
        ('{"at": "1d", "redistribute": {"a": 1}}', "ids are numbers"),
        ("3", "has to be an object"),
    ],
)
def test_wrong_events_are_refused(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text(line + "\n")
    assert message in ask("--events", str(file), code=2)


def test_an_unknown_setting_of_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text('{"storrage": "1TB"}')
    assert "no 'storrage'" in ask(str(file), code=2)
