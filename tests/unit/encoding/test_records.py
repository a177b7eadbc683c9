"""Without these, two threads that decode a record for the first time at the same moment could end
the process with signal 11.

The moment is forced: while one thread is inside msgspec's own Python code, working out an inner
class, another decodes the outer one. It runs in a process of its own, because of how it ends.
"""

import ast
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

SOURCE = Path(__file__).resolve().parents[3] / "src" / "armillary"
#: Classes made in the thread that decodes them; nobody else knows them yet.
#: Made while a query runs, known to others only with its decoder; made when an engine is opened,
#: before its threads are.
OWN_CLASSES = {
    Path("query/expr/decoding.py"),
    Path("api/gremlin/graph/adjacency.py"),
    Path("engine/messages.py"),
}
DECODING = {"Decoder", "decode", "convert"}

RACE = """
import sys, threading
from dataclasses import dataclass

import msgspec
from armillary.encoding.records import decoder

@dataclass
class Inner:
    number: int

@dataclass
class Outer:
    inner: tuple[Inner, ...]

def unprepared(row):
    return msgspec.json.decode(row, type=Outer)

decode = decoder(Outer) if sys.argv[1] == "prepared" else unprepared
inside, looked = threading.Event(), threading.Event()

def stop_inside(frame, event, argument):
    if frame.f_code.co_name == "get_dataclass_info" and frame.f_locals["obj"] is Inner:
        inside.set()
        looked.wait()

def first():
    sys.settrace(stop_inside)
    decode(b'{"inner": [{"number": 1}]}')
    inside.set()

def go_on(frame, event, argument):
    if frame.f_code.co_name == "_made":
        looked.set()  # this thread is about to wait for the first

thread = threading.Thread(target=first)
thread.start()
inside.wait()
sys.settrace(go_on)
assert decode(b'{"inner": [{"number": 1}]}') == Outer((Inner(1),))
looked.set()
thread.join()
"""


def run_race(how: str) -> int:
    return subprocess.run([sys.executable, "-c", RACE, how], timeout=120, check=False).returncode


def test_threads_find_finished_decoders_only() -> None:
    assert run_race("prepared") == 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.skipif(msgspec.__version__ != "0.22.0", reason="another msgspec may have mended it")
def test_the_race_is_real() -> None:
    """Or the test above would prove nothing."""
    assert run_race("unprepared") == -signal.SIGSEGV


def late_decoders(source: str) -> Iterator[int]:
    """Lines inside functions where msgspec is given a class to decode."""
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and _names_a_class(node):
                yield node.lineno


def _names_a_class(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    given = any(word.arg == "type" for word in call.keywords) or name.endswith("Decoder")
    return name.startswith("msgspec.") and name.split(".")[-1] in DECODING and given


def test_every_class_is_decoded_by_one_that_is_made_once() -> None:
    own = {*OWN_CLASSES, Path("encoding/records.py")}
    late = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE) not in own
        for line in late_decoders(path.read_text(encoding="utf-8"))
    ]
    assert late == [], "use armillary.encoding.records at the top level of the module"


@pytest.mark.parametrize(
    "line",
    [
        "msgspec.json.decode(row, type=Lease)",
        "msgspec.msgpack.decode(row, type=Lease)",
        "msgspec.convert(row, type=Lease)",
        "msgspec.json.Decoder(Lease)",
    ],
)
def test_a_late_decoder_is_caught(line: str) -> None:
    assert list(late_decoders(f"def read(row):\n    return {line}\n")) == [2]
    assert list(late_decoders(f"row = b''\nfound = {line}\n")) == []
