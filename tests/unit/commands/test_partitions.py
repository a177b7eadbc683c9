"""`armillary partitions` and `rekey`, as people call them. Without these tests the terminal could
show other numbers than the store has, or a mistake could end with exit code 0."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import orjson
import pytest
from rich.console import Console
from tests.support.rings import arcs, ring
from tests.support.server_process import ServerProcess
from tests.support.signed_http import SignedClient
from typer.testing import CliRunner

import armillary
from armillary.api.core.settings import EMULATOR_KEY
from armillary.cli import app
from armillary.commands.partitions.view import bar, draw
from armillary.commands.remote import connection_of, is_remote
from armillary.errors import BadInput
from armillary.ring.model import HotKey, Move, Piece

RUN = CliRunner()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with armillary.open(tmp_path / "data", housekeeping=False) as account:
        orders = account.create_database("shop").create_container(
            "orders", "/customer", physical_partitions=3
        )
        items = [{"id": str(n), "customer": f"c{n % 7}", "n": n} for n in range(50)]
        orders.bulk([("create", (one,)) for one in items])
    return tmp_path / "data"


def shown(*words: object) -> str:
    done = RUN.invoke(app, [str(one) for one in words])
    assert done.exit_code == 0, (done.output, done.stderr)
    return done.stdout


def test_a_folder_is_shown_as_the_store_has_it(folder: Path) -> None:
    told = orjson.loads(shown("partitions", folder, "--json"))
    with armillary.open(folder, housekeeping=False) as account:
        there = account.database("shop").container("orders").partitions()
    assert [(one["id"], one["items"], one["bytes"]) for one in told["partitions"]] == [
        (one.id, one.items, one.size_bytes) for one in there
    ]
    text = shown("partitions", folder)
    assert text == shown("partitions", "--data", folder)
    assert "shop/orders" in text
    assert "3 partitions · 50 items" in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_nothing_is_cut_in_a_terminal_of_any_width(width: int) -> None:
    text = StringIO()
    console = Console(file=text, width=width, color_system=None)
    console.print(draw(ring(arcs(5)), (), 40, width))
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in text.getvalue()
    assert sum("busiest" in line for line in lines) == 1
    assert "5 partitions · " in text.getvalue()


def test_a_server_is_asked_by_address_or_connection_string(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", real=True)
    try:
        server.wait_until_ready()
        signed = SignedClient(server.port)
        assert signed.ask("POST", "/dbs", {"id": "my shop"}).status == 201
        key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
        made = signed.ask("POST", "/dbs/my%20shop/colls", {"id": "c", "partitionKey": key})
        assert made.status == 201
        address = f"http://localhost:{server.port}"
        connection = f"AccountEndpoint={address}/;AccountKey={EMULATOR_KEY};"
        for source in (address, connection, address.replace("http", "https")):
            told = orjson.loads(shown("partitions", source, "--json"))
            assert (told["database"], told["container"]) == ("my shop", "c")
        item = {"id": "1", "pk": "a", "n": 7}
        key_of = {"x-ms-documentdb-partitionkey": '["a"]'}
        assert signed.ask("POST", "/dbs/my%20shop/colls/c/docs", item, key_of).status == 201
        signed.close()
        asked = ["query", address, "SELECT VALUE c.n FROM c WHERE c.n > @n", "--json", "-p", "n=5"]
        found = orjson.loads(shown(*asked, "--partition-key", "a"))
        assert (found["rows"], found["hasMore"], found["ranges"]) == ([7], False, 1)
        assert found["plan"]
        wrong = RUN.invoke(app, ["query", address, "SELECT *\nFORM c"])
        assert wrong.exit_code == 1
        assert wrong.stderr.splitlines()[1:] == ["  FORM c", "  ^^^^"]
        gone = RUN.invoke(app, ["partitions", address, "--container", "none"])
        assert (gone.exit_code, "none" in gone.stderr) == (2, True)
        wrong = RUN.invoke(app, ["partitions", connection.replace("C2y6", "AAAA"), "--json"])
        assert wrong.exit_code == 1
        assert orjson.loads(wrong.stderr)["error"]["message"].startswith("401")
    finally:
        server.close()
    silent = RUN.invoke(app, ["partitions", address])
    assert silent.exit_code == 1
    assert "does not answer" in silent.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["partitions", "nowhere"], "no data folder"),
        (["partitions", "--data", "nowhere"], "no data folder"),
        (["partitions", "a", "--data", "b"], "give one"),
        (["partitions", "AccountKey=x"], "AccountEndpoint"),
        (["partitions", "AccountEndpoint=ftp://x;AccountKey=eA=="], "not the address"),
        (["rekey", "a", "b", "--data", "nowhere", "--key", "/x"], "no data folder"),
        (["rekey", "a", "b"], "--key"),
        (["rekey", "a", "b", "--synthetic", "{"], "JSON"),
    ],
)
def test_what_is_wrong_is_said_and_ends_with_2(words: list[str], said: str) -> None:
    done = RUN.invoke(app, words)
    assert done.exit_code == 2
    assert said in done.stderr


def test_rekey_copies_and_says_how_many(folder: Path) -> None:
    told = orjson.loads(shown("rekey", "orders", "by-n", "--key", "/n", "--data", folder, "--json"))
    assert told == {
        "source_items": 50, "target_items": 50, "verified": True, "left": [], "closed": False,
        "without_key": 0, "logical_partitions": 0, "different": 0,
    }  # fmt: skip
    again = orjson.loads(
        shown("partitions", folder, "--container", "by-n", "--json"),
    )
    assert sum(one["items"] for one in again["partitions"]) == 50


def test_items_without_a_place_end_with_3(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with armillary.open(data, housekeeping=False) as account:
        made = account.create_database("d").create_container("c", "/pk")
        for key in ("a", "b"):
            made.create_item({"id": "same", "pk": key, "kind": "x"})
    done = RUN.invoke(app, ["rekey", "c", "t", "--key", "/kind", "--data", str(data)])
    assert done.exit_code == 3
    assert "1 item found no place" in done.stderr


def test_addresses_and_connection_strings_are_told_from_folders() -> None:
    assert is_remote("https://x.documents.azure.com:443/")
    assert is_remote("AccountEndpoint=https://x/;AccountKey=eA==;")
    assert not is_remote("./data")
    assert not is_remote("postgresql://x")
    assert connection_of("accountkey=a+/=;ACCOUNTENDPOINT=http://x/") == ("http://x", "a+/=")
    with pytest.raises(BadInput):
        connection_of("AccountEndpoint=http://x")


def drawn(*news: str, count: int = 3, rows: int = 40) -> str:
    console = Console(width=110, record=True, file=StringIO())
    made = replace(
        ring(arcs(count)),
        keys=(HotKey("ada\x1b[31m", 0.1, 0.62, 15 * 10**9, "1"),),
        moves=(Move("split", ("1",), (Piece("3", 0.3, 0.4), Piece("4", 0.4, 0.6))),),
    )
    console.print(draw(made, news, rows))
    return console.export_text()


def test_the_terminal_shows_partitions_keys_and_moves() -> None:
    text = drawn("12:00:00  split begun: 1 → 3, 4")
    assert "62 %" in text
    assert "75 %" in text  # of the limit of one key
    assert "\x1b" not in text
    assert "split of 1 into 3, 4" in text
    assert "the 40 hottest of 200" in drawn(count=200)


def test_bars_grow_by_eighths_and_show_what_is_there() -> None:
    assert bar(0, 10) == ""
    assert bar(0.0001, 10) == "▏"
    assert bar(0.5, 10) == "█████"
    assert bar(7, 3) == "███"
