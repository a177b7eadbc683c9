"""The command as people and builds call it: its JSON, its exit codes, what it says when wrong."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from armillary.cli import app
from armillary.commands.advise.options import candidate_texts, duration, rate, size
from armillary.commands.advise.report import show
from armillary.errors import BadInput

RUNNER = CliRunner()
OPERATIONS = [
    {"kind": "create", "rate": 900},
    {"kind": "query", "rate": 300, "text": "SELECT * FROM c WHERE c.user = @u"},
    {"kind": "query", "rate": 3, "text": "SELEC nonsense"},
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "items.jsonl"
    items = [
        {"id": str(n), "user": f"u{n * 7 % 400}", "state": "abcd"[n % 4]} for n in range(2_000)
    ]
    path.write_text("".join(json.dumps(item) + "\n" for item in items) + "{broken\n")
    return path


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "workload.json"
    path.write_text(json.dumps({"operations": OPERATIONS}))
    return path


def run(*arguments: object, code: int = 0) -> str:
    result = RUNNER.invoke(app, ["advise", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output if code == 0 else result.stderr


def test_the_answer_as_json_has_the_promised_shape(data: Path, workload: Path) -> None:
    answer: dict[str, Any] = json.loads(run(data, "--workload", workload, "--json"))
    first = answer["recommended"]
    assert (first["key"], first["kind"]) == ("/user", "path")
    assert first["definition"]["partitionKey"]["paths"] == ["/user"]
    ranks = [one["rank"] for one in answer["candidates"]]
    assert ranks == list(range(1, len(ranks) + 1))
    for one in answer["candidates"]:
        assert {"key", "kind", "rank", "verdict", "reasons", "measures"} <= set(one)
        assert one["reasons"]
    verdicts = {one["key"]: one["verdict"] for one in answer["candidates"]}
    assert (verdicts["/user"], verdicts["/state"]) == ("recommended", "rejected")
    assert answer["inputs"]["items"] == 2_000
    assert answer["inputs"]["broken_lines"] == 1
    assert any("Operation 3" in note for note in answer["notes"])


def test_the_answer_in_the_terminal_has_reasons_and_what_to_paste(data: Path) -> None:
    text = run(data, "--throughput", "20000", "--storage", "100GB")
    for word in ("recommended", "partitionKey", "armillary rekey", "Cardinality", "assumed"):
        assert word in text


def test_the_best_keys_are_replayed_side_by_side(data: Path, workload: Path) -> None:
    answer = json.loads(run(data, "--workload", workload, "--throughput", "40000", "--json"))
    replays = {one["key"]: one for one in answer["replay"]["replays"]}
    assert {"/user", "/id", "/state"} <= set(replays)
    asked = {key: max(e["ranges_mean"] for e in one["fan_out"]) for key, one in replays.items()}
    assert asked["/user"] == 1 < asked["/state"]
    assert replays["/user"]["skew"] < replays["/state"]["skew"]
    assert "replay" not in json.loads(run(data, "--workload", workload, "--json", "--no-replay"))


@pytest.mark.parametrize("width", [80, 120])
def test_every_column_is_there_at_any_width(data: Path, width: int) -> None:
    answer = json.loads(run(data, "--throughput", "20000", "--json", "--no-replay"))
    console = Console(width=width, record=True, file=StringIO())
    show(console, answer)
    lines = console.export_text().splitlines()
    head = next(line for line in lines if "verdict" in line)
    names = ["key", "verdict", "score", "values", "φ", "heat", "cross", "≈RU/s"]
    assert head.split() == [*names, *(["$/month"] if width >= 100 else [])]
    first = next(line for line in lines if "recommended " in line)
    assert len(first.split()) == len(head.split()) + 1, "every number of the row, and its rank"


def test_only_the_named_candidates_are_compared(data: Path) -> None:
    given = ['/user+"."+random(7)', "/state,/user; /state"]
    answer = json.loads(run(data, "--candidates", given[0], "--candidates", given[1], "--json"))
    keys = {one["key"] for one in answer["candidates"]}
    assert keys == {"/id", '/user+"."+random(7)', "/state,/user", "/state"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "what to advise on"),
        (["nothing.json"], "There is no file"),
        (["DATA", "--candidates", "user"], "can't be read"),
        (["DATA", "--storage", "much"], "--storage"),
        (["--scenario", "nonsense"], "telemetry"),
        (["DATA", "--workload", "DATA"], "not JSON"),
    ],
)
def test_what_is_wrong_is_said_with_exit_code_2(
    arguments: list[str], words: str, data: Path
) -> None:
    given = [str(data) if one == "DATA" else one for one in arguments]
    assert words in run(*given, code=2)
    assert json.loads(run(*given, "--json", code=2))["error"]["exit_code"] == 2


def test_an_empty_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text("")
    assert "is empty" in run(path, code=2)


def test_a_data_folder_is_advised_on_with_its_present_key(tmp_path: Path) -> None:
    from armillary.account import open_account

    folder = tmp_path / "data"
    with open_account(str(folder)) as account:
        made = account.create_database("shop").create_container("items", "/state")
        for n in range(60):
            made.create_item({"id": str(n), "state": "ab"[n % 2], "user": f"u{n % 20}"})
    answer = json.loads(run(folder, "--json"))
    assert answer["inputs"]["current_key"] == "/state"
    assert answer["inputs"]["items"] == 60


def test_a_page_is_written(data: Path, workload: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run(data, "--workload", workload, "--html", page, "--json")
    assert "/user" in page.read_text()


def test_a_trace_gives_the_workload_and_the_items(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    lines = [
        {"ts": 1_775_739_000 + n / 10, "op": "create", "id": str(n), "user": f"u{n % 300}"}
        if n % 2
        else {"ts": 1_775_739_000 + n / 10, "op": "read", "id": str(n), "user": f"u{n % 300}"}
        for n in range(1_000)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    answer = json.loads(run("--trace", path, "--json"))
    assert answer["inputs"]["items"] == 500
    assert answer["inputs"]["workload"]["rate"] == pytest.approx(10, rel=0.1)


def test_sizes_durations_and_rates() -> None:
    assert [size(text, "x") for text in ("500GB", "1.5 tb", "300", "2000000")] == [
        500e9, 1.5e12, 300e9, 2_000_000,
    ]  # fmt: skip
    assert size("5GB/day", "x") == 5e9
    assert [duration(text, "x") for text in ("30d", "12h", "90")] == [2_592_000, 43_200, 90]
    assert [rate(text, "x") for text in ("60,000", "60k", "400 RU/s")] == [60_000, 60_000, 400]
    with pytest.raises(BadInput):
        size("-3", "x")
    assert candidate_texts(["/a;/b,/c", " /d\n/e "]) == ["/a", "/b,/c", "/d", "/e"]


def told(*arguments: object) -> tuple[str, dict[str, Any]]:
    """In the terminal, and as JSON."""
    return run(*arguments), json.loads(run(*arguments, "--json"))


@pytest.mark.parametrize("name", ["telemetry", "orders", "tenants"])
def test_the_verdict_comes_first_in_about_ten_lines_and_agrees_with_all_numbers(name: str) -> None:
    text, answer = told("--scenario", name)
    verdict = text[text.index("Verdict:") :].split("\n \n")[0].split("\n\n")[0]
    assert len(verdict.splitlines()) <= 16, "about ten lines, some of them folded"
    scores = [one["score"] for one in answer["candidates"]]
    assert scores == sorted(scores, reverse=True), "one order"
    first = answer["recommended"]
    assert first["verdict"] == "recommended", "worked examples end with a key"
    replays = {one["key"]: one for one in answer["replay"]["replays"]}
    assert replays[first["key"]]["throttled_share"] <= 0.01
    horizons = {one["key"]: one["measures"]["horizon_days"] for one in answer["candidates"]}
    for key, one in replays.items():
        full = one["full_key"]
        assert (full and full["days"]) == pytest.approx(horizons[key]), "one horizon for one key"


def test_no_key_is_recommended_that_is_refused_and_what_to_do_is_said() -> None:
    text, answer = told("--scenario", "telemetry", "--throughput", "20000", "--storage", "500GB")
    assert answer["recommended"]["verdict"] == "acceptable"
    assert all(one["verdict"] != "recommended" for one in answer["candidates"])
    told_flat = " ".join(text.split())
    assert "no candidate passes" in told_flat
    assert "(429) at 20,000 RU/s" in told_flat
    assert "What to do: give it" in told_flat
    assert "make a synthetic key" not in told_flat, "it is even: no other key would help"
    skewed = json.loads(
        run("--scenario", "orders", "--throughput", "60000", "--storage", "300GB", "--json")
    )
    assert skewed["recommended"]["verdict"] == "acceptable"
    assert any("make a synthetic key" in line for line in skewed["verdict"])


def test_one_name_for_one_number_and_nothing_said_twice() -> None:
    text, answer = told("--scenario", "telemetry")
    assert "≈RU/s: estimated from shares" in " ".join(text.split())
    header = next(line for line in text.splitlines() if "verdict" in line and "score" in line)
    assert header.split()[-1] == "≈RU/s"
    full = next(one for one in answer["replay"]["replays"] if one["full"])
    row = next(line for line in text.splitlines() if line.startswith(f" {full['key']} "))
    assert row.split()[-2:] == ["now", "none"], "its writes fail with 403 already"
    for one in answer["candidates"]:
        heads = [line.partition(":")[0] for line in one["reasons"]]
        assert len(set(heads)) == len(heads), one


def test_one_item_is_one_item_and_one_value(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text('{"id": "1"}\n')
    text = CliRunner().invoke(app, ["advise", str(tmp_path / "one.jsonl"), "--no-replay"]).stdout
    assert "1 item, " in text
    assert "1 distinct value for " in " ".join(text.split())


def test_what_is_lost_has_its_cause(data: Path) -> None:
    text = run("--scenario", "telemetry")
    assert "403" in text
    assert "lost: 429 after the last retry, or 403" in " ".join(text.split())


def test_a_small_container_is_told_that_fan_out_hardly_matters(data: Path) -> None:
    def small(*more: str) -> bool:
        answer = json.loads(run(data, *more, "--json"))
        return any("below 30,000 RU/s and 100" in line for line in answer["verdict"])

    assert small("--throughput", "10000", "--storage", "20GB")
    assert not small("--throughput", "30000", "--storage", "20GB")
    assert not small("--throughput", "10000", "--storage", "100GB")
