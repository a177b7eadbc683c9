"""A server of its own for a test: `armillary serve` in a child process, on a free port.

    with start_server() as server:
        ...  # server.endpoint, server.key, server.connection_string

For clients in other processes or languages; a test in Python is better served by `Cosmos`, in
process. Data is in memory unless a folder is given. The child ends with its parent, however that
one ends: it watches its standard input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from armillary.errors import Unavailable

START_SECONDS = 60.0
STOP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Server:
    """Stop it, or use it in a `with` block."""

    endpoint: str
    key: str
    connection_string: str
    process: subprocess.Popen[str]
    portal: str = ""
    """The link that opens the portal."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """Of the other protocols that are up, by name: `table`, `mongo`, `gremlin`."""

    @property
    def table_connection_string(self) -> str:
        """For the SDKs of the Table API."""
        where = f"http://localhost:{self.ports['table']}/"
        return f"AccountName=localhost;AccountKey={self.key};TableEndpoint={where}"

    def stop(self) -> None:
        """Idempotent."""
        _end(self.process)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def start_server(
    *,
    data: str | Path = ":memory:",
    enforce: bool = False,
    options: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    start_seconds: float = START_SECONDS,
) -> Server:
    """Wait until it is ready. `options` are those of `armillary serve`, such as
    `["--partition-ru", "1000"]`."""
    command = [sys.executable, "-m", "armillary", "serve", "--data", str(data), "--port", "0"]
    settings = {"ARMILLARY_THROUGHPUT_ENFORCE": "on" if enforce else "off"}
    process = subprocess.Popen(
        [*command, "--json", "--stop-with-stdin", *options],
        env={**os.environ, **settings, **(environ or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    assert process.stdout is not None
    late = threading.Timer(start_seconds, process.kill)
    late.start()
    try:
        line = process.stdout.readline()
    finally:
        late.cancel()
    if not line:
        _end(process)
        raise Unavailable(
            f"The server did not start (exit code {process.returncode}); it said why on standard "
            "error."
        )
    ready = json.loads(line)
    return Server(
        ready["endpoint"],
        ready["key"],
        ready["connection_string"],
        process,
        ready["portal"],
        ready["ports"],
    )


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
