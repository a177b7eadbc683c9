"""`advise` on a table speaks of PartitionKey and of properties by their plain names."""

import json
from pathlib import Path

from typer.testing import CliRunner

import armillary
from armillary.cli import app
from armillary.commands.advise.live import live_items
from armillary.encoding.edm.json import stored_entity
from armillary.store.catalog.tables import make_table


def test_candidates_are_what_people_know(tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    with armillary.open(folder) as account:
        make_table(account.store, "t")
        container = account.database("TablesDB").container("t")
        for number in range(200):
            city = "rome" if number < 150 else f"city{number}"
            plain = {"PartitionKey": city, "RowKey": str(number), "Mail": f"m{number}"}
            container.create_item(stored_entity(plain))
    with live_items(folder, "TablesDB", "t") as (items, key):
        assert key is not None
        assert key.paths == (("PartitionKey",),)
        first = next(items)
        assert (first["PartitionKey"], first["Mail"]) == ("rome", "m0")
    words = ["advise", folder, "--database", "TablesDB", "--container", "t", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code in (0, 1), done.output
    assert "/Mail" in done.output
    assert "/PartitionKey" in done.output
    first = json.loads(done.output)["recommended"]
    assert first["key"] != "/PartitionKey"
    assert 'entity["PartitionKey"] = ' in first["python"]
    assert "create_container" not in first["python"]
    assert "rekey" not in " ".join(first["migration"])
    words = ["partitions", folder, "--database", "TablesDB", "--container", "t"]
    assert "/PartitionKey" in CliRunner().invoke(app, words).output
