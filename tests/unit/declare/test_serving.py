"""Without these, what the file says would be true in the parser and not in the server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.cosmos import CosmosClient
from tests.support.server_process import ServerProcess
from typer.testing import CliRunner

from armillary.api.core.settings import EMULATOR_KEY
from armillary.cli import app

TEXT = """\
[partition]
ru = 1000

[throughput]
profile = "classic"

[[database]]
id = "shop"

[[database.container]]
id = "orders"
partition_key = "/customer"
throughput = 3000
seed = "orders.jsonl"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "shop.toml"
    path.write_text(TEXT, "utf-8")
    lines = "".join(f'{{"id": "{n}", "customer": "c{n}"}}\n' for n in range(20))
    (tmp_path / "orders.jsonl").write_text(lines, "utf-8")
    return path


@pytest.fixture(params=[1, 2])
def server(request: pytest.FixtureRequest, tmp_path: Path, config: Path) -> Iterator[ServerProcess]:
    options = ("--config", str(config), "--workers", str(request.param))
    server = ServerProcess(tmp_path / "data", real=True, options=options)
    server.wait_until_ready()
    yield server
    server.close()


def test_a_server_is_what_its_file_says(server: ServerProcess, tmp_path: Path) -> None:
    client = CosmosClient(f"http://127.0.0.1:{server.port}", EMULATOR_KEY)
    orders = client.get_database_client("shop").get_container_client("orders")
    assert len(list(orders.read_all_items())) == 20
    assert len(list(orders.read_feed_ranges())) == 3, "1,000 RU/s a partition, as the file says"

    shown = CliRunner().invoke(app, ["definitions", str(tmp_path / "data")])
    assert (shown.exit_code, 'partition_key = "/customer"' in shown.output) == (0, True)
    bicep = CliRunner().invoke(app, ["definitions", "--bicep", "--data", str(tmp_path / "data")])
    assert "throughput: 3000" in bicep.output


def test_a_mistake_in_the_file_is_exit_2_and_one_line(tmp_path: Path, config: Path) -> None:
    config.write_text(TEXT.replace("partition_key", "partitionkey"), "utf-8")
    server = ServerProcess(tmp_path / "data", real=True, options=("--config", str(config)))
    code, _, errors = server.end()
    assert code == 2
    assert errors.startswith(f"{config}:12: there is no key 'partitionkey' here")
    assert len(errors.splitlines()) == 1
    assert not (tmp_path / "data").exists()


def test_init_writes_a_file_once(tmp_path: Path) -> None:
    target = str(tmp_path / "armillary.toml")
    assert CliRunner().invoke(app, ["init", target]).exit_code == 0
    before = Path(target).read_text("utf-8")
    again = CliRunner().invoke(app, ["init", target])
    assert (again.exit_code, "--force" in again.output) == (2, True)
    assert CliRunner().invoke(app, ["init", target, "--force"]).exit_code == 0
    assert Path(target).read_text("utf-8") == before


def test_definitions_of_nothing_make_nothing(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["definitions", str(tmp_path / "none")])
    assert (shown.exit_code, "There is no account in" in shown.output) == (2, True)
    assert not (tmp_path / "none").exists()
