"""What the machine did meanwhile: two processes beside a measurement that do next to nothing.

    lateness   sleeps for 5 ms, over and over, and notes when it came back 20 ms or more too late:
               then nobody was scheduled, whatever was measured
    disk       writes 4 KB to a file of its own and syncs it, four times a second

Their times are those of `time.perf_counter`, which on Linux is one clock for all processes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_LATENESS = """
import time
while True:
    began = time.perf_counter()
    time.sleep(0.005)
    ended = time.perf_counter()
    if ended - began >= 0.025:
        print(began + 0.005, ended, flush=True)
"""
_DISK = """
import os, sys, time
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.pwrite(file, bytes(1 << 20), 0)
os.fsync(file)
at = 0
while True:
    time.sleep(0.25)
    os.pwrite(file, os.urandom(4096), at)
    at = (at + 4096) % (1 << 20)
    began = time.perf_counter()
    os.fdatasync(file)
    print(began, time.perf_counter(), flush=True)
"""


class Span(NamedTuple):
    began: float
    ended: float

    @property
    def ms(self) -> float:
        return 1000 * (self.ended - self.began)

    def shared_ms(self, other: Span) -> float:
        """How much of it lies in another one."""
        return 1000 * max(0.0, min(self.ended, other.ended) - max(self.began, other.began))


@dataclass(slots=True)
class Machine:
    late: list[Span] = field(default_factory=list)
    syncs: list[Span] = field(default_factory=list)

    def text(self) -> str:
        latest = max((one.ms for one in self.late), default=0.0)
        syncs = sorted(one.ms for one in self.syncs) or [0.0]
        p99 = syncs[int(0.99 * (len(syncs) - 1))]
        return (
            f"a process beside it was late {len(self.late)} times, by {latest:.0f} ms at most; a "
            f"sync of 4 KB beside it took p50 {syncs[len(syncs) // 2]:.1f}, p99 {p99:.1f}, "
            f"max {syncs[-1]:.1f} ms"
        )


@contextmanager
def watched(folder: Path) -> Iterator[Machine]:
    """What was found is in it afterwards. `folder` is on the disk in question."""
    machine = Machine()
    path = folder / "probe"
    lateness, disk = _start(_LATENESS), _start(_DISK, str(path))
    try:
        yield machine
    finally:
        machine.late, machine.syncs = _end(lateness), _end(disk)
        path.unlink(missing_ok=True)


def _start(text: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", text, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _end(process: subprocess.Popen[str]) -> list[Span]:
    process.terminate()
    out = process.communicate()[0]
    whole = out[: out.rfind("\n") + 1]  # the last line may be cut
    return [Span(*map(float, line.split())) for line in whole.splitlines()]
