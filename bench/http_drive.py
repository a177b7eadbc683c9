"""Load on one server for some seconds: by wrk, or where there is none by bench/http_load.py.

wrk is written in C and costs a fraction of what it measures; the other costs as much as the bare
server. `cpu_us` is the server's processor time per request: the number that a busy machine, or one
with few cores, disturbs least.
"""

import itertools
import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.http_load import load
from bench.http_requests import FIRST_TURN
from bench.http_servers import Running

CONNECTIONS = 32
WARM_SECONDS = 1
#: Warming up, however fast a server is, sends its requests fewer times; what is measured begins
#: there, so that no create has an id of the warming.
WARM_TURNS_MAX = 500
SCRIPT = Path(__file__).with_name("http_wrk.lua")


@dataclass(frozen=True, slots=True)
class Seen:
    rate: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    failures: int
    connections: int = CONNECTIONS

    @property
    def per_cpu_s(self) -> float:
        """Requests that a processor second of the server answers."""
        return 1e6 / self.cpu_us if self.cpu_us else 0.0


def generator() -> str:
    return "wrk" if shutil.which("wrk") else "bench/http_load.py"


def drive(
    server: Running,
    requests: Sequence[bytes],
    folder: Path,
    seconds: int,
    connections: int = CONNECTIONS,
) -> Seen:
    """The first half of the requests warms the server up, the measured ones go on from there."""
    if generator() != "wrk":
        return _drive_ourselves(server, requests, seconds, connections)
    path = _file_of(requests, folder)
    _wrk(server, path, 0, WARM_SECONDS, connections)
    server.settle()
    before = server.cpu_s()
    start = WARM_TURNS_MAX * len(requests) + len(requests) // 2
    found = _wrk(server, path, start, seconds, connections)
    spent_s = server.cpu_s() - before
    server.settle()
    count = found["requests"]
    return Seen(
        count / found["duration_us"] * 1e6,
        found["p50_us"] / 1000,
        found["p99_us"] / 1000,
        spent_s / count * 1e6 if count else 0.0,
        found["failures"] + found["broken"],
        connections,
    )


def send_for(
    server: Running, requests: Sequence[bytes], folder: Path, seconds: int
) -> dict[str, int]:
    """By wrk, without warming up: its counts."""
    return _wrk(server, _file_of(requests, folder), 0, seconds, CONNECTIONS)


def _file_of(requests: Sequence[bytes], folder: Path) -> Path:
    path = folder / "requests.bin"
    with path.open("wb") as file:
        for one in requests:
            file.write(b"%d\n%b" % (len(one), one))
    return path


def _wrk(server: Running, path: Path, start: int, seconds: int, connections: int) -> dict[str, int]:
    url = f"{'https' if server.secure else 'http'}://127.0.0.1:{server.port}"
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s"]
    command += ["-s", str(SCRIPT), url, "--", str(path), str(start)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    last = done.stdout.strip().rpartition("\n")[2]
    if done.returncode or not last.startswith("{"):
        raise SystemExit(f"wrk failed: {done.stdout}{done.stderr}")
    found: dict[str, int] = json.loads(last)
    return found


def in_turns(requests: Sequence[bytes]) -> Iterator[bytes]:
    """What the script of wrk sends: all of them, again and again, creates with ids of their own."""
    mark = FIRST_TURN.encode()
    for turn in itertools.count():
        for one in requests:
            yield one.replace(mark, b"-turn-%03d" % turn, 1) if turn else one


def _drive_ourselves(
    server: Running, requests: Sequence[bytes], seconds: int, connections: int
) -> Seen:
    # One iterator for all connections: what one of them sends, no other does.
    each = in_turns(requests)
    before = server.cpu_s()
    found = load(
        server.port,
        lambda: each,
        connections=connections,
        seconds=seconds,
        secure=server.secure,
    )
    whole = seconds * 1.25  # with the warming
    cpu_us = (server.cpu_s() - before) / (found.answers_per_s * whole) * 1e6
    return Seen(
        found.answers_per_s, found.p50_ms, found.p99_ms, cpu_us, found.failures, connections
    )
