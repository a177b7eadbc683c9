"""`armillary check` against a real server with the real SDK, a data folder and a trace."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from typer.testing import CliRunner

import armillary
from armillary.cli import app
from armillary.testing import start_server

ROOT = Path(__file__).resolve().parents[3]
CROSS = "SELECT * FROM c WHERE c.total > 1"


def ask(*words: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["check", *map(str, words)])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture(scope="module")
def connection() -> Iterator[str]:
    """A server whose container of five partitions has one hot key and one wide query."""
    environ = {"PYTHONPATH": str(ROOT / "src")}
    with start_server(environ=environ, enforce=True) as server:
        client = CosmosClient.from_connection_string(server.connection_string)
        database = client.create_database("shop")
        orders = database.create_container("orders", PartitionKey("/who"), offer_throughput=30_000)
        for number in range(40):
            who = "ada" if number % 2 else f"c{number}"
            orders.create_item({"id": str(number), "who": who, "total": number})
        assert len(list(orders.query_items(CROSS, enable_cross_partition_query=True))) == 38
        yield server.connection_string


def test_what_holds_and_what_does_not(connection: str) -> None:
    text = ask(connection, "--max-key-share", "60%", "--max-429-share", "0.5%")
    assert text == ask("--data", connection, "--max-key-share", "60%", "--max-429-share", "0.5%")
    assert text.count("ok ") == 2
    broken = ask(connection, "--max-key-share", "10%", "--max-fanout", 1, "--max-ru", 1, code=1)
    assert 'key ["ada"]' in broken
    assert CROSS in broken
    assert "partitions asked by one query 5, at most 1" in broken
    assert "3 of 3 do not hold" in broken


def test_json_says_every_assertion(connection: str) -> None:
    answer = json.loads(
        ask(connection, "--max-fanout", 5, "--max-partition-skew", 1.01, "--json", code=1)
    )
    assert answer["holds"] is False
    assert [one["holds"] for one in answer["findings"]] == [True, False]
    assert answer["findings"][0]["container"] == "shop/orders"
    assert answer["requests"] >= 40


def test_one_container_by_name(connection: str) -> None:
    ask(connection, "--database", "shop", "--container", "orders", "--max-fanout", 5)
    text = ask(connection, "--container", "none", "--max-fanout", 5, code=2)
    assert "There is no container none." in text


def test_a_check_that_saw_nothing_fails(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with armillary.open(folder) as account:
        account.create_database("d").create_container("c", partition_key="/pk")
    assert "0 requests were counted" in ask(folder, "--max-fanout", 1, code=1)
    ask(folder, "--max-fanout", 1, "--min-requests", 0)


def test_a_data_folder_after_its_server(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with armillary.open(folder, enforce="report") as account:
        container = account.create_database("d").create_container("c", partition_key="/pk")
        for number in range(20):
            container.create_item({"id": str(number), "pk": "one"})
    assert 'key ["one"]' in ask(folder, "--max-key-share", "50%", code=1)


# --- traces ---------------------------------------------------------------------------------------


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    lines: list[dict[str, object]] = []
    for n in range(1000):
        tenant = "giant" if n % 2 else f"t{n}"
        lines.append(
            {"ts": 1_775_739_959 + n / 100, "op": "create", "id": str(n), "tenant": tenant,
             "bytes": 800, "ru": 7.0}
        )  # fmt: skip
    lines.append({"ts": 1_775_739_970, "op": "query", "text": "SELECT * FROM c WHERE c.id = '1'"})
    file = tmp_path / "ops.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_a_trace_under_a_key(trace: Path) -> None:
    words = ["--trace", trace, "--throughput", "30000", "--key", "/tenant"]
    assert "All assertions hold." in ask(*words, "--max-key-share", "60%", "--max-429-share", "1%")
    text = ask(*words, "--max-key-share", "10%", "--max-fanout", 1, "--max-ru", 5, code=1)
    assert '"giant"' in text
    assert "partitions asked by one query 5, at most 1" in text
    assert "dearest request 7.00 RU" in text


def test_a_trace_under_another_key_spreads(trace: Path) -> None:
    words = ["--trace", trace, "--throughput", "30000", "--key", "/id", "--max-fanout", 1]
    assert "All assertions hold." in ask(*words, "--max-key-share", "1%")


def test_a_key_that_no_operation_knows_is_reported(trace: Path) -> None:
    words = ["--trace", trace, "--throughput", "400", "--key", "/tenat", "--max-fanout", 1]
    assert "knows /tenat" in ask(*words, code=2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([".armillary-not-there", "--max-fanout", "1"], "There is no data folder"),
        (["x"], "Nothing is asserted"),
        (["--max-key-share", "110%"], "between 0 and 100"),
        (["--max-key-bytes", "lots"], "number like 100TB"),
        (["--key", "/a", "--max-fanout", "1"], "belong to a --trace"),
        (["--trace", "none.jsonl", "--max-fanout", "1"], "give --key"),
        (["--trace", "none.jsonl", "--key", "/a", "--max-fanout", "1"], "give --throughput"),
        (
            ["--trace", "none.jsonl", "--key", "/a", "--throughput", "400", "--max-fanout", "1"],
            "can't be read",
        ),
        (["x", "--trace", "none.jsonl", "--max-fanout", "1"], "not both"),
        (["http://127.0.0.1:1", "--max-fanout", "1"], "does not answer"),
    ],
)
def test_wrong_usage_is_one_line(words: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["check", *words])
    assert done.exit_code == (1 if "does not answer" in message else 2), done.output
    assert message in done.output
    assert len(done.output.strip().splitlines()) == 1
