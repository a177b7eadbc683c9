"""Run a public suite that a registry has by name, outside the repository, and keep its counts.

The source package is fetched by pip into a temporary folder and its tests run against a server of
their own; `devtools_testutils`, which no registry has, is an empty stub. Nothing of it stays but
the lines in bench/results/.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
#: Those of the first record, so that runs can be compared.
FILES: Final = {
    "azure-cosmos": (
        "test_crud", "test_crud_async", "test_crud_container", "test_crud_container_async",
        "test_crud_database", "test_crud_database_async", "test_crud_subpartition",
        "test_crud_subpartition_async", "test_query", "test_query_async", "test_aggregate",
        "test_orderby", "test_query_cross_partition", "test_query_cross_partition_async",
        "test_transactional_batch", "test_transactional_batch_async", "test_partition_key",
        "test_partition_key_async", "test_change_feed", "test_change_feed_async", "test_ttl",
        "test_encoding", "test_encoding_async", "test_auto_scale", "test_auto_scale_async",
        "test_feed_range", "test_feed_range_async",
    ),
}  # fmt: skip
NAMES: Final = {"azure-cosmos": "sdk"}
#: Whatever is imported from it is there, and does nothing.
STUB: Final = """
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *values, **named: None
"""
START_S: Final = 60


def run(package: str, results: Path, files: tuple[str, ...] = ()) -> Path:
    with tempfile.TemporaryDirectory(prefix="suite-") as folder:
        version, tests = fetched(package, Path(folder))
        lines = list(_counts(tests, files or FILES[package], Path(folder)))
    passed, failed = sum(one[1] for one in lines), sum(one[2] for one in lines)
    now = datetime.now(UTC)
    load = os.getloadavg()[0]
    commit = _out("git", "rev-parse", "--short", "HEAD")
    text = [
        f"{package} {version}, source package, folder tests/, run from outside this repository.",
        f"python -m tools.scoreboard --run, {now:%Y-%m-%d}, at {commit}, load {load:.0f}",
        "",
        *(f"{name:40} {good:4} passed {bad:4} failed" for name, good, bad, _ in lines),
        "",
        f"In all {passed:,} passed, {failed:,} failed",
        "",
        *(f"  {each}" for *_, names in lines for each in names),
    ]
    file = results / f"{NAMES[package]}-suites-{now:%Y-%m-%d}-run.txt"
    file.write_text("\n".join(text) + "\n", "utf-8")
    return file


def fetched(package: str, folder: Path) -> tuple[str, Path]:
    """(its version, the folder of its tests)."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    subprocess.run(
        [*pip, "--no-binary", package, "--dest", str(folder), package], check=True, cwd=folder
    )
    archive = next(folder.glob("*.tar.gz"))
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    root = folder / archive.name.removesuffix(".tar.gz")
    return root.name.rsplit("-", 1)[1], root / "tests"


def _counts(
    tests: Path, files: tuple[str, ...], folder: Path
) -> list[tuple[str, int, int, list[str]]]:
    stub = folder / "stub" / "devtools_testutils"
    stub.mkdir(parents=True)
    for name in ("__init__", "azure_recorded_testcase", "helpers"):
        (stub / f"{name}.py").write_text(STUB)
    port = _free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "armillary", "serve", "--data", str(folder / "data"),
         "--port", str(port), "--mongo-port", "off", "--gremlin-port", "off",
         "--table-port", "off"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _wait_for(port)
        return [_of_file(tests, name, port, folder) for name in files]
    finally:
        server.terminate()
        server.wait(30)


def _of_file(tests: Path, name: str, port: int, folder: Path) -> tuple[str, int, int, list[str]]:
    path = os.pathsep.join([str(folder / "stub"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rf", "--timeout=200", "-p", "no:cacheprovider",
         f"{name}.py"],
        cwd=tests, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": path, "ACCOUNT_HOST": f"http://localhost:{port}/"},
    )  # fmt: skip
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
    failed = re.findall(r"^FAILED (\S+)", done.stdout, re.MULTILINE)
    if not counts:
        raise RuntimeError(f"{name} did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    print(f"{name}: {counts}", flush=True)
    return name, counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0), failed


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait_for(port: int) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(f"http://localhost:{port}/", timeout=1)
        except urllib.error.HTTPError:
            return  # it answers: 401
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError("The server did not start.")


def _out(*command: str) -> str:
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
