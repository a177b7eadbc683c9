"""FerretDB 1.24 (bench/ferretdb), built once per session of tests: what another server says.

`ARMILLARY_FERRETDB` names a program that was built before (`go build -o PROGRAM .` in that folder).
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "bench" / "ferretdb"
LACKS = [one for one in ("go",) if shutil.which(one) is None]


def build(target: Path) -> Path:
    given = os.environ.get("ARMILLARY_FERRETDB")
    if given:
        return Path(given)
    program = target / "ferretdb"
    subprocess.run(
        ["go", "build", "-o", str(program), "."],
        cwd=FOLDER, check=True, capture_output=True, timeout=850,
    )  # fmt: skip
    return program


@contextmanager
def ferretdb(program: Path | None = None) -> Iterator[str]:
    """The URI of a server on an empty folder."""
    with ferretdb_process(program) as (_, uri):
        yield uri


@contextmanager
def ferretdb_process(program: Path | None = None) -> Iterator[tuple[int, str]]:
    """The same with its process id."""
    with tempfile.TemporaryDirectory() as folder:
        program = program or build(Path(folder))
        with socket.create_server(("127.0.0.1", 0)) as one:
            port = int(one.getsockname()[1])
        data = Path(folder) / "data"
        data.mkdir()
        server = subprocess.Popen(
            [str(program), f"127.0.0.1:{port}", f"file:{data}/"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield server.pid, f"mongodb://127.0.0.1:{port}/?serverSelectionTimeoutMS=60000"
        finally:
            server.terminate()
            server.wait(30)
