"""The words in which a script's failure is reported. Facts: scripts 1.2, 2.7, 4."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Final

from armillary.errors import ScriptFailed

if TYPE_CHECKING:
    from armillary.scripts.running import Thrown

COMPILING: Final = "Encountered exception while compiling Javascript."
EXECUTING: Final = "Encountered exception while executing Javascript."
COMPILE_NUMBER: Final = 65_535
NUMBER_MAX: Final = 2**31 - 1
FRAMES_MAX: Final = 20
#: Frames of the library and of the engine, which a reader of a stack trace did not write.
OURS: Final = ("(native)", "at Error (<input>")


def failure(name: str, thrown: Thrown, log: str = "") -> ScriptFailed:
    """A script threw, or aborted."""
    what = f"{thrown.name or 'Error'}: {thrown.message}" if thrown.isError else thrown.message
    trace = _stack(name, thrown)
    text = (
        "Encountered exception while executing function. "
        f"Exception = {what}\r\nStack trace: {what}\n{trace}"
    )
    return ScriptFailed(wrapped(text), sub_status=number_of(thrown), name=name, log=log)


def compile_failure(name: str, text: str) -> ScriptFailed:
    text = text.replace("<input>", f"{name}.js").strip()
    message = f"{COMPILING} Exception = {text}"
    return ScriptFailed(wrapped(message), sub_status=COMPILE_NUMBER, name=name)


def wrapped(text: str) -> str:
    """As the service nests it: JSON inside the message."""
    return f"Message: {json.dumps({'Errors': [text]}, ensure_ascii=False)}"


def number_of(thrown: Thrown) -> int:
    number = thrown.number
    if number is None or not math.isfinite(number) or abs(number) > NUMBER_MAX:
        return 0
    return int(number)


def _stack(name: str, thrown: Thrown) -> str:
    lines = [line.rstrip() for line in thrown.stack.splitlines() if line.strip()]
    kept = [line for line in lines if not any(mark in line for mark in OURS)]
    # The library calls the script by `apply`; what lies below is its own.
    for at, line in enumerate(lines):
        if "at apply (native)" in line:
            below = set(lines[at:])
            kept = [one for one in kept if one not in below]
            break
    shown = [f"   {line.strip()}" for line in kept[:FRAMES_MAX]]
    return "\n".join(shown).replace("<input>", f"{name}.js").replace("$entry", "Anonymous function")
