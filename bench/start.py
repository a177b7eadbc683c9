"""What a server costs before anybody asks it anything.

    start   from the command to `/_armillary/health` saying ready, on an empty folder, best of five
    memory  of all its processes after a quiet second: proportional set size, so that pages which
            they share are counted once
    idle    CPU seconds of all its processes in five seconds without a request

Linux only: it reads /proc.
"""

import atexit
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from bench.report import Report, folder

ROUNDS = 5
IDLE_S = 5.0
TICKS = os.sysconf("SC_CLK_TCK")
READY_S = 60


def main() -> None:
    report = Report("start")
    with tempfile.TemporaryDirectory(prefix="armillary-compiled-") as compiled, folder() as place:
        environ = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        times = []
        for number in range(ROUNDS + 1):  # the first one compiles
            began = time.perf_counter()
            server, port = start(place / str(number), environ)
            wait_until_healthy(port, began + READY_S)
            times.append(time.perf_counter() - began)
            if number < ROUNDS:
                stop(server)
        report.line("start to healthy, empty folder", min(times[1:]) * 1000, unit="ms")
        time.sleep(1)
        family = [server.pid, *descendants(server.pid)]
        report.line(
            "idle memory", sum(map(pss_mb, family)), unit="MB", processes=len(family),
            rss_mb=round(sum(map(rss_mb, family)), 1),
        )  # fmt: skip
        before = sum(map(cpu_s, family))
        time.sleep(IDLE_S)
        used = sum(map(cpu_s, family)) - before
        report.line(f"CPU in {IDLE_S:.0f} s idle", used * 1000, unit="ms")
        stop(server)


def start(data: Path, environ: dict[str, str]) -> tuple[subprocess.Popen[bytes], int]:
    """On free ports: on a fixed one another server may answer, and this one be stopped and its
    folder removed while it starts."""
    command = [sys.executable, "-m", "armillary", "serve", "--data", str(data), "--port", "0"]
    server = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE)
    assert server.stdout is not None
    atexit.register(server.kill)  # nothing if it has ended
    for line in server.stdout:
        if line.startswith(b"ready "):
            return server, int(line.rpartition(b":")[2].strip(b"/\n "))
    raise SystemExit(f"the server did not start: it ended with {server.wait()}")


def stop(server: subprocess.Popen[bytes]) -> None:
    server.send_signal(signal.SIGTERM)
    try:
        server.wait(30)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
        raise


def wait_until_healthy(port: int, deadline: float) -> None:
    while time.perf_counter() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_armillary/health", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.002)
    raise SystemExit("the server did not become healthy in time")


def descendants(pid: int) -> list[int]:
    text = "".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    found = [int(word) for word in text.split()]
    return found + [one for child in found for one in descendants(child)]


def rss_mb(pid: int) -> float:
    return _from_rollup(pid, "Rss:")


def pss_mb(pid: int) -> float:
    return _from_rollup(pid, "Pss:")


def _from_rollup(pid: int, name: str) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise LookupError(name)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    main()
