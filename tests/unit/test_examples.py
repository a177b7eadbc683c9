"""The examples, run as their pages say. Without this they would rot, and they are the first thing
that people paste."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.gremlin_server import gremlin_server
from tests.support.node import modules_for
from tests.support.server_process import ServerProcess
from tests.support.table_server import TableServer

from armillary.server.command import parser

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SERVE = re.compile(r"armillary(?:\", \"| )serve([^&>`\n\]]*)")


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = ServerProcess(tmp_path_factory.mktemp("examples") / "data", real=True)
    try:
        server.wait_until_ready()
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.close()


def run(command: list[str], folder: Path, environ: dict[str, str]) -> list[str]:
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_all_mechanisms_hold() -> None:
    told = run([sys.executable, "walk.py"], EXAMPLES / "mechanisms", {})
    assert [line[:5].split() for line in told[:-1]] == [[str(n), "Y"] for n in range(1, 37)]
    assert told[-1] == "36 of 36 hold"
    assert run([sys.executable, "walk.py", "31"], EXAMPLES / "mechanisms", {})[-1] == "1 of 1 hold"


def test_graphs(tmp_path: Path) -> None:
    with gremlin_server(tmp_path / "data") as server:
        environ = _at(f"http://127.0.0.1:{server.process.port}") | {
            "GREMLIN_ENDPOINT": f"ws://127.0.0.1:{server.gremlin_port}/gremlin"
        }
        for _ in range(2):
            told = run([sys.executable, "graph.py"], EXAMPLES / "python", environ)
            assert told == [
                "from Seattle: Portland, Vancouver",
                "longer than 150 miles: I5",
                "one city costs 1.0 RU",
                "the road as an item leads to Portland",
            ]
        environ["NODE_PATH"] = str(modules_for(ROOT / "tests" / "conformance" / "gremlin" / "js"))
        assert run(["node", "graph.js"], EXAMPLES / "javascript", environ) == [
            "from Seattle: Portland, Vancouver",
            "miles in all: 316",
        ]


def test_python(endpoint: str) -> None:
    for _ in range(2):  # also when everything is there already
        told = run([sys.executable, "readings.py"], EXAMPLES / "python", _at(endpoint))
        assert told == [
            "device3 at 2: 17 °C",
            "warm at device1: 1-2, 1-3",
            "warm everywhere: 10",
            "changes so far: 20",
        ]


def test_javascript(endpoint: str) -> None:
    modules = modules_for(ROOT / "tests" / "conformance" / "nosql" / "js")
    environ = _at(endpoint) | {"NODE_PATH": str(modules)}
    told = run(["node", "readings.js"], EXAMPLES / "javascript", environ)
    assert told == ["device3 at 2: 17 °C for 1 RU", "warm everywhere: 10"]


def test_tables(tmp_path: Path) -> None:
    modules = modules_for(ROOT / "tests" / "conformance" / "table" / "js")
    with TableServer(tmp_path) as server:
        environ = {"TABLE_CONNECTION": server.connection_string, "TABLE_ENDPOINT": server.url}
        for _ in range(2):
            told = run([sys.executable, "people.py"], EXAMPLES / "python", environ)
            assert told == ["bob is 31", "older in oslo: eve", "moved: 2"]
        environ["NODE_PATH"] = str(modules)
        told = run(["node", "people.js"], EXAMPLES / "javascript", environ)
        assert told == ["bob is 31", "older in oslo: eve"]


def test_mongodb(tmp_path: Path) -> None:
    off = ["--table-port", "off", "--gremlin-port", "off", "--mongo-port", "0"]
    server = ServerProcess(tmp_path / "data", real=True, options=off)
    try:
        server.wait_until_ready()
        (uri,) = [found[0] for one in server.lines if (found := re.search(r"mongodb://\S+", one))]
        for _ in range(2):
            told = run([sys.executable, "orders.py"], EXAMPLES / "python", {"MONGO_URI": uri})
            assert told == [
                "large in us: 3, 5",
                "order 4 is about 40",
                "the last request cost 1.0 RU",
                "totals: eu 60, us 90",
            ]
        modules = modules_for(ROOT / "tests" / "conformance" / "mongo" / "js")
        environ = {"MONGO_URI": uri, "NODE_PATH": str(modules)}
        for _ in range(2):
            told = run(["node", "orders.js"], EXAMPLES / "javascript", environ)
            assert told == ["large in us: 3, 5", "totals: eu 60, us 90"]
    finally:
        server.close()


def test_the_samples_of_the_documents(tmp_path: Path) -> None:
    options = ["--table-port", "0", "--gremlin-port", "0", "--mongo-port", "0"]
    server = ServerProcess(tmp_path / "data", real=True, options=options)
    try:
        server.wait_until_ready()
        lines = "\n".join(server.lines)
        environ = {
            name: _found(pattern, lines)
            for name, pattern in (
                ("MONGO_URI", r"mongodb://\S+"),
                ("TABLE_CONNECTION", r"AccountName=\S+"),
                ("GREMLIN_ENDPOINT", r"ws://\S+"),
            )
        } | _at(f"http://127.0.0.1:{server.port}")
        folder = EXAMPLES / "documents"
        page = (folder / "README.md").read_text("utf-8").split("```")[3].strip().splitlines()
        assert run([sys.executable, "samples.py"], folder, environ) == page
        again = run([sys.executable, "samples.py"], folder, environ)
        assert again == [line for line in page if "sharded" not in line]
    finally:
        server.close()


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None
    return found[0]


def test_each_folder_is_on_the_page() -> None:
    page = (EXAMPLES / "README.md").read_text("utf-8")
    there = {one.name for one in EXAMPLES.iterdir() if one.is_dir() and any(one.iterdir())}
    assert set(re.findall(r"^\| \[([\w-]+)\]", page, re.MULTILINE)) == there


def test_the_options_of_the_server_exist() -> None:
    found = [
        (path, options.replace('", "', " ").replace('"', ""))
        for path in EXAMPLES.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
        for options in SERVE.findall(path.read_text("utf-8"))
    ]
    assert len(found) >= 5
    for path, options in found:
        assert parser().parse_args(shlex.split(options)), path


def test_the_devcontainer_is_json() -> None:
    json.loads((EXAMPLES / "devcontainer" / "devcontainer.json").read_text("utf-8"))


def _at(endpoint: str) -> dict[str, str]:
    return {"COSMOS_ENDPOINT": endpoint}
