"""`[[tables]]` in armillary.toml, seeds as plain entities, and the way back to a file."""

from pathlib import Path

import pytest
from tests.support.table import TableApi, table_api

from armillary.config import Settings
from armillary.declare.applying import apply_declared
from armillary.declare.describing import describe
from armillary.declare.files import read_file
from armillary.declare.toml_text import databases_text
from armillary.errors import BadInput

FILE = """
[table]
port = "off"
flavour = "storage"

[[tables]]
id = "people"
throughput = 800
seed = "people.jsonl"

[[tables]]
id = "wide"
autoscale_max = 20000
"""
SEED = """\
{"PartitionKey": "p", "RowKey": "1", "Age": 42, "Large@odata.type": "Edm.Int64", "Large": "5"}
{"PartitionKey": "p", "RowKey": "2", "id": "mine"}
"""


def declared(folder: Path, text: str) -> Path:
    path = folder / "armillary.toml"
    path.write_text(text, "utf-8")
    (folder / "people.jsonl").write_text(SEED, "utf-8")
    return path


def apply(api: TableApi, path: Path) -> list[str]:
    return apply_declared(api.engine, Settings(), read_file(path).databases)


def test_tables_are_made_and_seeded_once(tmp_path: Path) -> None:
    path = declared(tmp_path, FILE)
    assert read_file(path).settings["table"] == {"port": "off", "flavour": "storage"}
    with table_api(table=None) as api:
        assert apply(api, path) == []
        assert apply(api, path) == []
        rows = {row["RowKey"]: row for row in api.query("people")}
        assert rows["1"]["Age"] == 42
        assert rows["1"]["Large@odata.type"] == "Edm.Int64"
        assert rows["2"]["id"] == "mine"
        text = databases_text(describe(api.account))
        assert "[[tables]]" in text
        again = read_file(declared(tmp_path, text)).databases
        kept = [(one.id, one.throughput, one.autoscale_max) for one in again[0].containers]
        assert kept == [("people", 800, None), ("wide", None, 20000)]


def test_tables_may_share_throughput(tmp_path: Path) -> None:
    text = '[[database]]\nid = "TablesDB"\nthroughput = 1000\n[[tables]]\nid = "t"\n'
    with table_api(table=None) as api:
        apply(api, declared(tmp_path, text))
        assert databases_text(describe(api.account)).count("throughput = 1000") == 1
        assert api.query("t") == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[[tables]]\nthroughput = 400\n", "needs an id"),
        ('[[tables]]\nid = "t"\npartition_key = "/x"\n', "no key 'partition_key'"),
        ('[[tables]]\nid = "t"\n[[tables]]\nid = "t"\n', "declared twice"),
        ('[table]\nflavour = "blob"\n', "flavour"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        Settings.of(read_file(declared(tmp_path, text)).settings)


def test_a_container_of_another_api_is_not_taken(tmp_path: Path) -> None:
    with table_api(table=None) as api:
        api.account.create_database("TablesDB")
        body = {"id": "t", "partitionKey": {"paths": ["/pk"]}}
        api.account.create_container("TablesDB", body)
        with pytest.raises(BadInput, match="API for nosql"):
            apply(api, declared(tmp_path, '[[tables]]\nid = "t"\n'))
