"""Without these, a typing error in `armillary.toml` would be a setting that is silently not
applied, or a traceback.
"""

import re
from pathlib import Path

import pytest

from armillary.config import Settings
from armillary.declare.files import read_file
from armillary.declare.toml_text import starter_text
from armillary.errors import BadInput
from armillary.server.process.plan import make_plan

GOOD = """\
[partition]
bytes = "2MB"
ru = 1000
[throughput]
enforce = "report"
burst = true
[api]
cors_origins = ["https://a.example", "https://b.example"]

[[database]]
id = "shop"
autoscale_max = 4000

[[database.container]]
id = "orders"
partition_key = ["/tenantId", "/userId"]
throughput = 500
default_ttl = 60
unique_keys = ["/number", ["/first", "/last"]]
change_feed_retention_minutes = 10
indexing_policy = { indexingMode = "consistent", includedPaths = [{ path = "/*" }] }
seed = "orders.jsonl"

[[database.container]]
id = "readings"
synthetic_key = { version = 1, path = "/pk", parts = ["/date"], separator = "." }
"""


def write(folder: Path, text: str) -> Path:
    (folder / "orders.jsonl").write_text('{"id": "1"}\n', "utf-8")
    path = folder / "armillary.toml"
    path.write_text(text, "utf-8")
    return path


def test_settings_and_declarations_are_read(tmp_path: Path) -> None:
    file = read_file(write(tmp_path, GOOD))
    settings = Settings.of(file.settings)
    assert (settings.partition.bytes, settings.partition.ru) == (2_000_000, 1000)
    assert settings.throughput.enforce == "report"
    assert settings.throughput.burst
    assert settings.api.cors_origins == ("https://a.example", "https://b.example")
    (shop,) = file.databases
    orders, readings = shop.containers
    assert (shop.autoscale_max, orders.throughput) == (4000, 500)
    assert orders.body["partitionKey"]["kind"] == "MultiHash"
    assert [one["paths"] for one in orders.body["uniqueKeyPolicy"]["uniqueKeys"]] == [
        ["/number"],
        ["/first", "/last"],
    ]
    assert orders.body["changeFeedPolicy"] == {"retentionDuration": 10}
    assert orders.seeds == (str(tmp_path / "orders.jsonl"),)
    assert readings.body["partitionKey"]["paths"] == ["/pk"]
    assert str(readings.place).endswith("armillary.toml:24")


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("port = \n", 1, "line 1"),
        ("[servr]\n", 1, "there is no section 'servr'; there are: partition"),
        ("\n[partition]\nbyte = 1\n", 3, "no setting 'byte' in [partition]; there are: bytes"),
        ("[partition]\n# x\nbytes = '2 bananas'\n", 3, "bytes is '2 bananas'; a size is"),
        ("[partition]\nru = 1.5\n", 2, "ru is a float"),
        ("[server]\nport = 70000\n", 2, "a port is a number"),
        ("[throughput]\nburst = 'perhaps'\n", 2, "a switch is"),
        ("partition = 3\n", 1, "partition is a whole number; it has to be a table"),
        ("[database]\nid = 'a'\n", 1, "database is a table; it has to be an array"),
        ("[[database]]\n", 1, "it needs an id"),
        ("[[database]]\nid = 7\n", 2, "id is a whole number; it has to be text"),
        ("[[database]]\nid = 'a'\nthroughput = true\n", 3, "throughput is true or false"),
        ("[[database]]\nid = 'a'\n[[database]]\nid = 'a'\n", 4, "'a' is declared twice"),
        ("[[database]]\nid = 'a'\n[[database.container]]\nid = 'b'\n", 3, "needs a partition_key"),
        (
            "[[database]]\nid = 'a'\n[[database.container]]\nid = 'b'\npartition_key = '/x'\n"
            "ttl = 5\n",
            6,
            "there is no key 'ttl' here; there are:",
        ),
        (
            "[[database]]\nid = 'a'\n[[database.container]]\nid = 'b'\npartition_key = '/x'\n"
            "seed = ['gone.jsonl']\n",
            6,
            "there is no file gone.jsonl",
        ),
        (
            "[[database]]\nid = 'a'\n\n[[database.container]]\nid = 'b'\npartition_key = 'x'\n",
            4,
            "path 'x' could not be accepted",
        ),
        (
            "[[database]]\nid = 'a'\n\n[[database.container]]\nid = 'b'\npartition_key = '/x'\n"
            "default_ttl = 0\n",
            4,
            "defaultTtl '0' is invalid",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    tmp_path: Path, text: str, line: int, problem: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(BadInput, match=re.escape(problem)) as refused:
        read_file(path)
    assert str(path) in str(refused.value)
    if "line" not in problem:
        assert f"{path}:{line}: " in str(refused.value)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="can't be read"):
        read_file(tmp_path / "none.toml")


def test_flag_before_variable_before_file_before_default(tmp_path: Path) -> None:
    write(tmp_path, "[partition]\nbytes = '1MB'\nru = 100\nlogical_bytes = '3MB'\n")
    other = tmp_path / "other.toml"
    other.write_text("[partition]\nru = 7\n[server]\nport = 9000\nworkers = 2\n", "utf-8")
    variables = {"ARMILLARY_PARTITION_RU": "200", "ARMILLARY_PARTITION_BYTES": "2MB"}
    plan = make_plan(
        environ=variables,
        data=tmp_path,
        folder=tmp_path,
        flags={"partition": {"bytes": 5_000_000}},
    )
    partition = plan.settings.partition
    assert (partition.bytes, partition.ru, partition.logical_bytes) == (5_000_000, 200, 3_000_000)
    assert plan.port == 8081
    plan = make_plan(environ={}, data=tmp_path, folder=tmp_path, config=other, port=0)
    assert (plan.settings.partition.ru, plan.port, plan.workers) == (7, 0, 2)
    assert plan.settings.partition.logical_bytes == Settings.default().partition.logical_bytes, (
        "a file that was asked for takes the place of the one that lies there"
    )


def test_the_engine_of_the_file_is_used_unless_a_flag_says_otherwise(tmp_path: Path) -> None:
    write(tmp_path, "[engine]\nurl = ':memory:'\n")
    assert make_plan(environ={}, data=tmp_path, folder=tmp_path).engine == ":memory:"
    asked = make_plan(environ={}, data=tmp_path, folder=tmp_path, engine="elsewhere")
    assert asked.engine == "elsewhere"


def test_the_starter_file_says_the_defaults(tmp_path: Path) -> None:
    """Also with every line in force: what is commented out has to be right."""
    assert Settings.of(read_file(write(tmp_path, starter_text())).settings) == Settings.default()
    live = re.sub(r"^# (?=[a-z_]+ = |\[)", "", starter_text(), flags=re.MULTILINE)
    (tmp_path / "scripts").mkdir()
    for name in ("transfer", "tax", "check"):
        (tmp_path / "scripts" / f"{name}.js").write_text("function () {}")
    (tmp_path / "people.jsonl").write_text("")
    file = read_file(write(tmp_path, live))
    settings = Settings.of(file.settings)
    assert settings.partition == Settings.default().partition
    assert settings.server.key_file == "keys.txt"
    assert [one.id for one in file.databases[0].containers] == ["orders", "readings", "people"]


@pytest.mark.parametrize("key", ['"/id"', '"/label"', '"/a/b"', '["/a", "/b"]'])
def test_a_graph_needs_a_key_that_gremlin_can_use(tmp_path: Path, key: str) -> None:
    file = tmp_path / "armillary.toml"
    head = '[[database]]\nid = "d"\n[[database.container]]\nid = "g"\ngraph = true\n'
    file.write_text(head + 'partition_key = "/pk"\n')
    declared = read_file(file).databases[0].containers[0]
    assert (declared.id, declared.api) == ("g", "gremlin")
    file.write_text(head + f"partition_key = {key}\n")
    with pytest.raises(BadInput, match=r"armillary.toml:6: .*(key of a graph|A graph needs one)"):
        read_file(file)


def test_scripts_come_from_files(tmp_path: Path) -> None:
    for name in ("transfer", "tax", "check"):
        (tmp_path / f"{name}.js").write_text(f"function {name}() {{}}")
    text = """
[[database]]
id = "d"
[[database.container]]
id = "c"
partition_key = "/pk"
procedures = ["transfer.js"]
functions = [{ file = "tax.js", id = "vat" }]
triggers = [{ file = "check.js", type = "Post", operation = "Create" }]
"""
    (container,) = read_file(write(tmp_path, text)).databases[0].containers
    assert [(one.kind, one.body["id"]) for one in container.scripts] == [
        ("procedure", "transfer"),
        ("trigger", "check"),
        ("function", "vat"),
    ]
    trigger = container.scripts[1].body
    assert (trigger["triggerType"], trigger["triggerOperation"]) == ("Post", "Create")
    for line, problem in (
        ('procedures = ["none.js"]', "is not a file"),
        ('triggers = [{ file = "check.js", type = "Mid" }]', "triggerType"),
        ('functions = [{ file = "tax.js", kind = 1 }]', "no key 'kind'"),
        ('functions = [{ text = "function () {}" }]', "id"),
        ('functions = [{ id = "a", file = "tax.js", text = "function () {}" }]', "not both"),
    ):
        bad = text[: text.index("procedures")] + line
        with pytest.raises(BadInput, match=problem):
            read_file(write(tmp_path, bad))
