"""An import that is killed goes on where it was: nothing is lost, nothing is there twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import armillary
from armillary.commands.operate import WRITER_PROCESS_BYTES
from armillary.operate.doctor import examine

ITEMS = 25_000
WAITS_MAX = 6_000


def _import(source: Path, data: Path) -> list[str]:
    command = [sys.executable, "-m", "armillary", "import", str(source), "--data", str(data)]
    return [*command, "--json"]


def test_a_killed_import_goes_on_where_it_was(tmp_path: Path) -> None:
    data, source = tmp_path / "data", tmp_path / "items.jsonl"
    with armillary.open(data, housekeeping=False) as account:
        account.create_database("d").create_container("c", "/pk")
    with source.open("w", encoding="utf-8") as file:
        for number in range(ITEMS):
            item = {"id": str(number), "pk": f"p{number % 50}", "n": number, "text": "x" * 300}
            file.write(json.dumps(item) + "\n")
    assert source.stat().st_size > WRITER_PROCESS_BYTES, "it is written by two processes"
    journal = source.with_name(source.name + ".journal")
    with subprocess.Popen(_import(source, data), stdout=subprocess.DEVNULL) as first:
        for _ in range(WAITS_MAX):
            if journal.exists() or first.poll() is not None:
                break
            time.sleep(0.01)
        first.send_signal(signal.SIGKILL)
    assert journal.exists(), "killed on its way"
    begun = json.loads(journal.read_text())["state"]["done"]
    assert 0 < begun < ITEMS
    done = subprocess.run(_import(source, data), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["items"] == ITEMS
    assert not journal.exists()
    with armillary.open(data, housekeeping=False) as account:
        container = account.database("d").container("c")
        found = list(container.query("SELECT VALUE c.n FROM c"))
        assert sorted(found) == list(range(ITEMS))
        assert list(container.query("SELECT VALUE c.id FROM c WHERE c.n = 17")) == ["17"]
    assert [one for one in examine(str(data)) if not one.well] == []
