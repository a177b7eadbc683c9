"""One child process that runs JavaScript, as its parent sees it.

The child answers each frame with one frame. The parent waits with a deadline; past it, or when the
child is gone, the child is killed and `ChildGone` says why. Killing is cheap: a child has no state
worth keeping, and a spare one waits (`pool.py`).

A script that computes for long gives way to all others: its process gets a lower priority. Where
the system does not let it have the old one back, it is replaced when the run has ended.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import select
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from armillary import limits
from armillary.errors import Unavailable
from armillary.scripts.children.bounds import Bounds
from armillary.turns import waiting

HEAD: Final = struct.Struct(">IB")
USED: Final = struct.Struct(">dI")
ENDED: Final = ord("D")
RECEIVE_BYTES: Final = 1 << 16
NICENESS_MAX: Final = 19
CPUCLOCK_SCHED: Final = 2  # of Linux: with a process's number, the clock of its CPU time
KEPT_VARIABLES: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")


class Answer(NamedTuple):
    kind: str
    """P: text of the library; D: the same, and the run has ended; B: does not compile; T: out of
    time; M: out of memory."""
    text: bytes
    cpu_seconds: float
    rss_kb: int


class ChildGone(Exception):
    """The child was killed for time (`timed_out`), died, or spoke nonsense."""

    def __init__(self, *, timed_out: bool) -> None:
        super().__init__("out of time" if timed_out else "the process ended")
        self.timed_out = timed_out


@cache
def _sources() -> dict[str, str]:
    """The library's files by name. Compiling is what a context costs, so comments stay behind."""
    folder = files("armillary.scripts") / "library"
    return {
        one.name.removesuffix(".js"): _without_comments(one.read_text("utf-8"))
        for one in sorted(folder.iterdir(), key=lambda one: one.name)
        if one.name.endswith(".js")
    }


def _without_comments(text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


@cache
def _engine_folder() -> str:
    """Where the engine's library is, found without loading it."""
    found = importlib.util.find_spec("_quickjs")
    if found is None or found.origin is None:
        raise Unavailable("Scripts need the package quickjs-ng, which is not installed.")
    return str(Path(found.origin).parent)


class Child:
    def __init__(self, bounds: Bounds) -> None:
        ours, theirs = socket.socketpair()
        environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        with theirs:
            # Without site and without the parent's environment: it starts in a third of the time
            # and knows nothing that a script could ask for.
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-s", "-P", "-B", str(Path(__file__).with_name("child.py"))],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**environment, "PYTHONPATH": _engine_folder()},
                close_fds=True,
                cwd=os.sep,
            )
        ours.setblocking(False)
        self._link = ours
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(ours, select.POLLIN)
        self._writable.register(ours, select.POLLOUT)
        self._is_fresh = False
        self._is_slowed = True  # not while it starts, which takes long on a busy machine
        self.runs = 0
        self.rss_kb = 0
        hello = {
            "sources": _sources(),
            "address_space_bytes": bounds.heap_bytes + limits.SCRIPT_PROCESS_BYTES,
            "bounds": {
                "seconds": bounds.seconds,
                "heap_bytes": bounds.heap_bytes,
                "stack_bytes": limits.SCRIPT_STACK_BYTES,
            },
        }
        try:
            self.ask(b"H", marshal.dumps(hello), time.monotonic() + limits.SCRIPT_START_SECONDS)
        except ChildGone:
            raise Unavailable("The process that runs scripts did not start.") from None
        self._is_fresh, self._is_slowed = True, False

    @property
    def pid(self) -> int:
        return int(self._process.pid)

    def ask(self, kind: bytes, data: bytes, deadline: float) -> Answer:
        """Send a frame and wait for the answer until `deadline` of the monotonic clock."""
        self._is_fresh = False
        with waiting():
            self._send(kind, data, deadline)
            answer = self._receive(HEAD.size, deadline)
        size, code = HEAD.unpack_from(answer)
        if not USED.size <= size <= limits.SCRIPT_FRAME_BYTES_MAX:
            self.kill()
            raise ChildGone(timed_out=False)
        if len(answer) < HEAD.size + size:
            answer += self._receive(HEAD.size + size - len(answer), deadline)
        cpu_seconds, self.rss_kb = USED.unpack_from(answer, HEAD.size)
        self._is_fresh = code == ENDED
        return Answer(chr(code), bytes(answer[HEAD.size + USED.size :]), cpu_seconds, self.rss_kb)

    def end_run(self) -> None:
        """The context goes; the child makes another while nothing waits for it. After the script's
        own end it does so by itself."""
        self.runs += 1
        if not self._is_fresh:
            self._send(b"X", b"", time.monotonic() + limits.SCRIPT_START_SECONDS)
            self._is_fresh = True

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def is_worn(self) -> bool:
        """It has run often, or grown, or is slow for ever: a fresh one is better."""
        return (
            self._is_slowed
            or self.runs >= limits.SCRIPT_CHILD_RUNS
            or self.rss_kb * 1024 > limits.SCRIPT_CHILD_RSS_BYTES
        )

    def kill(self) -> None:
        """Idempotent."""
        self._link.close()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    close = kill

    def _send(self, kind: bytes, data: bytes, deadline: float) -> None:
        view = memoryview(HEAD.pack(len(data), kind[0]) + data)
        while view:
            try:
                view = view[self._link.send(view) :]
            except BlockingIOError:
                self._wait(self._writable, deadline)
            except OSError:
                self._gone()

    def _receive(self, size: int, deadline: float) -> bytearray:
        """At least `size` bytes; of an answer there is never more than one."""
        found = bytearray()
        while len(found) < size:
            self._wait(self._readable, deadline)
            try:
                part = self._link.recv(max(RECEIVE_BYTES, min(size - len(found), 1 << 20)))
            except BlockingIOError:
                continue
            except OSError:
                part = b""
            if not part:
                self._gone()
            found += part
        return found

    def _slow_down(self) -> None:
        self._is_slowed = True
        with suppress(AttributeError, OSError):  # not on every system
            niceness = os.getpriority(os.PRIO_PROCESS, 0) + limits.SCRIPT_LONG_NICENESS
            os.setpriority(os.PRIO_PROCESS, self.pid, min(niceness, NICENESS_MAX))

    def recover(self) -> None:
        """After a run: give it the priority back that it had, where that is allowed."""
        if not self._is_slowed:
            return
        with suppress(AttributeError, OSError):  # a right that few have
            os.setpriority(os.PRIO_PROCESS, self.pid, os.getpriority(os.PRIO_PROCESS, 0))
            self._is_slowed = False

    def _cpu_seconds(self) -> float:
        """That the child has used: on a busy machine it may only have waited for its turn."""
        try:
            return time.clock_gettime(~self.pid << 3 | CPUCLOCK_SCHED)
        except (AttributeError, OSError):  # not on every system
            return time.monotonic()

    def _wait(self, until: select.poll, deadline: float) -> None:
        long, began = limits.SCRIPT_LONG_SECONDS, self._cpu_seconds()
        is_ready: object = False
        try:
            while not is_ready and (left := deadline - time.monotonic()) > 0:
                is_ready = until.poll((left if self._is_slowed else min(left, long)) * 1000 + 1)
                if not (is_ready or self._is_slowed) and self._cpu_seconds() - began >= long:
                    self._slow_down()
        except OSError:
            self._gone()
        if not is_ready:
            self._gone(timed_out=True)

    def _gone(self, *, timed_out: bool = False) -> NoReturn:
        self.kill()
        raise ChildGone(timed_out=timed_out) from None
