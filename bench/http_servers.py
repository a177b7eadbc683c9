"""The servers that bench/http.py measures, each started on a free port and stopped again.

    ours     armillary serve, durable, request units counted and enforced
    bare     bench/bare_server.py with an answer that ours gave
    vercel   @vercel/cosmosdb-server of npm: JavaScript, all in memory, checks no signature

`Running.cpu_s` is the processor time of a server's whole family of processes so far.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
NPM_NAME = "@vercel/cosmosdb-server"
READY_SECONDS = 60.0
SETTLE_SECONDS_MAX = 40.0
#: With kept connections, which its own command line does not offer.
NPM_SCRIPT = """
const made = require("@vercel/cosmosdb-server");
const make = process.argv[2] === "tls" ? made.createHttpsServer : made.createHttpServer;
const server = make({ keepAlive: true });
server.keepAliveTimeout = 600000;
server.listen(0, "127.0.0.1", () => console.log("ready http://127.0.0.1:" + server.address().port));
"""


@dataclass(frozen=True, slots=True)
class Running:
    name: str
    port: int
    pid: int
    secure: bool = False

    def over_tls(self) -> "Running":
        """Ours speaks both on one port."""
        return Running(self.name, self.port, self.pid, secure=True)

    def settle(self) -> None:
        """Wait until it has stopped working at requests whose clients have gone."""
        end, before = time.monotonic() + SETTLE_SECONDS_MAX, -1.0
        while time.monotonic() < end and (now := self.cpu_s()) - before > 2 / TICKS:
            before = now
            time.sleep(0.2)

    def cpu_s(self) -> float:
        return sum(self.times_s())

    def times_s(self) -> tuple[float, float]:
        """User and system time."""
        each = [_times_s(pid) for pid in family(self.pid)]
        return sum(user for user, _ in each), sum(system for _, system in each)


@contextmanager
def started(
    name: str, command: list[str], *, secure: bool = False, cwd: Path | None = None
) -> Iterator[Running]:
    environ = {k: v for k, v in os.environ.items() if not k.startswith("ARMILLARY_")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=cwd, env=environ) as child:
        try:
            assert child.stdout is not None
            for line in child.stdout:
                if line.startswith(b"ready "):
                    port = int(line.rpartition(b":")[2].strip(b"/\n "))
                    break
            else:
                raise SystemExit(f"{name} did not start")
            yield Running(name, port, child.pid, secure)
        finally:
            child.terminate()
            try:
                child.wait(READY_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()


def ours(data: Path, workers: int) -> list[str]:
    serve = [sys.executable, "-m", "armillary", "serve", "--port", "0", "--data", str(data)]
    return [*serve, "--workers", str(workers), "--partition-ru", "1000000000"]


def bare(answer: Path, server_pem: Path | None = None) -> list[str]:
    command = [sys.executable, "-m", "bench.bare_server", "0", str(answer)]
    return command if server_pem is None else [*command, str(server_pem)]


def install_vercel(folder: Path) -> "subprocess.Popen[bytes] | None":
    """Begins; None where there is no npm."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "server.js").write_text(NPM_SCRIPT, encoding="utf-8")
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), NPM_NAME]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def vercel(folder: Path, *, secure: bool) -> list[str]:
    return ["node", str(folder / "server.js"), "tls" if secure else "plain"]


def ask(port: int, request: bytes) -> bytes:
    """One request over a connection of its own; the whole answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request)
        answer = b""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            answer += connection.recv(1 << 20)
            head, gap, body = answer.partition(b"\r\n\r\n")
            if gap and len(body) >= _length(head):
                return answer
    raise SystemExit("no whole answer")


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


def family(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        try:
            for task in Path(f"/proc/{one}/task").iterdir():
                found += [int(text) for text in (task / "children").read_text().split()]
        except OSError:  # it has just ended
            continue
    return list(dict.fromkeys(found))


def _times_s(pid: int) -> tuple[float, float]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0, 0.0
    fields = text.rpartition(")")[2].split()
    return int(fields[11]) / TICKS, int(fields[12]) / TICKS
