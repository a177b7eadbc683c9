"""Without these, a second start could lose what was declared, or change what must not change."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import armillary
from armillary.account import Account
from armillary.config import Settings
from armillary.declare.applying import apply_declared
from armillary.declare.bicep import bicep_text
from armillary.declare.describing import describe, describe_address
from armillary.declare.files import read_file
from armillary.declare.toml_text import databases_text
from armillary.errors import BadInput
from armillary.store.catalog.tables import api_of

TEXT = """\
[[database]]
id = "shop"
throughput = 1000

[[database.container]]
id = "orders"
partition_key = "/customer"
throughput = 500
default_ttl = 100
seed = ["orders.json", "more.jsonl.gz"]

[[database.container]]
id = "shared"
partition_key = ["/a", "/b"]
unique_keys = [["/mail"]]
"""


@pytest.fixture
def account() -> Iterator[Account]:
    with armillary.open(":memory:", housekeeping=False) as account:
        yield account


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    orders = [{"id": str(n), "customer": f"c{n}"} for n in range(1200)]
    (tmp_path / "orders.json").write_text(json.dumps(orders), "utf-8")
    with gzip.open(tmp_path / "more.jsonl.gz", "wt") as file:
        file.write('{"id": "x", "customer": "c"}\n\n{"id": "y", "customer": "c"}\n')
    return tmp_path


def apply(account: Account, folder: Path, text: str = TEXT) -> list[str]:
    path = folder / "armillary.toml"
    path.write_text(text, "utf-8")
    return apply_declared(account._engine, Settings.default(), read_file(path).databases)


def test_what_is_declared_exists_afterwards(account: Account, folder: Path) -> None:
    assert apply(account, folder) == []
    shop = account.database("shop")
    orders = shop.container("orders")
    assert sum(1 for _ in orders.read_all_items()) == 1202
    assert orders.read_throughput().ru == 500
    assert shop.container("shared").properties()["partitionKey"]["kind"] == "MultiHash"


def test_doing_it_again_changes_nothing_and_brings_nothing_back(
    account: Account, folder: Path
) -> None:
    apply(account, folder)
    orders = account.database("shop").container("orders")
    orders.delete_item("7", "c7")
    before = orders.properties()
    assert apply(account, folder) == []
    assert orders.properties() == before
    assert sum(1 for _ in orders.read_all_items()) == 1201


def test_a_seed_that_was_cut_short_is_completed(account: Account, folder: Path) -> None:
    whole = (folder / "orders.json").read_text("utf-8")
    (folder / "orders.json").write_text('[{"id": "1", "customer": "c1"}, {"id": 5}]', "utf-8")
    with pytest.raises(BadInput, match="item 5 of"):
        apply(account, folder)
    (folder / "orders.json").write_text(whole, "utf-8")
    apply(account, folder)
    orders = account.database("shop").container("orders")
    assert sum(1 for _ in orders.read_all_items()) == 1202


def test_settings_follow_the_file_and_throughput_stays(account: Account, folder: Path) -> None:
    apply(account, folder)
    orders = account.database("shop").container("orders")
    orders.replace_throughput(900)
    (line,) = apply(account, folder, TEXT.replace("default_ttl = 100", "default_ttl = 200"))
    assert "'orders' has 900 RU/s" in line
    assert orders.properties()["defaultTtl"] == 200
    assert orders.read_throughput().ru == 900


def test_another_partition_key_is_refused_with_its_line(account: Account, folder: Path) -> None:
    apply(account, folder)
    with pytest.raises(BadInput, match=r"armillary\.toml:5: .*[Pp]artition [Kk]ey"):
        apply(account, folder, TEXT.replace("/customer", "/other"))


def test_throughput_that_no_container_can_have_is_refused_with_its_line(
    account: Account, folder: Path
) -> None:
    with pytest.raises(BadInput, match=r"armillary\.toml:5: "):
        apply(account, folder, TEXT.replace("throughput = 500", "throughput = 399"))


def test_a_broken_line_of_a_seed_is_named(account: Account, folder: Path) -> None:
    (folder / "orders.json").write_text('{"id": "1", "customer": "a"}\n{"id": \n', "utf-8")
    with pytest.raises(BadInput, match=r"orders\.json, item 2: "):
        apply(account, folder)


def test_an_account_written_as_a_file_makes_the_same_account(
    account: Account, folder: Path, tmp_path: Path
) -> None:
    apply(account, folder)
    account.database("shop").create_container(
        "odd 'name' ünï",
        synthetic_key={
            "version": 1,
            "path": "/pk",
            "parts": ["/date"],
            "separator": ".",
            "suffix": {"kind": "random", "k": 3},
        },
        autoscale_max=4000,
        change_feed_retention_minutes=5,
        computed_properties=[{"name": "low", "query": "SELECT VALUE LOWER(c.n) FROM c"}],
        indexing_policy={
            "includedPaths": [{"path": "/*"}],
            "excludedPaths": [{"path": '/"a b"/?'}],
            "compositeIndexes": [
                [{"path": "/x", "order": "ascending"}, {"path": "/y", "order": "descending"}]
            ],
        },
    )
    account.database("shop").create_container("friends", "/country", api="gremlin")
    account.database("shop").create_container("old", throughput=400)
    account.database("shop").create_container("small", "/pk", throughput=500, fixed=True)
    first = describe(account._store)
    copy = folder / "copy.toml"
    copy.write_text(databases_text(first), "utf-8")
    with armillary.open(":memory:", housekeeping=False) as other:
        apply_declared(other._engine, Settings.default(), read_file(copy).databases)
        assert describe(other._store) == first
        for name in account.database("shop").containers():
            ours, theirs = (
                one._store.read_container("shop", name).definition for one in (account, other)
            )
            assert ours == theirs
        assert api_of(other._store.read_container("shop", "friends")) == "gremlin"
        kinds = [other.database("shop").container(name).kind for name in ("old", "small")]
        assert kinds == ["fixed", "fixed"]


def test_a_graph_may_have_been_made_by_the_nosql_api(account: Account, tmp_path: Path) -> None:
    account.create_database("d").create_container("g", "/pk")
    file = tmp_path / "armillary.toml"
    file.write_text(
        '[[database]]\nid = "d"\n[[database.container]]\nid = "g"\npartition_key = "/pk"\n'
        "graph = true\n"
    )
    apply_declared(account._engine, Settings.default(), read_file(file).databases)
    assert account.database("d").containers() == ["g"]


def test_bicep_has_every_container_and_quotes_its_names(account: Account, folder: Path) -> None:
    apply(account, folder)
    account.database("shop").create_container("it's ${x}", "/pk", autoscale_max=4000)
    text = bicep_text(describe(account._store))
    assert text.count("sqlDatabases/containers@") == 3
    assert r"name: 'it\'s \${x}'" in text
    assert "maxThroughput: 4000" in text
    assert "throughput: 500" in text
    assert text.count("{") == text.count("}")


def test_definitions_have_the_scripts(tmp_path: Path) -> None:
    """What `armillary definitions` prints makes the same scripts again."""
    body = "function (a) {\n\t// \"quoted\", 'single', \\ and ${x}\n  return `ü ${a}`;\n}"
    with armillary.open(tmp_path / "one", housekeeping=False) as account:
        scripts = account.create_database("d").create_container("c", "/pk").scripts
        scripts.put_procedure("p", body)
        scripts.put_function("f", body)
        scripts.put_trigger("t", body, type="Post", operation="Delete")
    described = describe_address(str(tmp_path / "one"))
    file = tmp_path / "armillary.toml"
    file.write_text(databases_text(described), "utf-8")
    again = read_file(file).databases
    kinds = [(one.kind, one.body) for one in again[0].containers[0].scripts]
    assert sorted(kinds, key=lambda one: one[0]) == [
        ("function", {"id": "f", "body": body}),
        ("procedure", {"id": "p", "body": body}),
        (
            "trigger",
            {"id": "t", "body": body, "triggerType": "Post", "triggerOperation": "Delete"},
        ),
    ]
    bicep = bicep_text(described)
    for kind in ("storedProcedures", "triggers", "userDefinedFunctions"):
        assert f"sqlDatabases/containers/{kind}@" in bicep
    assert "\\${x}" in bicep
