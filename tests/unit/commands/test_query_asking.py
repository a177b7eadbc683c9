"""`armillary query` as people call it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from armillary.account import open_account
from armillary.cli import app
from armillary.commands.errors import CommandError
from armillary.commands.query.asking import converse, read_parameters, read_partition_key
from armillary.commands.query.report import pointed
from armillary.query.problems import QueryError


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("data") / "armillary"
    with open_account(folder, durability="relaxed", housekeeping=False) as account:
        shop = account.create_database("shop")
        orders = shop.create_container("orders", "/customer", physical_partitions=3)
        for number in range(30):
            orders.create_item(
                {
                    "id": str(number),
                    "customer": f"c{number % 5}",
                    "total": number,
                    "lines": [number],
                }
            )
        account.create_database("other").create_container("things", "/id")
    return str(folder)


def call(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(app, ["query", *arguments], input=given)


def ask(data: str, sql: str, *options: str) -> Result:
    return call(data, sql, "--database", "shop", "--container", "orders", *options)


def rows(result: Result) -> Any:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["rows"]


def test_a_table_with_charge_ranges_and_plan(data: str) -> None:
    result = ask(data, "SELECT c.id, c.total FROM c WHERE c.total > 27 ORDER BY c.total DESC")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "id" in lines[1]
    assert "total" in lines[1]
    assert "29" in lines[3]
    assert "28" in lines[4]
    assert "2 rows · " in result.stdout
    assert " RU · 3 ranges" in result.stdout
    assert "Filter" in result.stdout


def test_the_place_is_said_as_in_other_commands_too(data: str) -> None:
    text = "SELECT VALUE COUNT(1) FROM c"
    where = ("--database", "shop", "--container", "orders", "--json")
    assert rows(call("--data", data, text, *where)) == [30]
    assert rows(call("--data", data, *where, given=text)) == [30]
    both = call(data, text, "--data", data, *where)
    assert (both.exit_code, "give one" in both.stderr) == (2, True)


def test_without_a_place_it_is_the_folder_here(
    data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".armillary").symlink_to(data)
    where = ("--database", "shop", "--container", "orders", "--json")
    assert rows(call(*where, given="SELECT VALUE COUNT(1) FROM c")) == [30]
    assert rows(call("select value count(1) from c", *where)) == [30]


def test_whole_items_are_shown_without_system_properties(data: str) -> None:
    result = ask(data, "SELECT * FROM c WHERE c.id = '3'")
    assert "_etag" not in result.stdout
    assert "[3]" in result.stdout
    assert "_etag" in rows(ask(data, "SELECT * FROM c WHERE c.id = '3'", "--json"))[0]
    assert "_ts" in ask(data, "SELECT c._ts FROM c WHERE c.id = '3'").stdout


def test_json(data: str) -> None:
    result = ask(data, "SELECT VALUE COUNT(1) FROM c", "--json")
    found = json.loads(result.stdout)
    assert found["rows"] == [30]
    assert found["count"] == 1
    assert found["hasMore"] is False
    assert found["ranges"] == 3
    assert found["chargeRu"] > 0
    assert found["plan"]


def test_csv_has_only_rows_on_the_output(data: str) -> None:
    result = ask(
        data, "SELECT c.id, c.lines, c.none, 'a,\"b' AS t FROM c WHERE c.id IN ('1')", "--csv"
    )
    assert result.stdout == 'id,lines,t\n1,[1],"a,""b"\n'
    assert "1 row" in result.stderr


def test_parameters_and_keys(data: str) -> None:
    sql = (
        "SELECT VALUE c.total FROM c WHERE c.total < @most AND c.customer != @not ORDER BY c.total"
    )
    found = ask(data, sql, "-p", "most=5", "--parameter", "@not=c2", "--json")
    assert rows(found) == [0, 1, 3, 4]
    one = ask(data, "SELECT VALUE c.total FROM c", "--partition-key", "c1", "--json")
    assert sorted(rows(one)) == [1, 6, 11, 16, 21, 26]
    assert json.loads(one.stdout)["ranges"] == 1


def test_a_number_of_rows(data: str) -> None:
    result = ask(data, "SELECT c.id FROM c", "--max-items", "4", "--json")
    found = json.loads(result.stdout)
    assert len(found["rows"]) == 4
    assert found["hasMore"] is True
    assert (
        "4 rows, and there are more" in ask(data, "SELECT c.id FROM c", "--max-items", "4").stdout
    )


def test_a_name_that_is_the_only_one_need_not_be_given(data: str) -> None:
    assert rows(call(data, "SELECT * FROM c", "--database", "other", "--json")) == []
    result = call(data, "SELECT * FROM c")
    assert result.exit_code == 2
    assert "other, shop" in result.stderr


def test_an_error_points_at_its_place(data: str) -> None:
    result = ask(data, "SELECT *\nFORM c")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "error SC1001: Syntax error, incorrect syntax near 'FORM'.",
        "  FORM c",
        "  ^^^^",
    ]
    assert result.stdout == ""
    result = ask(data, "SELECT c.a, NOPE(c.b) FROM c")
    assert result.stderr.splitlines()[1:] == [
        "  SELECT c.a, NOPE(c.b) FROM c",
        "              ^^^^",
    ]


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (["--database", "none"], 2, "none"),
        (["--database", "shop", "--container", "none"], 2, "shop/none"),
        (["--database", "shop", "-p", "x"], 2, "name=value"),
        (["--database", "shop", "--max-items", "0"], 2, "max-items"),
    ],
)
def test_exit_codes(data: str, options: list[str], code: int, text: str) -> None:
    """Scripts tell a wrong call from a wrong query by them."""
    result = call(data, "SELECT * FROM c", *options)
    assert result.exit_code == code
    assert text in result.stderr


def test_an_error_is_json_where_the_answer_would_be(data: str) -> None:
    """A program reads one form, whatever comes of it."""
    for sql, code in (("SELECT *\nFORM c", 1), ("SELECT VALUE 1/0", 1)):
        result = ask(data, sql, "--json")
        assert (result.exit_code, result.stdout) == (code, "")
        assert json.loads(result.stderr)["error"]["exit_code"] == code


def test_to_ask_makes_no_folder(tmp_path: Path) -> None:
    result = call(str(tmp_path / "none"), "SELECT 1")
    assert result.exit_code == 2
    assert "no data folder" in result.stderr
    assert list(tmp_path.iterdir()) == []
    unknown = call("nosuch://x", "SELECT 1")
    assert unknown.exit_code == 2
    assert "nosuch:// is no engine" in unknown.stderr


def test_a_result_that_can_not_be_written_is_an_error(data: str) -> None:
    result = ask(data, "SELECT VALUE c.total / 0 FROM c")
    assert result.exit_code == 1
    assert "NaN or Infinity" in result.stderr


def test_a_query_from_a_pipe(data: str) -> None:
    options = ("--database", "shop", "--json")
    assert rows(call(data, *options, given="SELECT VALUE MAX(c.total)\nFROM c\n")) == [29]


def test_text_of_items_does_not_command_the_terminal(tmp_path: Path) -> None:
    with open_account(tmp_path / "d", housekeeping=False) as account:
        box = account.create_database("a").create_container("b", "/id")
        box.create_item({"id": "1", "x\x1b]0;y": "\x1b[2J\u202e[red]é\n"})
    result = call(str(tmp_path / "d"), "SELECT * FROM c")
    assert "\x1b" not in result.stdout
    assert "\u202e" not in result.stdout
    assert "\\x1b[2J\\u202e[red]é\\n" in result.stdout


def test_carets_count_what_a_terminal_shows() -> None:
    """Wide characters before the place, a mistake at the end, and control characters."""
    text = "SELECT '漢字' FORM"
    assert pointed(text, [QueryError("X", "m", 12, 16)]).splitlines()[2] == "  " + " " * 14 + "^^^^"
    assert pointed("SELECT", [QueryError(None, "end", 6, 6)]).splitlines() == [
        "error: end",
        "  SELECT",
        "        ^",
    ]
    assert pointed("a\tb", [QueryError(None, "m", 2, 3)]).splitlines()[1:] == ["  a\\tb", "     ^"]
    assert pointed("a", [QueryError(2206, "m")]) == "error 2206: m"


def test_a_conversation() -> None:
    """A mistake or an empty line ends nothing; a farewell and the end of the input do."""
    lines: Iterator[Any] = iter(["one", "", KeyboardInterrupt, " wrong ", "two", "exit", "three"])
    asked: list[str] = []
    told: list[str] = []

    def read(prompt: str) -> str:
        line = next(lines, EOFError)
        if not isinstance(line, str):
            raise line
        return line

    def answer(text: str) -> None:
        asked.append(text)
        if text == "wrong":
            raise CommandError("no", 1)

    converse(read, answer, told.append)
    assert asked == ["one", "wrong", "two"]
    assert told == ["no"]
    converse(read, answer, told.append)
    assert asked[-1] == "three"


def test_values_of_options() -> None:
    found = read_parameters(["a=1", "@b=x y", 'c=["x"]', "d=", "e=a=b", 'f="1"'])
    assert found == {"@a": 1, "@b": "x y", "@c": ["x"], "@d": "", "@e": "a=b", "@f": "1"}
    assert read_partition_key('["a", 1]') == ["a", 1]
    assert read_partition_key("null") is None
    for wrong in ("a", "=1", "a b=1", "é=1"):
        with pytest.raises(CommandError):
            read_parameters([wrong])
