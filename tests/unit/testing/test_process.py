"""Without these, suites in other languages could not start a server, or would leave it behind."""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from armillary.errors import Unavailable
from armillary.testing import start_server

ROOT = Path(__file__).resolve().parents[3]
ENVIRON = {"PYTHONPATH": str(ROOT / "src")}


def test_start_use_stop() -> None:
    with start_server(environ=ENVIRON) as server:
        assert server.endpoint in server.connection_string
        client = CosmosClient.from_connection_string(server.connection_string)
        made = client.create_database("d").create_container("c", PartitionKey("/pk"))
        for number in range(5):
            made.create_item({"id": str(number), "pk": "a"})
        assert made.read_item("1", "a")["id"] == "1"
    assert server.process.returncode == 0
    server.stop()


def test_a_folder_keeps_what_memory_forgets(tmp_path: Path) -> None:
    for expected in ([], ["d"]):
        with start_server(data=tmp_path, environ=ENVIRON) as server:
            client = CosmosClient.from_connection_string(server.connection_string)
            assert [one["id"] for one in client.list_databases()] == expected
            client.create_database_if_not_exists("d")


def test_a_server_of_several_workers_ends_with_its_standard_input(tmp_path: Path) -> None:
    """Its main thread waits for the workers; a signal to any other thread would not wake it, and
    the server would be killed instead, after a wait."""
    with start_server(data=tmp_path, options=["--workers", "2"], environ=ENVIRON) as server:
        pass
    assert server.process.returncode == 0


def test_a_start_that_fails_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Unavailable, match="exit code 2"):
        start_server(options=["--workers", "none"], environ=ENVIRON)
    assert "--workers" in capfd.readouterr().err


def test_a_key_of_ones_own_is_not_printed(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("c2VjcmV0IHNlY3JldA==\n")
    command = [sys.executable, "-m", "armillary", "serve", "--data", ":memory:", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--json", "--stop-with-stdin", "--key-file", str(keys)],
        env=os.environ | ENVIRON,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    ready = json.loads(process.stdout.readline())
    with urllib.request.urlopen(ready["endpoint"] + "_armillary/health", timeout=120) as answer:
        assert json.load(answer)["status"] == "ready"
    rest, _ = process.communicate(timeout=120)
    assert ready.keys() == {"endpoint", "pid", "portal", "ports"}
    assert "c2VjcmV0" not in json.dumps(ready) + rest
    assert rest == ""
    assert process.returncode == 0
    assert not (tmp_path / ":memory:").exists()


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_node_snippet_of_the_documents_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "testing.md").read_text("utf-8")
    (snippet,) = re.findall(r"```js\n(.*?)```", page, re.DOTALL)
    test = tmp_path / "it.test.js"
    test.write_text(snippet, "utf-8")
    program = tmp_path / "bin" / "armillary"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m armillary "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["node", "--test", str(test)],
        env=os.environ | ENVIRON | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"pass 1\b", done.stdout), done.stdout
