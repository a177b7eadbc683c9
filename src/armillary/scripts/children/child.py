"""The process that runs JavaScript. Started by file, it imports nothing of ours and reads frames.

    'H' hello     library, bounds (marshal)   ──▶ 'P' ready
    'S' start     settings, text, arguments   ──▶ 'P' what the script wants next, or 'D' its end
    'R' results   of its operations           ──▶ 'P' or 'D' …
    'F' functions their texts (marshal)       ──▶ 'P' ready, or what is wrong
    'C' calls     a block of rows             ──▶ 'P' results
    'X' end       of a run that did not come to 'D'

A frame is its length in four bytes, a kind in one, and text. An answer has the CPU time used and
the largest memory so far before its text. 'T' says that time ran out, 'M' that memory did, 'B' that
the text does not compile. After 'D' and 'X' the context goes, and another is made while nothing
waits for it. The engine never calls Python, so a script reaches this process only by the texts it
returns. What it may use is bounded here by the engine, and by the parent's clock.

Every import delays a first call, and everything else on the machine when
one child after another has to be replaced. `json` and `typing` would take twice as long as all the
rest, so the parent, which is the same Python, sends its own values as `marshal` has them.
"""

from __future__ import annotations

import marshal
import os
import struct
import sys
from _json import encode_basestring_ascii as quoted
from time import monotonic, process_time

import _quickjs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

HEAD = struct.Struct(">IB")
USED = struct.Struct(">dI")
START = struct.Struct(">II")
ENTRY = "$entry"
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024 if hasattr(os, "sysconf") else 4
LINK = 0  # the descriptor of the socket to the parent
READ_BYTES = 1 << 16
PENDING = '{"ops"'  # how the library begins when a script waits for operations
GROWN_KB = 3072  # more than before the first context, which has one; then memory is given back


class Ended(Exception):
    """The parent has closed the link."""


class Stopped(Exception):
    """The run is over: 'T' or 'M', and the engine's words."""

    def __init__(self, error: Exception | None = None) -> None:
        self.text = str(error or "")
        self.kind = "T" if error is None or is_interrupt(error) else "M"


def is_interrupt(error: Exception) -> bool:
    return str(error).startswith("InternalError: interrupted")


class Frames:
    """What the parent sends. One read usually has a whole frame."""

    def __init__(self) -> None:
        self._buffer = b""

    def read(self) -> tuple[str, bytes]:
        size, kind = HEAD.unpack_from(self._filled(HEAD.size))
        end = HEAD.size + size
        data = self._filled(end)
        self._buffer = data[end:]
        return chr(kind), data[HEAD.size : end]

    def _filled(self, size: int) -> bytes:
        if len(self._buffer) < size:
            parts, have = [self._buffer], len(self._buffer)
            while have < size:
                part = os.read(LINK, 1 << 20 if size - have > READ_BYTES else READ_BYTES)
                if not part:
                    raise Ended
                parts.append(part)
                have += len(part)
            self._buffer = b"".join(parts)
        return self._buffer


def write_frame(kind: str, text: str, began: float, rss_kb: int) -> None:
    data = text.encode("utf-8", "surrogatepass")
    used = USED.pack(process_time() - began, rss_kb)
    view = memoryview(HEAD.pack(len(used) + len(data), ord(kind)) + used + data)
    while view:
        view = view[os.write(LINK, view) :]


class Memory:
    """How large this process is. What the system calls the peak is no use: it begins with that of
    the process that started this one."""

    def __init__(self) -> None:
        self._first_kb = self._peak_kb()
        self._file: int | None = None
        self._trim = find_trim()
        try:  # while files may be opened; Linux only
            self._file = os.open("/proc/self/statm", os.O_RDONLY)
        except OSError:
            return
        self._first_kb = self.rss_kb()

    def give_back(self) -> None:
        """What the context before this one has freed. The C library would keep it: what a large
        script took would stay with a process that does nothing."""
        if self._trim is None or self._file is None:
            return
        if self.rss_kb() > self._first_kb + GROWN_KB:
            self._trim()

    def rss_kb(self) -> int:
        if self._file is not None:
            pages = int(os.pread(self._file, 100, 0).split()[1])
            return pages * PAGE_KB
        peak = self._peak_kb()
        return peak if peak > self._first_kb else 0

    @staticmethod
    def _peak_kb() -> int:
        try:
            import resource
        except ImportError:
            return 0
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak // 1024 if sys.platform == "darwin" else peak


def find_trim() -> Callable[[], object] | None:
    """`malloc_trim` of glibc. `ctypes` itself would take as long to import as half of the rest."""
    try:
        import _ctypes

        whole = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None: this program itself
        address = _ctypes.dlsym(whole, "malloc_trim")
    except (ImportError, AttributeError, OSError):  # another system
        return None
    return lambda: _ctypes.call_function(address, (0,))


def give_up_rights(address_space_bytes: int) -> None:
    """What the system can take away from a process that only computes."""
    try:
        import resource
    except ImportError:
        return
    wanted = {
        "RLIMIT_AS": address_space_bytes,
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_NOFILE": 3,
        "RLIMIT_NPROC": 0,
    }
    for name, most in wanted.items():
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        hard = resource.getrlimit(kind)[1]
        low = most if hard == resource.RLIM_INFINITY else min(most, hard)
        try:
            resource.setrlimit(kind, (low, low))
        except (OSError, ValueError):
            continue


class Machine:
    """One context at a time, with its bounds."""

    def __init__(self, sources: dict[str, str], bounds: dict[str, float]) -> None:
        self._core = sources.pop("core")
        self._functions = sources.pop("functions")
        self._errors = sources["errors"]
        self._parts = (" ".join(sources), *sources.values())
        self._bounds = bounds
        self._context: Any = None
        self._make: Any = None
        self._drive: Any = None
        self._began = 0.0
        self.prepare()

    def prepare(self) -> None:
        """A context that no script has seen, before one is asked for."""
        self._drive = self._make = self._context = None
        context = _quickjs.Context()
        context.set_memory_limit(int(self._bounds["heap_bytes"]))
        context.set_max_stack_size(int(self._bounds["stack_bytes"]))
        context.set_time_limit(self._bounds["seconds"])
        self._context = context
        self._make = context.eval(self._core)

    def start(self, data: bytes) -> tuple[str, str]:
        setup_end, text_end = START.unpack_from(data)
        setup = data[START.size : setup_end].decode()
        text = data[setup_end:text_end].decode("utf-8", "surrogatepass")
        # Before the script's own text: the library takes what it needs while nothing is changed.
        self._drive = self._made(self._make, setup, *self._parts)
        wrong = self._compile(ENTRY, text)
        if wrong is not None:
            return "B", wrong
        self._call("start", data[text_end:].decode("utf-8", "surrogatepass"))
        self._pump()
        return self._polled()

    def results(self, data: bytes) -> tuple[str, str]:
        if self._drive is None:
            raise Stopped
        self._call("results", data.decode())
        more = True
        while more:
            more = self._call("next")
            self._pump()
        return self._polled()

    def _polled(self) -> tuple[str, str]:
        text = self._text("poll")
        return "P" if text.startswith(PENDING) else "D", text

    def load(self, data: bytes) -> tuple[str, str]:
        self._drive = self._made(self._context.eval(self._functions), self._errors)
        entries = []
        for number, (name, text) in enumerate(marshal.loads(data)):
            wrong = self._compile(ENTRY + str(number), text)
            if wrong is not None:
                return "B", f"[{quoted(name)},{quoted(wrong)}]"
            entries.append(f'{{"name":{quoted(name)},"entry":"{ENTRY}{number}"}}')
        return "P", self._text("load", f"[{','.join(entries)}]")

    def calls(self, data: bytes) -> tuple[str, str]:
        return "P", self._text("call", data.decode())

    def _made(self, make: Any, *given: str) -> Any:
        try:
            return make(*given)
        except _quickjs.JSException as error:
            raise Stopped(error) from None

    def _text(self, *given: str) -> str:
        found = self._call(*given)
        return found if isinstance(found, str) else "{}"  # a script has changed the library

    def _call(self, *given: str) -> Any:
        self._began = process_time()
        try:
            return self._drive(*given)
        except _quickjs.JSException as error:
            raise Stopped(error) from None

    def _pump(self) -> None:
        """Promise jobs, until there are none. A chain without an end is cut by the clock."""
        seconds = self._bounds["seconds"]
        until = monotonic() + seconds
        try:
            while self._context.execute_pending_job():
                if monotonic() > until:
                    raise Stopped
        except _quickjs.JSException as error:
            raise Stopped(error) from None
        # The engine's own limit may cut a job first. A promise turns that into a rejection, and the
        # chain would look as if it had come to its end.
        if process_time() - self._began >= seconds:
            raise Stopped

    def _compile(self, name: str, text: str) -> str | None:
        """None, or why it does not compile. Defines a global that `drive` takes away again."""
        try:
            self._context.eval("var " + name + " = " + text)
        except _quickjs.JSException as error:
            if is_interrupt(error):
                raise Stopped from None
            return str(error)
        return None


def serve(machine: Machine, memory: Memory, frames: Frames) -> None:
    work: dict[str, Callable[[bytes], tuple[str, str]]] = {
        "S": machine.start,
        "R": machine.results,
        "F": machine.load,
        "C": machine.calls,
    }
    while True:
        kind, data = frames.read()
        if kind == "X":
            machine.prepare()
            memory.give_back()
            continue
        began = process_time()
        try:
            kind, text = work[kind](data)
        except Stopped as stopped:
            kind, text = stopped.kind, stopped.text
        except (MemoryError, _quickjs.JSException):
            kind, text = "M", ""
        write_frame(kind, text, began, memory.rss_kb())
        if kind == "D":
            machine.prepare()
            memory.give_back()


def main() -> None:
    frames = Frames()
    _, data = frames.read()
    hello = marshal.loads(data)
    memory = Memory()
    give_up_rights(hello["address_space_bytes"])
    machine = Machine(hello["sources"], hello["bounds"])
    write_frame("P", "", process_time(), memory.rss_kb())
    serve(machine, memory, frames)


if __name__ == "__main__":
    try:
        main()
    finally:
        os._exit(0)
