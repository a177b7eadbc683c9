"""One child process that runs JavaScript, as its parent sees it.

The child answers each frame with one frame. The parent waits with a deadline; past it, or when the
child is gone, the child is killed and `ChildGone` says why. Killing is cheap: a child has no state
worth keeping, and a spare one waits (`pool.py`).
"""

from __future__ import annotations

import importlib.util
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import orjson

from armillary import limits
from armillary.errors import Unavailable
from armillary.scripts.bounds import Bounds

T = TypeVar("T")

HEAD: Final = struct.Struct(">IB")
USED: Final = struct.Struct(">dI")
KEPT_VARIABLES: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")


class Answer(NamedTuple):
    kind: str
    """P: text of the library; B: does not compile; T: out of time; M: out of memory."""
    text: bytes
    cpu_seconds: float
    rss_kb: int


class ChildGone(Exception):
    """The child was killed for time (`timed_out`), died, or spoke nonsense."""

    def __init__(self, *, timed_out: bool) -> None:
        super().__init__("out of time" if timed_out else "the process ended")
        self.timed_out = timed_out


@cache
def _sources() -> list[str]:
    here = files("armillary.scripts")
    return [
        (here / name).read_text("utf-8")
        for name in ("errors.js", "library.js", "queries.js", "functions.js")
    ]


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
        self._link = ours
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
            self._send(b"H", orjson.dumps(hello), time.monotonic() + limits.SCRIPT_START_SECONDS)
        except ChildGone:
            raise Unavailable("The process that runs scripts did not start.") from None

    @property
    def pid(self) -> int:
        return int(self._process.pid)

    def ask(self, kind: bytes, data: bytes, deadline: float) -> Answer:
        """Send a frame and wait for the answer until `deadline` of the monotonic clock."""
        self._send(kind, data, deadline)
        head = self._receive(HEAD.size, deadline)
        size, code = HEAD.unpack(head)
        if not USED.size <= size <= limits.SCRIPT_FRAME_BYTES_MAX:
            self.kill()
            raise ChildGone(timed_out=False)
        data = self._receive(size, deadline)
        cpu_seconds, self.rss_kb = USED.unpack_from(data)
        return Answer(chr(code), data[USED.size :], cpu_seconds, self.rss_kb)

    def end_run(self) -> None:
        """The context goes; the child makes another while nothing waits for it."""
        self.runs += 1
        self._send(b"X", b"", time.monotonic() + limits.SCRIPT_START_SECONDS)

    def is_worn(self) -> bool:
        """It has run often, or grown: a fresh one is better."""
        return self.runs >= limits.SCRIPT_CHILD_RUNS or self.rss_kb * 1024 > (
            limits.SCRIPT_CHILD_RSS_BYTES
        )

    def kill(self) -> None:
        """Idempotent."""
        self._link.close()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    close = kill

    def _send(self, kind: bytes, data: bytes, deadline: float) -> None:
        frame = HEAD.pack(len(data), kind[0]) + data
        self._bounded(deadline, lambda: self._link.sendall(frame))

    def _receive(self, size: int, deadline: float) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            wanted = min(size - len(parts), 1 << 20)
            part = self._bounded(deadline, partial(self._link.recv, wanted))
            if not part:
                self.kill()
                raise ChildGone(timed_out=False)
            parts += part
        return bytes(parts)

    def _bounded(self, deadline: float, work: Callable[[], T]) -> T:
        try:
            self._link.settimeout(max(0.001, deadline - time.monotonic()))
            return work()
        except TimeoutError:
            self.kill()
            raise ChildGone(timed_out=True) from None
        except OSError:
            self.kill()
            raise ChildGone(timed_out=False) from None
