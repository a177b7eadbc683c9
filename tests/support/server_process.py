"""A whole server as a process of its own: started, asked, signalled, looked at from outside."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.raw_http import Answer, Answers, get

ROOT = Path(__file__).resolve().parents[2]
#: Compiled modules of all servers of one run, also where the environment says to keep none: each
#: start would compile the whole program again.
_OWN = tempfile.TemporaryDirectory(prefix="armillary-compiled-")
COMPILED = os.environ.get("PYTHONPYCACHEPREFIX") or _OWN.name  # see tests/conftest.py


def environment() -> dict[str, str]:
    environ = {name: text for name, text in os.environ.items() if "BYTECODE" not in name}
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    return environ | {"PYTHONPATH": paths, "PYTHONPYCACHEPREFIX": COMPILED}


REFUSING = "refuses requests (429)"
"""In the line that a server prints at the first 429 of a container."""


class ServerProcess:
    """With the small service of the tests; `real` is `armillary serve` with the NoSQL API, and
    with these options."""

    def __init__(
        self,
        data: Path,
        *,
        workers: int = 1,
        port: int = 0,
        inherit: bool = False,
        real: bool = False,
        options: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        small = ["tests.support.server_child", str(data), str(workers), str(port)]
        served = ["armillary", "serve", "--data", str(data), "--port", str(port)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", *(served if real else small), *["inherit"] * inherit, *options],
            cwd=ROOT,
            env=environment() | dict(environ or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self.port = 0

    def wait_until_ready(self, seconds: float = 120) -> None:
        """The last line it prints says where it is."""
        timer = threading.Timer(seconds, self.process.kill)
        timer.start()
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("ready "):
                self.port = int(line.rpartition(":")[2])
                break
        timer.cancel()
        assert self.port, self.end()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 60)

    def ask(self, target: str, method: str = "GET") -> Answer:
        with self.connect() as client:
            client.sendall(get(target, method=method))
            return Answers(client).get()

    def terminate(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def end(self) -> tuple[int, str, str]:
        """Exit code, and what it still printed. That a container refused requests is no error."""
        out, errors = self.process.communicate(timeout=120)
        lines = errors.splitlines(keepends=True)
        return self.process.returncode, out, "".join(one for one in lines if REFUSING not in one)

    def close(self) -> None:
        """Whatever a failed test left: the whole session of processes."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def children_of(pid: int) -> dict[int, str]:
    """Child processes and what they run, from /proc."""
    found: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, UnicodeDecodeError):
            continue  # it ended under our eyes
        if int(fields[1]) == pid and fields[0] != "Z":
            found[int(entry.name)] = command
    return found
